"""What is measured on: the paper's images where a folder holds them, crops of the shipped photographs otherwise.

Everything is contrast-normalised, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointillist.data import contrast_normalise, load_image, photographs
from pointillist.reproduce.scale import Scale

PENALTY = 1.0
PATCH = 100
PUBLISHED_SIZE = 11

_NEEDED = (
    "fruit_normalised.npz",
    "city_normalised.npz",
    "natural/train_2000.npy",
    "natural/test_100.npy",
    "inpainting/0.jpg",
)


@dataclass(frozen=True)
class Inputs:
    """Images of one run."""

    scale: Scale
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        for name in _NEEDED:
            if not (self.folder / name).is_file():
                raise FileNotFoundError(
                    f"--data {self.folder} holds no {name}: name the folder with the paper's images"
                )

    @property
    def name(self) -> str:
        if self.folder is None:
            return "crops of the shipped photographs"
        return "the paper's fruit, city and inpainting images, and patches of natural photographs"

    @cached_property
    def train(self) -> NDArray:
        """The small training set, (n, side, side) float32: fruit."""
        return self._set("fruit_normalised.npz", "train")

    @cached_property
    def judged(self) -> NDArray:
        """Unseen images that dictionaries are judged on: city."""
        return self._set("city_normalised.npz", "test")[: self.scale.n_judged]

    def patches(self, split: Literal["train", "test"], count: int) -> NDArray:
        """Patches of natural photographs, (count, 100, 100) or smaller, float32."""
        side = min(PATCH, self.scale.side)
        if self.folder is None:
            return _crops(split, count, side, seed=1)
        file = {"train": "train_2000.npy", "test": "test_100.npy"}[split]
        stored = np.load(self.folder / "natural" / file, mmap_mode="r")
        varied = [patch for patch in stored[: count + count // 4 + 4] if np.ptp(patch) > 0][:count]
        return np.stack(contrast_normalise(varied)).astype(np.float32)[:, :side, :side]

    @cached_property
    def pictures(self) -> list[NDArray]:
        """The test pictures of the inpainting table."""
        scale = self.scale
        if self.folder is None:
            return list(_crops("test", scale.n_pictures, scale.picture_side, seed=2))
        images = [load_image(self.folder / "inpainting" / f"{i}.jpg") for i in range(scale.n_pictures)]
        return [contrast_normalise(image)[: scale.picture_side, : scale.picture_side] for image in images]

    @cached_property
    def published(self) -> NDArray | None:
        """The over-complete dictionary that the paper's authors report, where the folder has it and the scale is theirs."""
        return self._bank("filters_paper_400.npz")

    @cached_property
    def consensus(self) -> NDArray | None:
        """An independent under-complete dictionary, learned by consensus CSC (2017), likewise."""
        return self._bank("filters_consensus_100.npz")

    def _bank(self, name: str) -> NDArray | None:
        file = None if self.folder is None else self.folder / name
        if file is None or not file.is_file() or self.scale.filter_size != PUBLISHED_SIZE:
            return None
        with np.load(file) as stored:
            return np.ascontiguousarray(stored["filters"], np.float32)

    def large(self, side: int) -> NDArray:
        """One image (side, side) put together from patches."""
        patches = self.patches("train", 4)
        count = -(-side // patches.shape[1])
        tiles = np.resize(patches, (count, count, *patches.shape[1:])).swapaxes(1, 2)
        length = count * patches.shape[1]
        return np.ascontiguousarray(tiles.reshape(length, length)[:side, :side])

    def start(self, n_filters: int, size: int | None = None) -> NDArray:
        """Random first filters of norm one, the same for everybody."""
        size = size or self.scale.filter_size
        filters = np.random.default_rng(0).standard_normal((n_filters, size, size))
        filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
        return filters.astype(np.float32)

    def _set(self, file: str, split: Literal["train", "test"]) -> NDArray:
        scale = self.scale
        if self.folder is None:
            return _crops(split, scale.n_images, scale.side, seed=0)
        with np.load(self.folder / file) as stored:
            images = stored["images"].astype(np.float32)
        return np.ascontiguousarray(images[: scale.n_images, : scale.side, : scale.side])


def _crops(split: Literal["train", "test"], count: int, side: int, seed: int) -> NDArray:
    """Random crops of the normalised photographs, (count, side, side), none of them flat."""
    rng = np.random.default_rng(seed)
    pictures = [contrast_normalise(picture) for picture in photographs(split).values()]
    crops: list[NDArray] = []
    while len(crops) < count:
        picture = pictures[len(crops) % len(pictures)]
        top, left = (int(rng.integers(0, length - side + 1)) for length in picture.shape)
        crop = picture[top : top + side, left : left + side]
        if np.ptp(crop) > 0:
            crops.append(crop)
    return np.stack(crops).astype(np.float32)
