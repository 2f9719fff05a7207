"""Dust, scratches and writing found in photographs that they were painted into, and false finds in clean ones.

``python -m benchmarks.finding --photos DIR --output bench-output [--megapixels 0.3 2]`` measures on the test photographs;
``--half development`` on the others, and ``--half validation`` on those of them that the finder of scratches has not learned
from. ``--fit DIR`` fits the trees that judge dust to the development photographs and writes them into a folder;
``scripts/learn_scratches.py`` fits the network that finds scratches. A checksum of the name decides which photograph is
which, so that nothing is tuned on what is reported.
"""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from sklearn.ensemble import HistGradientBoostingClassifier

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.painted import Scarred, dusty, ruled, scratched
from benchmarks.tables import Table
from benchmarks.written import written
from pointillist.retouch.dust import Forest, speck_candidates
from pointillist.storage import write_arrays

PAINTERS = {"dust": dusty, "scratches": scratched}
MEASURED = {**PAINTERS, "lines": ruled, "text": written}
LOOKED_FOR = {"lines": "scratches"}
"""What `find_damage` is asked for, where it has another name."""

SUFFIXES = (".jpg", ".jpeg", ".png")
FITTED_TO = (
    (0.3, "colour", 1, (1, 7)),
    (0.3, "jpeg", 2, (1, 9)),
    (0.3, "grey", 2, (1, 9)),
    (0.5, "grey", 1, (1, 7)),
    (0.8, "colour", 2, (1, 9)),
    (1.2, "jpeg", 1, (1, 7)),
    (2.0, "colour", 1, (1, 7)),
)
"""Pictures that trees are fitted to: megapixels, look, times as much damage as in the tests, and its pixels across."""

VALIDATION = (
    "Aqua", "Dragonfly_by_Bolly", "Garden", "OneStandsOut", "Picture_0B_by_freespace", "RainDrops",
    "aitzgorri_by_Aitzol_Berasategi", "free_by_Peter_Nerlich", "picosdeeuropa_by_Aitzol_Berasategi", "rocket", "summer_1am",
)  # fmt: skip
"""Development photographs that limits are chosen on: the network that finds scratches has not learned from them."""

_SEED = 7000
_CROSS = np.ones((3, 3), bool)


def photographs(folder: Path, half: str) -> list[Path]:
    """The photographs for "test", for "development", or those of the latter for "validation"."""
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if half == "validation":
        return [file for file in files if file.stem in VALIDATION]
    return [file for file in files if for_development(file.stem) == (half == "development")]


def for_development(name: str) -> bool:
    """Whether a photograph of that name is for development, by the parity of a checksum."""
    return zlib.crc32(name.encode()) % 2 == 0


def sized(file: Path, megapixels: float) -> NDArray[np.uint8]:
    """A photograph in colour, made smaller to so many megapixels where it is larger."""
    with Image.open(file) as image:
        if megapixels < 3:
            image.draft("RGB", (2200, 2200))
        image = image.convert("RGB")
    ratio = np.sqrt(megapixels * 1e6 / (image.width * image.height))
    if ratio < 1:
        image = image.resize((round(image.width * ratio), round(image.height * ratio)), Image.Resampling.LANCZOS)
    return np.asarray(image)


@dataclass
class Counts:
    """What adds up over pictures: pixels found and right, pixels damaged and found, and objects of both kinds."""

    found: int = 0
    right: int = 0
    damaged: int = 0
    seen: int = 0
    finds: int = 0
    right_finds: int = 0
    scars: int = 0
    seen_scars: int = 0
    false_finds: int = 0
    false_pixels: int = 0
    pixels: int = 0
    seconds: float = 0.0

    def add(self, mask: NDArray[np.bool_], scarred: Scarred) -> None:
        near_truth, near_mask = (ndimage.binary_dilation(one, _CROSS) for one in (scarred.mask, mask))
        self.found += int(mask.sum())
        self.right += int((mask & near_truth).sum())
        self.damaged += int(scarred.mask.sum())
        self.seen += int((scarred.mask & near_mask).sum())
        labels, count = ndimage.label(mask, _CROSS)
        shares = ndimage.mean(near_truth, labels, np.arange(1, count + 1)) if count else np.zeros(0)
        self.finds += count
        self.right_finds += int(np.sum(np.asarray(shares) >= 0.5))
        present = np.unique(scarred.labels)[1:]
        covered = ndimage.mean(near_mask, scarred.labels, present) if len(present) else np.zeros(0)
        self.scars += len(present)
        self.seen_scars += int(np.sum(np.asarray(covered) >= 0.5))

    def add_clean(self, mask: NDArray[np.bool_]) -> None:
        self.false_finds += int(ndimage.label(mask, _CROSS)[1])
        self.false_pixels += int(mask.sum())
        self.pixels += mask.size

    def row(self) -> list[str]:
        pairs = (
            (self.right, self.found),
            (self.seen, self.damaged),
            (self.right_finds, self.finds),
            (self.seen_scars, self.scars),
        )
        return [
            *(f"{a / max(b, 1):.3f}" for a, b in pairs),
            f"{self.false_finds / max(self.pixels, 1) * 1e6:.1f}",
            f"{100 * self.false_pixels / max(self.pixels, 1):.3f} %",
            f"{self.seconds / max(self.pixels, 1) * 1e6:.2f}",
        ]


def measured(file: Path, megapixels: float, kind: str, number: int) -> Counts:
    """Count what is found in one photograph, damaged and clean."""
    counts, clean = Counts(), sized(file, megapixels)
    scarred = MEASURED[kind](clean, _SEED + number)
    asked = LOOKED_FOR.get(kind, kind)
    counts.add(pt.find_damage(scarred.picture, asked), scarred)
    begin = time.process_time()
    mask = pt.find_damage(clean, asked)
    counts.seconds = time.process_time() - begin
    counts.add_clean(mask)
    return counts


def measure(context: Context, files: list[Path], half: str, megapixels: list[float], kinds: list[str]) -> None:
    """Find painted damage in photographs, and write the table."""
    table = Table(
        f"Damage found in {len(files)} {half} photographs, within one pixel",
        ["", "Mpx", "precision", "recall", "finds right", "scars found", "false/Mpx clean", "false pixels", "s/Mpx"],
    )
    singles: dict[str, Any] = {}
    for size in megapixels:
        for kind in kinds:
            each = [measured(file, size, kind, number) for number, file in enumerate(files)]
            singles |= {f"{kind} {size} {file.stem}": vars(one) for file, one in zip(files, each, strict=True)}
            total = Counts(**{name: sum(getattr(one, name) for one in each) for name in vars(Counts())})
            table.add(kind, f"{size:g}", *total.row())
    context.write(f"finding-{half}-{'-'.join(kinds)}", [table], photographs=singles)


def compressed(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer).convert("RGB"))


Example = tuple[NDArray, NDArray, NDArray]
"""Descriptions of candidates, the part of each that is damage, and their sizes in pixels."""


def examples(folder: Path) -> Iterator[tuple[int, Example]]:
    """Candidates in development photographs, with the number of the photograph."""
    for seed, (size, look, density, across) in enumerate(FITTED_TO, 1):
        for number, file in enumerate(photographs(folder, "development")):
            scarred = dusty(sized(file, size), 1000 * seed + number, across, density)
            picture = compressed(scarred.picture, 70 + (7 * number) % 26) if look == "jpeg" else scarred.picture
            values = picture.astype(np.float32) / 255
            values = values.mean(axis=-1, keepdims=True) if look == "grey" else values
            for example in _specks(values, scarred):
                yield number, example


def _specks(values: NDArray[np.float32], scarred: Scarred) -> Iterator[Example]:
    for side in (values, 1 - values):
        for labels, features in speck_candidates(side):
            numbers = np.arange(1, len(features) + 1)
            if len(numbers):
                shares = ndimage.mean(scarred.mask, labels, numbers)
                yield features, shares, np.bincount(labels.ravel())[1:]


def fit(folder: Path, output: Path, say: Callable[[str], None]) -> None:
    """Fit boosted trees to the candidates that are clearly dust or clearly none, and write them as arrays.

    A fit without every fourth photograph says first what each threshold would give on those.
    """
    numbers, rows = zip(*examples(folder), strict=True)
    features, shares, sizes = (np.concatenate(part) for part in zip(*rows, strict=True))
    number = np.repeat(numbers, [len(row[0]) for row in rows])
    clear, damage = (shares > 0.65) | (shares < 0.15), shares > 0.5
    held = number % 4 == 3
    kept = clear & ~held
    odds = _trees().fit(features[kept], damage[kept]).decision_function(features[held])
    for needed in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0):
        right = float(np.sum((sizes * shares)[held][odds > needed]))
        found, all_ = float(np.sum(sizes[held][odds > needed])), float(np.sum((sizes * shares)[held]))
        say(f"dust: log-odds over {needed:4.1f}: precision {right / found:.3f}, recall {right / all_:.3f}")
    forest = _forest(_trees().fit(features[clear], damage[clear]))
    facts = {"kind": "dust", "candidates": int(np.sum(clear)), "damage": int(np.sum(clear & damage))}
    arrays = {field.name: getattr(forest, field.name) for field in fields(forest) if field.name != "base"}
    write_arrays(output / "dust.safetensors", "forest", {"base": forest.base, **facts}, arrays)
    say(f"dust: {facts['candidates']} candidates, {facts['damage']} of them damage")


def _trees() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        max_iter=160,
        learning_rate=0.1,
        max_leaf_nodes=20,
        min_samples_leaf=40,
        max_features=0.4,
        l2_regularization=2.0,
        early_stopping=False,
        random_state=0,
    )


def _forest(trees: HistGradientBoostingClassifier) -> Forest:
    """The trees as one list of nodes."""
    roots, parts, start = [], [], 0
    for (predictor,) in trees._predictors:  # scikit-learn has no public view of the nodes
        nodes = predictor.nodes
        own = np.arange(len(nodes)) + start
        leaf = nodes["is_leaf"].astype(bool)
        left, right = (np.where(leaf, own, nodes[side].astype(np.int64) + start) for side in ("left", "right"))
        feature, threshold = (np.where(leaf, 0, nodes[name]) for name in ("feature_idx", "num_threshold"))
        parts.append((feature, threshold, left, right, nodes["value"]))
        roots.append(start)
        start += len(nodes)
    feature, threshold, left, right, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Forest(
        roots=np.array(roots, np.int32),
        feature=feature.astype(np.int16),
        threshold=threshold.astype(np.float32),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        value=value.astype(np.float32),
        base=float(trees._baseline_prediction.item()),
    )


def main() -> None:
    options = parser("benchmarks.finding", __doc__, quick=None)
    options.add_argument("--photos", type=Path, required=True, help="a folder of photographs")
    options.add_argument("--megapixels", type=float, nargs="+", default=[0.3, 2.0])
    options.add_argument("--half", choices=("test", "development", "validation"), default="test")
    options.add_argument("--fit", type=Path, metavar="DIR", help="fit the trees for dust instead, and write them there")
    options.add_argument(
        "--kind", choices=sorted(MEASURED), nargs="+", default=sorted(PAINTERS), help="dust and scratches by default"
    )
    options.add_argument("--limit", type=int, help="so many photographs only")
    arguments = options.parse_args()
    context = Context.of(arguments)
    if arguments.fit and "text" in arguments.kind:
        options.error("--fit is for dust and scratches: writing is found without trees")
    if arguments.fit:
        fit(arguments.photos, arguments.fit, context.say)
        return
    files = photographs(arguments.photos, arguments.half)[: arguments.limit]
    measure(context, files, arguments.half, arguments.megapixels, arguments.kind)


if __name__ == "__main__":
    main()
