"""What a run will need before it starts: memory and disk from the sizes alone, and what to give up to stay within a limit.

The modules that allocate arrays say how many bytes these take. What Python, the libraries and the compiled kernels take, and
how long a step lasts, cannot be known from sizes: the calibration measures these.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod
from typing import Any, NamedTuple, TypeVar

from pointillist.codes import CODE_BYTES
from pointillist.dictionary.robust import outlier_bytes
from pointillist.dictionary.statistics import pair_bytes, statistics_bytes
from pointillist.dictionary.update import filter_bytes
from pointillist.learners.estimators import BatchCSC, OnlineCSC, default_passes
from pointillist.problem import Geometry
from pointillist.reprs import sizes
from pointillist.sampling import Sampling, as_draws, sample_bytes
from pointillist.solvers.memory import descent_bytes

Sizes = TypeVar("Sizes")

MARGIN, ALLOWANCE = 1.1, 2 * 10**7
"""Factor and bytes that are added to the forecast, because allocators keep more memory than was asked for."""
_RECORD = 800
"""Bytes of one step's record in the history."""


@dataclass(frozen=True, kw_only=True)
class RunSizes:
    """The sizes of a run of learning, from which its memory follows.

    Parameters
    ----------
    n_filters, channels : int
    size : tuple of int
        Box of the filters.
    signal : tuple of int
        Spatial shape of the largest signal.
    n_signals : int
        Signals in a pass.
    n_steps : int
        Steps of the whole run.
    batch_size, n_jobs : int
        As in `OnlineCSC`.
    prefetch : int
        Batches read ahead.
    cache : int
        Bytes of decoded signals kept.
    reading : int
        Bytes that reading one signal takes at its peak.
    readers : int
        Threads that read.
    itemsize : int
        Bytes of a sample.
    sampling : float or Draws
    boundary, statistics : str
        As in `OnlineCSC`.
    density : float
        Codes in the working set for each sample of a signal.
    held_out : int
        Samples of the signals that are followed during the run.
    robust : bool
        Whether windows are left out.
    checkpoints : bool
        Whether the run puts its state away.
    """

    n_filters: int
    channels: int
    size: tuple[int, ...]
    signal: tuple[int, ...]
    n_signals: int
    n_steps: int
    batch_size: int = 1
    n_jobs: int = 1
    prefetch: int = 2
    cache: int = 0
    reading: int = 0
    readers: int = 2
    itemsize: int = 4
    sampling: Sampling = 1.0
    boundary: str = "same"
    statistics: str = "toeplitz"
    density: float = 0.5
    held_out: int = 0
    robust: bool = False
    checkpoints: bool = False

    @cached_property
    def statistics_bytes(self) -> tuple[int, int]:
        """Bytes of the statistics, and bytes that updating and reordering filters takes besides."""
        return statistics_bytes(self.statistics, self.n_filters, self.channels, self.size)

    @property
    def _filter_samples(self) -> int:
        return self.n_filters * self.channels * prod(self.size)

    def memory(self) -> dict[str, int]:
        """Bytes at the peak, by what takes them."""
        geometry = Geometry(self.signal, self.size, self.channels, self.boundary)
        samples, positions = self.channels * prod(self.signal), geometry.n_positions
        # The statistics are added once all signals are solved for.
        adding = 0 if self.statistics == "dense" else pair_bytes(positions, self.batch_size, self.density)
        solving = max(self.n_jobs * descent_bytes(geometry, self.density, self.itemsize), adding)
        sample = 2 * self.itemsize + 8  # a signal, its residual, and one of them in float64
        kept = samples * sample + int(self.density * samples) * CODE_BYTES
        judging = outlier_bytes(samples, self.batch_size, self.itemsize) if self.robust else 0
        ahead = min(self.prefetch, self.n_steps - 1) * self.batch_size
        return {
            "statistics": sum(self.statistics_bytes),
            "filters": filter_bytes(self._filter_samples, self.itemsize),
            "solving": solving + sample_bytes(self.n_filters * positions, as_draws(self.sampling), self.itemsize),
            "batch": self.batch_size * kept + self.held_out * sample + judging,
            "reading ahead": ahead * samples * self.itemsize + self.readers * self.reading,
            "image cache": self.cache,
            "history": _RECORD * self.n_steps + 8 * self.n_signals,
        }

    def disk(self) -> int:
        """Bytes of the model file, and of the checkpoints while they are there."""
        return bytes_on_disk(
            4 * self._filter_samples, self.n_steps, self.statistics_bytes[0] if self.checkpoints else None
        )


@dataclass(frozen=True)
class Plan:
    """What a run of learning will need.

    Attributes
    ----------
    run : RunSizes
    base : int
        Bytes that the process has before the run, libraries and compiled kernels included.
    seconds : float or None
        About how long learning takes; None where nobody measured.
    peak : int
        The most bytes that the process has had so far.
    limit : int or None
        Bytes that the run was made to fit into.
    given_up : tuple of str
        What was given up for that, in words.
    """

    run: RunSizes
    base: int
    seconds: float | None = None
    peak: int = 0
    limit: int | None = None
    given_up: tuple[str, ...] = field(default=())

    @property
    def memory(self) -> int:
        """Bytes that the process will have at its peak, at most."""
        return max(self.peak, int(self.base + ALLOWANCE + MARGIN * sum(self.run.memory().values())))

    def uses(self) -> dict[str, int]:
        """Bytes of the program and of everything in `RunSizes.memory`, the largest first."""
        uses = {"program": self.base, **self.run.memory()}
        return dict(sorted(uses.items(), key=lambda use: -use[1]))

    def line(self) -> str:
        """The plan in a few words."""
        largest = [f"{name} {in_bytes(size)}" for name, size in list(self.uses().items())[:3]]
        words = f"up to {in_bytes(self.memory)} of memory ({', '.join(largest)}), {in_bytes(self.run.disk())} on disk"
        return words if self.seconds is None else f"{words}, about {duration(self.seconds)}"

    def record(self) -> dict[str, Any]:
        """What a model or a checkpoint keeps of the plan: what was planned, and what a limit chose."""
        run = self.run
        chosen = {"batch_size": run.batch_size, "prefetch": run.prefetch, "cache": run.cache, "n_jobs": run.n_jobs}
        return {"memory": self.memory, "disk": run.disk(), "seconds": self.seconds, "limit": self.limit, **chosen}


def bytes_on_disk(filters: int, n_steps: int, statistics: int | None = None) -> int:
    """The most bytes that the files of a run take: the model, and with statistics the checkpoints kept and one to come."""
    model = filters + 220 * n_steps
    return model if statistics is None else model + 3 * (model + statistics)


def n_steps(model: BatchCSC | OnlineCSC, n_signals: int) -> int:
    """Steps that `fit` takes with so many signals unless it is stopped."""
    if isinstance(model, BatchCSC):
        return model.max_iter
    n_epochs = model.n_epochs or default_passes(n_signals, model.batch_size)
    return n_epochs * ceil(n_signals / model.batch_size)


def within(run: RunSizes, limit: int, base: int, peak: int = 0) -> tuple[RunSizes, tuple[str, ...]]:
    """The run made to fit into so many bytes, and what was given up for that, in words.

    The image cache goes first and reading ahead second, which cost time only; then signals in a batch, which changes what is
    learned; then threads. Raises ValueError, with what takes the most, if even that does not fit.
    """
    for smaller, given_up in _concessions(run):
        if Plan(smaller, base, peak=peak).memory <= limit:
            return smaller, given_up
    least = Plan(smaller, base, peak=peak)
    raise ValueError(
        f"max_memory of {in_bytes(limit)} is not enough: even one signal at a time takes {in_bytes(least.memory)}, "
        f"{_reason(least, limit)}"
    )


def _concessions(run: RunSizes) -> Iterator[tuple[RunSizes, tuple[str, ...]]]:
    """Yield the run as it is, then versions of it that need less and less memory."""
    steps = [
        Concession("cache", 0, "image cache", in_bytes=True),
        Concession("prefetch", 0, "batches read ahead"),
        Concession("batch_size", 1, "signals in a batch"),
        Concession("n_jobs", 1, "threads"),
    ]
    return concessions(run, steps, _fewer)


class Concession(NamedTuple):
    """A size of a run that can be made smaller: its name, how small at the least, and what it is in words."""

    name: str
    least: int
    what: str
    in_bytes: bool = False


def concessions(
    run: Sizes, steps: Sequence[Concession], fewer: Callable[[Sizes, str, int], Sizes]
) -> Iterator[tuple[Sizes, tuple[str, ...]]]:
    """Yield the sizes of a run as they are, then ever smaller ones, halved one after the other, and these in words.

    ``fewer(run, name, value)`` is the run with another value of a size.
    """
    yield run, ()
    words: dict[str, str] = {}
    for step in steps:
        while (now := getattr(run, step.name)) > step.least:
            # Below 8 MB what is kept of signals is not worth keeping.
            lower = now // 2 if not step.in_bytes or now > 2**24 else step.least
            run = fewer(run, step.name, max(lower, step.least))
            value = getattr(run, step.name)
            words[step.name] = f"{step.what}: {in_bytes(value) if step.in_bytes else value}"
            yield run, tuple(words.values())


def _fewer(run: RunSizes, name: str, value: int) -> RunSizes:
    changed: dict[str, Any] = {name: value}
    if name != "batch_size":
        return replace(run, **changed)
    steps_a_pass = ceil(run.n_signals / run.batch_size)
    passes = run.n_steps / steps_a_pass
    return replace(run, batch_size=value, n_steps=round(passes * ceil(run.n_signals / value)))


def _reason(plan: Plan, limit: int) -> str:
    run, uses = plan.run, plan.uses()
    name = "program" if plan.base > limit else next(name for name in uses if name != "program")
    signal = f"a signal of {sizes(run.signal)}"
    advice = {
        "statistics": f"the statistics of {run.n_filters} filters of {sizes(run.size)}: use fewer or smaller filters",
        "filters": f"the {run.n_filters} filters: use fewer",
        "solving": f"solving for {signal}: learn from crops of it",
        "batch": f"{signal} and its codes: learn from crops",
        "reading ahead": f"reading {signal} or the chunk that it lies in: leave the largest files out",
        "program": "the program itself: nothing can be done about that",
        "history": f"the records of {run.n_steps:,} steps: take larger batches",
    }
    return f"of which {in_bytes(uses[name])} are {advice[name]}"


def in_bytes(amount: float) -> str:
    """Write a number of bytes as ``1.8 GB``, in decimal units."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= unit:
            return f"{amount / unit:.3g} {name}"
    return f"{amount:.0f} bytes"


def parse_bytes(text: str) -> int:
    """Bytes from ``2G``, ``1.5 GB``, ``500MB`` or a plain number; units are decimal, ``GiB`` and the like binary."""
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
    binary = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    word = text.strip().lower().removesuffix("b")
    number, unit = word.rstrip("kmgti"), word[len(word.rstrip("kmgti")) :]
    scale = binary.get(unit[:-1]) if unit.endswith("i") else units.get(unit)
    try:
        amount = float(number) * (scale if scale is not None else float("nan"))
    except ValueError:
        amount = float("nan")
    if not 0 < amount < float("inf"):
        raise ValueError(f"max_memory must be a size such as 2G or 500MB, got {text!r}")
    return int(amount)


def duration(seconds: float) -> str:
    """Write seconds as ``50 s``, ``12 min``, ``3.5 h`` or ``2.1 days``."""
    for unit, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{max(seconds, 1):.0f} s"
