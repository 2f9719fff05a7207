"""Rank-one filters from simulated recordings of many sensors, with alphacsc beside us: ``python -m benchmarks.meg``.

A recording is a sum of events, each a shape in time that all sensors see with the weights of one pattern, and white noise.
How well a learner has found them is told by cosines: of patterns, and of shapes after the best shift.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.signal
from numpy.typing import NDArray

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.tables import Findings, Table


@dataclass(frozen=True)
class Recording:
    """Simulated signals and what they were made from.

    Attributes
    ----------
    signals : (n_signals, channels, samples) array
    patterns : (n_filters, channels) array
        Of unit norm.
    shapes : list of (taps,) arrays
        Of unit norm and different lengths.
    """

    signals: NDArray
    patterns: NDArray
    shapes: list[NDArray]


def simulate(
    *,
    channels: int = 204,
    n_filters: int = 10,
    taps: tuple[int, int] = (64, 128),
    n_signals: int = 20,
    samples: int = 1500,
    rate: float = 1e-3,
    snr: float = 0.0,
    seed: int = 0,
) -> Recording:
    """Make recordings: smooth random shapes of `taps` samples, random patterns, sparse non-negative activations.

    Parameters
    ----------
    rate : float
        Events of each filter in a sample; their amplitudes are uniform in [1, 2].
    snr : float
        Energy of the events by that of the white noise, over all channels and samples, in decibels.
    """
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((n_filters, channels))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    shapes = [_smooth_shape(rng, int(rng.integers(taps[0], taps[1] + 1))) for _ in range(n_filters)]
    clean = np.zeros((n_signals, channels, samples))
    for signal in clean:
        for pattern, shape in zip(patterns, shapes, strict=True):
            activations = np.where(rng.random(samples) < rate, rng.uniform(1, 2, samples), 0)
            signal += np.multiply.outer(pattern, scipy.signal.fftconvolve(activations, shape)[:samples])
    sigma = np.sqrt(np.mean(clean**2) / 10 ** (snr / 10))
    noisy = clean + sigma * rng.standard_normal(clean.shape)
    return Recording((noisy / sigma).astype(np.float32), patterns, shapes)


def _smooth_shape(rng: np.random.Generator, taps: int) -> NDArray:
    """Noise of few frequencies under a window, of unit norm."""
    smooth = scipy.signal.fftconvolve(rng.standard_normal(2 * taps), np.hanning(taps // 4), mode="same")
    shape = smooth[taps // 2 : taps // 2 + taps] * np.hanning(taps)
    return shape / np.linalg.norm(shape)


def recovery(recording: Recording, patterns: NDArray, shapes: NDArray) -> tuple[NDArray, NDArray]:
    """Cosines of patterns and of shapes for every true filter, matched one to one so that the sum of products is largest.

    Parameters
    ----------
    patterns : (n_found, channels) array
    shapes : (n_found, taps) array
    """
    of_patterns = np.abs(recording.patterns @ (patterns / np.linalg.norm(patterns, axis=1, keepdims=True)).T)
    of_shapes = np.array([[_shifted_cosine(truth, found) for found in shapes] for truth in recording.shapes])
    truth, found = scipy.optimize.linear_sum_assignment(-of_patterns * of_shapes)
    return of_patterns[truth, found], of_shapes[truth, found]


def _shifted_cosine(truth: NDArray, found: NDArray) -> float:
    norm = float(np.linalg.norm(found))
    return float(np.max(np.abs(np.correlate(found, truth, "full")))) / norm if norm > 0 else 0.0


def learn(recording: Recording, *, share: float = 0.1, n_filters: int = 10, taps: int = 128, **settings: Any) -> Any:
    """Learn rank-one filters with a penalty that is a `share` of the largest useful one; `settings` are the learner's.

    With ``n_epochs`` `OnlineCSC` learns, otherwise `BatchCSC`.
    """
    settings = {"rank": 1, "update": pt.FilterUpdate(init="patches"), **settings}
    penalty = settings.pop("penalty", None) or share * largest_penalty(recording, taps)
    kind = pt.OnlineCSC if "n_epochs" in settings else pt.BatchCSC
    model = kind(n_filters, taps, penalty, channels=True, nonnegative=True, **settings)
    return model.fit(recording.signals)


def largest_penalty(recording: Recording, taps: int) -> float:
    """About the penalty beyond which no filter would be used: the energy of the liveliest window of a signal."""
    energy = np.sum(recording.signals.astype(np.float64) ** 2, axis=1)
    window = np.stack([np.convolve(one, np.ones(taps), "valid") for one in energy])
    noise = np.median(window)
    return float(np.sqrt(np.max(window) - noise))


@dataclass(frozen=True)
class Learner:
    """A way to learn rank-one filters: what it is called, and how it gets patterns and shapes from a recording."""

    name: str
    settings: dict[str, Any]
    peer: str = ""

    def find(self, recording: Recording, n_filters: int, taps: int) -> tuple[NDArray, NDArray]:
        """Patterns (n_filters, channels) and shapes (n_filters, taps)."""
        if self.peer:
            return _peer_factors(self.peer, recording, n_filters, taps, self.settings)
        model = learn(recording, n_filters=n_filters, taps=taps, learning=0.1, random_state=0, **self.settings)
        return model.patterns_[:, 0], model.shapes_[:, 0]


def _peer_factors(
    kind: str, recording: Recording, n_filters: int, taps: int, settings: dict[str, Any]
) -> tuple[NDArray, NDArray]:
    """What alphacsc finds, which takes float64."""
    import alphacsc

    made = getattr(alphacsc, kind)(
        n_filters, taps, rank1=True, lmbd_max="scaled", reg=0.1, random_state=0, verbose=0, n_jobs=1, **settings
    )
    made.fit(recording.signals.astype(np.float64))
    return made.u_hat_, made.v_hat_


OURS = (
    Learner("OnlineCSC, 1 pass", {"batch_size": 2, "n_epochs": 1}),
    Learner("OnlineCSC, 3 passes", {"batch_size": 2, "n_epochs": 3}),
    Learner("BatchCSC, 8 iterations", {"max_iter": 8}),
)
PEERS = (
    Learner("alphacsc BatchCDL, 5 iterations", {"n_iter": 5, "D_init": "chunk"}, "BatchCDL"),
    Learner("alphacsc BatchCDL, 20 iterations", {"n_iter": 20, "D_init": "chunk"}, "BatchCDL"),
    Learner("alphacsc OnlineCDL, 5 passes", {"n_iter": 5, "batch_size": 2, "D_init": "chunk"}, "OnlineCDL"),
)


def run(context: Context, *, peers: bool, ratios: tuple[float, ...] = (0.0, -15.0)) -> Findings:
    sizes: dict[str, Any] = context.pick(
        {}, {"channels": 20, "n_filters": 3, "taps": (16, 32), "n_signals": 6, "samples": 600, "rate": 2e-3}
    )
    n_filters, taps = sizes.get("n_filters", 10), sizes.get("taps", (64, 128))[1]
    table = Table(
        f"{n_filters} rank-one filters of up to {taps} samples, {sizes.get('channels', 204)} channels",
        [
            "SNR dB",
            "learner",
            "s",
            "CPU s",
            "found",
            "patterns, least",
            "patterns, mean",
            "shapes, least",
            "shapes, mean",
        ],
        note="Found: cosines of pattern and shape at least 0.95. Penalties are a tenth of the largest useful one.",
    )
    for learner in (*OURS, *(PEERS if peers else ())):  # kernels are compiled before anything is timed
        learner.find(simulate(channels=4, n_filters=2, taps=(16, 17), n_signals=4, samples=200, rate=0.01), 2, 17)
    for snr in ratios:
        recording = simulate(snr=snr, **sizes)
        for learner in (*OURS, *(PEERS if peers else ())):
            begin, before = time.perf_counter(), time.process_time()
            patterns, shapes = recovery(recording, *learner.find(recording, n_filters, taps))
            spent = [time.perf_counter() - begin, time.process_time() - before]
            found = int(np.sum((patterns >= 0.95) & (shapes >= 0.95)))
            cosines = [patterns.min(), patterns.mean(), shapes.min(), shapes.mean()]
            table.add(snr, learner.name, *spent, found, *map(float, cosines))
            context.say(", ".join(map(str, table.rows[-1])))
    return Findings([table])


def main() -> None:
    options = parser("benchmarks.meg", __doc__ or "")
    options.add_argument("--peers", action="store_true", help="alphacsc too, which must be installed")
    options.add_argument(
        "--snr", type=float, nargs="+", default=[0.0, -15.0], help="signal-to-noise ratios in decibels"
    )
    arguments = options.parse_args()
    context = Context.of(arguments)
    findings = run(context, peers=arguments.peers, ratios=tuple(arguments.snr))
    context.write("meg", findings.tables)


if __name__ == "__main__":
    main()
