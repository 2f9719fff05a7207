"""Missing pixels as their neighbourhood predicts them: the conditional mean of a Gaussian field, given the known pixels.

The covariance of the field is that of the picture around the hole, gathered from a first guess that has no holes; so
stripes are continued as stripes and a sky as a sky. Two pixels that lie equally far apart in the same direction are taken
to be equally alike, within a square and its surroundings. All channels share one covariance, that of their mean. The
covariances of a smooth picture and of one with grain have their say, too, the more the likelier the pixels around a hole
are under them: a calm place beside lively ones.
"""

from functools import cache

import numpy as np
import scipy.fft
import scipy.special
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt

from pointillist.backends.conditioning import fill_blocks
from pointillist.restore.tiling import Box, tiles_with
from pointillist.solvers.base import parallel

SURROUNDINGS = 48
"""How far beyond a square the picture tells its covariance: tiles need a margin of so many pixels."""

DEEPEST = 10
"""Pixels farther than this from all that is known are left to a coarser picture."""

_SQUARE = 32  # pixels that share one covariance
_BLOCK, _SMALL = 16, 8  # pixels that are solved for together, in holes and in scratches
_RING, _MOST = 5, 250  # how far beyond the nearest known pixel others are used, and how many at most
_SMALL_RING, _SMALL_MOST = 2, 80
_SHALLOW = 3  # pixels at most so far from a known one are in scratches, deeper ones in holes
_NUGGET = 1e-5  # of the variance, added to that of each known pixel: noise, which keeps the systems regular
_LAG = _BLOCK + 2 * (_RING + DEEPEST)  # farther apart no two pixels of one system lie
_QUIET = 1e-12  # a sum of squares, in units of full scale, that counts as no contrast


def predicted(
    planes: NDArray,
    wanted: NDArray,
    known: NDArray,
    guess: NDArray,
    *,
    texture: float = 0.0,
    n_jobs: int = 1,
    deviations: bool = False,
) -> tuple[NDArray, NDArray | None]:
    """The wanted pixels of a tile, from its known ones.

    Parameters
    ----------
    planes : (channels, height, width) float64 array
        The tile; only its known pixels are read.
    wanted, known : (height, width) bool arrays
        Every wanted pixel must have a known one within `DEEPEST` rows and columns.
    guess : (height, width) float64 array
        A picture of one channel without holes, whose covariances are used.
    texture : float from 0 to 1
        How much of the texture that the mean lacks is taken from nearby.
    n_jobs : int
        Threads.
    deviations : bool
        Whether to compute the deviations, too.

    Returns
    -------
    values : (channels, height, width) float64 array
        `planes` with the wanted pixels filled in.
    deviation : (height, width) float64 array or None
        The expected error of a wanted pixel of a plane like `guess`, one standard deviation; zero elsewhere.
    """
    values, deviation = planes.copy(), np.zeros(wanted.shape if deviations else (0, 0))
    if not np.any(wanted):
        return values, deviation if deviations else None
    blocks, squares = _blocks(wanted, distance_transform_cdt(~known, "chessboard"))
    pairs = parallel(lambda square: _covariances(guess, square), squares, n_jobs)
    tables, totals = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    # A picture without any contrast is a plane, whatever the covariances; so small ones expect no error either.
    tables[tables[:, _LAG, _LAG] <= _QUIET] = _QUIET * _FLAT
    # In any other order of memory the kernel would be compiled again.
    planes, known, wanted = (np.ascontiguousarray(array) for array in (planes, known, wanted))

    def work(some: NDArray) -> None:
        fill_blocks(
            planes, known, wanted, some, tables, 1 / totals, _SMOOTH, _NUGGET, _SHIFTS, float(texture),
            values, deviation,
        )  # fmt: skip

    parallel(work, np.array_split(blocks, max(1, min(4 * n_jobs, len(blocks)))), n_jobs)
    return values, deviation if deviations else None


def _blocks(wanted: NDArray, depth: NDArray) -> tuple[NDArray, list[Box]]:
    """Blocks of wanted pixels as `fill_blocks` takes them, and the squares whose covariances they use."""
    squares = tiles_with(wanted, _SQUARE)
    rows: list[tuple[int, ...]] = []
    for number, square in enumerate(squares):
        for block in _within(square, wanted, _BLOCK):
            deepest = int(np.max(depth[block], where=wanted[block], initial=0))
            if deepest > _SHALLOW:
                rows.append((*_ends(block), _RING + deepest, _MOST, number))
                continue
            reach = _SMALL_RING + deepest
            rows += [(*_ends(small), reach, _SMALL_MOST, number) for small in _within(block, wanted, _SMALL)]
    return np.array(rows, np.int64).reshape(-1, 7), squares


def _within(box: Box, wanted: NDArray, side: int) -> list[Box]:
    """Squares of that side that hold the wanted pixels of a box."""
    top, left = box[0].start, box[1].start
    return [
        (slice(top + r.start, top + r.stop), slice(left + c.start, left + c.stop))
        for r, c in tiles_with(wanted[box], side)
    ]


def _ends(box: Box) -> tuple[int, int, int, int]:
    return box[0].start, box[0].stop, box[1].start, box[1].stop


def _covariances(guess: NDArray, square: Box) -> tuple[NDArray, float]:
    """Covariances (2 lag + 1, 2 lag + 1) of a picture around a square, times the total weight, and that weight.

    The picture is weighted by a window that is largest in the square's middle, and freed of its plane. The plain sum over
    pairs, not divided by the number of pairs, is a positive definite table.
    """
    half = _SQUARE // 2 + SURROUNDINGS
    first = [ends.start + _SQUARE // 2 - half for ends in square]
    spans = [slice(max(start, 0), min(start + 2 * half, n)) for start, n in zip(first, guess.shape, strict=True)]
    rows, columns = (
        _window(half)[span.start - start : span.stop - start] for span, start in zip(spans, first, strict=True)
    )
    crop = guess[spans[0], spans[1]]
    window = rows[:, None] * columns
    crop = (crop - _plane(crop, rows**2, columns**2)) * window
    shape = [scipy.fft.next_fast_len(n + _LAG, real=True) for n in crop.shape]
    spectrum = scipy.fft.rfft2(crop, shape)
    sums = scipy.fft.irfft2(spectrum.real**2 + spectrum.imag**2, shape)
    lags = np.arange(-_LAG, _LAG + 1)
    return sums[np.ix_(lags % shape[0], lags % shape[1])], float(np.sum(window**2))


@cache
def _window(half: int) -> NDArray:
    return np.cos(np.pi / 2 * np.linspace(-1, 1, 2 * half + 2)[1:-1])


def _plane(crop: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
    """The plane that fits a picture best, with weights that are products over rows and columns."""
    down, right = (np.linspace(-1, 1, len(w)) for w in (rows, columns))
    down, right = down - np.average(down, weights=rows), right - np.average(right, weights=columns)
    total = np.sum(rows) * np.sum(columns)
    by_row, by_column = crop @ columns, rows @ crop  # centred coordinates make the three coefficients independent
    mean = rows @ by_row / total
    slopes = (
        (rows * down) @ by_row / max(np.sum(rows * down**2) * np.sum(columns), 1e-30),
        (columns * right) @ by_column / max(np.sum(columns * right**2) * np.sum(rows), 1e-30),
    )
    return mean + slopes[0] * down[:, None] + slopes[1] * right


_SHIFTS = np.array(
    [
        (round(length * np.sin(angle)), round(length * np.cos(angle)))
        for length in (12, 18, 26, 36)
        for angle in np.arange(12) * np.pi / 6
    ]
)
_DISTANCES = np.hypot(*np.mgrid[-_LAG : _LAG + 1, -_LAG : _LAG + 1])
_FLAT = np.exp(-_DISTANCES / _SQUARE)


def _smooth(length: float) -> NDArray:
    """Matérn's covariance of order one, whose conditional mean is nearly the biharmonic one at distances below `length`."""
    far = np.maximum(np.sqrt(2) * _DISTANCES / length, 1e-9)
    return far * scipy.special.k1(far)


def _grainy(table: NDArray, share: float) -> NDArray:
    """Covariances with noise of that share of the variance, which no two pixels have in common."""
    table = table.copy()
    table[_LAG, _LAG] *= 1 + share
    return table


_SMOOTH = np.stack([_smooth(256.0), _grainy(_smooth(256.0), 1e-3)])
