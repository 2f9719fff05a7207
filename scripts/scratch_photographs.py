"""Gather the photographs that the finder of scratches learns from into one file, for `scripts/learn_scratches.py`.

``python scripts/scratch_photographs.py --folders DIR [DIR ...] --output FILE.npz``. The folders hold Debian packages
(``apt-get download`` and ``dpkg -x``): gcompris-qt-data, of whose ``.rcc`` files the pictures were taken out,
tuxpaint-data, palapeli-data, opencv-doc, lxqt-themes, mate-backgrounds, lomiri-wallpapers-16.04,
lomiri-wallpapers-20.04 and plasma-workspace-wallpapers; some are in scikit-image and scikit-learn. What tests the finder or
inpainting, or what the limits are chosen on (`benchmarks.finding.VALIDATION`), is refused.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import skimage.data
from benchmarks.finding import VALIDATION, for_development
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_image

from benchmarks import photo_sets

LARGE = (
    "mate/nature/Blinds.jpg", "mate/nature/FreshFlower.jpg", "mate/nature/LadyBird.jpg",
    "ColdRipple/contents/images/2560x1600.jpg",
    "ColorfulCups/contents/images/2560x1600.jpg", "EveningGlow/contents/images/2560x1600.jpg",
    "Grey/contents/images/2560x1600.jpg", "Kite/contents/images/2560x1600.jpg", "greentock_by_Peter_Nerlich.jpg",
    "life_by_Aitzol_Berasategi.jpg", "Infinite-Sea_by_Aury88.jpg", "lxqt/wallpapers/appleflower.png",
    "lxqt/wallpapers/butterfly.png", "lxqt/wallpapers/drop.png", "lxqt/wallpapers/this-is-not-windows.jpg",
    "palapeli/collection/castle-maintenon.jpg",
    "palapeli/collection/cincinnati-bridge.jpg", "palapeli/collection/citrus-fruits.jpg",
    "palapeli/collection/european-honey-bee.jpg", "palapeli/collection/panther-chameleon-female.jpg",
)  # fmt: skip
OPENCV = (
    "aero1", "aero3", "aloeL", "apple", "baboon", "board", "butterfly", "fruits", "home", "messi5", "orange", "rubberwhale1",
    "squirrel_cls", "starry_night", "graf1", "box_in_scene", "stuff", "left01", "left05", "ela_original", "smarties",
)  # fmt: skip
SCIKIT_IMAGE = (
    "brick", "chelsea", "coins", "grass", "gravel", "hubble_deep_field", "moon", "page", "retina", "stereo_motorcycle",
)  # fmt: skip
GAMES = ("/clickgame-", "/erase-", "/explore_", "/details-", "tuxpaint/templates/", "palapeli/backgrounds/")
LARGEST, QUALITY = {True: 2.0, False: 0.7}, 88


def coded(image: Image.Image, large: bool) -> np.ndarray:
    """A picture of at most so many megapixels as JPEG."""
    image = ImageOps.exif_transpose(image).convert("RGB")
    ratio = (LARGEST[large] * 1e6 / (image.width * image.height)) ** 0.5
    if ratio < 1:
        image = image.resize((round(image.width * ratio), round(image.height * ratio)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def kind(path: str) -> bool | None:
    """Whether a file is a large photograph or a small one, and None where it is not one to learn from."""
    if path.endswith(LARGE):
        return True
    opencv = any(path.endswith((f"examples/data/{name}.jpg", f"examples/data/{name}.png")) for name in OPENCV)
    return False if opencv or any(game in path for game in GAMES) else None


def own_name(path: Path) -> str:
    """The name of a photograph: of its folder where Plasma's wallpapers are called by their size."""
    return path.parents[2].name if path.stem == "2560x1600" else path.stem


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folders", type=Path, nargs="+", required=True)
    options.add_argument("--output", type=Path, required=True)
    given = options.parse_args()
    found = {}
    for path in sorted(file for folder in given.folders for file in folder.rglob("*")):
        large = kind(path.as_posix()) if path.suffix in (".jpg", ".png", ".webp") and not path.is_symlink() else None
        if large is not None:
            with Image.open(path) as image:
                found[own_name(path)] = coded(image, large)
    for name in SCIKIT_IMAGE:
        samples = getattr(skimage.data, name)()
        found[f"skimage-{name}"] = coded(Image.fromarray(samples[0] if isinstance(samples, tuple) else samples), True)
    found["sample_flower"] = coded(Image.fromarray(load_sample_image("flower.jpg")), True)
    held = {Path(name).stem for name in photo_sets.TEST.values()} | set(photo_sets.TEST) | set(VALIDATION)
    collections = {own_name(Path(f"/a/b/{path}")) for path in LARGE if "palapeli" not in path and "lxqt" not in path}
    held |= {name for name in collections if not for_development(name)}
    refused = [name for name in found if name.removeprefix("skimage-") in held - {"2560x1600"}]
    if refused:
        raise SystemExit(f"these are for tests or validation: {', '.join(refused)}")
    np.savez(given.output, **found)
    sizes = sum(len(one) for one in found.values())
    print(f"{len(found)} photographs, {sizes / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
