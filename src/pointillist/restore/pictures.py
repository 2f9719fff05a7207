"""Photographs in and out: any dtype, scale and channel layout to planes near [0, 1] with weights, and back.

Nothing here restores; the tasks ask a `Picture` for its signals and hand restored ones back to it.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pointillist.validation import as_numbers, check_arguments

ChannelAxis = int | Literal["auto"] | None
"""Where the channels of an image lie: an axis, None for grey, or "auto" for grey of two axes and the last of three."""

_FULL_SCALE = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}
_FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
_UNIT_RANGES = (0.1, 2.0)
LARGEST_SAMPLE = 1e12
"""Samples of a float picture at most, in units of its full scale."""

_ROOTS = np.sqrt([3.0, 2.0, 6.0])[:, None]
OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / _ROOTS
"""Orthonormal luminance and two colour differences: noise stays as it is, detail gathers in the first."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A photograph as planes, with what is needed to give the answer the photograph's own form.

    Attributes
    ----------
    planes : (channels, height, width) float64 array
        Samples divided by `scale`; zero where not seen. One channel or three.
    weights : (channels, height, width) float64 array
        One where seen, zero where missing.
    scale : float
        What counts as full scale in the photograph's own units.
    """

    planes: NDArray
    weights: NDArray
    scale: float
    dtype: np.dtype
    axis: int | None  # where channels lie in the photograph
    alpha: NDArray | None  # (1, height, width), as given
    bounded: bool  # a float photograph within [0, scale], to be kept there

    @property
    def shape(self) -> tuple[int, int]:
        return self.planes.shape[1], self.planes.shape[2]

    @property
    def unmixed(self) -> bool:
        """Whether every pixel is seen in all channels or in none, so that channels may be mixed."""
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

    def photograph(self, planes: NDArray) -> NDArray:
        """Planes in the photograph's own scale, dtype and layout; integers are rounded and clipped."""
        samples = as_samples(planes, self.dtype, self.scale, bounded=self.bounded)
        return self.laid_out(samples, self.alpha)

    def laid_out(self, planes: NDArray, alpha: NDArray | None = None) -> NDArray:
        """Planes of any values as (height, width), or with channels (and alpha) on the photograph's axis."""
        if alpha is not None:
            planes = np.concatenate([planes, alpha])
        return planes[0] if self.axis is None else np.ascontiguousarray(np.moveaxis(planes, 0, self.axis))


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
        What counts as full scale in the photograph's own units.
    """

    planes: NDArray
    missing: NDArray
    scale: float
    axis: int | None
    alpha: NDArray | None
    bounded: bool

    @property
    def shape(self) -> tuple[int, int]:
        return self.planes.shape[1], self.planes.shape[2]

    def picture(self, box: tuple[slice, slice] = (slice(None), slice(None))) -> Picture:
        """Planes and weights of a box of the photograph, or of all of it."""
        here = (slice(None), *box)
        missing = np.broadcast_to(self.missing[here], self.planes[here].shape)
        planes = np.where(missing, 0.0, self.planes[here].astype(np.float64)) / self.scale
        alpha = None if self.alpha is None else self.alpha[here]
        dtype = self.planes.dtype
        return Picture(planes, 1.0 - missing, self.scale, dtype, self.axis, alpha, self.bounded)

    def copied(self, image: ArrayLike) -> tuple[NDArray, NDArray]:
        """A copy of the photograph to write an answer into, and a view of its planes (channels, height, width)."""
        answer = np.array(as_numbers(np.ma.getdata(image), "image"), order="C")
        target = answer[None] if self.axis is None else np.moveaxis(answer, self.axis, 0)
        return answer, target[: len(self.planes)]

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
        """Values in units of full scale as samples of the photograph: scaled, and rounded and clipped for integers."""
        return as_samples(values, self.planes.dtype, self.scale, bounded=self.bounded)


def as_samples(values: NDArray, dtype: np.dtype, scale: float, *, bounded: bool) -> NDArray:
    """Values in units of full scale as samples of a type; floats are kept within [0, scale] where they are bounded."""
    values = values * scale
    if dtype in _FULL_SCALE:
        values = np.clip(np.rint(values), 0, _FULL_SCALE[dtype])
    elif bounded:
        values = np.clip(values, 0, scale)
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
    if array.dtype not in (*_FULL_SCALE, *_FLOATS):
        raise ValueError(f"{name} must hold uint8, uint16 or floating-point samples, got {array.dtype}")
    axis = _channel_axis(array, channel_axis, name)
    planes = array[None] if axis is None else np.moveaxis(array, axis, 0)
    if 0 in planes.shape:
        raise ValueError(f"{name} is empty, its shape is {array.shape}")
    alpha = planes[-1:] if len(planes) in (2, 4) else None
    planes = planes[: len(planes) - (alpha is not None)]
    masks = [] if mask is None else [mask]
    if isinstance(image, np.ma.MaskedArray):
        masks.append(np.ma.getmaskarray(image))
    missing = _missing(planes, masks, array.shape, axis, name)
    scale, bounded = 1.0, False
    if array.dtype in _FLOATS:
        samples = planes[~np.broadcast_to(missing, planes.shape)]
        scale = _scale(samples, array.dtype, data_range)
        low, high = float(np.min(samples)), float(np.max(samples))
        bounded = low >= 0 and high <= scale
        if not max(high, -low) <= LARGEST_SAMPLE * min(scale, LARGEST_SAMPLE):
            raise ValueError(
                f"{name} holds samples of {max(high, -low):.2g}, with a full scale (data_range) of {scale:.2g}: bring it to "
                "[0, 1] first"
            )
    else:
        scale = _scale(planes, array.dtype, data_range)
    return Canvas(planes, missing, scale, axis, alpha, bounded)


def _missing(planes: NDArray, masks: list[Any], shape: tuple[int, ...], axis: int | None, name: str) -> NDArray:
    """Missing samples as (1 or channels, height, width): NaN, and what a mask covers."""
    missing = np.zeros((1, *planes.shape[1:]), bool)
    if planes.dtype in _FLOATS:
        if np.any(np.isinf(planes)):
            raise ValueError(f"{name} holds {int(np.sum(np.isinf(planes)))} infinite samples; mark missing ones as NaN")
        missing = np.isnan(planes)
    for mask in masks:
        missing = missing | _mask_planes(mask, shape, axis, len(planes))
    if np.all(missing):
        raise ValueError(f"mask leaves nothing: every sample of {name} is missing")
    if np.any(np.all(missing, axis=(1, 2))):
        raise ValueError(f"mask leaves nothing of one channel of {name}")
    return missing[:1] if all(np.array_equal(missing[0], other) for other in missing[1:]) else missing


def _channel_axis(array: NDArray, given: ChannelAxis, name: str) -> int | None:
    """Where channels lie: None for grey, otherwise a non-negative axis with one to four entries."""
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
    space = shape if axis is None else tuple(n for i, n in enumerate(shape) if i != axis)
    if array.shape == space:
        return array[None]
    if axis is not None and array.shape == shape:
        return np.moveaxis(array, axis, 0)[:count]
    raise ValueError(f"mask has shape {array.shape} but image {shape}; they must agree")


def _scale(samples: NDArray, dtype: np.dtype, given: float | None) -> float:
    """Full scale: given, the integer type's, one for floats of such a range, and their range otherwise."""
    if given is not None:
        return float(given)
    if dtype in _FULL_SCALE:
        return _FULL_SCALE[dtype]
    extent = float(np.max(samples)) - float(np.min(samples))
    if extent == 0 or _UNIT_RANGES[0] <= extent <= _UNIT_RANGES[1]:
        return 1.0
    return extent


def check_size(shape: tuple[int, ...], size: tuple[int, ...], name: str = "image") -> None:
    """Refuse a picture that a filter does not fit into."""
    if any(n < f for n, f in zip(shape, size, strict=True)):
        needed, got = (" × ".join(map(str, one)) for one in (size, shape))
        raise ValueError(f"{name} must have at least {needed} pixels for these filters, got {got}")
