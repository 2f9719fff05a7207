"""What the layers above may know of CUDA devices; CuPy stays behind this module."""

from pointillist.backends.cuda.device import Device, is_cpu, open_device
from pointillist.backends.cuda.engine import Batch, Engine
from pointillist.backends.cuda.exchange import (
    all_to_host,
    any_resident,
    as_cupy,
    as_kind,
    is_resident,
    kind_of,
    pieces,
    rows,
    stacked,
    summed_by,
    to_host,
)  # fmt: skip
from pointillist.backends.cuda.plan import DEPTH, Plan, as_volume, batches, make_plan
from pointillist.backends.cuda.sums import CodeLists, DeviceSums

__all__ = [
    "DEPTH", "Batch", "CodeLists", "Device", "DeviceSums", "Engine", "Plan", "all_to_host", "any_resident",
    "as_cupy", "as_kind", "as_volume", "batches", "check_device", "is_cpu", "is_resident", "kind_of",
    "make_plan", "open_device", "pieces", "rows", "stacked", "summed_by", "to_host",
]  # fmt: skip


def check_device(device: str) -> None:
    """Refuse a device's name that is none, or that names a device that cannot be had."""
    if not is_cpu(device):
        open_device(device)
