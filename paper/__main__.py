"""Repeat the paper's figures and tables, say which of its claims hold, and write a report: ``python -m paper``.

An interrupted run keeps the figures that are finished; the same command goes on with the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper.report import FIGURES, REPORT, Record, redraw, reproduce


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or redraw, then say what holds; the exit code is 130 after Ctrl-C."""
    parser = argparse.ArgumentParser("python -m paper", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="fig1 to fig5, complexity; all by default")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the paper's images, not crops of shipped photographs")
    parser.add_argument("-o", "--output", type=Path, default=Path("report"), metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="everything on a small scale, in minutes")
    parser.add_argument(
        "--from", dest="results", type=Path, metavar="results.json", help="only draw the report of a finished run again"
    )
    given = parser.parse_args(arguments)
    if given.results is not None and (given.figures or given.quick or given.data is not None):
        parser.error("--from only draws a report again: leave out figures, --quick and --data")
    try:
        if given.results is not None:
            record = redraw(given.results, given.output)
        else:
            record = reproduce(
                given.figures or FIGURES,
                output=given.output,
                data=given.data,
                quick=given.quick,
                say=lambda text: print(text, file=sys.stderr),
            )
    except KeyboardInterrupt:
        print(f"finished figures are kept in {given.output}; the same command goes on with the others", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        parser.error(str(error))
    _summarise(record, given.output)
    return 0


def _summarise(record: Record, output: Path) -> None:
    for name, outcome in record.figures.items():
        for verdict in outcome.verdicts:
            word = "holds" if verdict.holds else "does not hold"
            print(f"{name:10}  {word:13}  {verdict.claim}: {verdict.ours} (paper: {verdict.paper})")
    print("", *record.remarks(), f"wrote {output / REPORT}", sep="\n")


if __name__ == "__main__":
    sys.exit(main())
