"""What is begun for a command before anything is loaded that takes long."""

from collections.abc import Sequence

from pointillist.kernels.precompile import begin_compiling

FILTER_SIZE = 11
"""Side of the filters that ``pointillist demo`` learns."""


def begin_early(words: Sequence[str]) -> None:
    """Begin to compile in a second process if the words of a command line ask for the demo."""
    if list(words[:1]) == ["demo"] and not {"-h", "--help"}.intersection(words):
        begin_compiling(FILTER_SIZE)
