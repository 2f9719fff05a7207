"""``pointillist encode``: a model and files in, sparse codes and their certificates out."""

import time
import warnings
from collections.abc import Callable
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from pointillist.cli import encode_planning
from pointillist.cli.coded import Coded, coded_rows
from pointillist.cli.console import count, show_log, tell
from pointillist.cli.encode_plan import Pace
from pointillist.cli.encode_request import EncodeRequest
from pointillist.cli.encode_summary import save, summarise
from pointillist.cli.forecast import warn_early
from pointillist.cli.groups import groups, read_ahead
from pointillist.cli.inputs import SignalReader
from pointillist.cli.parts import Parts, run_identity
from pointillist.cli.progress import picture_progress
from pointillist.cli.reconstructions import Reconstructions
from pointillist.cli.stopping import Interrupted, is_interruption
from pointillist.learners import BatchCSC, OnlineCSC


def run(request: EncodeRequest, *, quiet: bool, verbose: bool) -> None:
    """Encode, save and tabulate."""
    show_log(quiet=quiet, verbose=verbose)
    model = request.load()
    wanted = request.wanted(model)
    reader = SignalReader(wanted, model.filters_.shape[1 + model.channels :], gaps=True)
    given, request = request, request.timed(reader.source.sampling_rates)
    if request is not given and not quiet:
        tell(f"times of events: a second has {request.sampling_rate:g} samples, as the tables say")
    identity = run_identity(request.model, request.choices(wanted), reader.source.describe())
    parts = Parts(request.output, request.survival, identity)
    coded, first = parts.begin(touch=not request.only_plan)
    pace = encode_planning.usual_pace(model)
    if request.only_plan or request.limit is not None:
        plan = encode_planning.make_plan(request, model, reader, first)
        if request.only_plan:
            encode_planning.show(plan, request.output)
            return
        if not quiet:
            tell(f"plan: {plan.line()}")
            warn_early(plan, request.output, disk=plan.disk, seconds=plan.seconds, survives=plan.parts)
        pace = plan.pace
        model.set_params(n_jobs=pace.n_jobs)
    pictures = None
    if request.reconstruction is not None:
        pictures = Reconstructions(request.reconstruction, wanted.normalise)
        for row in coded.rows:
            pictures.path(row.name)
    try:
        _encode(model, reader, coded, first, parts, pictures, pace, quiet=quiet)
        parts.notice_others()
        save(request, model, coded)
    except BaseException as error:
        parts.write(coded)
        if is_interruption(error):
            raise Interrupted(_left_undone(parts, coded, len(reader))) from None
        raise
    parts.clear()
    if not quiet:
        summarise(request, coded, 0 if pictures is None else pictures.count)


def _encode(
    model: BatchCSC | OnlineCSC,
    reader: SignalReader,
    coded: Coded,
    first: int,
    parts: Parts,
    pictures: Reconstructions | None,
    pace: Pace,
    *,
    quiet: bool,
) -> None:
    """Encode a few signals at a time, as many as keep all threads busy, so that residuals do not pile up."""
    total = len(reader)
    with picture_progress("encoding", 1, quiet=quiet) as progress:
        progress.begin("encoding")
        items = read_ahead(reader, first, coded.skipped, pace.ahead)
        for group in groups(items, pace.together, on_device=model.device != "cpu"):
            signals, following = [item.signal for item in group], group[-1].number + 1
            done = _part_of(progress.share, group[0].number / total, (following - group[0].number) / total)
            begin = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the table says so, signal by signal
                result = model.encode(signals, progress=done)
            rows = coded_rows([item.name for item in group], signals, result, time.perf_counter() - begin)
            if pictures is not None:
                for i, item in enumerate(group):
                    decode = partial(model.inverse_transform, result.codes[i])
                    pictures.write(item.name, item.signal, result.residuals[i], decode)
            codes = result.codes.on_host()
            codes.names = [item.name for item in group]
            coded.codes.append(codes)
            coded.rows += rows
            parts.add(codes, rows, following, coded)
    if not coded.rows:
        raise ValueError(f"none of the {total} signals can be used; the first: {coded.left_out()[0]['reason']}")


def _part_of(progress: Callable[[float], None], first: float, share: float) -> Callable[[float], None]:
    return lambda settled: progress(first + share * settled)


def _left_undone(parts: Parts, coded: Coded, total: int) -> str:
    """Say what Ctrl-C left undone, as the end of a sentence."""
    if not parts.kept or not coded.rows:
        return "no codes were written"
    return f"{len(coded.rows)} of {count(total, 'signal')} are coded and kept: go on with the same command and --resume"
