"""Odd calls: every argument of everything public gets odd values, other layouts and other numbers of threads.

A call must give an answer, or an error that names the argument which was odd, in time and memory, without a warning from
below the package, and without changing what it was given. The same numbers in another layout, and another number of
threads, must give the same bits.
"""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from attack import odd, usual
from attack.base import Finding
from attack.surface import Target, targets
from attack.told import held, told
from attack.watch import FORGIVEN, MEMORY, PATIENCE, Watch

NAME = "calls"
SYNONYMS = {
    "mosaic": "image",
    "iterable": "X",
    "size": "shape",
    "batched": "X",
    "source": "signal",
    "signal": "signals",
    "X": "signals",
    "filter_size": "filters",
    "penalties": "penalty",
    "validation": "signals",
}
"""What an error may say instead of a name."""
IGNORED = {
    "y": "scikit-learn hands it to everything",
    "input_features": "scikit-learn hands it to everything",
    "deep": "scikit-learn's own",
    "cluster": "any text is an address, which is connected to for a minute",
}
"""Arguments that nothing looks at, and why."""
FILED = usual.PATHS | {"dataset", "array"}
"""Arguments that name files or what lies in them: an error may name the file instead."""
CALLED = {"progress", "callbacks"}
"""Arguments that are called: an error of theirs is the caller's own."""
HOLDS_WHAT_IT_GETS = {"ArraySource", "Photograph", "Photograph.with_pixels"}
"""What makes objects that give arrays back as they were given, in their layout."""
NO_LISTS = {"images", "pictures", "pixels", "alpha"}
"""Arguments of which a list holds one picture in each entry, and those whose type of samples says something."""
QUIET = (RuntimeWarning, DeprecationWarning, PendingDeprecationWarning, FutureWarning, np.exceptions.ComplexWarning)
"""Warnings that come from below or speak to developers; users should see none of them."""


class Calls:
    """The attack by odd calls."""

    name = NAME
    about = "odd values, layouts and numbers of threads for every argument of everything public"
    patience = FORGIVEN
    memory = MEMORY

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Make one call, or the same call in two layouts, or with two numbers of threads."""
        try:
            with chdir(folder):
                return attempt(seed, folder)
        finally:
            pyplot.close("all")


@cache
def pairs() -> tuple[tuple[Target, str], ...]:
    """All targets with each of their arguments."""
    return tuple((target, word) for target in targets() for word in target.parameters if word not in IGNORED)


def attempt(seed: int, folder: Path) -> list[Finding]:
    """Make the attempt of a seed in this process."""
    rng = np.random.default_rng([seed, 16])
    target, word = pairs()[rng.integers(len(pairs()))]
    usually = usual.typical(target, word)
    if isinstance(usually, np.ndarray) and rng.random() < 0.25:
        return list(_layout(seed, folder, target, word, usually, rng))
    if "n_jobs" in target.parameters and rng.random() < 0.1:
        return list(_threads(seed, folder, target))
    changed = {word: odd.value(rng, usually)}
    others = [one for one in target.parameters if one not in {*changed, *IGNORED, "ax"}]
    if others and rng.random() < 0.2:
        second = others[rng.integers(len(others))]
        changed[second] = odd.value(rng, usual.typical(target, second))
    return list(judged(seed, folder, target, changed))


def judged(seed: int, folder: Path, target: Target, changed: dict[str, Any]) -> Iterator[Finding]:
    """Make a call with odd values and say what is wrong with what comes of it."""
    words = ", ".join(f"{word}={_shown(value)}" for word, value in changed.items())
    said = f"{target.name}({words})"
    (folder / "attempt.txt").write_text(said, encoding="utf-8", errors="backslashreplace")
    given = {**usual.usual(target, next(iter(changed))), **changed}
    before = {word: held(value) for word, value in given.items()}
    watch = Watch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trouble = _trouble(target, given, changed)
    if trouble is not None:
        yield Finding(NAME, seed, trouble[0], f"{said}: {trouble[1]}", trouble[2])
    if watch.seconds > PATIENCE:
        yield Finding(NAME, seed, "hang", f"{said}: {watch.seconds:.1f} s", "")
    for one in caught:
        if issubclass(one.category, QUIET) and not issubclass(one.category, ConvergenceWarning):
            where = f"{one.filename}:{one.lineno}"
            yield Finding(NAME, seed, "warning", f"{said}: {one.category.__name__}: {one.message}", where)
            break
    for word, value in given.items():
        if held(value) != before[word]:
            yield Finding(NAME, seed, "input changed", f"{said} changed {word}", "")


def _trouble(target: Target, given: dict[str, Any], changed: dict[str, Any]) -> tuple[str, str, str] | None:
    """What is wrong with the error that a call raises: kind, line and traceback; None for an answer or a clear error."""
    try:
        call(target, given)
    except MemoryError as error:
        return "memory", repr(error), traceback.format_exc()
    except Exception as error:
        if _clear(error, changed):
            return None
        return "unnamed error", f"{type(error).__name__}: {error}"[:300], traceback.format_exc()
    return None


def _clear(error: Exception, changed: dict[str, Any]) -> bool:
    """Whether an error is of a kind that users expect and names an argument that was changed, or the file."""
    if any(word in CALLED and callable(value) for word, value in changed.items()) or _about_a_file(error, changed):
        return True
    if isinstance(error, OSError | ImportError):
        return _names(error, changed) or "pip install" in str(error)
    return isinstance(error, ValueError | TypeError | IndexError | pt.PointillistError) and _names(error, changed)


def _about_a_file(error: Exception, changed: dict[str, Any]) -> bool:
    """Whether a path was changed and the error tells what is wrong with the file."""
    told_so = isinstance(error, OSError | ImportError | pt.PointillistError) or str(error).startswith("cannot write")
    return bool(FILED & set(changed)) and told_so


def _names(error: BaseException, changed: dict[str, Any]) -> bool:
    """Whether an error names one of the arguments that were changed."""
    names = "|".join(f"{word}|{SYNONYMS.get(word, word)}" for word in changed)
    return re.search(rf"\b({names})\b", str(error)) is not None


def call(target: Target, given: dict[str, Any]) -> Any:
    """Call a target; what a constructor makes is used once, so that it looks at what it was given."""
    owner = usual.instance(target)
    answer = target.function(**given) if owner is None else target.function(owner, **given)
    return usual.used(answer) if isinstance(target.function, type) else answer


def _layout(
    seed: int, folder: Path, target: Target, word: str, array: np.ndarray, rng: np.random.Generator
) -> Iterator[Finding]:
    """The same numbers in another layout, or as a list, must give the same bits."""
    choices = [*odd.layouts(array), ("list", array.tolist())]
    name, other = choices[rng.integers(len(choices))]
    if (name == "list" and word in NO_LISTS) or target.name in HOLDS_WHAT_IT_GETS:
        return
    given = {**usual.usual(target, word), word: array}
    yield from compared(seed, folder, target, f"{word} {name}", given, {**usual.usual(target, word), word: other})


def _threads(seed: int, folder: Path, target: Target) -> Iterator[Finding]:
    """Two threads must give the same bits as one."""
    one, two = ({**usual.usual(target), "n_jobs": n_jobs} for n_jobs in (1, 2))
    yield from compared(seed, folder, target, "n_jobs=2", one, two)


def compared(
    seed: int, folder: Path, target: Target, what: str, one: dict[str, Any], other: dict[str, Any]
) -> Iterator[Finding]:
    """Call a target twice with arguments that mean the same and compare the answers."""
    said = f"{target.name} with {what}"
    (folder / "attempt.txt").write_text(said)
    answers = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (one, other):
            try:
                answers.append(told(call(target, given)))
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
    if answers[0] != answers[1]:
        short = [str(answer)[:2000] for answer in answers]
        yield Finding(NAME, seed, "bits", f"{said}: another answer", "\n\n".join(short))


def _shown(value: Any) -> str:
    """A value on one line; arrays by type and shape."""
    if isinstance(value, np.ndarray):
        few = " ".join(np.array2string(np.asarray(value).ravel()[:3]).split()) if value.size else "[]"
        return f"<{type(value).__name__} {value.dtype.str} {value.shape} {few}>"
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))[:80]
    except Exception as error:
        return f"<{type(value).__name__} without words: {type(error).__name__}>"
