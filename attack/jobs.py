"""Small runs that are to survive whatever happens to them, and what they must end with.

A job is a command in a folder of its own: inputs in ``in``, everything that it writes in ``out``. Names are relative, so
that two runs of a job in two folders write the same bits. What differs by nature (times, dates, random names) is left out of
the comparison.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pointillist.data import photographs
from pointillist.storage import CheckpointFolder, PartFolder, read_arrays
from pointillist.storage.codec import NumberedFiles, kind_of

OUT = "out"
IMAGES, SIDE = 5, 24
_TEMPORARY = ".pointillist-"
HALF = "half a line"
"""What stands for the end of a log that was cut short."""
CHANGING = ("seconds", "created", "facts", "token", "pointillist_version")
"""Entries that two runs do not share."""


@dataclass(frozen=True)
class Job:
    """A run that may be stopped anywhere, and is taken up again by the same words.

    Attributes
    ----------
    words : tuple of str
        The command line.
    output : str
        The file that it is all about.
    numbered : type of NumberedFiles, optional
        What it puts away on the way.
    logs : tuple of str
        Files that may be incomplete when a warning has said so.
    """

    name: str
    words: tuple[str, ...]
    output: str
    numbered: type[NumberedFiles] | None = None
    logs: tuple[str, ...] = ()

    def put_away(self, folder: Path) -> list[Path]:
        """Checkpoints or parts that are there, the newest first."""
        return [] if self.numbered is None else self.numbered(folder / self.output).files()


_SMALL = "--filters 4 --size 5 --jobs 1"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


JOBS = (
    Job(
        "learn",
        _words(
            f"learn in -o out/filters.safetensors {_SMALL} --batch 2 --epochs 3"
            " --resume --checkpoint-every 1 --log out/log.jsonl"
        ),
        "out/filters.safetensors",
        CheckpointFolder,
        ("out/log.jsonl",),
    ),
    Job(
        "encode",
        _words(
            "encode model.safetensors in -o out/codes.safetensors --jobs 1"
            " --resume --checkpoint-every 1 --events out/events.csv"
        ),
        "out/codes.safetensors",
        PartFolder,
    ),
    Job(
        "save",
        _words(f"learn in -o out/filters.safetensors {_SMALL} --mode batch --iterations 2 --mosaic out/filters.png"),
        "out/filters.safetensors",
    ),
)
MODEL = _words(f"learn in -o model.safetensors {_SMALL} --epochs 1 -q")
"""The command that makes the model which is coded with."""


def make_inputs(folder: Path) -> None:
    """Write the images that jobs read, and an empty folder for what they write."""
    (folder / "in").mkdir()
    (folder / OUT).mkdir()
    picture, rng = photographs("test")["camera"], np.random.default_rng(0)
    for i, (y, x) in enumerate(rng.integers(0, 150, (IMAGES, 2))):
        crop = picture[y : y + SIDE, x : x + SIDE]
        Image.fromarray((255 * crop).astype(np.uint8)).save(folder / "in" / f"{i}.png")


def content(folder: Path) -> dict[str, Any]:
    """Everything below ``out``, by name, without what differs by nature; temporary folders are no part of it."""
    files = sorted(path for path in (folder / OUT).rglob("*") if not path.is_dir())
    named = {str(path.relative_to(folder)): path for path in files}
    return {name: content_of(path) for name, path in named.items() if _TEMPORARY not in name}


def leftovers(folder: Path) -> list[str]:
    """Names of temporary folders anywhere below."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(f"{_TEMPORARY}*"))


def content_of(path: Path) -> Any:
    """What a file holds, without what differs by nature; raises ValueError or OSError where it is damaged."""
    if path.suffix == ".safetensors":
        held = read_arrays(path, kind_of(path))
        arrays = {name: _array(name, array) for name, array in held.arrays.items() if name not in CHANGING}
        return _lasting(held.metadata), arrays
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        return [_lasting(json.loads(line)) if line.endswith("\n") else HALF for line in lines]
    if path.suffix == ".json":
        return _lasting(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".html":
        return path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    return path.read_bytes()


def _array(name: str, array: np.ndarray) -> Any:
    if name == "history":
        return _lasting(json.loads(array.tobytes().decode()))
    return str(array.dtype), array.shape, array.tobytes()


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in CHANGING}
    return [_lasting(item) for item in value] if isinstance(value, list) else value
