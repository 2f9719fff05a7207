"""The clock of everything that is reported as seconds of work: it stands still while kernels are compiled."""

from pointillist.backends.compiling import watching_compilation, working_time

__all__ = ["watching_compilation", "working_time"]
