"""Learn the dictionaries that ship with the package, and print the figures of their model card.

``python scripts/learn_dictionaries.py [--only natural-400] [--output FOLDER]``. Needs scikit-image, whose package holds the
training photographs at full resolution; the photographs of `HELD_OUT` are never learned from.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data
from numpy.typing import NDArray
from skimage.transform import downscale_local_mean

import pointillist as pt
from pointillist import restore
from pointillist.data.samples import to_float, to_grey
from pointillist.restore.smooth import smooth_part
from pointillist.storage import save_model

# How often a photograph is drawn from. Photographs of many things count for more than a texture or a scientific image.
TRAINING = {
    "astronaut": 4, "chelsea": 3, "rocket": 3, "brick": 1, "grass": 1, "gravel": 1, "hubble_deep_field": 1, "retina": 1,
}  # fmt: skip
HELD_OUT = ("camera", "coffee", "coins")

FOLDER = Path(__file__).parent.parent / "src" / "pointillist" / "data" / "dictionaries"


@dataclass(frozen=True)
class Recipe:
    """How one dictionary is learned.

    The smooth part is stiffer here (`curvature`) than in restoration, so that the filters also know structures that hardly
    fit into them. Used with restoration's own smooth part such filters were worth 0.4 dB more at half of the pixels missing,
    and 0.7 dB at 80 %, than filters learned with that. A penalty of a fifth of the full scale keeps the codes at a few
    hundredths of the pixels: weak, noisy detail makes worse filters.
    """

    n_filters: int
    colour: bool = False
    penalty: float = 0.2
    filter_size: int = 11
    sampling: float = 0.1
    crops: int = 4000
    crop: int = 96
    batch_size: int = 10
    forgetting: float = 2.0
    curvature: float = 50.0
    flattest: float = 0.015
    seed: int = 0


RECIPES = {
    "natural-100": Recipe(100),
    "natural-400": Recipe(400, penalty=0.35),
    "natural-colour-100": Recipe(100, colour=True, penalty=0.3),
}


def detail_of(image: NDArray, curvature: float) -> NDArray[np.float32]:
    """A picture minus its smooth part, as restoration separates it: (H, W) or (3, H, W)."""
    planes = image.astype(np.float64).reshape(-1, *image.shape[-2:])
    smooth = smooth_part(planes, np.ones_like(planes), mu=curvature, colour=len(planes) == 3)
    return (planes - smooth.sharp).reshape(image.shape).astype(np.float32)


def photograph(name: str, *, colour: bool) -> NDArray[np.float32] | None:
    """A photograph of scikit-image in [0, 1]: (H, W) grey or (3, H, W) colour, None where colour is not to be had."""
    samples = to_float(getattr(skimage.data, name)(), name).astype(np.float32)
    if samples.ndim == 2:
        return None if colour else samples
    samples = samples[..., :3]
    return np.ascontiguousarray(np.moveaxis(samples, -1, 0)) if colour else to_grey(samples).astype(np.float32)


def training_crops(recipe: Recipe) -> list[NDArray]:
    """Crops of the photographs' detail at full and half resolution, flipped and turned at random."""
    rng = np.random.default_rng(recipe.seed)
    details, shares = [], []
    for name, share in TRAINING.items():
        image = photograph(name, colour=recipe.colour)
        if image is None:
            continue
        halved = downscale_local_mean(image, (*[1] * (image.ndim - 2), 2, 2)).astype(np.float32)
        for version in (image, halved):
            if min(version.shape[-2:]) >= recipe.crop:
                details.append(detail_of(version, recipe.curvature))
                shares.append(share)
    chances = np.array(shares) / sum(shares)
    crops: list[NDArray] = []
    while len(crops) < recipe.crops:
        detail = details[rng.choice(len(details), p=chances)]
        top, left = (int(rng.integers(0, n - recipe.crop + 1)) for n in detail.shape[-2:])
        crop = detail[..., top : top + recipe.crop, left : left + recipe.crop]
        if crop.std() < recipe.flattest:
            continue
        crop = np.rot90(crop, int(rng.integers(4)), axes=(-2, -1))
        crops.append(np.ascontiguousarray(crop[..., ::-1] if rng.random() < 0.5 else crop))
    return crops


def learn(recipe: Recipe, jobs: int = -1) -> tuple[NDArray, dict[str, Any]]:
    """The filters in float16, ready to be saved, and what the learner says about itself."""
    crops = training_crops(recipe)
    model = pt.OnlineCSC(
        recipe.n_filters,
        recipe.filter_size,
        recipe.penalty,
        sampling=recipe.sampling,
        channels=recipe.colour,
        batch_size=recipe.batch_size,
        update=pt.FilterUpdate(forgetting=recipe.forgetting),
        random_state=recipe.seed,
        n_jobs=jobs,
    ).fit(crops)
    last = model.history_[-1]
    share = last["nnz"] / (recipe.batch_size * recipe.crop**2)
    facts = {"seconds": round(last["seconds"], 1), "codes_per_pixel": round(share, 3), "seen": model.n_seen_}
    return np.asarray(model.filters_, np.float16), facts


def judge(filters: NDArray, *, colour: bool) -> dict[str, float]:
    """Mean PSNR in dB (peak 1) on the middles of the held-out photographs, with everything chosen automatically."""
    scores: dict[str, list[float]] = {}
    for name in HELD_OUT:
        image = photograph(name, colour=colour)
        if image is None:
            continue
        corner = [(n - 256) // 2 for n in image.shape[-2:]]
        image = np.moveaxis(image, 0, -1) if colour else image
        image = image[corner[0] : corner[0] + 256, corner[1] : corner[1] + 256].astype(np.float64)
        rng = np.random.default_rng(0)
        chance = rng.random(image.shape[:2])
        noisy = image + 25 / 255 * rng.standard_normal(image.shape)
        answers = {
            "50 % missing": restore.inpaint(image, chance < 0.5, filters),
            "80 % missing": restore.inpaint(image, chance < 0.8, filters),
            "noise σ = 25/255": restore.denoise(noisy, 25 / 255, filters, data_range=1.0),
        }
        for task, answer in answers.items():
            scores.setdefault(task, []).append(-10 * float(np.log10(np.mean((answer - image) ** 2))))
    return {task: round(float(np.mean(values)), 2) for task, values in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--output", type=Path, default=FOLDER)
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    for name in arguments.only:
        recipe = RECIPES[name]
        begin = time.perf_counter()
        filters, facts = learn(recipe, arguments.jobs)
        spent = time.perf_counter() - begin
        figures = judge(filters.astype(np.float32), colour=recipe.colour)
        print(f"{name}: {facts}, {spent:.0f} s in all; held out, dB: {figures}", flush=True)
        metadata = {
            "name": name,
            "recipe": asdict(recipe),
            "training": list(TRAINING),
            "held_out": list(HELD_OUT),
            "preprocessing": {"normalise": "detail", "curvature": recipe.curvature, "scale": [0, 1]},
            "learned": facts,
            "held_out_psnr": figures,
        }
        save_model(arguments.output / f"{name}.safetensors", filters, metadata)


if __name__ == "__main__":
    main()
