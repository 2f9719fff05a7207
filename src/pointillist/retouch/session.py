"""The session of the page: one photograph, what was found on it, what was made of it, and the work in progress.

The server calls a session from several threads; whatever they share is read and replaced under one lock.
"""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from pointillist.data.photofiles import Photograph, answer_suffix, read_photograph, write_photograph
from pointillist.kernels.compiling import compilation, working_time
from pointillist.restore.picture import Progress
from pointillist.retouch import tasks
from pointillist.retouch.marks import KEYS, find_key, find_marks
from pointillist.retouch.strokes import draw_mask
from pointillist.retouch.views import View, mask_view, picture_view

log = logging.getLogger(__name__)

THREADS = "pointillist-app-"
"""Beginning of the names of the threads of jobs."""

COLOURS = dict(zip(KEYS, ("magenta", "green", "red", "cyan", "blue", "yellow"), strict=True))
"""Words for the colours of marks."""

KEPT = 8
"""Masks that were found and are kept, for undo."""

Answer = TypeVar("Answer")


class Cancelled(Exception):
    """Raised inside the work, from its progress, once somebody has asked it to stop."""


class Busy(Exception):
    """Raised where work is asked for while other work is going on."""


class Job:
    """Work that runs in a thread beside the server.

    Parameters
    ----------
    what : str
        A word for the page: "mend", "find", "marks" or "estimate".
    work : callable
        Takes ``progress(fraction)``, to be called now and then, and returns the answer. It stops where `progress` raises.
    keep : callable
        Takes the answer, in the thread of the work; it is not called once the job was cancelled.
    """

    def __init__(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        self.what, self.state = what, "running"
        self.error: str | None = None
        self._fraction, self._begin, self._seconds = 0.0, working_time(), 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work, keep), name=f"{THREADS}{what}", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Ask the work to stop; it does so when it next reports progress."""
        self._stop.set()

    def wait(self, seconds: float = 3.0) -> bool:
        """Wait for the work; True if it ended within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def running(self) -> bool:
        return self.state == "running"

    def describe(self) -> dict[str, Any]:
        """The state, the fraction that is done, the seconds it took and those left, for the page.

        The seconds are those of work: their clock stands still while kernels are compiled, and `compiling` is true then.
        """
        seconds = working_time() - self._begin if self.running else self._seconds
        told = self.running and self._fraction >= 0.02 and seconds > 1
        return {
            "what": self.what,
            "state": "stopping" if self.running and self._stop.is_set() else self.state,
            "fraction": self._fraction,
            "compiling": self.running and compilation.busy,
            "seconds": round(seconds, 1),
            "left": round(seconds * (1 - self._fraction) / self._fraction, 1) if told else None,
            "error": self.error,
        }

    def _progress(self, fraction: float) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._fraction = min(max(float(fraction), self._fraction), 1.0)

    def _run(self, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        state = "failed"
        try:
            answer = work(self._progress)
            self._progress(1.0)
            keep(answer)
            state = "done"
        except Cancelled:
            state = "cancelled"
        except (ValueError, OSError) as error:
            self.error = " ".join(str(error).split())
        except MemoryError:
            self.error = "This photograph is too large for the memory of this machine."
        except Exception as error:
            log.exception("%s failed", self.what)
            self.error = f"Something went wrong that should not have: {type(error).__name__}: {error}"
        finally:
            self._seconds = working_time() - self._begin
            self.state = state


@dataclass(frozen=True, eq=False)
class Shown:
    """A photograph with the name of its file; `version` tells one from another, `task` is what was done to it last."""

    photograph: Photograph
    name: str
    version: int
    task: str | None = None

    def describe(self) -> dict[str, Any]:
        """Facts of the photograph for the page."""
        height, width = self.photograph.shape
        facts = {"name": self.name, "version": self.version, "task": self.task, "width": width, "height": height}
        return {**facts, "notes": list(self.photograph.notes)}


class Session:
    """Everything that the page works on; once it is closed, its private folder is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointillist-app-"))
        self.job: Job | None = None
        self._lock = threading.RLock()
        self._numbers = count(1)
        self._picture: Shown | None = None
        self._result: Shown | None = None
        self._found: dict[int, NDArray[np.bool_]] = {}
        self._marks: dict[str, Any] | None = None
        self._estimate: dict[str, float] | None = None
        self._written: tuple[int, Path] | None = None

    def close(self) -> None:
        """Stop the work, after waiting a little for it, and remove the private folder."""
        self.cancel()
        if self.job is not None:
            self.job.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def cancel(self) -> None:
        """Ask the work to stop."""
        if self.job is not None:
            self.job.cancel()

    def private_path(self, name: str) -> Path:
        """A place to write a file of that name to, without what a file system would not take; a folder for each."""
        folder = self.folder / f"file-{next(self._numbers)}"
        folder.mkdir()
        last = name.replace("\\", "/").rsplit("/", 1)[-1]
        kept = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*').strip(" .")
        stem, dot, suffix = kept.rpartition(".")
        return folder / (f"{stem[:100]}{dot}{suffix[:10]}" if stem else kept[:100] or "photograph")

    def open(self, path: Path) -> None:
        """Take a photograph from a file in place of the one before, and look for marks on it."""
        self._check_idle()
        try:
            photograph = read_photograph(path)
        except (OSError, ValueError, SyntaxError) as error:
            log.info("cannot open %s: %s", path, error)
            reason = " ".join(str(error).split()).replace(str(path), path.name).rstrip(".")
            raise ValueError(
                f"{path.name} could not be opened as a photograph. {reason[:1].upper()}{reason[1:]}."
            ) from error
        pixels = photograph.pixels
        try:
            key = find_key(pixels)
        except ValueError:  # several colours: none of them is taken for marks
            key = None
        with self._lock:
            self._check_idle()
            self._show(photograph, path.name)
            if key is not None:

                def look(progress: Progress) -> NDArray[np.bool_]:
                    progress(0)
                    return find_marks(pixels, key)

                self._start("marks", look, lambda mask: self._add(mask, COLOURS[key]))

    def _show(self, photograph: Photograph, name: str) -> None:
        self._picture = Shown(photograph, name, next(self._numbers))
        self._result, self._estimate, self._found, self._marks = None, None, {}, None

    def _check_idle(self) -> None:
        if self.job is not None and self.job.running:
            raise Busy("Pointillist is at work already. Wait until it is done, or cancel it.")

    def _start(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        with self._lock:
            self._check_idle()
            self.job = Job(what, work, keep)

    def _add(self, mask: NDArray[np.bool_], colour: str | None = None) -> None:
        """Keep a mask under the next number; `colour` is given for marks of that colour, which are never forgotten."""
        with self._lock:
            number = next(self._numbers)
            if colour is not None:
                self._marks = {"id": number, "colour": colour}
            found = {**self._found, number: mask}
            old = [one for one in found if self._marks is None or one != self._marks["id"]][:-KEPT]
            self._found = {one: found[one] for one in found if one not in old}

    def describe(self) -> dict[str, Any]:
        """The state of everything, for a browser that opens or opens again."""
        with self._lock:
            parts = {"picture": self._picture, "result": self._result, "job": self.job}
            return {
                **{name: None if one is None else one.describe() for name, one in parts.items()},
                "found": {str(number): int(np.count_nonzero(mask)) for number, mask in self._found.items()},
                "marks": self._marks,
                "estimate": self._estimate,
            }

    def find(self, sensitivity: float = 0.5, kind: str = "damage") -> None:
        """Begin to look for dust and scratches, or for "text"; the mask gets the next number."""
        if kind not in ("damage", "text"):
            raise ValueError('The kind must be "damage" or "text".')
        if not 0 <= sensitivity <= 1:
            raise ValueError("The sensitivity must lie between 0 and 1.")
        pixels = self._shown("before").photograph.pixels
        kinds = ("dust", "scratches") if kind == "damage" else (kind,)

        def look(progress: Progress) -> NDArray[np.bool_]:
            return pt.find_damage(pixels, kinds, sensitivity=sensitivity, progress=progress)

        self._start("find", look, self._add)

    def estimate(self, blur: str) -> None:
        """Begin to estimate a blur of that kind."""
        pixels = self._shown("before").photograph.pixels

        def keep(found: dict[str, float]) -> None:
            self._estimate = found

        self._start("estimate", lambda progress: tasks.estimate(pixels, blur, progress), keep)

    def mend(self, wish: tasks.Wish, steps: Sequence[Mapping[str, Any]], version: int | None = None) -> None:
        """Begin to mend; `steps` say what was painted, for filling in, and `version` on which photograph."""
        picture = self._shown("before")
        if version is not None and version != picture.version:
            raise ValueError("Another photograph was opened meanwhile, in another window. Reload the page to see it.")
        photograph, mask = picture.photograph, None
        if wish.task == "inpaint":
            mask = draw_mask(steps, photograph.shape, self._found)
            if not mask.any():
                raise ValueError("Nothing is painted yet. Paint over the damage, or let dust and scratches be found.")
            if mask.all():
                raise ValueError(
                    "Everything is painted over, so that nothing is left to fill in from. Erase some of it."
                )

        def keep(mended: Photograph) -> None:
            name = f"{Path(picture.name).stem}-{tasks.NAMES[wish.task]}{answer_suffix(picture.name)}"
            with self._lock:
                self._result = Shown(mended, name, next(self._numbers), wish.task)

        self._start("mend", lambda progress: tasks.mend(wish, photograph, mask, progress), keep)

    def adopt(self) -> None:
        """Go on with the result as the photograph."""
        with self._lock:
            self._check_idle()
            result = self._shown("after")
            self._show(result.photograph, result.name)

    def discard(self) -> None:
        """Forget the result and go on with the photograph as it was."""
        self._result = None

    def view(self, of: str, view: View) -> tuple[bytes, str]:
        """A view of ``before``, ``after``, or a found mask by its number."""
        if of in ("before", "after"):
            return picture_view(self._shown(of).photograph, view)
        mask = self._found.get(int(of)) if of.isdigit() else None
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
