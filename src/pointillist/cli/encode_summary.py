"""What ``pointillist encode`` writes and says when a run has ended."""

from pointillist.cli.coded import Coded, print_json, print_table, write_table
from pointillist.cli.console import count, say, tell, warn, write
from pointillist.cli.encode_request import EncodeRequest
from pointillist.cli.paths import DASH
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.solvers.base import Status
from pointillist.storage import event_lines, save_codes, write_events


def save(request: EncodeRequest, model: BatchCSC | OnlineCSC, coded: Coded) -> None:
    """Write the codes file, and what else is asked for; seconds are no part of the file, which is to be the same again."""
    codes, named = coded.all_codes(), ("name", "seconds")
    signals = [{name: value for name, value in row.entry().items() if name not in named} for row in coded.rows]
    save_codes(codes, request.output, {**request.facts(model), "signals": signals, "skipped": coded.left_out()})
    if request.events is not None:
        events = codes.events(sampling_rate=request.sampling_rate or 1.0)
        write(event_lines(events)) if request.events == DASH else write_events(events, request.events)
    if request.table is not None:
        write_table(coded, request.table)
    if request.as_json:
        print_json(coded, {"output": str(request.output), **request.facts(model)})


def summarise(request: EncodeRequest, coded: Coded, n_pictures: int) -> None:
    """Print a table of the signals and what was written, but nothing on stdout that is for another program."""
    print_ = tell if request.to_stdout else say
    if not request.to_stdout:
        print_table(coded)
    skipped = f" ({len(coded.skipped)} skipped)" if coded.skipped else ""
    print_(f"wrote the codes of {count(len(coded.rows), 'signal')}{skipped} to {request.output}")
    if request.events not in (None, DASH):
        print_(f"wrote {count(sum(row.nonzeros for row in coded.rows), 'event')} to {request.events}")
    if request.table not in (None, DASH):
        print_(f"wrote a table of the signals to {request.table}")
    if request.reconstruction is not None:
        print_(f"wrote {count(n_pictures, 'picture')} to {request.reconstruction}")
    short = [row.status for row in coded.rows if row.status is not Status.CONVERGED]
    if short:
        warn(f"{len(short)} of {len(coded.rows)} signals did not converge: {short[0].advice}")
