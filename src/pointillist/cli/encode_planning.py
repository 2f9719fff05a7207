"""The plan of a run of ``pointillist encode``: made from a look at the signals, and shown.

Sizes alone do not tell how many codes there will be: a few signals are coded and thrown away. So this is done only for
``--plan`` and ``--max-memory``.
"""

import time
import warnings
from dataclasses import dataclass
from math import prod
from pathlib import Path

from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from pointillist.cli.console import count
from pointillist.cli.encode_plan import EncodePlan, Pace, within
from pointillist.cli.encode_request import EncodeRequest
from pointillist.cli.forecast import middle, room, show_plan
from pointillist.cli.groups import ON_DEVICE, first_signals
from pointillist.cli.inputs import SignalReader
from pointillist.data.sources.derived import DEFAULT_CACHE, NORMALISING, survey
from pointillist.large import is_mapped
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.plan import duration, in_bytes
from pointillist.parallel import effective_jobs
from pointillist.problem import Geometry
from pointillist.reprs import sizes
from pointillist.system import memory_now, memory_peak


def usual_pace(model: BatchCSC | OnlineCSC) -> Pace:
    """The pace of a run without a limit."""
    n_jobs = effective_jobs(model.n_jobs)
    return Pace(n_jobs, 4 * n_jobs if model.device == "cpu" else ON_DEVICE, DEFAULT_CACHE)


def make_plan(request: EncodeRequest, model: BatchCSC | OnlineCSC, reader: SignalReader, first: int) -> EncodePlan:
    """What the run needs from signal `first` on, with a pace that keeps it within the limit that the request sets.

    Raises
    ------
    ValueError
        If no pace keeps the run within the limit.
    """
    seen = survey(reader.source)
    normalising = 0 if reader.wanted.normalise == "none" else NORMALISING * prod(seen.largest)
    ndim = model.filters_.ndim - 1 - model.channels
    trial = _Trial.of(model, reader)
    box = model.filters_.shape[1 + model.channels :]
    space = tuple(max(pair) for pair in zip(seen.largest[-ndim:], box, strict=True))
    geometry = Geometry(space, box, prod(seen.largest[:-ndim]), model.boundary)
    plan = EncodePlan(
        pace=usual_pace(model),
        n_signals=len(reader),
        done=first,
        geometry=geometry,
        itemsize=trial.itemsize,
        samples=seen.samples,
        density=trial.density,
        reading=max(seen.reading, normalising),
        mapped=trial.mapped,
        seconds=trial.seconds * seen.samples * (len(reader) - first),
        base=trial.base,
        peak=memory_peak(),
        parts=request.keeps_parts,
        events=request.events is not None,
    )
    return plan if request.limit is None else within(plan, request.limit)


@dataclass(frozen=True)
class _Trial:
    """What some coded signals tell: memory of the program, codes and seconds for a sample, bytes of one, where it lies."""

    base: int
    density: float
    seconds: float
    itemsize: int
    mapped: bool

    @classmethod
    def of(cls, model: BatchCSC | OnlineCSC, reader: SignalReader) -> "_Trial":
        """Code the middle of the first few signals twice, once to load and compile what that takes."""
        box = model.filters_.shape[1 + model.channels :]
        cut: list[NDArray] = []
        mapped = False
        for signal in first_signals(reader, 2 * effective_jobs(model.n_jobs)):
            mapped = mapped or is_mapped(signal)
            cut.append(middle(signal, box).copy())  # the whole signal need not stay in memory
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.encode(cut)
            base, begin = memory_now(), time.perf_counter()
            result = model.encode(cut)
        seconds, samples = time.perf_counter() - begin, sum(signal.size for signal in cut)
        return cls(base, result.codes.nnz / samples, seconds / samples, cut[0].dtype.itemsize, mapped)


def show(plan: EncodePlan, output: Path) -> None:
    """Print the whole plan, for ``--plan``."""
    channels = f" in {plan.geometry.channels} channels" if plan.geometry.channels > 1 else ""
    done = f", {plan.done:,} of them coded already" if plan.done else ""
    lines = [
        f"{count(plan.n_signals, 'signal')}, {sizes(plan.geometry.signal)} at most{channels}{done}; "
        f"{plan.pace.n_jobs} threads, {plan.pace.together} signals at a time",
        f"disk: about {in_bytes(plan.disk)}{' with parts' if plan.parts else ''}, {room(output)}; to be written: {output}",
        f"time: about {duration(plan.seconds)} on this machine",
    ]
    show_plan(plan, lines)
