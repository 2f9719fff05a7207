"""Photographs in and out: any type, scale and channel layout to planes near [0, 1] with weights, and back; tiles of them.

Nothing here restores; the tasks ask a `Picture` for its signals and hand restored ones back to a `Canvas`.
"""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.parallel import one_blas_thread
from pointillist.validation import as_numbers, check_arguments

ChannelAxis = int | Literal["auto"] | None
"""Place of the channels of an image: an axis, None for grey, or "auto" for grey of two axes and the last of three."""

Box = tuple[slice, slice]
"""Rows and columns of a part of a picture."""

Progress = Callable[[float], None]
"""Takes the share of the work that is done, from 0 to 1."""

_INTEGERS = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
LARGEST_SAMPLE = 1e12
"""Samples of a float picture at most, in units of its full scale: squares of larger ones leave float32."""

OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([3.0, 2.0, 6.0])[:, None]
"""Orthonormal luminance and two colour differences: noise stays as it is, detail gathers in the first."""

_WAVELET = np.array([1 - np.sqrt(3), np.sqrt(3) - 3, 3 + np.sqrt(3), -1 - np.sqrt(3)]) / np.sqrt(32)
"""Daubechies' high pass with two vanishing moments: blind to brightness and to straight ramps."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A photograph, or a box of one, as planes with weights.

    Attributes
    ----------
    planes : (channels, height, width) float64 array
        Samples divided by `scale`; zero where not seen. One channel or three.
    weights : (channels, height, width) float64 array
        One where seen, zero where missing.
    scale : float
        Full scale in the photograph's own units.
    """

    planes: NDArray
    weights: NDArray
    scale: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.planes.shape[1], self.planes.shape[2]

    @property
    def unmixed(self) -> bool:
        """True where every pixel is seen in all channels or in none, so that channels may be mixed."""
        return bool(np.all(self.weights == self.weights[:1]))

    def mean(self) -> NDArray:
        """The mean of the channels (height, width), NaN where one of them is missing."""
        return np.where(np.all(self.weights > 0, axis=0), np.mean(self.planes, axis=0), np.nan)

    def signals(self, channels: int) -> tuple[list[NDArray], list[NDArray]]:
        """Signals and weights for filters of so many channels, each (channels, height, width).

        Grey filters get the planes one by one, as luminance and colour differences where that can be.
        """
        if channels == len(self.planes):
            return [self.planes], [self.weights]
        if channels != 1:
            raise ValueError(f"filters have {channels} channels but image has {len(self.planes)}")
        planes = np.tensordot(OPPONENT, self.planes, 1) if self.unmixed else self.planes
        return list(planes[:, None]), list(self.weights[:, None])

    def gather(self, signals: list[NDArray]) -> NDArray:
        """Planes (channels, height, width) of signals made as `signals` makes them."""
        if len(signals) == 1:
            return signals[0]
        planes = np.concatenate(signals)
        return np.tensordot(OPPONENT.T, planes, 1) if self.unmixed else planes

    def noise(self, sigma: float | None = None) -> float:
        """Deviation of the noise in units of full scale: a given one, or the root mean square of what the planes show."""
        if sigma is None:
            pairs = zip(self.planes, self.weights, strict=True)
            return float(np.sqrt(np.mean([plane_sigma(plane, weights == 0) ** 2 for plane, weights in pairs])))
        sigma = float(sigma)  # NumPy's small types hold no full scale
        if sigma > 1e9 * self.scale:
            raise ValueError(f"sigma is {sigma:.2g}, more than 1e+09 times the picture's full scale, {self.scale:.2g}")
        return sigma / self.scale


def plane_sigma(plane: NDArray, missing: NDArray | None = None) -> float:
    """Deviation of the noise of a plane (height, width), from the median size of its finest diagonal details.

    Zero where too little was seen to tell.
    """
    if min(plane.shape) < 4:
        return 0.0
    valid = (slice(2, -1), slice(2, -1))
    diagonal = plane
    for axis in (0, 1):
        diagonal = scipy.ndimage.correlate1d(diagonal, _WAVELET[::-1], axis, np.float64)
    diagonal = diagonal[valid]
    if missing is not None:
        diagonal = diagonal[~scipy.ndimage.maximum_filter(missing, 4)[valid]]
    return float(np.median(np.abs(diagonal)) / 0.6744897501960817) if diagonal.size >= 16 else 0.0


@dataclass(frozen=True, eq=False)
class Canvas:
    """A photograph as it was given, with what is missing of it; nothing is converted or copied.

    Attributes
    ----------
    planes : (channels, height, width) array
        A view of the samples, in their own type and scale and without alpha; one channel or three. Missing samples may have
        any value, NaN too.
    missing : (1 or channels, height, width) bool array
        One plane where all channels miss the same pixels.
    scale : float
        Full scale in the photograph's own units.
    axis : int or None
        Where channels lie in the photograph.
    alpha : (1, height, width) array or None
    bounded : bool
        True for floats within [0, scale], which are kept there.
    """

    planes: NDArray
    missing: NDArray
    scale: float = 1.0
    axis: int | None = None
    alpha: NDArray | None = None
    bounded: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.planes.shape[1], self.planes.shape[2]

    def picture(self, box: Box = (slice(None), slice(None))) -> Picture:
        """Planes and weights of a box of the photograph, or of all of it."""
        here = (slice(None), *box)
        missing = np.broadcast_to(self.missing[here], self.planes[here].shape)
        planes = np.where(missing, 0.0, self.planes[here].astype(np.float64)) / self.scale
        return Picture(planes, 1.0 - missing, self.scale)

    def copied(self, image: ArrayLike) -> tuple[NDArray, NDArray]:
        """A copy of the photograph to write an answer into, and a view of its planes (channels, height, width)."""
        answer = np.array(as_numbers(np.ma.getdata(image), "image"), order="C")
        target = answer[None] if self.axis is None else np.moveaxis(answer, self.axis, 0)
        return answer, target[: len(self.planes)]

    def photograph(self, samples: NDArray, factor: int = 1) -> NDArray:
        """Planes of samples in the photograph's own type, perhaps enlarged, in its own layout, with alpha."""
        if self.alpha is not None:
            samples = np.concatenate([samples, self.alpha.repeat(factor, 1).repeat(factor, 2)])
        return samples[0] if self.axis is None else np.ascontiguousarray(np.moveaxis(samples, 0, self.axis))

    def laid_out(self, planes: NDArray) -> NDArray:
        """One plane as (height, width), several on the photograph's own axis."""
        return planes[0] if len(planes) == 1 or self.axis is None else np.moveaxis(planes, 0, self.axis)

    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest sample that was seen."""
        seen = self.planes
        if np.any(self.missing):
            seen = seen[~np.broadcast_to(self.missing, seen.shape)]
        return float(np.min(seen)), float(np.max(seen))

    def in_own_type(self, values: NDArray) -> NDArray:
        """Values in units of full scale as samples: scaled, rounded and clipped for integers, clipped where bounded."""
        values, dtype = values * self.scale, self.planes.dtype
        if dtype in _INTEGERS:
            values = np.clip(np.rint(values), 0, _INTEGERS[dtype])
        elif self.bounded:
            values = np.clip(values, 0, self.scale)
        return values.astype(dtype)


def open_canvas(
    image: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
    name: str = "image",
) -> Canvas:
    """Check a photograph and find out what is missing of it: NaN, and samples under `mask`."""
    check_arguments(channel_axis=channel_axis, data_range=data_range)
    array = as_numbers(np.ma.getdata(image) if np.ma.is_masked(image) else image, name)
    if array.dtype not in (*_INTEGERS, *_FLOATS):
        raise ValueError(f"{name} must hold uint8, uint16 or floating-point samples, got {array.dtype}")
    axis = _channel_axis(array, channel_axis, name)
    planes = array[None] if axis is None else np.moveaxis(array, axis, 0)
    if 0 in planes.shape:
        raise ValueError(f"{name} is empty, its shape is {array.shape}")
    alpha = planes[-1:] if len(planes) in (2, 4) else None
    planes = planes[: len(planes) - (alpha is not None)]
    missing = np.zeros((1, *planes.shape[1:]), bool)
    if array.dtype in _FLOATS:
        if np.any(np.isinf(planes)):
            raise ValueError(f"{name} holds {int(np.sum(np.isinf(planes)))} infinite samples; mark missing ones as NaN")
        missing = np.isnan(planes)
    for one in (mask, np.ma.getmaskarray(image) if isinstance(image, np.ma.MaskedArray) else None):
        if one is not None:
            missing = missing | _mask_planes(one, array.shape, axis, len(planes))
    if np.any(np.all(missing, axis=(1, 2))):
        left = f": every sample of {name} is missing" if np.all(missing) else f" of one channel of {name}"
        raise ValueError(f"mask leaves nothing{left}")
    if np.all(missing == missing[:1]):
        missing = missing[:1]
    scale = _INTEGERS.get(array.dtype, 1.0) if data_range is None else float(data_range)
    canvas = Canvas(planes, missing, scale, axis, alpha)
    if array.dtype in _INTEGERS:
        return canvas
    low, high = canvas.extremes()
    if data_range is None and high > low and not 0.1 <= high - low <= 2:  # what is near one is meant to end at one
        scale = high - low
    if not max(high, -low) <= LARGEST_SAMPLE * min(scale, LARGEST_SAMPLE):
        raise ValueError(
            f"{name} holds samples of {max(high, -low):.2g}, with a full scale (data_range) of {scale:.2g}: bring it to "
            "[0, 1] first"
        )
    return Canvas(planes, missing, scale, axis, alpha, bounded=low >= 0 and high <= scale)


def _channel_axis(array: NDArray, given: ChannelAxis, name: str) -> int | None:
    """Place of channels: None for grey, otherwise a non-negative axis with one to four entries."""
    if array.ndim not in (2, 3):
        raise ValueError(
            f"{name} must be (height, width) or (height, width, 3), got shape {array.shape}; stacks are restored one by one"
        )
    if given == "auto":
        given = None if array.ndim == 2 else -1
        if array.ndim == 3 and (array.shape[-1] > 4 or array.shape[0] <= 4):
            raise ValueError(
                f"{name} must be (height, width) or (height, width, 3), got shape {array.shape}: say by channel_axis=-1 or "
                "channel_axis=0 where its channels lie; stacks are restored one by one"
            )
    if given is None:
        if array.ndim == 3:
            raise ValueError(f"channel_axis=None is for grey, but {name} has shape {array.shape}: give channel_axis=-1")
        return None
    if array.ndim != 3 or not -3 <= given < 3:
        raise ValueError(f"channel_axis={given} does not fit {name} of shape {array.shape}")
    if array.shape[given] > 4:
        raise ValueError(f"channel_axis={given} of {name} has {array.shape[given]} entries: give 1 or 3, and alpha")
    return given % 3


def _mask_planes(mask: ArrayLike, shape: tuple[int, ...], axis: int | None, count: int) -> NDArray:
    """Missing samples as (channels or 1, height, width) from a mask of the picture's space or shape."""
    array = as_numbers(mask, "mask")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"mask must hold booleans (True = missing), got {array.dtype}")
    array = array.astype(bool)
    if array.shape == tuple(n for i, n in enumerate(shape) if i != axis):
        return array[None]
    if axis is not None and array.shape == shape:
        return np.moveaxis(array, axis, 0)[:count]
    raise ValueError(f"mask has shape {array.shape} but image {shape}; they must agree")


def check_size(shape: tuple[int, ...], size: tuple[int, ...], name: str = "image") -> None:
    """Refuse a picture that a filter does not fit into."""
    if any(n < f for n, f in zip(shape, size, strict=True)):
        needed, got = (" × ".join(map(str, one)) for one in (size, shape))
        raise ValueError(f"{name} must have at least {needed} pixels for these filters, got {got}")


def check_unused(function: Callable[..., Any], mode: str, instead: str, **given: Any) -> None:
    """Raise if an argument that a mode of a function does not use differs from its default."""
    for name, value in given.items():
        default = inspect.signature(function).parameters[name].default
        if value is not default and not (np.isscalar(value) and value == default):
            raise ValueError(f"{name} is not used with {mode}: leave it out, or give {instead}")


def tiles(shape: tuple[int, ...], side: int) -> list[Box]:
    """Squares of that side that cover a picture in raster order, smaller at its far borders."""
    rows, columns = ([slice(start, min(start + side, n)) for start in range(0, n, side)] for n in shape)
    return [(down, right) for down in rows for right in columns]


def widened(box: Box, margin: int, shape: tuple[int, ...]) -> Box:
    """A box with a margin on all sides, as far as the picture goes."""
    rows, columns = (
        slice(max(ends.start - margin, 0), min(ends.stop + margin, n)) for ends, n in zip(box, shape, strict=True)
    )
    return rows, columns


def inside(box: Box, outer: Box) -> Box:
    """A box in the coordinates of one that holds it."""
    rows, columns = (slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, outer, strict=True))
    return rows, columns


def run_all(work: Callable[[Any], None], items: Sequence[Any], n_jobs: int, progress: Progress | None = None) -> None:
    """Do work on all items in threads.

    Progress is told from the calling thread. What it or the work raises, an interruption too, ends the work as soon as the
    items that have begun are done.
    """
    with one_blas_thread(), ThreadPoolExecutor(n_jobs) as pool:
        try:
            for done, _ in enumerate(pool.map(work, items), start=1):
                if progress is not None:
                    progress(done / len(items))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def share_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Make the progress callback of work that goes from `begin` to `end` of the whole."""
    return None if progress is None else lambda share: progress(begin + (end - begin) * share)
