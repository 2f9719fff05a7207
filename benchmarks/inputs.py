"""What is measured on: the inputs of the reproduction, from the folder that POINTILLIST_DATA names where it does."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from paper.inputs import PATCH, PENALTY, PUBLISHED_SIZE, Scale

import pointillist as pt
from paper import inputs

__all__ = ["CIRCULAR", "FILTER_SIZE", "PENALTY", "Inputs"]

FILTER_SIZE = PUBLISHED_SIZE
FULL = Scale()
QUICK = Scale(n_filters=16, n_overcomplete=32, n_images=4, side=48, n_judged=2, n_pictures=2, picture_side=64)
RECORDING = "ecg/record_208.npz"
CIRCULAR = (
    "Circular: SPORCO's problem is the circular one, so it also learns from the seams where an image meets its far side, "
    "straight and sharp as the edges of the city; this learner solves the same problem. Tapered: SPORCO with its images "
    "faded to zero at the borders, so that there are no seams."
)


class Inputs(inputs.Inputs):
    """Images and dictionaries of one run; ``quick`` makes all of them small."""

    def __init__(self, quick: bool = False) -> None:
        named = os.environ.get("POINTILLIST_DATA")
        super().__init__(QUICK if quick else FULL, None if named is None else Path(named))

    @cached_property
    def tapered(self) -> NDArray:
        """The training images faded to nothing at their borders: a circular solver finds no seams in them."""
        ramp = np.linspace(0.05, 1.0, 8)
        window = np.ones(self.train.shape[-1])
        window[: len(ramp)], window[-len(ramp) :] = ramp, ramp[::-1]
        return (self.train * np.outer(window, window)).astype(self.train.dtype)

    def large(self, side: int, n_patches: int | None = None) -> NDArray:
        """One image (side, side), put together from as many patches as it takes."""
        return super().large(side, n_patches or (-(-side // min(PATCH, self.scale.side))) ** 2)

    def line(self, samples: int) -> NDArray:
        """A signal (samples,) of unit variance: an electrocardiogram where the data have one, rows of patches otherwise."""
        file = None if self.folder is None else self.folder / RECORDING
        if file is not None and file.is_file():
            with np.load(file, allow_pickle=False) as stored:
                signal = stored["signal"][:samples]
        else:
            signal = np.resize(self.patches("train", 4).reshape(-1), samples)
        return ((signal - signal.mean()) / signal.std()).astype(np.float32)

    def volumes(self, count: int, side: int) -> NDArray:
        """Volumes (count, side, side, side): natural patches side by side, smoothed across."""
        patches = self.patches("train", count * side)[:, :side, :side]
        layers = np.resize(patches, (count, side, side, side))
        return np.ascontiguousarray(layers + np.roll(layers, 1, 1) + np.roll(layers, 2, 1)) / np.float32(np.sqrt(3))

    @cached_property
    def filters(self) -> NDArray:
        """A dictionary to encode with, (100, 11, 11) float32, learned by neither side where the data have one."""
        count = self.scale.n_filters
        return self._learned(count) if self.consensus is None else self.consensus[:count]

    @cached_property
    def overcomplete(self) -> NDArray:
        """A dictionary of four times as many filters."""
        count = self.scale.n_overcomplete
        return self._learned(count) if self.published is None else self.published[:count]

    def _learned(self, count: int) -> NDArray:
        update = pt.FilterUpdate(init=self.start(count))
        model = pt.OnlineCSC(count, FILTER_SIZE, PENALTY, batch_size=5, update=update, random_state=0)
        return model.fit(self.patches("train", 6 * self.scale.n_images)).filters_
