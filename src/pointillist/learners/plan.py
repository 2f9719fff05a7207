"""What a run will need before it starts: memory and disk from the sizes alone, and what to give up to stay within a limit.

The terms follow the arrays that the engine holds at its peak. What Python, the libraries and the compiled kernels take, and
how long a step lasts, cannot be known from sizes: the calibration measures these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil, prod
from typing import Any

from pointillist.dictionary.pairs import bytes_together
from pointillist.model.geometry import Geometry

MARGIN, ALLOWANCE = 1.1, 2 * 10**7
"""What allocators keep besides what was asked for: a part of it, and some in any case."""
_RECORD = 800
"""Bytes of one step's record in the history."""
_JSON_RECORD = 220
"""The same in a file."""
_CODE = 48
"""Bytes of a code in the working set: index, value, box, start, curvature, penalty, order, and copies of some."""
_KEPT_CODE = 12
"""Bytes of a code that is kept: index and value."""
_FILES = 3
"""Checkpoints on disk at the same time: the last two and the one that is being written."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The sizes of a run of learning.

    Parameters
    ----------
    n_filters, channels : int
    size : tuple of int
        Box of the filters.
    signal : tuple of int
        Spatial shape of the largest signal.
    n_signals : int
        In a pass.
    n_steps : int
    batch_size, n_jobs : int
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
    sampling : float
    boundary, statistics : str
        As in `OnlineCSC`.
    density : float
        Codes in the working set for each sample of a signal.
    held_out : int
        Samples of the signals that are followed during the run.
    checkpoints : bool
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
    sampling: float = 1.0
    boundary: str = "same"
    statistics: str = "toeplitz"
    density: float = 0.5
    held_out: int = 0
    checkpoints: bool = False

    @property
    def statistics_bytes(self) -> int:
        """Of B and C in float64."""
        taps = self.channels * prod(self.size)
        linear = 8 * self.n_filters * taps
        if self.statistics == "dense":
            return linear + 8 * self.channels * (self.n_filters * prod(self.size)) ** 2
        span = prod(2 * side - 1 for side in self.size)
        return linear + 8 * self.n_filters * (self.n_filters + 1) // 2 * span

    def memory(self) -> dict[str, int]:
        """Bytes at the peak, by what takes them."""
        geometry = Geometry(self.signal, self.size, self.channels, self.boundary)
        samples, positions = self.channels * prod(self.signal), geometry.n_positions
        # The statistics are added once all signals are solved for.
        adding = 0 if self.statistics == "dense" else bytes_together(positions, self.batch_size, self.density)
        work = max(self.n_jobs * self._one_signal(geometry), adding)
        kept = samples * (2 * self.itemsize + 8) + int(self.density * samples) * _KEPT_CODE
        ahead = min(self.prefetch, self.n_steps - 1) * self.batch_size
        span = prod(2 * side - 1 for side in self.size)
        return {
            # A sweep reads C in single precision, sorting the filters at the end moves it to a copy.
            "statistics": 2 * self.statistics_bytes + 40 * self.n_filters * span,
            "filters": self.n_filters * self.channels * prod(self.size) * (8 * self.itemsize + 40),
            "solving": work + self._sample(positions),
            "batch": self.batch_size * kept + self.held_out * (2 * self.itemsize + 8),
            "reading ahead": ahead * samples * self.itemsize + self.readers * self.reading,
            "image cache": self.cache,
            "history": _RECORD * self.n_steps + 8 * self.n_signals,
        }

    def _one_signal(self, geometry: Geometry) -> int:
        """What solving for one signal's codes holds: residuals, weights and scans, the working set, and float64 twins."""
        padded = geometry.padded_length * (4 * self.itemsize + 16)
        grid = geometry.n_positions * (4 * self.itemsize + 24)
        return padded + grid + int(self.density * geometry.n_positions) * _CODE

    def _sample(self, positions: int) -> int:
        """The choice of codes, made once for all signals of a shape; a large one is kept as a mask as well."""
        if self.sampling >= 1:
            return 0
        codes = self.n_filters * positions
        drawn = int(8 * 8 * self.sampling * codes)
        return drawn + (self.itemsize * codes if self.sampling > 0.25 else 0)

    def disk(self) -> int:
        """Bytes of the model file, and of the checkpoints while they are there."""
        model = 4 * self.n_filters * self.channels * prod(self.size) + _JSON_RECORD * self.n_steps
        return model + (_FILES * (model + self.statistics_bytes) if self.checkpoints else 0)


@dataclass(frozen=True)
class Plan:
    """What a run will need.

    Attributes
    ----------
    run : Run
    base : int
        Bytes that the process has before the run, libraries and compiled kernels included.
    seconds : float or None
        About how long learning takes; None where nobody measured.
    peak : int
        The most that the process has had so far.
    limit : int or None
        What the run was made to fit into.
    """

    run: Run
    base: int
    seconds: float | None = None
    peak: int = 0
    limit: int | None = None
    given_up: tuple[str, ...] = field(default=())

    @property
    def memory(self) -> int:
        """Bytes that the process will have at its peak, at most."""
        return max(self.peak, int(self.base + ALLOWANCE + MARGIN * sum(self.run.memory().values())))

    def parts(self) -> dict[str, int]:
        """The same by what takes it, the largest first."""
        parts = {"program": self.base, **self.run.memory()}
        return dict(sorted(parts.items(), key=lambda part: -part[1]))

    def line(self) -> str:
        """The plan in a few words."""
        largest = [f"{name} {in_bytes(size)}" for name, size in list(self.parts().items())[:3]]
        words = f"up to {in_bytes(self.memory)} of memory ({', '.join(largest)}), {in_bytes(self.run.disk())} on disk"
        return words if self.seconds is None else f"{words}, about {duration(self.seconds)}"

    def record(self) -> dict[str, Any]:
        """What a model or a checkpoint keeps of it: what was planned, and what a limit chose."""
        run = self.run
        chosen = {"batch_size": run.batch_size, "prefetch": run.prefetch, "cache": run.cache, "n_jobs": run.n_jobs}
        return {"memory": self.memory, "disk": run.disk(), "seconds": self.seconds, "limit": self.limit, **chosen}


def within(run: Run, limit: int, base: int, peak: int = 0) -> tuple[Run, tuple[str, ...]]:
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


def _concessions(run: Run) -> Iterator[tuple[Run, tuple[str, ...]]]:
    """The run as it is, then with ever less."""
    yield run, ()
    words: dict[str, str] = {}
    steps = [
        ("cache", 0, "image cache"),
        ("prefetch", 0, "batches read ahead"),
        ("batch_size", 1, "signals in a batch"),
        ("n_jobs", 1, "threads"),
    ]
    for name, least, what in steps:
        while (now := getattr(run, name)) > least:
            # Below 8 MB a cache holds nothing worth having.
            lower = now // 2 if name != "cache" or now > 2**24 else least
            run = _fewer(run, name, max(lower, least))
            shown = in_bytes(getattr(run, name)) if name == "cache" else str(getattr(run, name))
            words[name] = f"{what}: {shown}"
            yield run, tuple(words.values())


def _fewer(run: Run, name: str, value: int) -> Run:
    changed: dict[str, Any] = {name: value}
    if name != "batch_size":
        return replace(run, **changed)
    steps_a_pass = ceil(run.n_signals / run.batch_size)
    passes = run.n_steps / steps_a_pass
    return replace(run, batch_size=value, n_steps=round(passes * ceil(run.n_signals / value)))


def _reason(plan: Plan, limit: int) -> str:
    run, parts = plan.run, plan.parts()
    name = "program" if plan.base > limit else next(name for name in parts if name != "program")
    boxes = "×".join(map(str, run.size))
    advice = {
        "statistics": f"the statistics of {run.n_filters} filters of {boxes}: use fewer or smaller filters",
        "filters": f"the {run.n_filters} filters: use fewer",
        "solving": f"solving for a signal of {'×'.join(map(str, run.signal))}: learn from crops of it",
        "batch": f"a signal of {'×'.join(map(str, run.signal))} and its codes: learn from crops",
        "reading ahead": f"reading a signal, {'×'.join(map(str, run.signal))} at most: leave the largest files out",
        "program": "the program itself: nothing can be done about that",
        "history": f"the records of {run.n_steps:,} steps: take larger batches",
    }
    return f"of which {in_bytes(parts[name])} are {advice[name]}"


def in_bytes(amount: float) -> str:
    """``1.8 GB``: decimal units, as memory is bought."""
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
    """``50 s``, ``12 min``, ``3.5 h`` or ``2.1 days``."""
    for unit, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{max(seconds, 1):.0f} s"
