"""``pointillist learn``: files in, model file out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from pointillist.cli import planning
from pointillist.cli.console import show_log, tell, warn
from pointillist.cli.inputs import open_inputs, read_all
from pointillist.cli.learning_request import LearnRequest
from pointillist.cli.learning_summary import data_summary, examples, preprocessing, summarise
from pointillist.cli.progress import learning_progress
from pointillist.cli.stopping import GracefulStop, Stopped
from pointillist.data.sources import KeptSource, Source, Stream
from pointillist.learners import BatchCSC, FilterUpdate, OnlineCSC, Robust
from pointillist.learners.base import Callback
from pointillist.learners.cluster import local_cluster
from pointillist.learners.persistence import save
from pointillist.learners.plan import n_steps
from pointillist.learners.watching import JsonLog, TensorBoardEvents

VALIDATIONS = 12


def run(request: LearnRequest, *, quiet: bool, verbose: bool) -> None:
    """Learn, save and summarise."""
    show_log(quiet=quiet, verbose=verbose)
    request.check()
    before = request.output_stamp()
    source = open_inputs(request.wanted)
    model = make_learner(request)
    others = _held_out(request, source)
    # What a limit chose for the run that is resumed stays chosen: it is part of what was learned.
    record = request.survival.resumed_record(request.output)
    if request.only_plan or (request.limit is not None and record.get("limit") is None):
        plan = planning.make_plan(request, model, source, others, n_steps(model, len(source)))
        if request.only_plan:
            planning.show(plan, request.output, model)
            return
        record = plan.record()
        if not quiet:
            tell(f"plan: {plan.line()}")
            planning.warn_early(plan, request.output)
    if record.get("limit") is not None:
        planning.apply(record, model)
        source = open_inputs(request.wanted, cache=int(record["cache"]))
    held_out = None if others is None else read_all(others, request.wanted, request.box)[0]
    _look_through(request, source)
    how: dict[str, Any] = {"prefetch": int(record.get("prefetch", planning.PREFETCH))}
    how["checkpoint"] = request.survival.checkpoints(request.output, record)
    with _watching(request) as callbacks, _cluster(request) as cluster:
        how |= {"callbacks": callbacks, "cluster": cluster}
        ending, skipped = _learn(request, model, source, held_out, how, quiet=quiet)
    data = data_summary(request, source, skipped)
    if request.output_stamp() != before:
        warn(f"{request.output} was written by another program since this run began; this run's model takes its place")
    save(
        model,
        request.output,
        preprocessing=preprocessing(request),
        extra={"data": data, "stopped_early": ending.early} | ({"plan": record} if record else {}),
    )
    if not ending.early:
        request.survival.clear(request.output)
    if request.mosaic is not None or request.report is not None:
        _draw(request, model, data, source, others)
    if not quiet:
        steps = n_steps(model, len(source)) if ending.early else None
        summarise(request, model, len(source), skipped, steps)
    ending.tell()


def _draw(
    request: LearnRequest,
    model: BatchCSC | OnlineCSC,
    data: dict[str, Any],
    source: Source,
    others: Source | None,
) -> None:
    """Draw the filters and write the report that were asked for."""
    from pointillist.plot import save_mosaic, write_learning_report

    if request.mosaic is not None:
        save_mosaic(request.mosaic, model.filters_, channels=model.channels)
    if request.report is not None:
        about = {name: str(value) for name, value in data.items()} | {"normalise": request.wanted.normalise}
        write_learning_report(request.report, model, examples(request, source, others), data=about)


def _learn(
    request: LearnRequest,
    model: BatchCSC | OnlineCSC,
    source: Source,
    held_out: list[NDArray] | None,
    how: dict[str, Any],
    *,
    quiet: bool,
) -> tuple["Ending", dict[str, int]]:
    """Fit as planned, with arguments `how` of `OnlineCSC.fit`; returns how it ended, and what was left out."""
    if isinstance(model, BatchCSC):
        signals, skipped = read_all(source, request.wanted, request.box)
        return fit(model, signals, held_out, quiet=quiet, callbacks=how["callbacks"]), skipped
    how |= {"on_error": request.wanted.on_error, "resume": request.survival.resume}
    ending = fit(model, source, held_out, quiet=quiet, **how)
    return ending, model.skipped_


@dataclass(frozen=True)
class Ending:
    """How learning ended: the signal that came, if one did, and whether steps were left undone for it."""

    signal: int | None
    early: bool

    def tell(self) -> None:
        """End the command as one that a signal has ended; to be called when everything is saved and said."""
        if self.signal is not None:
            raise Stopped(self.signal)


def fit(
    model: BatchCSC | OnlineCSC,
    signals: Any,
    held_out: list[NDArray] | None,
    *,
    quiet: bool,
    validations: int = VALIDATIONS,
    callbacks: Sequence[Callback] = (),
    prepare: Callable[[], None] | None = None,
    **how: Any,
) -> Ending:
    """Fit with progress, judging the held-out signals about `validations` times; a signal ends it early.

    `signals` is a list of arrays or, for online learning, a source; `how` is for the learner's `fit`. What
    `prepare` compiles is part of the progress.
    """
    steps = n_steps(model, len(signals))
    with GracefulStop(announce=not quiet) as stop, learning_progress(steps, quiet=quiet) as progress:
        if prepare is not None:
            prepare()
        how["callbacks"] = [progress, *callbacks, stop]
        if isinstance(model, OnlineCSC) and held_out is not None:
            how["validation_every"] = max(1, steps // validations)
        model.fit(signals, validation=held_out, **how)
        # A request during the very last step leaves nothing undone.
        return Ending(stop.number, stop.requested and len(model.history_) < steps)


def make_learner(request: LearnRequest) -> BatchCSC | OnlineCSC:
    """The learner that the request describes."""
    given = {name: value for name, value in request.optional.items() if value is not None}
    updating = {name: given.pop(name) for name in ("init", "forgetting") if name in given}
    robust = Robust() if given.pop("robust", False) else None
    learner = BatchCSC if request.mode == "batch" else OnlineCSC
    return learner(**request.parameters, **given, robust=robust, update=FilterUpdate(**updating))


def _held_out(request: LearnRequest, source: Source) -> Source | None:
    if not request.validation:
        return None
    others = open_inputs(request.held_out)
    if request.wanted.crops is None:
        names = {others.name(i) for i in range(len(others))}
        both = sorted(names.intersection(source.name(i) for i in range(len(source))))
        if both:
            warn(f"--validation shares {len(both)} signals with the training ones, so it says little: {both[0]}")
    return others


def _look_through(request: LearnRequest, source: Source) -> None:
    """Find what cannot be used before the work begins, where that is to stop it, as long as signals can be kept."""
    if request.wanted.on_error == "raise" and isinstance(source, KeptSource):
        for (signal,) in Stream(source, shuffle=False, least=lambda signal: request.box):
            if source.cache.held + signal.nbytes > source.cache.limit:
                break


def _cluster(request: LearnRequest) -> AbstractContextManager[Any]:
    """The cluster that solves for codes, None for this process; local workers last as long as the context."""
    return nullcontext(request.scheduler) if request.workers is None else local_cluster(request.workers)


@contextmanager
def _watching(request: LearnRequest) -> Iterator[list[Callback]]:
    """The callbacks that write down how the run goes."""
    with ExitStack() as stack:
        callbacks: list[Callback] = []
        if request.log is not None:
            callbacks.append(stack.enter_context(JsonLog(request.log)))
        if request.tensorboard is not None:
            callbacks.append(stack.enter_context(TensorBoardEvents(request.tensorboard)))
        yield callbacks
