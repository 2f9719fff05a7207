"""Files that the package writes and reads back: learned models, and writing that never leaves half a file.

Reading of input images and signals belongs to the data layer.
"""

from pointillist.storage.files import atomic_path, check_writable
from pointillist.storage.models import ModelFileError, StoredModel, load_model, save_model

__all__ = ["save_model", "load_model", "StoredModel", "ModelFileError", "atomic_path", "check_writable"]
