"""One photograph, what was found on it, what was made of it, and the work in progress.

The server calls a session from several threads; whatever they share is read and replaced under one lock.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.app import tasks
from pointillist.app.jobs import Job, Progress
from pointillist.app.strokes import draw_mask
from pointillist.app.views import Window, mask_view, picture_view
from pointillist.data.photofiles import Photograph, answer_suffix, read_photograph, write_photograph

log = logging.getLogger(__name__)

_NAMES = {"inpaint": "inpainted", "denoise": "denoised", "deblur": "deblurred", "super_resolve": "enlarged"}
_KEPT = 8
"""Masks that were found and are kept, for undo."""

Answer = TypeVar("Answer")


class Busy(Exception):
    """Something is being worked on already."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A photograph with the name of its file; `version` tells one from another, `task` is what was done to it last."""

    photograph: Photograph
    name: str
    version: int
    task: str | None = None

    def describe(self) -> dict[str, Any]:
        """What the page needs to know."""
        height, width = self.photograph.shape
        return {
            "name": self.name,
            "version": self.version,
            "task": self.task,
            "width": width,
            "height": height,
            "notes": list(self.photograph.notes),
        }


class Session:
    """What the page works on; a context manager whose private folder is gone afterwards."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointillist-app-"))
        self._lock = threading.RLock()
        self._versions = count(1)
        self._picture: Shown | None = None
        self._result: Shown | None = None
        self._found: dict[int, NDArray[np.bool_]] = {}
        self._marks: dict[str, Any] | None = None
        self._estimate: dict[str, float] | None = None
        self._job: Job[Any] | None = None
        self._written: tuple[int, Path] | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the work and remove the private folder."""
        job = self._job
        if job is not None:
            job.cancel()
            job.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def private_path(self, name: str) -> Path:
        """Where a file of that name may be written; a folder for each, as names may repeat."""
        folder = self.folder / f"file-{next(self._versions)}"
        folder.mkdir()
        return folder / _plain(name)

    def open(self, path: Path) -> None:
        """Take a photograph from a file in place of the one before."""
        self._check_idle()
        try:
            photograph = read_photograph(path)
        except (OSError, ValueError, SyntaxError) as error:
            log.info("cannot open %s: %s", path, error)
            reason = " ".join(str(error).split()).replace(str(path), path.name)
            raise ValueError(f"{path.name} could not be opened as a photograph. {_sentence(reason)}") from error
        pixels = photograph.pixels
        key = tasks.marks_key(pixels)
        with self._lock:
            self._check_idle()
            self._show(photograph, path.name)
            if key is not None:
                colour = tasks.colour_name(key)
                self._begin(
                    "marks",
                    lambda progress: tasks.find_marked(pixels, key, progress),
                    lambda mask: self._keep_marks(mask, colour),
                )

    def _show(self, photograph: Photograph, name: str) -> None:
        self._picture = Shown(photograph, name, next(self._versions))
        self._result, self._estimate, self._marks = None, None, None
        self._found.clear()

    def describe(self) -> dict[str, Any]:
        """All that the page shows, for a browser that opens or opens again."""
        with self._lock:
            return {
                "picture": None if self._picture is None else self._picture.describe(),
                "result": None if self._result is None else self._result.describe(),
                "found": {str(number): int(np.count_nonzero(mask)) for number, mask in self._found.items()},
                "marks": self._marks,
                "estimate": self._estimate,
                "job": None if self._job is None else self._job.describe(),
            }

    def find(self, sensitivity: float = 0.5) -> None:
        """Begin to look for dust and scratches; the mask gets the next number."""
        if not 0 <= sensitivity <= 1:
            raise ValueError("The sensitivity must lie between 0 and 1.")
        pixels = self._opened().photograph.pixels
        self._begin("find", lambda progress: tasks.find(pixels, sensitivity, progress), self._keep_found)

    def _keep_found(self, mask: NDArray[np.bool_]) -> None:
        self._numbered(mask)

    def _numbered(self, mask: NDArray[np.bool_]) -> int:
        """Keep a mask; its number. The oldest are forgotten, but not the marks that the photograph came with."""
        with self._lock:
            number = next(self._versions)
            self._found[number] = mask
            kept = None if self._marks is None else self._marks["id"]
            for old in [one for one in self._found if one != kept][:-_KEPT]:
                del self._found[old]
            return number

    def _keep_marks(self, mask: NDArray[np.bool_], colour: str) -> None:
        with self._lock:
            self._marks = {"id": self._numbered(mask), "colour": colour}

    def estimate(self, blur: str) -> None:
        """Begin to estimate a blur of that kind."""
        pixels = self._opened().photograph.pixels
        self._begin("estimate", lambda progress: tasks.estimate(pixels, blur, progress), self._keep_estimate)

    def _keep_estimate(self, found: dict[str, float]) -> None:
        with self._lock:
            self._estimate = found

    def mend(self, wish: tasks.Wish, steps: Sequence[Mapping[str, Any]], version: int | None = None) -> None:
        """Begin to mend; `steps` say what was painted, for filling in, and `version` on which photograph."""
        picture = self._opened()
        if version is not None and version != picture.version:
            raise ValueError("Another photograph was opened meanwhile, in another window. Reload the page to see it.")
        mask = self._mask(picture, steps) if wish.task == "inpaint" else None
        photograph = picture.photograph

        def work(progress: Progress) -> Photograph:
            return tasks.mend(wish, photograph, mask, progress)

        def keep(mended: Photograph) -> None:
            name = f"{Path(picture.name).stem}-{_NAMES[wish.task]}{answer_suffix(picture.name)}"
            with self._lock:
                self._result = Shown(mended, name, next(self._versions), wish.task)

        self._begin("mend", work, keep)

    def _mask(self, picture: Shown, steps: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
        with self._lock:
            found = dict(self._found)
        mask = draw_mask(steps, picture.photograph.shape, found)
        if not mask.any():
            raise ValueError("Nothing is painted yet. Paint over the damage, or let dust and scratches be found.")
        if mask.all():
            raise ValueError("Everything is painted over, so that nothing is left to fill in from. Erase some of it.")
        return mask

    def cancel(self) -> None:
        """Ask the work to stop."""
        job = self._job
        if job is not None:
            job.cancel()

    def adopt(self) -> None:
        """Go on with the result as the photograph."""
        with self._lock:
            self._check_idle()
            result = self._mended()
            self._show(result.photograph, result.name)

    def discard(self) -> None:
        """Forget the result and go on with the photograph as it was."""
        with self._lock:
            self._result = None

    def view(self, of: str, window: Window) -> tuple[bytes, str]:
        """A part of ``before``, ``after``, or a found mask by its number."""
        if of == "before":
            shown = self._opened()
        elif of == "after":
            shown = self._mended()
        else:
            mask = self._found.get(int(of)) if of.isdigit() else None
            if mask is None:
                raise LookupError(f"there is no view of {of}")
            return mask_view(mask, window)
        photograph = shown.photograph
        return picture_view(photograph, window)

    def download(self) -> Path:
        """The file of the result, written with all that the photograph's own file told."""
        with self._lock:
            result = self._mended()
            if self._written is None or self._written[0] != result.version:
                if self._written is not None:
                    shutil.rmtree(self._written[1].parent, ignore_errors=True)
                path = self.private_path(result.name)
                write_photograph(result.photograph, path)
                self._written = result.version, path
            return self._written[1]

    def _opened(self) -> Shown:
        if self._picture is None:
            raise ValueError("There is no photograph yet. Drop one on the page first.")
        return self._picture

    def _mended(self) -> Shown:
        if self._result is None:
            raise LookupError("There is no result yet. Press Mend first.")
        return self._result

    def _check_idle(self) -> None:
        if self._job is not None and self._job.running:
            raise Busy("Pointillist is at work already. Wait until it is done, or cancel it.")

    def _begin(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        with self._lock:
            self._check_idle()
            self._job = Job(what, work, keep)
            self._job.start()


def _plain(name: str) -> str:
    """A file name without folders and without what a file system would not take."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*').strip(" .")
    stem, dot, suffix = kept.rpartition(".")
    return f"{stem[:100]}{dot}{suffix[:10]}" if stem else kept[:100] or "photograph"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
