"""All that the layers above `kernels` import for CUDA devices; CuPy stays behind this module."""

from pointillist.cuda.device import STREAMS, Device, is_cpu, open_device
from pointillist.cuda.engine import Engine, SignalGroup
from pointillist.cuda.exchange import (
    Rows,
    all_to_host,
    any_resident,
    as_cupy,
    as_kind,
    is_resident,
    kind_of,
    members_of,
    pieces,
    rows,
    stacked,
    summed_by,
    to_host,
)  # fmt: skip
from pointillist.cuda.plan import DEPTH, KernelPlan, as_volume, make_plan, signal_groups
from pointillist.cuda.sums import CodeLists, DeviceSums

__all__ = [
    "DEPTH", "STREAMS", "SignalGroup", "CodeLists", "Device", "DeviceSums", "Engine", "KernelPlan", "Rows", "all_to_host",
    "any_resident",
    "as_cupy", "as_kind", "as_volume", "signal_groups", "check_device", "is_cpu", "is_resident", "kind_of",
    "make_plan", "members_of", "open_device", "pieces", "rows", "stacked", "summed_by", "to_host",
]  # fmt: skip


def check_device(device: str) -> None:
    """Refuse a string that names no device, and a device that is not there."""
    if not is_cpu(device):
        open_device(device)
