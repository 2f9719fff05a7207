"""Missing pixels as their neighbourhood predicts them: the conditional mean of a Gaussian field, given the known pixels.

The covariance of the field is that of the picture around the hole, gathered from a first guess that has no holes; so
stripes are continued as stripes and a sky as a sky. Two pixels that lie equally far apart in the same direction are taken
to be equally alike, within a square and its surroundings. All channels share one covariance, that of their mean. The
covariances of a smooth picture and of one with grain have their say, too, the more the likelier the pixels around a hole
are under them: a calm place beside lively ones.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.fft
import scipy.special
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt

from pointillist.kernels.kriging import fill_blocks
from pointillist.parallel import parallel


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.fills``; distances in pixels."""

    surroundings: int = 48
    """Pixels beyond a square from which its covariance is told: tiles need a margin of so many pixels."""
    near_surroundings: int = 32
    """Such pixels where missing ones are scattered."""
    deepest: int = 10
    """Distance to all that is known beyond which pixels are left to a coarser picture."""
    square: int = 32
    """Side of squares that share one covariance."""
    block: int = 16
    """Side of blocks that are solved for together in holes."""
    ring: int = 5
    """Pixels beyond the nearest known one up to which others are used there."""
    most: int = 250
    """Known pixels used for a block there, at most."""
    small_block: int = 8
    """Side of blocks in scratches."""
    small_ring: int = 2
    """As `ring` in scratches."""
    small_most: int = 80
    """As `most` in scratches."""
    shallow: int = 3
    """Distance to a known pixel up to which a missing one is in a scratch, not in a hole."""
    nugget: float = 1e-5
    """Share of the variance added to that of each known pixel: noise, which keeps the systems regular."""


TUNING = Tuning()

_SHIFTS = np.array(
    [
        (round(length * np.sin(angle)), round(length * np.cos(angle)))
        for length in (12, 18, 26, 36)  # how far away texture is taken from, in each of twelve directions
        for angle in np.arange(12) * np.pi / 6
    ]
)
_QUIET = 1e-12  # a sum of squares, in units of full scale, that counts as no contrast


def predicted(
    planes: NDArray,
    wanted: NDArray,
    known: NDArray,
    guess: NDArray,
    *,
    texture: float = 0.0,
    scattered: bool = False,
    n_jobs: int = 1,
    deviations: bool = False,
) -> tuple[NDArray, NDArray]:
    """The wanted pixels of a tile, from its known ones.

    Parameters
    ----------
    planes : (channels, height, width) float64 array
        The tile; only its known pixels are read.
    wanted, known : (height, width) bool arrays
        Every wanted pixel must have a known one within `Tuning.deepest` rows and columns.
    guess : (height, width) float64 array
        A picture of one channel without holes, whose covariances are used.
    texture : float from 0 to 1
        How much of the texture that the mean lacks is taken from nearby.
    scattered : bool
        Pixels are missing one by one: nearer surroundings tell the covariance better, and systems are small enough for
        float32.
    n_jobs : int
        Threads.
    deviations : bool
        Compute the deviations, too.

    Returns
    -------
    values : (channels, height, width) float64 array
        `planes` with the wanted pixels filled in.
    deviation : (height, width) float64 array
        The expected error of a wanted pixel of a plane like `guess`, one standard deviation; zero elsewhere. Empty unless
        it was asked for.
    """
    values, deviation = planes.copy(), np.zeros(wanted.shape if deviations else (0, 0))
    if not np.any(wanted):
        return values, deviation
    blocks, squares = _blocks(wanted, distance_transform_cdt(~known, "chessboard"))
    lag = int(np.max(np.maximum(blocks[:, 1] - blocks[:, 0], blocks[:, 3] - blocks[:, 2]) + 2 * blocks[:, 4]))
    lag = -(-lag // 6) * 6  # tables have few sizes, so that Fourier transforms have
    dtype, margin = (np.float32, TUNING.near_surroundings) if scattered else (np.float64, TUNING.surroundings)
    tables, totals = _covariances(guess.astype(dtype), squares, lag, margin, n_jobs)
    flat, smooth = _smooth_covariances(lag)
    # A picture without any contrast is a plane, whatever the covariances; so small ones expect no error either.
    tables[tables[:, lag, lag] <= _QUIET] = _QUIET * flat
    # In any other order of memory the kernel would be compiled again.
    planes, known, wanted = (np.ascontiguousarray(array) for array in (planes, known, wanted))

    def work(some: NDArray) -> None:
        fill_blocks(
            planes, known, wanted, some, tables, 1 / totals, smooth.astype(dtype), TUNING.nugget, _SHIFTS, float(texture),
            values, deviation,
        )  # fmt: skip

    parallel(work, np.array_split(blocks, max(1, min(4 * n_jobs, len(blocks)))), n_jobs)
    return values, deviation


def _blocks(wanted: NDArray, depth: NDArray) -> tuple[NDArray, NDArray]:
    """Blocks of wanted pixels as `fill_blocks` takes them, and the first pixels (n, 2) of the squares that they lie in."""
    ends = [(0, -n % TUNING.square) for n in wanted.shape]
    depth = np.pad(np.where(wanted, np.maximum(depth, 1), 0), ends)  # zero where nothing is wanted

    def largest(depth: NDArray, side: int) -> NDArray:
        height, width = depth.shape
        return np.max(depth.reshape(height // side, side, width // side, side), axis=(1, 3))

    times = TUNING.block // TUNING.small_block
    small = largest(depth, TUNING.small_block)
    block = largest(small, times)
    square = largest(block, TUNING.square // TUNING.block) > 0
    numbers = np.cumsum(square).reshape(square.shape) - 1
    in_hole = block > TUNING.shallow
    in_scratch = (small > 0) & ~np.kron(in_hole, np.ones((times, times), bool))
    rows = []
    for places, side, ring, most in (
        (np.argwhere(in_hole), TUNING.block, TUNING.ring, TUNING.most),
        (np.argwhere(in_scratch), TUNING.small_block, TUNING.small_ring, TUNING.small_most),
    ):
        first = side * places
        last = np.minimum(first + side, wanted.shape)
        deepest = block[tuple((first // TUNING.block).T)]
        number = numbers[tuple((first // TUNING.square).T)]
        limits = (first[:, 0], last[:, 0], first[:, 1], last[:, 1])
        rows.append(np.stack([*limits, ring + deepest, np.full(len(first), most), number], axis=1))
    return np.concatenate(rows).astype(np.int64), TUNING.square * np.argwhere(square)


def _covariances(guess: NDArray, squares: NDArray, lag: int, margin: int, n_jobs: int) -> tuple[NDArray, NDArray]:
    """Covariances of a picture around squares, one for every lag, times the total weights, and these weights (n,).

    The picture is weighted by a window that is largest in a square's middle, and freed of its plane. The plain sum over
    pairs, not divided by the number of pairs, is a positive definite table.
    """
    side = TUNING.square + 2 * margin
    taper = np.cos(np.pi / 2 * np.linspace(-1, 1, side + 2)[1:-1])
    padded = np.pad(guess, [(margin, margin - n % TUNING.square + TUNING.square) for n in guess.shape])
    windows = [
        np.pad(np.ones(n), (margin, length - margin - n)) for n, length in zip(guess.shape, padded.shape, strict=True)
    ]

    def work(some: NDArray) -> tuple[NDArray, NDArray]:
        crops = np.stack([padded[top : top + side, left : left + side] for top, left in some])
        rows, columns = (
            np.stack([inside[first : first + side] for first in some[:, axis]]) * taper
            for axis, inside in enumerate(windows)
        )
        _flatten(crops, rows**2, columns**2)
        crops *= rows[:, :, None] * columns[:, None]
        return _correlated(crops, lag), np.sum(rows**2, axis=1) * np.sum(columns**2, axis=1)

    tables, totals = zip(*parallel(work, [squares[i : i + 8] for i in range(0, len(squares), 8)], n_jobs), strict=True)
    return np.concatenate(tables), np.concatenate(totals)


def _correlated(crops: NDArray, lag: int) -> NDArray:
    """Sums (n, 2 lags + 1, 2 lags + 1) of the products of pictures (n, side, side) with themselves, moved by all lags."""
    length = scipy.fft.next_fast_len(crops.shape[1] + lag, real=True)
    spectrum = scipy.fft.fft(scipy.fft.rfft(crops, length), length, axis=1, overwrite_x=True)
    # What is real has sums that are alike up and down, so that lags from zero on are enough.
    down = scipy.fft.rfft(spectrum.real**2 + spectrum.imag**2, axis=1)[:, : lag + 1].conj() / length
    sums = scipy.fft.irfft(down, length)
    lower = np.concatenate([sums[..., length - lag :], sums[..., : lag + 1]], axis=2)
    return np.concatenate([lower[:, :0:-1, ::-1], lower], axis=1)


def _flatten(crops: NDArray, rows: NDArray, columns: NDArray) -> None:
    """Free pictures (n, side, side) of their planes by least squares, with weights that are products of (n, side) each."""
    place = np.linspace(-1, 1, crops.shape[1])
    # Centred coordinates make the three coefficients independent.
    down, right = (place - (w @ place / np.sum(w, axis=1))[:, None] for w in (rows, columns))
    for u, v in ((np.ones_like(down), np.ones_like(right)), (down, np.ones_like(right)), (np.ones_like(down), right)):
        size = np.maximum(np.sum(rows * u**2, axis=1) * np.sum(columns * v**2, axis=1), 1e-30)
        inner = ((rows * u)[:, None] @ crops @ (columns * v)[:, :, None])[:, 0, 0]
        crops -= (inner / size)[:, None, None] * u[:, :, None] * v[:, None]


@cache
def _smooth_covariances(lag: int) -> tuple[NDArray, NDArray]:
    """Covariances of a picture without contrast, and (2, …) of a smooth one, without grain and with it.

    Matérn's of order one, whose conditional mean is nearly the biharmonic one at distances below its length.
    """
    distances = np.hypot(*np.mgrid[-lag : lag + 1, -lag : lag + 1])
    far = np.maximum(np.sqrt(2) * distances / 256, 1e-9)
    smooth = np.stack([far * scipy.special.k1(far)] * 2)
    smooth[1, lag, lag] *= 1 + 1e-3  # grain that no two pixels have in common
    return np.exp(-distances / TUNING.square), smooth
