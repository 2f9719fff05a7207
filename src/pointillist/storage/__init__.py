"""Files that the package writes and reads back: arrays with metadata, models, codes, checkpoints; and never half a file.

Reading of input images and signals belongs to the data layer.
"""

from pointillist.storage.codec import (
    CheckpointFolder,
    PartFolder,
    Stored,
    check_filters,
    event_lines,
    kind_of,
    load_codes,
    load_codes_metadata,
    load_model,
    own_version,
    read_arrays,
    read_codes,
    save_codes,
    save_model,
    write_arrays,
    write_events,
)
from pointillist.storage.files import atomic_path, check_regular, check_writable, missing, read_whole, stamp

__all__ = [
    "write_arrays", "read_arrays", "Stored", "save_model", "load_model", "check_filters", "save_codes", "load_codes",
    "load_codes_metadata", "CheckpointFolder", "atomic_path", "check_regular", "check_writable", "missing", "stamp",
    "own_version", "write_events", "event_lines", "PartFolder", "read_codes", "kind_of", "read_whole",
]  # fmt: skip
