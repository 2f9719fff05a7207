"""The clock of everything that is reported as seconds of work: it stands still while kernels are compiled."""

from pointillist.kernels.compiling import awaits_kernels, watching_compilation, working_time

__all__ = ["awaits_kernels", "watching_compilation", "working_time"]
