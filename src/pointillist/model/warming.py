"""Compilation in a second process, for the command line; see `kernels.warming`."""

from pointillist.kernels.warming import begin_compiling, compile_search, end_compiling, is_compiling

__all__ = ["begin_compiling", "compile_search", "end_compiling", "is_compiling"]
