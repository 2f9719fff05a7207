"""Files that the package writes and reads back: arrays with metadata, models, codes, checkpoints; and never half a file.

Reading of input images and signals belongs to the data layer.
"""

from pointillist.storage.checkpoints import KEPT, CheckpointFolder, PartFolder
from pointillist.storage.codec import Stored, kind_of, own_version, read_arrays, write_arrays
from pointillist.storage.codes import load_codes, load_codes_metadata, read_codes, save_codes
from pointillist.storage.events import event_lines, write_events
from pointillist.storage.files import atomic_path, check_regular, check_writable, missing, remove_abandoned, stamp
from pointillist.storage.models import check_filters, load_model, save_model

__all__ = [
    "write_arrays", "read_arrays", "Stored", "save_model", "load_model", "check_filters", "save_codes", "load_codes",
    "load_codes_metadata", "CheckpointFolder", "KEPT", "atomic_path", "check_regular", "check_writable", "missing",
    "remove_abandoned", "stamp", "own_version", "write_events", "event_lines", "PartFolder", "read_codes", "kind_of",
]  # fmt: skip
