"""The photographs of the inpainting benchmark: a development set, and a test set that nothing is tuned on.

Chosen by eye from free pictures: real photographs, with skies, water, foliage, buildings, animals and a face. They lie in
the Debian packages lomiri-wallpapers-16.04, lomiri-wallpapers-20.04, mate-backgrounds, plasma-workspace-wallpapers,
lxqt-themes and opencv-doc (``apt-get download`` and ``dpkg -x`` put them into a folder), and two of the development set in
scikit-image and scikit-learn. The shipped dictionaries have learned from none of the test set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import skimage.data
from numpy.typing import NDArray
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_image

DEVELOPMENT = {
    "china": "sklearn:china.jpg",
    "astronaut": "skimage:astronaut",
    "Bridge": "Bridge_by_Sander_Klootwijk.jpg",
    "Kite": "Kite/contents/images/2560x1600.jpg",
    "EveningGlow": "EveningGlow/contents/images/2560x1600.jpg",
    "LadyBird": "mate/nature/LadyBird.jpg",
    "life": "life_by_Aitzol_Berasategi.jpg",
    "hills": "lxqt/wallpapers/this-is-not-windows.jpg",
}
"""Name to the end of a file's path, or to a library's sample."""
TEST = {
    "Kleiber": "Kleiber_by_Lukas_Baubkus.jpg",
    "seeding": "seeding_by_Clements_Engelhardt.jpg",
    "Dragonfly": "Dragonfly_by_Bolly.jpg",
    "sunset": "sunset_by_Aitzol_Berasategi.jpg",
    "Wine": "Wine_by_Jakkub_Mede.jpg",
    "picosdeeuropa": "picosdeeuropa_by_Aitzol_Berasategi.jpg",
    "aitzgorri": "aitzgorri_by_Aitzol_Berasategi.jpg",
    "friends": "friends_by_Aitzol_Berasategi.jpg",
    "fig": "Picture_0B_by_freespace.jpg",
    "Aqua": "mate/nature/Aqua.jpg",
    "Dune": "mate/nature/Dune.jpg",
    "Garden": "mate/nature/Garden.jpg",
    "RainDrops": "mate/nature/RainDrops.jpg",
    "Storm": "mate/nature/Storm.jpg",
    "YellowFlower": "mate/nature/YellowFlower.jpg",
    "BytheWater": "BytheWater/contents/images/2560x1600.jpg",
    "DarkestHour": "DarkestHour/contents/images/2560x1600.jpg",
    "FallenLeaf": "FallenLeaf/contents/images/2560x1600.jpg",
    "OneStandsOut": "OneStandsOut/contents/images/2560x1600.jpg",
    "Path": "Path/contents/images/2560x1600.jpg",
    "summer": "summer_1am/contents/images/2560x1600.jpg",
    "after-the-rain": "lxqt/wallpapers/after-the-rain.jpg",
    "Valendas": "lxqt/wallpapers/Valendas.png",
    "cloud": "lxqt/wallpapers/cloud.png",
    "flowers": "lxqt/wallpapers/flowers.png",
    "fog": "lxqt/wallpapers/fog.jpg",
    "building": "examples/data/building.jpg",
    "leuven": "examples/data/leuvenA.jpg",
}
SETS = {"development": DEVELOPMENT, "test": TEST}
ENOUGH = 0.8
"""A picture takes part at a size when it has this share of its pixels: nothing is enlarged."""


def found(chosen: dict[str, str], folder: Path | None) -> dict[str, str | Path]:
    """Where the pictures of a set lie; those of packages that the folder tree does not hold are left out."""
    files = [] if folder is None else [file for file in sorted(folder.rglob("*")) if not file.is_symlink()]
    places: dict[str, str | Path] = {}
    for name, where in chosen.items():
        if ":" in where:
            places[name] = where
        elif file := next((file for file in files if file.as_posix().endswith(f"/{where}")), None):
            places[name] = file
    return places


def pixels(place: str | Path) -> tuple[int, int]:
    """(height, width) of a picture, without decoding a file."""
    if isinstance(place, str):
        return load(place).shape[:2]
    with Image.open(place) as picture:
        return picture.size[::-1]


def takes_part(place: str | Path, megapixels: float) -> bool:
    """Whether a picture has pixels enough for a size."""
    height, width = pixels(place)
    return height * width >= ENOUGH * 1e6 * megapixels


def load(
    place: str | Path, megapixels: float | None = None, resampling: Image.Resampling = Image.Resampling.BOX
) -> NDArray[np.uint8]:
    """A colour picture (height, width, 3) of at most so many megapixels, made smaller by averaging over areas."""
    if isinstance(place, Path):
        with Image.open(place) as file:
            picture = ImageOps.exif_transpose(file).convert("RGB")
    else:
        library, name = place.split(":")
        array = load_sample_image(name) if library == "sklearn" else getattr(skimage.data, name)()
        picture = Image.fromarray(np.ascontiguousarray(array[..., :3]))
    factor = 1.0 if megapixels is None else (1e6 * megapixels / (picture.width * picture.height)) ** 0.5
    if factor < 1:
        size = (round(picture.width * factor), round(picture.height * factor))
        picture = picture.resize(size, resampling)
    return np.asarray(picture)
