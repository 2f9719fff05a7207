"""Damaged photographs mended beside what people use today, scored on the missing pixels alone.

``python -m benchmarks.photographs --photos DIR --output bench-output [--set test] [--sizes 0.3,2,12,24] [--cache DIR]``

`benchmarks.photo_sets` names the photographs and the packages that hold them, `benchmarks.scars` the damage. Needs
scikit-image and opencv-python-headless. With a cache the answers of the rivals are remembered, and only ours is run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from benchmarks import fills, measure, photo_sets, photo_speed, photo_tables, scars, tables
from benchmarks.fills import OURS, Score
from benchmarks.tables import Table
from pointillist.report import machine

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
class Settings:
    """What is run, and where answers are kept."""

    methods: tuple[str, ...] = tuple(fills.FILLS)
    cache: Path | None = None
    crops: Path | None = None
    quick: bool = False
    only_ours: bool = False


def measured(case: Case, truth: NDArray, settings: Settings) -> dict[str, Score]:
    """Scores of all methods on one damaged photograph."""
    mask = case.damaged(truth)
    answers: dict[str, NDArray] = {}
    scores: dict[str, Score] = {}
    for method in settings.methods:
        if method == OURS:
            found = fills.mended(method, truth, mask)
        elif (known := fills.remembered(settings.cache, case.name, method, truth, mask)) is not None:
            found = known
        elif settings.only_ours:
            continue
        else:
            found = fills.mended(method, truth, mask)
            fills.remember(settings.cache, case.name, method, truth, mask, found)
        answers[method], scores[method] = found
    if settings.crops is not None and OURS in answers:
        save_crops(settings.crops / f"{case.name}.png", truth, mask, answers)
    return scores


def save_crops(file: Path, truth: NDArray, mask: NDArray, answers: dict[str, NDArray], side: int = 96) -> None:
    """The place of our largest error, three times enlarged: damaged, then every answer, then the truth."""
    errors = np.abs(truth.astype(np.int32) - answers[OURS]).sum(axis=-1) * mask
    coarse = np.add.reduceat(
        np.add.reduceat(errors, range(0, errors.shape[0], 24)), range(0, errors.shape[1], 24), axis=1
    )
    place = 24 * np.array(np.unravel_index(np.argmax(coarse), coarse.shape)) + 12
    start = [int(np.clip(p - side // 2, 0, max(n - side, 0))) for p, n in zip(place, mask.shape, strict=True)]
    damaged = truth.copy()
    damaged[mask] = (255, 0, 255)
    window = tuple(slice(s, s + side) for s in start)
    parts = [picture[window] for picture in (damaged, *answers.values(), truth)]
    row = np.hstack([np.pad(part, ((0, 0), (0, 4), (0, 0)), constant_values=255) for part in parts])
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(row).resize((3 * row.shape[1], 3 * row.shape[0]), Image.Resampling.NEAREST).save(file)


def run(groups: Iterator[list[Case]], settings: Settings, say: Callable[[str], None]) -> list[photo_tables.Row]:
    """All cases, one after the other."""
    rows: list[photo_tables.Row] = []
    for group in groups:
        truth = photo_sets.load(group[0].place, group[0].megapixels)
        if settings.quick:
            truth = truth[:160, :240]
        for case in group:
            scores = measured(case, truth, settings)
            rows.append(photo_tables.Row(case.picture, case.megapixels, case.kind, scores))
            say(f"{case.picture}, {case.megapixels:g} MP, {case.kind}: {photo_tables.line(scores)}")
    return rows


def alone(picture: str, place: str, megapixels: float, kind: str, method: str, seed: int = 0) -> dict[str, float]:
    """One case in its own process, for its peak memory."""
    where: str | Path = place if place.startswith(("sklearn:", "skimage:")) else Path(place)
    truth = photo_sets.load(where, megapixels).copy()
    mask = Case(picture, where, megapixels, kind, seed).damaged(truth)
    truth[mask] = (255, 0, 255)
    return {"seconds": measure.seconds(lambda: fills.FILLS[method][0](truth, mask))}


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
            found = measure.apart(
                "benchmarks.photographs:alone",
                picture=case.picture,
                place=str(case.place),
                megapixels=case.megapixels,
                kind=kind,
                method=method,
            )
            say(
                f"{case.picture}, {case.megapixels:g} MP, {method}: {found['peak_mb']:.0f} MB, {found['seconds']:.1f} s"
            )
            above = found["peak_mb"] - found["import_mb"]
            table.add(case.picture, case.megapixels, method, found["seconds"], round(found["peak_mb"]), round(above))
    return table


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore", ConvergenceWarning)
    console = Console(width=None if Console().is_terminal else 160)
    places = photo_sets.found(photo_sets.SETS[arguments.set], arguments.photos)
    if arguments.pictures:
        places = {name: place for name, place in places.items() if name in arguments.pictures}
    if arguments.quick:
        places = dict(list(places.items())[:2])
    if not places:
        raise SystemExit("none of the pictures was found: give the folder that holds them by --photos")
    groups = list(cases(places, arguments.sizes, arguments.only, arguments.seed))

    def say(text: str) -> None:
        console.print(f"  [dim]{text}[/dim]")

    settings = Settings(
        methods=tuple(arguments.methods),
        cache=arguments.cache,
        crops=arguments.save_crops,
        quick=arguments.quick,
        only_ours=arguments.only_ours,
    )
    warm_up()
    rows = [] if arguments.speed else run(iter(groups), settings, say)
    found = [*photo_tables.summaries(rows), photo_tables.whole(rows)] if rows else []
    if arguments.memory:
        found.append(memory(iter(groups), "scratches", say))
    if arguments.speed:
        found += photo_speed.tables_of(places, arguments.quick, say)
    for table in found:
        tables.show(table, console)
    arguments.output.mkdir(parents=True, exist_ok=True)
    record = {
        "facts": machine.facts((*measure.PACKAGES, "scikit-image", "opencv-python-headless")),
        "set": arguments.set,
        "pictures": list(places),
        "seed": arguments.seed,
        "scores": [row.plain() for row in rows],
        "tables": [vars(table) for table in found],
    }
    file = arguments.output / f"photographs-{'speed' if arguments.speed else arguments.set}.json"
    file.write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))
    console.print(f"{len(rows)} damaged photographs; scores in {file}")


def warm_up() -> None:
    """Compile and load what is loaded once."""
    truth = np.random.default_rng(0).integers(0, 255, (48, 48, 3)).astype(np.uint8)
    mask = np.zeros((48, 48), bool)
    mask[20:24, 20:24] = True
    for method in fills.FILLS:
        fills.mended(method, truth, mask)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.photographs", description=__doc__.splitlines()[0])
    parser.add_argument("--photos", type=Path, help="folder tree with the packages' photographs")
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--set", choices=list(photo_sets.SETS), default="development")
    parser.add_argument("--pictures", type=lambda text: text.split(","), help="names of the set, comma-separated")
    parser.add_argument("--sizes", type=lambda text: tuple(map(float, text.split(","))), default=SIZES)
    parser.add_argument(
        "--only", type=_kinds, default=scars.KINDS, help=f"comma-separated, of {', '.join(scars.KINDS)}"
    )
    parser.add_argument("--methods", type=_methods, default=list(fills.FILLS), help="comma-separated")
    parser.add_argument("--only-ours", action="store_true", help="run no rival; with --cache, show what is remembered")
    parser.add_argument("--cache", type=Path, help="folder for the answers of the rivals")
    parser.add_argument("--save-crops", type=Path, help="folder for enlarged crops around our largest errors")
    parser.add_argument("--seed", type=int, default=0, help="where the damage lies")
    parser.add_argument("--speed", action="store_true", help="only the time and memory of 24 and 0.3 megapixels")
    parser.add_argument("--memory", action="store_true", help="peak memory of every method in a fresh process, too")
    parser.add_argument("--quick", action="store_true", help="a smoke test on corners of two pictures")
    return parser.parse_args()


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(_listed(text, scars.KINDS))


def _methods(text: str) -> list[str]:
    return _listed(text, tuple(fills.FILLS))


def _listed(text: str, offered: tuple[str, ...]) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(offered):
        raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}; take some of {', '.join(offered)}")
    return chosen


if __name__ == "__main__":
    main()
