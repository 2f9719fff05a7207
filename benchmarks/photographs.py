"""Damaged photographs mended beside what people use today, scored on the missing pixels alone.

``python -m benchmarks.photographs --photos DIR --output bench-output [--set test] [--sizes 0.3,2,12,24] [--cache DIR]``

`benchmarks.photo_sets` names the photographs and the packages that hold them, `benchmarks.scars` the damage. Needs
scikit-image and opencv-python-headless. With a cache the answers of the rivals are remembered, and only ours is run again.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Memory
from numpy.typing import NDArray
from paper.timing import seconds
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

from benchmarks import fills, measure, photo_sets, photo_speed, photo_tables, scars
from benchmarks.context import Context, parser
from benchmarks.fills import OURS, Score
from benchmarks.tables import Table

SIZES = (0.3, 2.0, 12.0, 24.0)
"""Megapixels."""


@dataclass(frozen=True)
class Case:
    """One damaged photograph."""

    picture: str
    place: str | Path
    megapixels: float
    kind: str
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.picture}-{self.megapixels:g}-{self.kind}-{self.seed}"

    def damaged(self, truth: NDArray) -> NDArray[np.bool_]:
        """The mask, which depends on nothing but the case and, in skies, its picture."""
        rng = np.random.default_rng([self.seed, zlib.crc32(f"{self.picture} {self.kind}".encode())])
        return scars.damage(self.kind, (truth.shape[0], truth.shape[1]), rng, truth)


def cases(
    places: dict[str, str | Path], sizes: tuple[float, ...], kinds: tuple[str, ...], seed: int
) -> Iterator[list[Case]]:
    """The cases of one picture at one size, together, so that it is loaded once."""
    for megapixels in sizes:
        for picture, place in places.items():
            if photo_sets.takes_part(place, megapixels):
                chosen = scars.rounds(kinds, megapixels)
                yield [Case(picture, place, megapixels, kind, seed) for kind in chosen]


@dataclass(frozen=True)
class Choice:
    """What is run, and where answers are kept."""

    methods: tuple[str, ...] = tuple(fills.FILLS)
    cache: Path | None = None
    crops: Path | None = None
    quick: bool = False
    only_ours: bool = False


def measured(case: Case, truth: NDArray, choice: Choice) -> dict[str, Score]:
    """Scores of all methods on one damaged photograph."""
    mask = case.damaged(truth)
    answers: dict[str, NDArray] = {}
    scores: dict[str, Score] = {}
    remember = Memory(choice.cache, verbose=0).cache(fills.missing_pixels)
    for method in choice.methods:
        if method == OURS:
            pixels, scores[method] = fills.missing_pixels(method, truth, mask)
        elif choice.only_ours and not remember.check_call_in_cache(method, truth, mask):
            continue
        else:
            pixels, scores[method] = remember(method, truth, mask)
        answers[method] = truth.copy()
        answers[method][mask] = pixels
    if choice.crops is not None and OURS in answers:
        save_crops(choice.crops / f"{case.name}.png", truth, mask, answers)
    return scores


def save_crops(file: Path, truth: NDArray, mask: NDArray, answers: dict[str, NDArray], side: int = 96) -> None:
    """The place of our largest error, three times enlarged: damaged, then every answer, then the truth."""
    errors = np.abs(truth.astype(np.int32) - answers[OURS]).sum(axis=-1) * mask
    coarse = np.add.reduceat(
        np.add.reduceat(errors, range(0, errors.shape[0], 24)), range(0, errors.shape[1], 24), axis=1
    )
    place = 24 * np.array(np.unravel_index(np.argmax(coarse), coarse.shape)) + 12
    start = [int(np.clip(p - side // 2, 0, max(n - side, 0))) for p, n in zip(place, mask.shape, strict=True)]
    damaged = fills.painted_over(truth, mask)
    window = tuple(slice(s, s + side) for s in start)
    parts = [picture[window] for picture in (damaged, *answers.values(), truth)]
    row = np.hstack([np.pad(part, ((0, 0), (0, 4), (0, 0)), constant_values=255) for part in parts])
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(row).resize((3 * row.shape[1], 3 * row.shape[0]), Image.Resampling.NEAREST).save(file)


def run(groups: Iterator[list[Case]], choice: Choice, say: Callable[[str], None]) -> list[photo_tables.Mended]:
    """All cases, one after the other."""
    rows: list[photo_tables.Mended] = []
    for group in groups:
        truth = photo_sets.load(group[0].place, group[0].megapixels)
        if choice.quick:
            truth = truth[:160, :240]
        for case in group:
            scores = measured(case, truth, choice)
            rows.append(photo_tables.Mended(case.picture, case.megapixels, case.kind, scores))
            say(f"{case.picture}, {case.megapixels:g} MP, {case.kind}: {photo_tables.line(scores)}")
    return rows


def alone(picture: str, place: str, megapixels: float, kind: str, method: str, seed: int = 0) -> dict[str, float]:
    """One case in its own process, for its peak memory."""
    where: str | Path = place if place.startswith(("sklearn:", "skimage:")) else Path(place)
    truth = photo_sets.load(where, megapixels)
    mask = Case(picture, where, megapixels, kind, seed).damaged(truth)
    image = fills.painted_over(truth, mask)
    return {"seconds": seconds(lambda: fills.FILLS[method][0](image, mask))}


def memory(groups: Iterator[list[Case]], kind: str, say: Callable[[str], None]) -> Table:
    """Peak memory of every method in a fresh process, on the first picture of every size."""
    table = Table(
        f"Peak memory of a fresh process, {kind}",
        ["picture", "MP", "method", "seconds", "peak MB", "above the start MB"],
        note="The start holds the libraries; the picture, its mask and a copy count to the method.",
    )
    sizes: set[float] = set()
    for group in groups:
        case = group[0]
        if case.megapixels in sizes:
            continue
        sizes.add(case.megapixels)
        for method in fills.FILLS:
            given = {"picture": case.picture, "place": str(case.place), "megapixels": case.megapixels, "kind": kind}
            found = measure.apart("benchmarks.photographs:alone", **given, method=method)
            cost = f"{found['peak_mb']:.0f} MB, {found['seconds']:.1f} s"
            say(f"{case.picture}, {case.megapixels:g} MP, {method}: {cost}")
            above = found["peak_mb"] - found["import_mb"]
            table.add(case.picture, case.megapixels, method, found["seconds"], round(found["peak_mb"]), round(above))
    return table


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore", ConvergenceWarning)
    context = Context.of(arguments)
    places = photo_sets.found(photo_sets.SETS[arguments.set], arguments.photos)
    if arguments.pictures:
        places = {name: place for name, place in places.items() if name in arguments.pictures}
    if context.quick:
        places = dict(list(places.items())[:2])
    if not places:
        raise SystemExit("none of the pictures was found: give the folder that holds them by --photos")
    groups = list(cases(places, arguments.sizes, arguments.only, arguments.seed))
    choice = Choice(tuple(arguments.methods), arguments.cache, arguments.save_crops, context.quick, arguments.only_ours)
    warm_up()
    rows = [] if arguments.speed else run(iter(groups), choice, context.say)
    found = [*photo_tables.summaries(rows), photo_tables.whole(rows)] if rows else []
    if arguments.memory:
        found.append(memory(iter(groups), "scratches", context.say))
    if arguments.speed:
        found += photo_speed.tables_of(places, context.quick, context.say)
    about = {"set": arguments.set, "pictures": list(places), "seed": arguments.seed}
    name = f"photographs-{'speed' if arguments.speed else arguments.set}"
    context.write(name, found, **about, scores=[asdict(row) for row in rows])


def warm_up() -> None:
    """Compile and load what is loaded once."""
    truth = np.random.default_rng(0).integers(0, 255, (48, 48, 3)).astype(np.uint8)
    mask = np.zeros((48, 48), bool)
    mask[20:24, 20:24] = True
    for method in fills.FILLS:
        fills.mended(method, truth, mask)


def _arguments() -> argparse.Namespace:
    options = parser("benchmarks.photographs", __doc__, quick="a smoke test on corners of two pictures")
    options.add_argument("--photos", type=Path, help="folder tree with the packages' photographs")
    options.add_argument("--set", choices=list(photo_sets.SETS), default="development")
    options.add_argument("--pictures", type=lambda text: text.split(","), help="names of the set, comma-separated")
    options.add_argument("--sizes", type=lambda text: tuple(map(float, text.split(","))), default=SIZES)
    options.add_argument("--only", nargs="+", choices=scars.KINDS, default=scars.KINDS, help="kinds of damage")
    options.add_argument("--methods", nargs="+", choices=list(fills.FILLS), default=list(fills.FILLS))
    options.add_argument("--only-ours", action="store_true", help="run no rival; with --cache, show what is remembered")
    options.add_argument("--cache", type=Path, help="folder for the answers of the rivals")
    options.add_argument("--save-crops", type=Path, help="folder for enlarged crops around our largest errors")
    options.add_argument("--seed", type=int, default=0, help="where the damage lies")
    options.add_argument("--speed", action="store_true", help="only the time and memory of 24 and 0.3 megapixels")
    options.add_argument("--memory", action="store_true", help="peak memory of every method in a fresh process, too")
    return options.parse_args()


if __name__ == "__main__":
    main()
