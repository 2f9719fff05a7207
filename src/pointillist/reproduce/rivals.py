"""The learners to beat: SPORCO's where it is installed, our own frequency-domain ones otherwise. The report says which.

SPORCO is run as well as we know how: float32, planned transforms, the better number of threads, no statistics inside its
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.report.machine import installed
from pointillist.reproduce import frequency
from pointillist.reproduce.inputs import PENALTY
from pointillist.reproduce.judging import Path, shortest
from pointillist.solvers.base import effective_jobs

_QUIET = {"Verbose": False, "RelStopTol": 0.0, "DataType": np.float32, "FastSolve": True}
_TRIAL_ITERATIONS = 5
_FIXED = {"AutoRho": {"Enabled": False}, "HighMemSolve": True}


def has_sporco() -> bool:
    """Whether SPORCO is installed."""
    return find_spec("sporco") is not None


def rival_name() -> str:
    """What the frequency-domain learners of this run are."""
    return f"SPORCO {installed('sporco')}" if has_sporco() else "our own frequency-domain reference (no SPORCO here)"


def learn_batch(images: NDArray, start: NDArray, seconds: float) -> Path:
    """Batch learning for so many seconds (of learning): SPORCO's consensus learner, or our reference."""
    return _sporco_batch(images, start, seconds) if has_sporco() else _reference_batch(images, start, seconds)


def learn_online(
    images: NDArray, start: NDArray, *, passes: int, due: Callable[[int], bool] = lambda step: True
) -> Path:
    """Online learning, one image at a time: SPORCO's online learner with its default steps, or our reference."""
    if has_sporco():
        return _sporco_online(images, start, passes, due)
    return frequency.learn_online(images, start, passes=passes, due=due)


def _reference_batch(images: NDArray, start: NDArray, seconds: float) -> Path:
    path = Path("frequency domain, batch")
    learner = frequency.BatchFrequency(images, start)
    for number, _ in enumerate(learner, 1):
        path.add(learner.seconds, number * len(images), learner.filters)
        if learner.seconds >= seconds:
            return path
    return path


def _sporco_batch(images: NDArray, start: NDArray, seconds: float) -> Path:
    from sporco.dictlrn import cbpdndl

    _use_best_threads(images, start)
    path = Path("SPORCO batch (consensus)")
    how = {"xmethod": "admm", "dmethod": "cns"}
    options = cbpdndl.ConvBPDNDictLearn.Options(
        {
            "AccurateDFid": False,
            "MaxMainIter": 10**6,
            "CBPDN": {"FastSolve": True, "DataType": np.float32, "rho": 50.0, **_FIXED},
            "CCMOD": {"FastSolve": True, "DataType": np.float32, "rho": 10.0, "AutoRho": {"Enabled": False}},
        },
        **how,
    )
    marks = list(np.geomspace(seconds / 8, seconds, 6))

    def keep(learner: Any) -> bool:
        spent = learner.timer.elapsed("solve_wo_eval")
        if marks and spent >= marks[0]:
            path.add(spent, len(images) * (learner.j + 1), _as_ours(learner.getdict()))
            marks[:] = [mark for mark in marks if mark > spent]
        return not marks

    options.update({"Callback": keep})
    learner = cbpdndl.ConvBPDNDictLearn(_as_sporco(start), _as_sporco(images), PENALTY, options, dimK=1, **how)
    learner.solve()
    return path


def _sporco_online(images: NDArray, start: NDArray, passes: int, due: Callable[[int], bool]) -> Path:
    from sporco.dictlrn import onlinecdl

    _use_best_threads(images[:1], start)
    path = Path("SPORCO online")
    coder = {**_QUIET, **_FIXED, "rho": 10.0, "MaxMainIter": 50}
    options = onlinecdl.OnlineConvBPDNDictLearn.Options(
        {"DataType": np.float32, "eta_a": 10.0, "eta_b": 5.0, "CBPDN": coder}
    )
    learner = onlinecdl.OnlineConvBPDNDictLearn(_as_sporco(start), PENALTY, options, dimK=0)
    step = 0
    for number in range(passes):
        for i in np.random.default_rng(number).permutation(len(images)):
            learner.solve(images[i])
            step += 1
            if due(step) or step == passes * len(images):
                path.add(learner.timer.elapsed("solve_wo_eval"), step, _as_ours(learner.getdict()))
    return path


def _use_best_threads(images: NDArray, filters: NDArray) -> None:
    """Give SPORCO one thread or all, whichever codes faster: small transforms may lose more by waiting than they gain."""
    from sporco.admm import cbpdn

    options = cbpdn.ConvBPDN.Options({**_QUIET, **_FIXED, "rho": 10.0, "MaxMainIter": _TRIAL_ITERATIONS})

    def seconds(count: int) -> float:
        _use_threads(count)
        coder = cbpdn.ConvBPDN(_as_sporco(filters), _as_sporco(images), PENALTY, options, dimK=1)
        return shortest(coder.solve, 2)

    _use_threads(min({1, effective_jobs(None)}, key=seconds))


def _use_threads(count: int) -> None:
    import sporco.fft

    sporco.fft.pyfftw_threads = count
    if find_spec("numexpr") is not None:
        import numexpr

        numexpr.set_num_threads(count)


def _as_sporco(stack: NDArray) -> NDArray:
    return np.ascontiguousarray(np.moveaxis(stack, 0, -1), np.float32)


def _as_ours(dictionary: NDArray) -> NDArray:
    return np.ascontiguousarray(np.moveaxis(np.squeeze(dictionary), -1, 0))
