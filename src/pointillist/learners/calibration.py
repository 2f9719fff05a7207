"""What sizes cannot tell about a run: the memory that the program has anyway, and how long a step lasts on this machine."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.base import ConvolutionalLearner
from pointillist.learners.online import OnlineCSC
from pointillist.solvers.base import effective_jobs


def memory_now() -> int:
    """Bytes of this process in memory now; where the system does not tell, the most that it has had."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return memory_peak()


def memory_peak() -> int:
    """The most bytes that this process has had in memory.

    Not from getrusage on Linux: there the maximum is handed down by the process that started this one.
    """
    try:
        with open("/proc/self/status") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass(frozen=True)
class Pace:
    """How long learning takes: so many seconds for every step, and so many for every signal in it."""

    step: float
    signal: float

    def seconds(self, n_steps: int, n_signals: int) -> float:
        """Of a run of so many steps and so many signals in all of them together."""
        return n_steps * self.step + n_signals * self.signal


def warm_up(model: ConvolutionalLearner, shape: Sequence[int], dtype: Any = np.float32) -> int:
    """Load the libraries and compile the kernels by steps of a few filters with noise; bytes that the program then has.

    Parameters
    ----------
    model : BatchCSC or OnlineCSC
        Whose settings decide which kernels there are; it is left as it is.
    shape : ([channels,] *space)
        Of the noise; the filters must fit in.
    """
    few = [2] * len(model.n_filters) if isinstance(model.n_filters, list) else _FEW_FILTERS
    update = replace(model.update or FilterUpdate(), init="random")
    trial = _trial(model, n_filters=few, penalty=_PENALTY, update=update)
    count = 2 * effective_jobs(model.n_jobs)
    noise = np.random.default_rng(0).standard_normal((count, *shape)).astype(dtype)
    for _ in range(_WARM_STEPS):
        trial.partial_fit(noise)
    return memory_now()


_FEW_FILTERS = 8
_PENALTY = 1.0
_WARM_STEPS = 3


def measure_pace(model: ConvolutionalLearner, signals: Sequence[NDArray]) -> Pace:
    """Time a few steps of a throw-away learner with the model's settings, and with its memory; the kernels must be warm."""
    few = min(len(signals), effective_jobs(model.n_jobs))
    trial = _trial(model).partial_fit(list(signals[:few]))
    sizes, times = [], []
    for batch in (signals[:few], signals):
        before = trial.history_[-1]["seconds"]
        trial.partial_fit(list(batch))
        sizes.append(len(batch))
        times.append(trial.history_[-1]["seconds"] - before)
    rise = (times[1] - times[0]) / max(sizes[1] - sizes[0], 1)
    # Noise may hide the cost of the step itself, never that of a signal.
    signal = min(max(rise, 0.5 * times[1] / sizes[1]), times[1] / sizes[1])
    return Pace(max(times[1] - sizes[1] * signal, 0.0), signal)


def _trial(model: ConvolutionalLearner, **changed: Any) -> OnlineCSC:
    """An online learner with the settings that the model shares with it."""
    shared = {name: value for name, value in model.get_params(deep=False).items() if name in OnlineCSC().get_params()}
    return OnlineCSC(**{**shared, "random_state": 0, **changed})
