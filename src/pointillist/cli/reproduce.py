"""``pointillist reproduce``: the paper's figures from our code, with verdicts, in one page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from pointillist.cli.console import say, show_log, tell, warn
from pointillist.reproduce import FIGURES, redraw, reproduce
from pointillist.reproduce.record import Record, remarks
from pointillist.reproduce.running import REPORT, RESULTS
from pointillist.storage import check_writable


def run(
    figures: Sequence[str], output: Path, *, data: Path | None, quick: bool, results: Path | None, quiet: bool
) -> None:
    """Run or redraw, then say what holds."""
    show_log(quiet=quiet)
    if results is not None:
        if figures or quick or data is not None:
            raise ValueError("--from only draws a report again: leave out figures, --quick and --data")
        record = redraw(results, output)
    else:
        if output.is_dir():
            check_writable(output / REPORT)
        try:
            record = reproduce(figures or FIGURES, output=output, data=data, quick=quick, say=_teller(quiet))
        except KeyboardInterrupt:
            warn(f"finished figures are kept in {output}; the same command goes on with the others")
            raise
    if not quiet:
        _summarise(record, output, drawn_only=results is not None)


def _teller(quiet: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        if not quiet:
            tell(text, style="dim")

    return say


def _summarise(record: Record, output: Path, *, drawn_only: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_lines=False)
    for heading in ("where", "claim", "paper", "ours", "verdict"):
        table.add_column(heading, overflow="fold")
    for name, outcome in record.figures.items():
        for verdict in outcome.verdicts:
            word = "holds" if verdict.holds else "does not hold"
            style = "green" if verdict.holds else "yellow"
            table.add_row(name, verdict.claim, verdict.paper, verdict.ours, Text(word, style))
    files = [output / REPORT] if drawn_only else [output / REPORT, output / RESULTS]
    say(table, "", *remarks(record), f"wrote {' and '.join(str(path) for path in files)}")
