"""What the bits of a result may depend on besides the code of the package."""

import platform
from importlib.metadata import version

from llvmlite import binding as llvm


def environment() -> dict[str, str]:
    """Versions of Python and of the numerical libraries, the machine and its processor."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
        "machine": platform.machine(),
        "processor": llvm.get_host_cpu_name(),
    }
