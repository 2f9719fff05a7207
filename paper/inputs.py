"""Images of the measurements: the paper's where a folder holds them, crops of the shipped photographs otherwise.

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
from pointillist.data.damage import damage_named
from pointillist.data.samples import map_npy

PENALTY = 1.0
PATCH = 100
PUBLISHED_SIZE = 11

_PATCHES = {"train": "natural/train_2000.npy", "test": "natural/test_100.npy"}
_SETS = {"train": "fruit_normalised.npz", "test": "city_normalised.npz"}

Split = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of a run: by default the paper's, where two cores can afford them."""

    n_filters: int = 100  # K of the under-complete dictionary
    n_overcomplete: int = 400
    filter_size: int = 11  # side of a filter
    n_images: int = 10  # of the small sets (fruit, city)
    side: int = 100  # how much of each image is used
    n_judged: int = 4  # unseen images that dictionaries are judged on
    iterations: int = 12  # of batch learning (Fig. 1)
    passes: int = 6  # of our online learning (Fig. 2)
    rival_passes: int = 2  # of the frequency-domain method's
    rival_seconds: float = 60.0  # learning time of the frequency-domain batch learner that sets the level (Fig. 1)
    n_patches: int = 1000  # natural patches learned from with mini-batches (Fig. 4, 5)
    n_rival_patches: int = 400  # learned from by the frequency-domain method
    n_single: int = 250  # learned from one at a time
    batch_size: int = 20  # patches in a mini-batch
    n_tested: int = 20  # unseen patches that are coded to judge (Fig. 5)
    n_pictures: int = 10  # test pictures (Fig. 3, 4)
    picture_side: int = 256
    fractions: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0)  # p that time is measured over
    counts: tuple[int, ...] = (25, 50, 100, 200)  # K that time is measured over
    sides: tuple[int, ...] = (5, 7, 11, 15)  # of filters that time is measured over
    signals: tuple[int, ...] = (50, 100, 200)  # sides of images that time is measured over
    repeats: int = 3  # measurements of each time, of which the shortest counts


FULL = Scale()
QUICK = Scale(
    n_filters=32, n_overcomplete=128, filter_size=7, n_images=4, side=56, n_judged=2, iterations=8, rival_seconds=5.0,
    n_patches=400, n_rival_patches=40, n_single=60, n_tested=4, n_pictures=3, picture_side=96, counts=(16, 32, 64),
    sides=(5, 7, 9), signals=(32, 64, 128), repeats=2,
)  # fmt: skip


@dataclass(frozen=True)
class Inputs:
    """Images of one run."""

    scale: Scale
    folder: Path | None = None

    def __post_init__(self) -> None:
        needed = (*_SETS.values(), *_PATCHES.values(), "inpainting/0.jpg")
        for name in needed:
            if self.folder is not None and not (self.folder / name).is_file():
                raise FileNotFoundError(
                    f"the folder of data {self.folder} holds no {name}: name the folder with the paper's images"
                )

    @property
    def name(self) -> str:
        """The images in words."""
        if self.folder is None:
            return "crops of the shipped photographs"
        return "the paper's fruit, city and inpainting images, and patches of natural photographs"

    @cached_property
    def train(self) -> NDArray:
        """The small training set, (n, side, side) float32: fruit."""
        return self._set("train")

    @cached_property
    def unseen(self) -> NDArray:
        """As many images that no dictionary was learned from: city."""
        return self._set("test")

    @property
    def judged(self) -> NDArray:
        """The unseen images that dictionaries are judged on."""
        return self.unseen[: self.scale.n_judged]

    def patches(self, split: Split, count: int) -> NDArray:
        """Patches of natural photographs, (count, 100, 100) or smaller, float32."""
        side = min(PATCH, self.scale.side)
        if self.folder is None:
            return _crops(split, count, side, seed=1)
        stored = map_npy(self.folder / _PATCHES[split])
        varied = [patch for patch in stored[: count + count // 4 + 4] if np.ptp(patch) > 0][:count]
        return np.stack(contrast_normalise(varied)).astype(np.float32)[:, :side, :side]

    @cached_property
    def pictures(self) -> list[NDArray]:
        """The test pictures of the inpainting table."""
        count, side = self.scale.n_pictures, self.scale.picture_side
        if self.folder is None:
            return list(_crops("test", count, side, seed=2))
        images = [load_image(self.folder / "inpainting" / f"{i}.jpg") for i in range(count)]
        return [contrast_normalise(image)[:side, :side] for image in images]

    @cached_property
    def published(self) -> NDArray | None:
        """The over-complete dictionary that the paper's authors report, where the folder has it and the scale is theirs."""
        return self._bank("filters_paper_400.npz")

    @cached_property
    def consensus(self) -> NDArray | None:
        """An under-complete dictionary of others, learned by consensus CSC (2017), on the same conditions."""
        return self._bank("filters_consensus_100.npz")

    def _bank(self, name: str) -> NDArray | None:
        file = None if self.folder is None else self.folder / name
        if file is None or not file.is_file() or self.scale.filter_size != PUBLISHED_SIZE:
            return None
        with damage_named(file), np.load(file, allow_pickle=False) as stored:
            return np.ascontiguousarray(stored["filters"], np.float32)

    def large(self, side: int, n_patches: int = 4) -> NDArray:
        """One image (side, side) put together from so many patches, which are repeated where they do not suffice."""
        patches = self.patches("train", n_patches)
        count = -(-side // patches.shape[1])
        grid = np.resize(patches, (count, count, *patches.shape[1:])).swapaxes(1, 2)
        length = count * patches.shape[1]
        return np.ascontiguousarray(grid.reshape(length, length)[:side, :side])

    def start(self, n_filters: int, size: int | None = None) -> NDArray:
        """Random first filters of norm one, the same for everybody."""
        size = size or self.scale.filter_size
        filters = np.random.default_rng(0).standard_normal((n_filters, size, size))
        filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
        return filters.astype(np.float32)

    def _set(self, split: Split) -> NDArray:
        count, side = self.scale.n_images, self.scale.side
        if self.folder is None:
            return _crops(split, count, side, seed=0)
        file = self.folder / _SETS[split]
        with damage_named(file), np.load(file, allow_pickle=False) as stored:
            return np.ascontiguousarray(stored["images"][:count, :side, :side].astype(np.float32))


def _crops(split: Split, count: int, side: int, seed: int) -> NDArray:
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
