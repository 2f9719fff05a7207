"""Missing pixels of a picture, filled in by neighbours with first guesses that are coded with filters where that helps.

All tiles of a picture are coded at one penalty, which is chosen near the damage.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from pointillist.parallel import parallel
from pointillist.restore.engine import Damaged, Recovered, Settings, quick_coder, recover
from pointillist.restore.filling import TILE, Filling, Holed, Sink, beside, fill
from pointillist.restore.neighbourhood import predicted
from pointillist.restore.penalties import (
    Penalty,
    Trial,
    choose_penalty,
    parse_penalty,
    predicted_penalty,
    trial_of,
)
from pointillist.restore.pictures import Canvas
from pointillist.restore.tiling import Box, moved_in, share_of, tiles_with
from pointillist.solvers import CoordinateDescent

GUESS_TOL = 0.8
"""Relative duality gap of first guesses, which one round reaches as a rule: neighbours make no better of a smaller one."""

_SAMPLED_TILES = 8  # on which the penalty is chosen
_SMALL = 4 * TILE**2  # pixels up to which a picture is looked at whole


@dataclass(frozen=True, eq=False)
class Coder:
    """Codes boxes of a picture and keeps what the solver says of each.

    Attributes
    ----------
    canvas : Canvas
    filters : (n_filters, 1 or 3, height, width) array
    price : float or str
        The penalty as people give it.
    settings : Settings
    guess_tol : float or None
        Relative duality gap of first guesses; None is that of the settings, which penalty and trust are chosen with.
    coded : dict
        What was recovered of each box, by its upper left corner.
    """

    canvas: Canvas
    filters: NDArray
    price: Penalty
    settings: Settings
    guess_tol: float | None = None
    coded: dict[tuple[int, int], Recovered] = field(default_factory=dict)
    _choosing: Lock = field(default_factory=Lock)

    @property
    def penalty(self) -> float:
        """λ as given, or the one that best predicts hidden pixels near the damage; chosen when it is first asked for."""
        with self._choosing:
            return self._penalty

    def trust(self) -> float:
        """Weight from 0 to 1 of the codes in the answer; the rest is what neighbours predict."""
        with self._choosing:
            return self._trust

    @cached_property
    def _trust(self) -> float:
        """The mixture that comes nearest to hidden pixels, on a few crops near the damage."""
        trial = self._trial
        settings = replace(self.settings, progress=None)
        fitted = recover(trial.left, self.filters, self._penalty, settings, trial.smooth)

        def work(i: int) -> tuple[float, float]:
            truth, guess = np.mean(trial.crops.signals[i], axis=0), np.mean(fitted.signals[i], axis=0)
            known, wanted = np.all(trial.left.weights[i] > 0, axis=0), np.any(trial.hidden[i], axis=0)
            full = truth.copy()
            full[~known] = guess[~known]
            made = predicted(full[None], wanted, known, full, scattered=True)[0][0]
            away = (guess - made)[wanted]
            return float(np.sum(away * (truth - made)[wanted])), float(np.sum(away**2))

        along, square = np.sum(parallel(work, range(len(trial.hidden)), settings.n_jobs), axis=0)
        return float(np.clip(along / square, 0.0, 1.0)) if square > 0 else 0.0

    @cached_property
    def _penalty(self) -> float:
        sample = self._sample()
        if parse_penalty(self.price) is None:
            return predicted_penalty(sample, self.filters, self.settings, self._trial)
        return choose_penalty(self.price, 0.0, sample, self.filters, self.settings)

    @cached_property
    def _trial(self) -> Trial:
        """A few crops near the damage, with some of their pixels hidden."""
        return trial_of(self._sample(), self.filters, replace(self.settings, progress=None))

    def _sample(self) -> Damaged:
        """The first signals of some tiles with seen pixels beside missing ones, or of the whole picture if that is small."""
        height, width = self.canvas.shape
        boxes: list[Box] = [(slice(0, height), slice(0, width))]
        if height * width > _SMALL:
            missing = self.canvas.missing
            near = tiles_with(beside(missing[0]), TILE) or tiles_with(np.any(missing, axis=0), TILE)
            chosen = np.unique(np.linspace(0, len(near) - 1, _SAMPLED_TILES).astype(int))
            boxes = [moved_in(near[i], TILE, self.canvas.shape) for i in chosen]
        damaged = [self._damaged(box) for box in boxes]
        return Damaged([one.signals[0] for one in damaged], [one.weights[0] for one in damaged])

    def _damaged(self, box: Box) -> Damaged:
        return Damaged(*self.canvas.picture(box).signals(self.filters.shape[1]))

    def picture(self, box: Box, n_jobs: int) -> NDArray:
        """A box of the picture as smooth part and codes make it: planes (channels, height, width)."""
        picture = self.canvas.picture(box)
        damaged = Damaged(*picture.signals(self.filters.shape[1]))
        return picture.gather(self._recover(damaged, box, n_jobs))

    def guess(self, planes: NDArray, seen: NDArray, box: Box, n_jobs: int) -> NDArray:
        """The mean of the channels of a box, without holes; grey filters code that mean alone."""
        weights = np.broadcast_to(seen, planes.shape).astype(np.float64)
        coder = None
        if self.guess_tol is not None:  # without codes the gap may be small enough already
            coder = quick_coder(self.guess_tol, cells=(1,), inner=0.9, max_sweeps=2, extra=4, min_iter=1)
        if self.filters.shape[1] == len(planes):
            return np.mean(self._recover(Damaged([planes], [weights]), box, n_jobs, coder)[0], axis=0)
        light = np.mean(planes, axis=0, keepdims=True)
        return self._recover(Damaged([light], [weights[:1]]), box, n_jobs, coder)[0][0]

    def _recover(
        self, damaged: Damaged, box: Box, n_jobs: int, coder: CoordinateDescent | None = None
    ) -> list[NDArray]:
        settings = replace(self.settings, n_jobs=n_jobs, progress=None)
        recovered = recover(damaged, self.filters, self.penalty, settings, coder=coder)
        self.coded[box[0].start, box[1].start] = recovered
        return recovered.signals


def fill_canvas(
    canvas: Canvas,
    coder: Coder | None,
    target: NDArray,
    settings: Settings,
    *,
    everywhere: bool = False,
    texture: float = 0.0,
    deviation: NDArray | None = None,
) -> list[Coder]:
    """Write the missing samples of a canvas to the target, all channels together or each with its own mask.

    Parameters
    ----------
    canvas : Canvas
    coder : Coder or None
        Codes the first guess where missing pixels are scattered.
    target : (channels, height, width) array of the canvas's type
    settings : Settings
    everywhere : bool
        Whether first guesses are coded in all damaged tiles.
    texture : float
        How much of the texture that conditional means lack is taken from nearby, from 0 to 1.
    deviation : (1 or channels, height, width) float64 array, optional
        Gets the deviations that are to be expected, in the canvas's own units.

    Returns
    -------
    list of Coder
        What was coded, one for each mask that has a missing pixel.
    """
    coders = []
    damaged = [c for c, missing in enumerate(canvas.missing) if np.any(missing)]
    for number, c in enumerate(damaged):
        missing = canvas.missing[c]
        chosen = slice(None) if len(canvas.missing) == 1 else slice(c, c + 1)
        one = replace(canvas, planes=canvas.planes[chosen], missing=missing[None])
        if coder is not None:
            coders.append(Coder(one, coder.filters, coder.price, settings, coder.guess_tol))
        filling = Filling(
            coded=coders[-1].guess if coders else None,
            everywhere=everywhere,
            trust=coders[-1].trust if coders else lambda: 0.0,
            texture=texture,
            n_jobs=settings.n_jobs,
            deviations=deviation is not None,
            progress=share_of(settings.progress, number / len(damaged), (number + 1) / len(damaged)),
        )
        spread = None if deviation is None else deviation[c]
        fill(Holed(one.planes, missing, canvas.scale), filling, _writer(canvas, target[chosen], spread))
    return coders


def _writer(canvas: Canvas, target: NDArray, deviation: NDArray | None) -> Sink:
    def write(rows: NDArray, columns: NDArray, values: NDArray, spread: NDArray | None) -> None:
        target[:, rows, columns] = canvas.in_own_type(values)
        if deviation is not None and spread is not None:
            deviation[rows, columns] = spread * canvas.scale

    return write
