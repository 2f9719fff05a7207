"""The command line ``pointillist``. Only here does the package print; commands import what they need when they run."""

import sys
from collections.abc import Sequence

from pointillist.system import keep_printing

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad usage or input, 130 Ctrl-C, 143 SIGTERM."""
    keep_printing()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["demo"] and not {"-h", "--help"}.intersection(given):
            # A second process compiles while this one loads its libraries, so that learning begins sooner.
            from pointillist.kernels.precompile import begin_compiling

            begin_compiling(11)
        from pointillist.cli.app import run

        code = run(given)
    except KeyboardInterrupt:  # while modules were imported, or in the middle of saying what was interrupted
        code = 130
    raise SystemExit(code)
