"""Photographs as files: pixels in their own type with everything that the file says about them, and back.

A `Photograph` is read by `read_photograph` and written by `write_photograph`; what is done to its pixels in between is no
business of this package. Signals for learning are read by the modules beside it, which keep samples alone.
"""

from pointillist.data.photofiles.files import photograph_size, read_photograph, write_photograph
from pointillist.data.photofiles.photograph import READABLE_SUFFIXES, Metadata, Photograph, answer_suffix, check_format

__all__ = [
    "Photograph", "Metadata", "read_photograph", "write_photograph", "photograph_size", "check_format",
    "answer_suffix", "READABLE_SUFFIXES",
]  # fmt: skip
