"""Files that the package writes and reads back: models, checkpoints, and writing that never leaves half a file.

Reading of input images and signals belongs to the data layer.
"""

from pointillist.storage.checkpoints import CheckpointFolder, StoredCheckpoint
from pointillist.storage.files import atomic_path, check_writable, remove_leftovers
from pointillist.storage.models import StoredModel, load_model, own_version, save_model

__all__ = [
    "save_model",
    "load_model",
    "StoredModel",
    "CheckpointFolder",
    "StoredCheckpoint",
    "atomic_path",
    "check_writable",
    "remove_leftovers",
    "own_version",
]
