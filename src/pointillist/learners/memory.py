"""How much memory this process has, as each operating system tells it."""

import mmap
import sys
from pathlib import Path
from typing import Any


def memory_now() -> int:
    """Bytes of this process in memory now; where the system does not tell, the most that it has had."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    if sys.platform == "win32":
        return int(_windows_counters().WorkingSetSize)
    return memory_peak()


def memory_peak(process: int | None = None) -> int:
    """The most bytes that this process, or on Linux another, has had in memory; 0 where the system does not tell."""
    if sys.platform == "linux":
        # Not from getrusage: there the maximum is handed down by the process that started this one.
        lines = Path(f"/proc/{process or 'self'}/status").read_text().splitlines()
        return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    if process is not None:
        return 0
    if sys.platform == "win32":
        return int(_windows_counters().PeakWorkingSetSize)
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _windows_counters() -> Any:
    import ctypes
    from ctypes import wintypes

    sizes = "PeakWorkingSetSize WorkingSetSize PeakPaged Paged PeakNonPaged NonPaged Pagefile PeakPagefile"

    class Counters(ctypes.Structure):
        _fields_ = [
            ("cb", wintypes.DWORD),
            ("PageFaultCount", wintypes.DWORD),
            *[(name, ctypes.c_size_t) for name in sizes.split()],
        ]

    counters = Counters(cb=ctypes.sizeof(Counters))
    system: Any = ctypes
    process = system.windll.kernel32.GetCurrentProcess
    process.restype = wintypes.HANDLE
    asked = system.windll.psapi.GetProcessMemoryInfo
    asked.argtypes = [wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD]
    asked(process(), ctypes.byref(counters), counters.cb)
    return counters
