"""The session of the page: one photograph, what was found on it, what was made of it, and the work in progress.

The server calls a session from several threads; whatever they share is read and replaced under one lock.
"""

import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.data.photofiles import Photograph, answer_suffix, read_photograph, write_photograph
from pointillist.retouch import tasks
from pointillist.retouch.jobs import Worker
from pointillist.retouch.strokes import painted
from pointillist.retouch.views import View, mask_view, picture_view

log = logging.getLogger(__name__)

_NAMES = {"inpaint": "inpainted", "denoise": "denoised", "deblur": "deblurred", "super_resolve": "enlarged"}
_KEPT = 8
"""Masks that were found and are kept, for undo."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A photograph with the name of its file; `version` tells one from another, `task` is what was done to it last."""

    photograph: Photograph
    name: str
    version: int
    task: str | None = None

    def describe(self) -> dict[str, Any]:
        """What the page shows of the photograph, for JSON."""
        height, width = self.photograph.shape
        return {
            "name": self.name,
            "version": self.version,
            "task": self.task,
            "width": width,
            "height": height,
            "notes": list(self.photograph.notes),
        }


class Masks:
    """Masks that were found on a photograph, by number: the latest few, and the marks that it came with."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self.found: dict[int, NDArray[np.bool_]] = {}
        self.marks: dict[str, Any] | None = None

    def add(self, mask: NDArray[np.bool_], colour: str | None = None) -> None:
        """Keep a mask under the next number; `colour` is given for marks of that colour, which are never forgotten."""
        number = next(self._numbers)
        marks = self.marks if colour is None else {"id": number, "colour": colour}
        found = {**self.found, number: mask}
        old = [one for one in found if marks is None or one != marks["id"]][:-_KEPT]
        self.found = {one: found[one] for one in found if one not in old}
        self.marks = marks


class Session:
    """What the page works on; once it is closed, its private folder is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointillist-app-"))
        self._lock = threading.RLock()
        self.worker = Worker(self._lock)
        self._versions = count(1)
        self._picture: Shown | None = None
        self._result: Shown | None = None
        self._masks = Masks(self._versions)
        self._estimate: dict[str, float] | None = None
        self._written: tuple[int, Path] | None = None

    def close(self) -> None:
        """Stop the work and remove the private folder."""
        self.worker.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def private_path(self, name: str) -> Path:
        """Where a file of that name may be written; a folder for each, as names may repeat."""
        folder = self.folder / f"file-{next(self._versions)}"
        folder.mkdir()
        return folder / _plain(name)

    def open(self, path: Path) -> None:
        """Take a photograph from a file in place of the one before."""
        self.worker.check_idle()
        try:
            photograph = read_photograph(path)
        except (OSError, ValueError, SyntaxError) as error:
            log.info("cannot open %s: %s", path, error)
            reason = " ".join(str(error).split()).replace(str(path), path.name)
            raise ValueError(f"{path.name} could not be opened as a photograph. {_sentence(reason)}") from error
        pixels = photograph.pixels
        key = tasks.marks_key(pixels)
        with self._lock:
            self.worker.check_idle()
            self._show(photograph, path.name)
            if key is not None:
                self.worker.begin(
                    "marks",
                    lambda progress: tasks.find_marked(pixels, key, progress),
                    lambda mask: self._masks.add(mask, tasks.colour_name(key)),
                )

    def _show(self, photograph: Photograph, name: str) -> None:
        self._picture = Shown(photograph, name, next(self._versions))
        self._result, self._estimate, self._masks = None, None, Masks(self._versions)

    def describe(self) -> dict[str, Any]:
        """All that the page shows, for a browser that opens or opens again."""
        with self._lock:
            return {
                "picture": None if self._picture is None else self._picture.describe(),
                "result": None if self._result is None else self._result.describe(),
                "found": {str(number): int(np.count_nonzero(mask)) for number, mask in self._masks.found.items()},
                "marks": self._masks.marks,
                "estimate": self._estimate,
                "job": None if self.worker.job is None else self.worker.job.describe(),
            }

    def find(self, sensitivity: float = 0.5, kind: str = "damage") -> None:
        """Begin to look for dust and scratches, or for "text"; the mask gets the next number."""
        if kind not in ("damage", "text"):
            raise ValueError('The kind must be "damage" or "text".')
        if not 0 <= sensitivity <= 1:
            raise ValueError("The sensitivity must lie between 0 and 1.")
        pixels = self._shown("before").photograph.pixels
        look = tasks.find if kind == "damage" else tasks.find_text
        self.worker.begin("find", lambda progress: look(pixels, sensitivity, progress), self._masks.add)

    def estimate(self, blur: str) -> None:
        """Begin to estimate a blur of that kind."""
        pixels = self._shown("before").photograph.pixels

        def keep(found: dict[str, float]) -> None:
            self._estimate = found

        self.worker.begin("estimate", lambda progress: tasks.estimate(pixels, blur, progress), keep)

    def mend(self, wish: tasks.Wish, steps: Sequence[Mapping[str, Any]], version: int | None = None) -> None:
        """Begin to mend; `steps` say what was painted, for filling in, and `version` on which photograph."""
        picture = self._shown("before")
        if version is not None and version != picture.version:
            raise ValueError("Another photograph was opened meanwhile, in another window. Reload the page to see it.")
        photograph = picture.photograph
        mask = painted(steps, photograph.shape, self._masks.found) if wish.task == "inpaint" else None

        def keep(mended: Photograph) -> None:
            name = f"{Path(picture.name).stem}-{_NAMES[wish.task]}{answer_suffix(picture.name)}"
            with self._lock:
                self._result = Shown(mended, name, next(self._versions), wish.task)

        self.worker.begin("mend", lambda progress: tasks.mend(wish, photograph, mask, progress), keep)

    def adopt(self) -> None:
        """Go on with the result as the photograph."""
        with self._lock:
            self.worker.check_idle()
            result = self._shown("after")
            self._show(result.photograph, result.name)

    def discard(self) -> None:
        """Forget the result and go on with the photograph as it was."""
        with self._lock:
            self._result = None

    def view(self, of: str, view: View) -> tuple[bytes, str]:
        """A view of ``before``, ``after``, or a found mask by its number."""
        if of in ("before", "after"):
            return picture_view(self._shown(of).photograph, view)
        mask = self._masks.found.get(int(of)) if of.isdigit() else None
        if mask is None:
            raise LookupError(f"there is no view of {of}")
        return mask_view(mask, view)

    def download(self) -> Path:
        """The file of the result, written with all that the photograph's own file told."""
        with self._lock:
            result = self._shown("after")
            if self._written is None or self._written[0] != result.version:
                if self._written is not None:
                    shutil.rmtree(self._written[1].parent, ignore_errors=True)
                path = self.private_path(result.name)
                write_photograph(result.photograph, path)
                self._written = result.version, path
            return self._written[1]

    def _shown(self, of: str) -> Shown:
        """The photograph ``before`` or ``after`` it was mended."""
        if of == "before" and self._picture is None:
            raise ValueError("There is no photograph yet. Drop one on the page first.")
        shown = self._picture if of == "before" else self._result
        if shown is None:
            raise LookupError("There is no result yet. Press Mend first.")
        return shown


def _plain(name: str) -> str:
    """A file name without folders and without what a file system would not take."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*').strip(" .")
    stem, dot, suffix = kept.rpartition(".")
    return f"{stem[:100]}{dot}{suffix[:10]}" if stem else kept[:100] or "photograph"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
