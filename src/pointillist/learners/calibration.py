"""Measured by throw-away steps before a run: the memory of the program itself, and how long a step lasts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.codes import SparseCodes
from pointillist.dictionary.statistics import CodedBatch
from pointillist.dictionary.update import FilterUpdate
from pointillist.kernels.compiling import working_time
from pointillist.learners.estimators import ConvolutionalLearner, OnlineCSC, training_step
from pointillist.learners.step import LocalCodes
from pointillist.parallel import effective_jobs
from pointillist.problem import Geometry
from pointillist.system import memory_now


@dataclass(frozen=True)
class Pace:
    """How long learning takes: so many seconds for every step, and so many for every signal in it."""

    step: float
    signal: float

    def seconds(self, n_steps: int, n_signals: int) -> float:
        """Seconds that a run takes, by its steps and by the signals of all of them together."""
        return n_steps * self.step + n_signals * self.signal


def warm_up(model: ConvolutionalLearner, shape: Sequence[int]) -> int:
    """Load the libraries and compile the kernels by a few steps on noise; returns the bytes that the program then has.

    Parameters
    ----------
    model : BatchCSC or OnlineCSC
        Its settings decide which kernels there are; it is left as it is.
    shape : ([channels,] *space)
        Shape of the noise; the filters must fit in.
    """
    few = [2] * len(model.n_filters) if isinstance(model.n_filters, list) else _FEW_FILTERS
    update = replace(model.update or FilterUpdate(), init="random")
    trial = _trial(model, n_filters=few, penalty=_PENALTY, update=update)
    count = 2 * effective_jobs(model.n_jobs)
    noise = np.random.default_rng(0).standard_normal((count, *shape)).astype(np.float32)
    for _ in range(_WARM_STEPS):
        trial.partial_fit(noise)
    return memory_now()


def compile_update(model: ConvolutionalLearner, shape: Sequence[int]) -> None:
    """Compile the kernels that a step needs behind its solver, by a step of a throw-away learner with made-up codes.

    Parameters
    ----------
    model : BatchCSC or OnlineCSC
        As for `warm_up`.
    shape : ([channels,] *space)
        As for `warm_up`.
    """
    step = training_step(_trial(model, n_filters=_FEW_FILTERS))
    batch = step.check(np.random.default_rng(0).standard_normal((1, *shape)).astype(np.float32))
    state = step.start(batch, 0)
    geometry = Geometry(batch.signals[0].shape[1:], state.filters.shape[2:], state.filters.shape[1], step.boundary)
    codes = SparseCodes([np.arange(2)], [np.ones(2, np.float32)], [geometry.grid], _FEW_FILTERS)
    coded = CodedBatch(batch.signals, None, codes, batch.signals, step.boundary)
    step.learn(state, LocalCodes(coded, 0.0), np.ones(1), working_time())


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
