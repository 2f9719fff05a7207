"""What is measured on: the paper's images where POINTILLIST_DATA names their folder, the shipped photographs otherwise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pointillist as pt

SIDE = 100
FILTER_SIZE = 11
PENALTY = 1.0
CIRCULAR = (
    "Circular: SPORCO's problem is the circular one, so it also learns from the seams where an image meets its far side, "
    "straight and sharp as the edges of the city; this learner solves the same problem. Tapered: SPORCO with its images "
    "faded to zero at the borders, so that there are no seams."
)


@dataclass(frozen=True)
class Inputs:
    """Images and dictionaries of one run; ``quick`` makes all of them small."""

    quick: bool = False

    @cached_property
    def folder(self) -> Path | None:
        named = os.environ.get("POINTILLIST_DATA")
        if named is None:
            return None
        folder = Path(named)
        if not (folder / "fruit_normalised.npz").exists():
            raise FileNotFoundError(f"POINTILLIST_DATA={named} holds no fruit_normalised.npz")
        return folder

    @property
    def name(self) -> str:
        return "the shipped photographs" if self.folder is None else "fruit (training) and city (held out)"

    @property
    def n_filters(self) -> int:
        return 16 if self.quick else 100

    @property
    def n_overcomplete(self) -> int:
        return (2 if self.quick else 4) * self.n_filters

    @cached_property
    def train(self) -> NDArray:
        """Ten images to learn from, (10, 100, 100) float32."""
        return self._ten("fruit_normalised.npz", "train")

    @cached_property
    def tapered(self) -> NDArray:
        """The training images faded to nothing at their borders: a circular solver finds no seams in them."""
        ramp = np.linspace(0.05, 1.0, 8)
        window = np.ones(self.train.shape[-1])
        window[: len(ramp)], window[-len(ramp) :] = ramp, ramp[::-1]
        return (self.train * np.outer(window, window)).astype(self.train.dtype)

    @cached_property
    def unseen(self) -> NDArray:
        """Ten images that no dictionary was learned from."""
        return self._ten("city_normalised.npz", "test")

    @property
    def held_out(self) -> NDArray:
        """The first four unseen images, on which dictionaries are judged."""
        return self.unseen[:2] if self.quick else self.unseen[:4]

    def natural(self, split: str, count: int) -> NDArray:
        """Contrast-normalised patches of natural photographs, (count, 100, 100) float32."""
        if self.folder is None:
            return _crops(split, count, SIDE)
        file = {"train": "train_2000.npy", "test": "test_100.npy"}[split]
        patches = np.load(self.folder / "natural" / file, mmap_mode="r")
        spread = patches[: count + count // 4]
        kept = [patch for patch in spread if np.ptp(patch) > 0][:count]
        return np.stack(pt.contrast_normalise(kept)).astype(np.float32)

    def large(self, side: int) -> NDArray:
        """One normalised image (side, side), put together from natural patches."""
        count = -(-side // SIDE)
        patches = self.natural("train", count**2)
        patches = np.resize(patches, (count**2, SIDE, SIDE)).reshape(count, count, SIDE, SIDE)
        return np.ascontiguousarray(patches.swapaxes(1, 2).reshape(count * SIDE, count * SIDE)[:side, :side])

    @cached_property
    def filters(self) -> NDArray:
        """A dictionary to encode with, (100, 11, 11) float32, learned by neither side where the data have one."""
        return self._dictionary("filters_consensus_100.npz", self.n_filters)

    @cached_property
    def overcomplete(self) -> NDArray:
        """A dictionary of four times as many filters."""
        return self._dictionary("filters_paper_400.npz", self.n_overcomplete)

    def start(self, n_filters: int, seed: int = 0) -> NDArray:
        """Random first filters of norm one, the same for both sides."""
        filters = np.random.default_rng(seed).standard_normal((n_filters, FILTER_SIZE, FILTER_SIZE))
        filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
        return filters.astype(np.float32)

    def _ten(self, file: str, split: str) -> NDArray:
        if self.folder is None:
            images = _crops(split, 10, SIDE)
        else:
            with np.load(self.folder / file) as stored:
                images = stored["images"].astype(np.float32)
        return np.ascontiguousarray(images[:4, :48, :48]) if self.quick else images

    def _dictionary(self, file: str, count: int) -> NDArray:
        if self.folder is not None:
            with np.load(self.folder / file) as stored:
                return np.ascontiguousarray(stored["filters"][:count], np.float32)
        model = pt.OnlineCSC(count, FILTER_SIZE, PENALTY, batch_size=5, random_state=0)
        model.set_params(update__init=self.start(count))
        return model.fit(_crops("train", 20 if self.quick else 60, SIDE)).filters_


def _crops(split: str, count: int, side: int) -> NDArray:
    """Random crops of the shipped photographs, each contrast-normalised."""
    rng = np.random.default_rng(0)
    pictures = list(pt.photographs("train" if split == "train" else "test").values())
    crops = []
    while len(crops) < count:
        picture = pictures[len(crops) % len(pictures)]
        top, left = (int(rng.integers(0, length - side + 1)) for length in picture.shape)
        crop = picture[top : top + side, left : left + side]
        if np.ptp(crop) > 0:
            crops.append(crop)
    return np.stack(pt.contrast_normalise(crops)).astype(np.float32)
