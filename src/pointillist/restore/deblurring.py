"""A known blur undone, if it fits.

    minimise over x and z   ½ Σ w (y − h∗x)² + ½ ρ ‖x − Dz‖² + λ Σ|z|

Blurred filters are large and alike, so that descent on their codes takes long. Here only plain filters are coded, each
time from the codes before. A turn is the best x for given codes, by a few conjugate gradients in Fourier space, and then
the codes of x with penalty λ / ρ. The first turns have a small ρ, which lets x go where the samples pull it, and a small λ.
The schedule is part of the answer: few turns of it come nearer to sharp photographs than the minimiser for one ρ.

Colours have their edges where luminance has. So only luminance is coded. A colour difference is its smooth part plus the
detail of luminance times a slope that varies slowly over the picture, fitted to both as they were seen. What codes and
slopes leave unexplained goes through a Wiener filter, which knows nothing of edges.

A blur that is not the picture's own is told by its power spectrum, or by an answer that rings.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.fft
import scipy.ndimage
from numpy.typing import ArrayLike, NDArray

from pointillist.codes import SparseCodes
from pointillist.errors import BlurMisfitWarning
from pointillist.kernels.compiling import working_time
from pointillist.restore.blur import Blur, better_blur
from pointillist.restore.engine import (
    Damaged,
    Penalty,
    Recovered,
    Settings,
    check_settings,
    choose_filters,
    choose_penalty,
    contrast,
    convolution,
    encode_details,
    plain_area,
    recover,
    refit,
    separate,
)
from pointillist.restore.picture import ChannelAxis, Picture, Progress, check_size, share_of
from pointillist.restore.subject import answer, details_of, open_subject
from pointillist.solvers.base import Result
from pointillist.solvers.encoding import warn_unless_converged
from pointillist.validation import as_numbers, check_arguments


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers measured by ``python -m benchmarks.restoration``."""

    per_sigma: float = 0.17
    """λ / σ."""
    smallest: float = 0.0003
    """λ at least, of the contrast."""
    turns: int = 9
    """Turns of x and z."""
    coupling: tuple[float, float] = (5e-4, 0.04)
    """ρ of the first and the last turn."""
    first_penalty: float = 0.18
    """λ of the first turn, of the last one's."""
    reach: float = 6.0
    """Deviation, in pixels, of the neighbourhoods that slopes are fitted on."""
    missed: float = 0.12
    """Share of the detail's power that codes miss."""
    rounds: int = 30
    """Rounds of coding in a turn at most: usual penalties take up to seven, a few more on a device, tiny ones hundreds."""
    ringing: float = 2.2
    """Range of the answer over the picture's own from which on it rings; with blurs that fit it is 1 to 2."""


TUNING = Tuning()


def deblur(
    image: ArrayLike,
    psf: ArrayLike,
    filters: ArrayLike | None = None,
    penalty: Penalty = "auto",
    sigma: float | None = None,
    *,
    force: bool = False,
    debias: bool = False,
    boundary: str = "full",
    tol: float = 0.2,
    n_jobs: int | None = -1,
    device: str = "cpu",
    return_details: bool = False,
    channel_axis: ChannelAxis = "auto",
    data_range: float | None = None,
    progress: Progress | None = None,
) -> NDArray | Any:
    """Undo a known blur; `estimate_blur` finds one that is not known.

    A blur that is not the picture's own makes ringing out of it. Where another blur explains the picture's power spectrum
    better, or the answer rings, the picture is returned as it came, with a warning. Only the
    luminance of colour pictures is coded; the colours follow it.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array
        As in `inpaint`; NaN counts as missing and is filled in. What lies outside the image is unknown, not zero.
    psf : (height, width) array
        Point spread function: what the blur makes of a single white pixel, centred at sample (size − 1) // 2. It is
        scaled to sum to one.
    filters : (n_filters, h, w) or (n_filters, 3, h, w) array, optional
        A dictionary for the detail of sharp photographs in [0, 1], as in `inpaint`.
    penalty : float, "auto" or a string such as "5%"
        λ for the picture divided by its full scale. "auto" follows the noise: λ = 0.17 σ, and at least
        0.0003 of the picture's contrast.
    sigma : float, optional
        Deviation of the noise in the image's own units; estimated by default.
    force : bool
        Undo the blur without asking whether it fits.
    debias : bool
        Refit the non-zeros by least squares on their support.
    boundary : {"same", "full"}
        Whether filters are centred on the picture's own pixels, or anywhere they touch it.
    tol : float
        Relative duality gap of the codes in every turn.
    n_jobs : int, optional
        Threads: -1 for all cores, None for what the surrounding joblib context says.
    device : str
        "cpu", or "cuda" or "cuda:N" to solve for the codes on a GPU, as in `encode`.
    return_details : bool
        Whether to return `Details` too.
    channel_axis : int, None or "auto"
        Axis of the channels, None for grey; "auto" is None for two axes and -1 for (height, width, 3 or so).
    data_range : float, optional
        Full scale; by default that of the image's type, as in `inpaint`.
    progress : callable, optional
        Called from time to time with the share of the work that is done, from 0 to 1.

    Returns
    -------
    array of the image's shape, dtype and scale; with `return_details` a pair of it and `Details`
        Objective and gap of the details are those of the last coding of luminance, in which the detail is what the samples
        and the codes before say of it. The picture is the smooth part, the detail of these codes, and what a Wiener filter
        makes of the rest.

    Warns
    -----
    BlurMisfitWarning
        Where the blur does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from pointillist.restore import deblur
    >>> filters = np.random.default_rng(0).standard_normal((4, 5, 5)) / 5
    >>> ramp = np.add.outer(np.arange(32.0), np.arange(32.0)) / 64
    >>> sharp = deblur(ramp, np.ones((3, 3)), filters)
    >>> bool(np.max(np.abs(sharp - ramp)) < 0.05)
    True
    """
    begin = working_time()
    check_arguments(sigma=sigma, force=force, return_details=return_details)
    settings = check_settings(boundary, tol, debias, n_jobs, device, progress)
    subject = open_subject(image, channel_axis, data_range)
    sample = subject.sample
    blur = Blur(as_kernel(psf, sample.shape))
    bank = choose_filters(filters, sample.shape)
    check_size(sample.shape, blur.extended(bank.shape[2:]), "image, blurred by this psf,")
    damaged = Damaged(*sample.signals(bank.shape[1]), blur)
    level = sample.noise(sigma)
    usual = max(TUNING.per_sigma * level, TUNING.smallest * contrast(damaged))
    value = choose_penalty(penalty, usual, damaged, bank, settings)
    ranges = [0.0]

    def work(picture: Picture, settings: Settings) -> Recovered:
        seen = Damaged(*picture.signals(bank.shape[1]), blur)
        if blur.kernel.size == 1 or not (picture.unmixed or len(seen.signals) == 1):
            return recover(seen, bank, value, settings)
        recovered = sharpen(seen, bank, value, level, settings)
        ranges.append(float(np.ptp(recovered.signals[0])))
        return recovered

    force = force or blur.kernel.size == 1
    reason = None if force else better_blur(sample.mean(), blur.kernel)
    if reason is None:
        margin = max(bank.shape[2:]) + 2 * max(blur.kernel.shape)
        told = level * sample.scale
        sharp, details = subject.restored(work, settings, value, margin=margin, sigma=told)
        wider = max(ranges) / (float(np.ptp(damaged.signals[0])) + 0.02)
        if force or wider <= TUNING.ringing:
            return answer(sharp, details, begin, return_details)
        reason = f"undone, it rings: the range of the answer is {wider:.1f} times that of the picture"
    warnings.warn(
        f"the psf does not seem to be this picture's blur ({reason}); it is returned as it came, "
        "force=True deblurs it all the same",
        BlurMisfitWarning,
        stacklevel=2,
    )
    untouched = subject.canvas.copied(image)[0]
    return answer(untouched, details_of([], value, subject.canvas, misfit=reason), begin, return_details)


def as_kernel(psf: ArrayLike, shape: tuple[int, ...]) -> NDArray:
    """A point spread function scaled to sum to one, checked against the picture it blurred."""
    kernel = as_numbers(psf, "psf")
    if kernel.ndim != 2 or kernel.size == 0:
        raise ValueError(f"psf must be a real array (height, width), got {kernel.dtype} of shape {kernel.shape}")
    kernel = kernel.astype(np.float64)
    if not np.all(np.isfinite(kernel)) or not np.sum(kernel) > 0:
        raise ValueError(f"psf must be finite with a positive sum, its sum is {np.sum(kernel):g}")
    if any(k > n for k, n in zip(kernel.shape, shape, strict=True)):
        raise ValueError(f"psf of shape {kernel.shape} is larger than the image {tuple(shape)}")
    return kernel / np.sum(kernel)


class Area:
    """An area that holds every plain filter of codes whose blurred filters touch seen samples, and its Fourier transform.

    Attributes
    ----------
    space : (height, width)
        Of the area; codes with boundary "valid" on it have the indices of codes of blurred filters.
    seen : slices
        Where the seen samples lie on the area.
    shape : (height, width)
        Of the Fourier transforms, which begin with the area: no seen sample meets the other side.
    response, power : (height, width // 2 + 1) arrays
        ĥ and |ĥ|².
    """

    def __init__(self, blur: Blur, shape: tuple[int, ...], size: tuple[int, ...], settings: Settings) -> None:
        self.space, box = plain_area(blur, shape, size, settings.boundary)
        self.seen = (slice(None), *box)
        self.workers = settings.n_jobs
        self.shape = tuple(
            scipy.fft.next_fast_len(max(n + max(k - 1 - b.start, 0), b.stop + k - 1), real=True)
            for n, k, b in zip(self.space, blur.kernel.shape, box, strict=True)
        )
        kernel = self.widened(blur.kernel[None], (slice(None), *map(slice, blur.kernel.shape)))
        self.response = self.spectrum(np.roll(kernel, [-c for c in blur.centre], (1, 2)))
        self.power = np.abs(self.response) ** 2

    def widened(self, x: NDArray, box: tuple[slice, ...]) -> NDArray:
        """Samples (channels, height, width) in a box of the transforms' shape, zero around it."""
        wide = np.zeros((len(x), *self.shape), np.float32)
        wide[box] = x
        return wide

    def spectrum(self, x: NDArray) -> NDArray:
        return scipy.fft.rfft2(x, workers=self.workers)

    def filtered(self, x: NDArray, response: NDArray) -> NDArray:
        """Samples (channels, *shape) times a response in Fourier space."""
        return scipy.fft.irfft2(self.spectrum(x) * response, self.shape, workers=self.workers)

    def apply(self, x: NDArray) -> NDArray:
        """Samples that would be seen of x (channels, *shape)."""
        return self.filtered(x, self.response)[self.seen]

    def adjoint(self, y: NDArray) -> NDArray:
        """The transpose of `apply`."""
        return self.filtered(self.widened(y, self.seen), np.conj(self.response))

    def nearest(
        self, detail: NDArray, weights: NDArray, x: NDArray, target: NDArray, rho: float, steps: int
    ) -> NDArray:
        """The x (channels, *shape) of least ½ Σ w (y − h∗x)² + ½ ρ ‖x − target‖², by conjugate gradients from some x."""
        residual = self.adjoint(weights * (detail - self.apply(x))) + rho * (target - x)
        direction, size = np.zeros_like(x), np.inf
        for _ in range(steps):
            step = self.filtered(residual, 1 / (self.power + np.float32(rho)))
            size, previous = float(np.vdot(residual, step)), size
            direction = step + np.float32(size / previous) * direction
            image = self.adjoint(weights * self.apply(direction)) + rho * direction
            curvature = float(np.vdot(direction, image))
            if not (size > 0 and curvature > 0):  # nothing is left to do
                break
            length = np.float32(size / curvature)
            x = x + length * direction
            residual -= length * image
        return x

    def wiener(self, left: NDArray, noise: float | NDArray) -> NDArray:
        """Seen samples (channels, height, width) without the blur, for noise of that power over the signal's."""
        inverse = np.conj(self.response) / (self.power + noise)
        return self.filtered(self.widened(left, self.seen), inverse)[self.seen].astype(np.float64)

    def synthesise(self, codes: SparseCodes, filters: NDArray) -> NDArray:
        """The detail (channels, *shape) that codes make without the blur."""
        operator = convolution(filters, (filters.shape[1], *self.space), "valid")
        box = (slice(None), *map(slice, self.space))
        return self.widened(operator.synthesise(codes.indices[0], codes.values[0]), box)


def code_in_turns(
    area: Area, detail: NDArray, weights: NDArray, filters: NDArray, penalty: float, settings: Settings
) -> Result:
    """Codes of the detail behind a blur, with indices as those of blurred filters; λ of the last turn is `penalty`.

    The objective and the gap are those of the last turn's coding.
    """
    fit = x = np.zeros((len(detail), *area.shape), np.float32)
    turns, result = TUNING.turns, None
    for i, rho in enumerate(np.geomspace(*TUNING.coupling, turns).tolist()):
        x = area.nearest(detail, weights, x, fit, rho, 2 if i else 8)
        price = penalty * TUNING.first_penalty ** (1 - i / (turns - 1)) / rho
        own = replace(settings, boundary="valid", progress=share_of(settings.progress, i / turns, (i + 1) / turns))
        start = None if result is None else result.codes
        inner = x[:, : area.space[0], : area.space[1]]
        result = encode_details([inner], None, filters, price, own, start, inner=0.9, max_iter=TUNING.rounds)
        fit = area.synthesise(result.codes, filters)
    assert result is not None, "there is at least one turn"
    return result


def sharpen(damaged: Damaged, filters: NDArray, penalty: float, level: float, settings: Settings) -> Recovered:
    """Undo the blur of signals: luminance and perhaps two colour differences, or one signal of all channels.

    Only the first signal is coded. `level` is the deviation of the noise.
    """
    first = Damaged(damaged.signals[:1], damaged.weights[:1], damaged.blur)
    area = Area(damaged.blur, first.signals[0].shape[1:], filters.shape[2:], settings)
    smooth = separate(damaged, settings)
    detail, *others = damaged.details(smooth)
    weights = first.weights[0].astype(np.float32)
    result = code_in_turns(area, detail, weights, filters, penalty, settings)
    warn_unless_converged(result)
    codes = refit(first, smooth[:1], filters, result.codes, settings) if settings.debias else result.codes
    fit = area.synthesise(codes, filters)
    sharp, seen = fit[area.seen].astype(np.float64), area.apply(fit)
    # Detail that the codes missed.
    missed = TUNING.missed * float(np.mean(sharp**2))
    noise = max(0.05, max(level, penalty) ** 2 / max(missed, 1e-12))
    reach = (0, TUNING.reach, TUNING.reach)
    signals = [smooth[0].sharp + sharp + area.wiener(np.where(weights > 0, detail - seen, 0.0), noise)]
    for detail, weights, part in zip(others, damaged.weights[1:], smooth[1:], strict=True):
        # Colour over luminance in the neighbourhood of every sample, by least squares, drawn to zero where both are noise.
        product, square = (
            scipy.ndimage.gaussian_filter(np.where(weights > 0, x * seen, 0.0), reach, mode="constant")
            for x in (detail, seen)
        )
        slope = product / (square + level**2 + 1e-12)
        left = np.where(weights > 0, detail - slope * seen, 0.0)
        signals.append(part.sharp + slope * sharp + area.wiener(left, _colour_noise(area, left, weights, level)))
    return Recovered(signals, [part.sharp for part in smooth], max(part.unsettled for part in smooth), codes, result)


def _colour_noise(area: Area, left: NDArray, weights: NDArray, level: float) -> NDArray:
    """Power of the noise over that of the colour that `left` still holds, for every frequency."""
    down, right = scipy.fft.fftfreq(area.shape[0])[:, None], scipy.fft.rfftfreq(area.shape[1])
    # The spectrum of colour falls with the frequency; there is six times more of it than is seen above the noise.
    fall = (np.maximum(np.hypot(down, right), 0.05) / 0.1).astype(np.float32) ** -2.4
    above = max(float(np.sum(weights * left**2) / max(np.sum(weights), 1)) - level**2, 0.01 * level**2 + 1e-9)
    amplitude = 6.0 * above / float(np.mean(area.power * fall))
    return level**2 / (amplitude * fall) + 1e-6
