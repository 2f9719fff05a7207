"""The session of the page: one photograph, what was found and painted on it, what was made of it, and the work in progress.

The server calls a session from several threads; whatever they share is read and replaced under one lock.
"""

import logging
import re
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import ceil, floor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from pointillist.data.photofiles import Photograph, answer_suffix, read_photograph, write_photograph
from pointillist.errors import BlurMisfitWarning
from pointillist.kernels.compiling import compilation, working_time
from pointillist.restore.picture import Progress
from pointillist.retouch.damage import USUAL
from pointillist.retouch.marks import KEYS, find_key, find_marks, grey_beside

log = logging.getLogger(__name__)

THREADS = "pointillist-app-"
"""Beginning of the names of the threads of jobs."""

NAMES = {"inpaint": "inpainted", "denoise": "denoised", "deblur": "deblurred", "super_resolve": "enlarged"}
"""Tasks, and what is added to the names of files."""

COLOURS = dict(zip(KEYS, ("magenta", "green", "red", "cyan", "blue", "yellow"), strict=True))
"""Words for the colours of marks."""

Answer = TypeVar("Answer")
Mask = NDArray[np.bool_]


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

    def describe(self) -> dict[str, Any]:
        """The state, the fraction that is done and the seconds it took, for the page.

        The seconds are those of work: their clock stands still while kernels are compiled, and `compiling` is true then.
        """
        running = self.state == "running"
        return {
            "what": self.what,
            "state": "stopping" if running and self._stop.is_set() else self.state,
            "fraction": self._fraction,
            "compiling": running and compilation.busy,
            "seconds": working_time() - self._begin if running else self._seconds,
            "error": self.error,
        }

    def _progress(self, fraction: float) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._fraction = max(float(fraction), self._fraction)

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
        (height, width), notes = self.photograph.shape, list(self.photograph.notes)
        facts = {"name": self.name, "version": self.version, "task": self.task, "notes": notes}
        return {**facts, "width": width, "height": height}


class Session:
    """Everything that the page works on; once it is closed, its private folder is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointillist-app-"))
        self.job: Job | None = None
        self._lock = threading.RLock()
        self._numbers = count(1)
        self._picture: Shown | None = None
        self._result: Shown | None = None
        self._found: dict[int, Mask] = {}
        self._marks: dict[str, Any] | None = None
        self._estimate: dict[str, float] | None = None

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
        kept = Path(re.sub(r'[<>:"|?*]|[^ \S]|[\0-\x1f\x7f]', "", name.replace("\\", "/").rsplit("/")[-1]).strip(" ."))
        return folder / (kept.stem[:100] + kept.suffix[:10] or "photograph")

    def open(self, path: Path) -> None:
        """Take a photograph from a file in place of the one before, and look for marks on it."""
        try:
            photograph = read_photograph(path)
        except (OSError, ValueError) as error:
            log.info("cannot open %s: %s", path, error)
            reason = str(error).replace(str(path), path.name)
            raise ValueError(f"{path.name} could not be opened as a photograph: {reason}.") from error
        try:
            key = find_key(photograph.pixels)
        except ValueError:  # several colours: none of them is taken for marks
            key = None
        with self._lock:
            self._show(photograph, path.name)
            if key is not None:

                def look(progress: Progress) -> Mask:
                    progress(0)
                    return find_marks(photograph.pixels, key)

                self._start("marks", look, lambda mask: self._add(mask, COLOURS[key]))

    def _show(self, photograph: Photograph, name: str) -> None:
        self._check_idle()
        self._picture = Shown(photograph, name, next(self._numbers))
        self._result, self._estimate, self._found, self._marks = None, None, {}, None

    def _check_idle(self) -> None:
        if self.job is not None and self.job.state == "running":
            raise Busy("Pointillist is at work already. Wait until it is done, or cancel it.")

    def _start(self, what: str, work: Callable[[Progress], Answer], keep: Callable[[Answer], None]) -> None:
        with self._lock:
            self._check_idle()
            self.job = Job(what, work, keep)

    def _add(self, mask: Mask, colour: str | None = None) -> None:
        """Keep a mask under the next number, for undo; `colour` is given for marks of that colour."""
        with self._lock:
            number = next(self._numbers)
            if colour is not None:
                self._marks = {"id": number, "colour": colour}
            self._found[number] = mask

    def describe(self) -> dict[str, Any]:
        """The state of everything, for a browser that opens or opens again."""
        with self._lock:
            return {
                "picture": self._picture and self._picture.describe(),
                "result": self._result and self._result.describe(),
                "job": self.job and self.job.describe(),
                "found": {str(number): int(np.count_nonzero(mask)) for number, mask in self._found.items()},
                "marks": self._marks,
                "estimate": self._estimate,
            }

    def find(self, sensitivity: float = 0.5, kind: str | Sequence[str] = USUAL) -> None:
        """Begin to look for damage, as `find_damage` does; the mask gets the next number."""
        find = partial(pt.find_damage, self.photograph("before").pixels, kind, sensitivity=sensitivity)
        self._start("find", lambda progress: find(progress=progress), self._add)

    def estimate(self, blur: str = "gaussian") -> None:
        """Begin to estimate the blur of that kind that fits best: its `width`, or its `length` and `angle`."""
        pixels = self.photograph("before").pixels

        def look(progress: Progress) -> dict[str, float]:
            progress(0)
            found = pt.estimate_blur(pixels, kind=blur)
            if not found.confidence > 0:
                raise ValueError(
                    "No blur of this kind was found: the photograph seems to be sharp, or blurred in another way."
                )
            settings = {"width": found.sigma, "length": found.length, "angle": found.angle}
            return {name: round(value, 2) for name, value in settings.items() if value is not None}

        def keep(found: dict[str, float]) -> None:
            self._estimate = found

        self._start("estimate", look, keep)

    def mend(
        self, task: str, steps: Sequence[Mapping[str, Any]] = (), version: int | None = None, **settings: Any
    ) -> None:
        """Begin to mend with settings as `mended` takes them; `steps` are painted, for filling in, on that `version`."""
        picture = self._shown("before")
        if version not in (None, picture.version):
            raise ValueError("Another photograph was opened meanwhile, in another window. Reload the page to see it.")
        if task not in NAMES:
            raise ValueError(f"task must be one of {', '.join(NAMES)}, got {task!r}")
        mask = None
        if task == "inpaint":
            mask = draw_mask(steps, picture.photograph.shape, self._found)
            if not mask.any():
                raise ValueError("Nothing is painted yet. Paint over the damage, or let dust and scratches be found.")
            if mask.all():
                raise ValueError(
                    "Everything is painted over, so that nothing is left to fill in from. Erase some of it."
                )

        def keep(result: Photograph) -> None:
            name = f"{Path(picture.name).stem}-{NAMES[task]}{answer_suffix(picture.name)}"
            self._result = Shown(result, name, next(self._numbers), task)

        self._start("mend", lambda progress: mended(picture.photograph, mask, progress, task, **settings), keep)

    def adopt(self) -> None:
        """Go on with the result as the photograph."""
        with self._lock:
            result = self._shown("after")
            self._show(result.photograph, result.name)

    def discard(self) -> None:
        """Forget the result and go on with the photograph as it was."""
        self._result = None

    def photograph(self, of: str) -> Photograph:
        """The photograph ``before`` or ``after`` it was mended."""
        return self._shown(of).photograph

    def found(self, number: str) -> Mask:
        """The mask of that number."""
        if not number.isdigit() or int(number) not in self._found:
            raise LookupError(f"there is no view of {number}")
        return self._found[int(number)]

    def download(self) -> Path:
        """A new file of the result, written with all that the photograph's own file told, in a folder of its own."""
        result = self._shown("after")
        path = self.private_path(result.name)
        write_photograph(result.photograph, path)
        return path

    def _shown(self, of: str) -> Shown:
        if of == "before" and self._picture is None:
            raise ValueError("There is no photograph yet. Drop one on the page first.")
        shown = self._picture if of == "before" else self._result
        if shown is None:
            raise LookupError("There is no result yet. Press Mend first.")
        return shown


def mended(
    photograph: Photograph,
    mask: Mask | None,
    progress: Progress,
    task: str,
    *,
    texture: float = 0.0,
    sigma: float | None = None,
    blur: str = "gaussian",
    width: float = 1.5,
    length: float = 9.0,
    angle: float = 0.0,
    force: bool = False,
) -> Photograph:
    """The mended photograph, by one call of the library.

    Parameters
    ----------
    photograph : Photograph
    mask : (height, width) bool array or None
        Pixels to fill in, for "inpaint".
    progress : callable
    task : {"inpaint", "denoise", "deblur", "super_resolve"}
    texture : float
        inpaint: from 0 to 1, how much of the texture around is carried over.
    sigma : float, optional
        denoise: the noise's deviation in levels of 0 to 255; None measures it.
    blur : {"gaussian", "motion"}
        deblur: what kind of blur it was.
    width : float
        deblur: the deviation of a Gaussian blur, in pixels.
    length, angle : float
        deblur: of a motion blur, in pixels and in degrees anticlockwise from the horizontal.
    force : bool
        deblur: undo the blur even where it does not seem to be the photograph's own.
    """
    pixels, alpha = photograph.pixels, photograph.alpha
    if task == "inpaint" and mask is not None:
        # A grey photograph that was marked in colour, or saved in colour, stays without any tint.
        answer = pt.inpaint(grey_beside(pixels, mask), mask, texture=texture, progress=progress)
        if alpha is not None:  # holes that were erased to transparency are filled in to be seen
            alpha = np.where(mask & (alpha == 0), alpha.dtype.type(photograph.peak), alpha)
    elif task == "denoise":
        answer = pt.denoise(pixels, None if sigma is None else sigma * photograph.peak / 255, progress=progress)
    elif task == "deblur":
        kernel = pt.gaussian_kernel(width) if blur == "gaussian" else pt.motion_kernel(length, angle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BlurMisfitWarning)  # the page says it
            answer, details = pt.deblur(pixels, kernel, force=force, progress=progress, return_details=True)
        if details.misfit is not None:
            raise ValueError(
                f"This blur does not seem to be the photograph's own: {details.misfit}. Estimate it, change it, or tick "
                "“Even if it does not seem to fit”."
            )
    else:
        answer = pt.super_resolve(pixels, 2, progress=progress)
        alpha = None if alpha is None else alpha.repeat(2, axis=0).repeat(2, axis=1)
    return photograph.with_pixels(answer, alpha)


def draw_mask(steps: Sequence[Mapping[str, Any]], shape: tuple[int, int], found: Mapping[int, Mask]) -> Mask:
    """The mask that steps of painting lead to, one after the other.

    Coordinates are those of the photograph: the pixel in row i and column j covers the square from (j, i) to (j + 1, i + 1).

    Parameters
    ----------
    steps : sequence of mappings
        ``{"kind": "paint" or "erase", "radius": r, "points": [x, y, x, y, …]}`` is a stroke along those points,
        ``{"kind": "found", "id": n}`` adds a mask from `found`, ``{"kind": "clear"}`` takes everything away.
    shape : (height, width)
        Shape of the photograph.
    found : mapping from int to (height, width) bool array
        Masks that were found earlier.

    Returns
    -------
    (height, width) bool array
        True where a pixel's centre was painted over last.

    Examples
    --------
    >>> from pointillist.retouch.session import draw_mask
    >>> line = {"kind": "paint", "radius": 1, "points": [1.5, 2.5, 6.5, 2.5]}
    >>> draw_mask([line], (5, 8), {}).astype(int)
    array([[0, 0, 0, 0, 0, 0, 0, 0],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [1, 1, 1, 1, 1, 1, 1, 1],
           [0, 1, 1, 1, 1, 1, 1, 0],
           [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    mask = np.zeros(shape, bool)
    try:
        for step in steps:
            if step["kind"] == "found":
                mask |= found[step["id"]]
            elif step["kind"] == "clear":
                mask[:] = False
            else:
                points = np.array(step["points"], np.float64).reshape(-1, 2)
                radius = max(float(step["radius"]), 0.75)  # reaches at least one pixel's centre, wherever it is put
                value = {"paint": True, "erase": False}[step["kind"]]
                for start, end in zip(points, np.concatenate([points[1:], points[-1:]]), strict=True):
                    _draw_capsule(mask, start, end, radius, value)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError("a step of the painting cannot be understood: reload the page") from None
    return mask


def _draw_capsule(mask: Mask, start: NDArray[np.float64], end: NDArray[np.float64], radius: float, value: bool) -> None:
    """Set the pixels whose centres lie within `radius` of a straight segment."""
    low, high = np.minimum(start, end) - radius, np.maximum(start, end) + radius
    left, top = (max(0, floor(edge)) for edge in low)
    right, bottom = (max(0, ceil(edge)) for edge in high)
    window = mask[top:bottom, left:right]
    y, x = np.ogrid[: window.shape[0], : window.shape[1]]
    x, y = x + (left + 0.5 - start[0]), y + (top + 0.5 - start[1])
    across, down = end - start
    along = np.clip((x * across + y * down) / max(across**2 + down**2, 1e-12), 0, 1)
    window[(x - along * across) ** 2 + (y - along * down) ** 2 <= radius**2] = value
