"""Odd values for every argument of everything public: an answer, or an error that names the argument.

The calls are derived from the signatures, so that a new function is attacked as soon as it is public. `GOOD` holds a usual
value for every name of an argument; one argument at a time is then replaced by each of `ODD`.
"""

import enum
import inspect
import random
import re
import warnings

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import pointillist as pt
from pointillist.model.geometry import Geometry

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((2, 30))
FILTERS = RNG.standard_normal((3, 5)) / 3
IMAGE = RNG.random((16, 18))
BANK = RNG.standard_normal((3, 5, 5)) / 5
MASK = RNG.random(IMAGE.shape) < 0.2
AX = Figure().subplots()
CODES = pt.encode(SIGNALS, FILTERS, 0.5, n_jobs=1).codes

GOOD = {
    "signals": SIGNALS, "X": SIGNALS, "filters": FILTERS, "penalty": 0.5, "image": IMAGE, "images": IMAGE, "mask": MASK,
    "mosaic": IMAGE, "pictures": IMAGE, "reference": IMAGE, "estimate": IMAGE + 0.1, "psf": np.ones((3, 3)) / 9,
    "codes": CODES, "sigma": 0.1, "length": 3.0, "angle": 20.0, "colour": "magenta", "n_filters": 3, "filter_size": 5,
    "indices": CODES.indices, "values": CODES.values, "grids": CODES.grids, "n_jobs": 1, "random_state": 0,
    "source": pt.ArraySource(IMAGE[None]), "sources": [pt.ArraySource(IMAGE[None])], "iterable": [SIGNALS], "count": 2,
    "size": (4, 4), "max_iter": 5, "init": "random", "kind": "motion", "factor": 2, "truth": FILTERS,
    "problem": pt.Problem(
        filters=FILTERS[:, None], geometry=Geometry(SIGNALS.shape[1:], (5,), 1, "same"), penalty=np.ones((3, 1)) / 2
    ),
    "signal": SIGNALS[0], "models": [{"iteration": 1, "seconds": 0.5, "objective": 3.0}],
    "model": pt.BatchCSC(3, 5, 0.5, max_iter=1, n_jobs=1, random_state=0).fit(SIGNALS),
}  # fmt: skip
"""A usual value for every argument that has no default, and for some that have a slow one."""
PICTURES = {"filters": BANK, "penalty": 0.05}
BESIDE = {name: PICTURES for name in ("inpaint", "denoise", "deblur", "super_resolve")} | {
    "demosaic": {"filters": np.stack([BANK] * 3, 1), "penalty": 0.05},
    "find_marks": {"image": np.stack([IMAGE] * 3, -1), "colour": "magenta"},
    "estimate_blur": {"image": RNG.random((64, 64))},
    "mark_damage": {"image": np.stack([IMAGE] * 3, -1)},
    "find_damage": {"kind": "dust"},
    "penalty_path": {"n": 2},
    "split_channels": {"filters": BANK},
    "penalty_path penalties": {"n": None},
    "BatchCSC": {"max_iter": 1},
    "learn_windows": {"n_windows": 5},
    "certify": {"signals": list(SIGNALS[:, None])},
    "plot_codes": {"codes": CODES[0], "signal": SIGNALS[0], "ax": AX},
    "plot_convergence": {"ax": AX},
    "plot_filters": {"ax": AX},
    "plot_reconstruction": {"signal": SIGNALS[0], "ax": AX},
}
"""Usual values where a function wants others."""
LEARNERS = {"BatchCSC", "OnlineCSC"}
MADE_HERE = {
    "AnomalyScore", "BlurEstimate", "Details", "ExplainedVariance", "PathPoint", "Photograph", "Problem", "Recovery",
    "Result", "Solver", "Source",
}  # fmt: skip
"""Classes that the package alone makes: what they hold was checked before."""
ELSEWHERE = {"path", "paths", "files", "batches", "photograph", "estimator"}
"""Arguments that name files or hold objects of the package; other tests attack what they lead to."""
UNSEEN = {"progress", "callbacks", "y", "record", "extra", "preprocessing", "metadata", "name", "cache", "memory"}
"""Arguments that are handed on, not looked at."""
SYNONYMS = {
    "mosaic": "mosaic|image",
    "iterable": "iterable|X",
    "size": "size|shape",
    "batched": "batched|X",
    "source": "source|signal",
}
"""What an error may say instead of a name."""


def _odd():
    ragged = [np.ones(3), np.ones((2, 2))]
    return {
        "None": None, "text": "odd", "bytes": b"odd", "object": object(), "empty list": [], "empty tuple": (), "dict": {},
        "complex": 1 + 2j, "nan": np.nan, "inf": np.inf, "minus one": -1, "zero": 0, "half": 0.5, "huge": 1e300,
        "huge integer": 10**30, "true": True, "ragged": ragged, "nested": [[1, "a"], [None, 2]], "function": len,
        "0-d": np.array(1.0), "empty array": np.empty((0,)), "empty rows": np.empty((2, 0)), "texts": np.array(["a", "b"]),
        "objects": np.array([1.0, None], object), "nans": np.full((2, 30), np.nan), "huge array": np.full((16, 18), 1e300),
        "dates": np.zeros(3, "datetime64[s]"), "matrix": np.ones((4, 4)), "volume": np.ones((2, 2, 2, 2, 2)),
        "complex array": np.ones((2, 30), complex), "infs": np.full((16, 18), np.inf), "type": int, "set": {1, 2},
    }  # fmt: skip


def _layouts(array):
    """An array in other layouts and types that mean the same."""
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return {
        "Fortran": np.asfortranarray(array), "strided": wide[..., 0],
        "big-endian": array.astype(array.dtype.newbyteorder(">")),
        "read-only": np.lib.stride_tricks.as_strided(array, writeable=False), "list": array.tolist(),
        "backwards": np.ascontiguousarray(array[..., ::-1])[..., ::-1],
    }  # fmt: skip


def _callables():
    found = {}
    for name in pt.__all__:
        value = getattr(pt, name)
        if isinstance(value, type) and (issubclass(value, BaseException | enum.Enum) or name in MADE_HERE):
            continue
        found[name] = value
    return found


CALLABLES = _callables()


def _usual(name, changed=""):
    """Usual arguments of a callable, by name; None where one of them is the business of other tests."""
    given = {}
    for word, parameter in inspect.signature(CALLABLES[name]).parameters.items():
        if word in ELSEWHERE and parameter.default is parameter.empty:
            return None
        if parameter.default is parameter.empty or word in ("n_jobs", "random_state"):
            given[word] = GOOD[word]
    return {**given, **BESIDE.get(name, {}), **BESIDE.get(f"{name} {changed}", {})}


def _call(name, given):
    made = CALLABLES[name](**given)
    if name in LEARNERS:
        return made.fit(SIGNALS).filters_
    return made


def _targets():
    """All pairs of a callable and one of its arguments."""
    for name, value in CALLABLES.items():
        if name == "prefetch" or _usual(name) is None:
            continue
        for word in inspect.signature(value).parameters:
            if word not in ELSEWHERE | UNSEEN:
                yield name, word


ATTACKS = [(*target, kind) for target in _targets() for kind in _odd()]


def _attack(name, word, kind):
    """What is wrong with a call, or None."""
    value = _odd()[kind]
    given = {**_usual(name, word), word: value}
    before = {key: one.copy() for key, one in given.items() if isinstance(one, np.ndarray)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            _call(name, given)
    except (ValueError, TypeError, OSError, ImportError, pt.PointillistError) as error:
        if not re.search(rf"\b({SYNONYMS.get(word, word)})\b", str(error)):
            return f"{name}({word}={kind}): {type(error).__name__}: {error}"
    except Exception as error:
        return f"{name}({word}={kind}): {type(error).__name__}: {error}"
    for key, one in before.items():
        same = one.dtype.kind == "O" or np.array_equal(one, given[key], equal_nan=one.dtype.kind in "fc")
        if not same:
            return f"{name}({word}={kind}) changed {key}"
    return None


def _unclear(attacks):
    return [said for attack in attacks if (said := _attack(*attack))]


def test_odd_values_are_taken_or_refused_by_name():
    unclear = _unclear(random.Random(0).sample(ATTACKS, 1500))
    assert not unclear, "\n".join(unclear)


@pytest.mark.slow
def test_all_odd_values_are_taken_or_refused_by_name():
    unclear = _unclear(ATTACKS)
    assert not unclear, "\n".join(unclear)


def _told(value):
    """An answer as something to be compared, with the layout of its arrays."""
    if isinstance(value, Axes):
        return _told([np.asarray(line.get_ydata()) for line in value.get_lines()[-1:]])
    if isinstance(value, np.ndarray) and value.dtype == object:
        return _told(list(value.flat))
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.flags.c_contiguous, value.tobytes()
    if isinstance(value, pt.SparseCodes):
        return _told(value.indices), _told(value.values), value.grids
    if isinstance(value, list | tuple):
        return [_told(one) for one in value]
    if isinstance(value, pt.Result):
        return _told([value.codes, value.objective, value.gap, value.residuals])
    if isinstance(value, pt.PathPoint):
        return value.penalty, _told(value.result)
    if isinstance(value, pt.AnomalyScore):
        return value.threshold, _told(value.scores)
    if isinstance(value, pt.OnlineCSC):
        return _told(value.filters_)
    return repr(value)


ARRAYS = [(name, word) for name, word in _targets() if isinstance({**GOOD, **_usual(name)}.get(word), np.ndarray)]
ARRAYS.remove(("ArraySource", "signals"))  # it holds what it was given


@pytest.mark.parametrize(("name", "word"), ARRAYS, ids=str)
def test_the_layout_of_an_array_changes_nothing(name, word):
    usual = {**_usual(name), word: {**GOOD, **_usual(name)}[word]}
    expected = _told(_call(name, usual))
    for layout, array in _layouts(usual[word]).items():
        if layout == "list" and word in ("images", "pictures"):
            continue  # a list has one picture in each entry
        assert _told(_call(name, {**usual, word: array})) == expected, layout


@pytest.mark.parametrize("word", ["signals", "weights", "filters"])
def test_masked_samples_are_not_taken_for_seen(word):
    given = {"signals": SIGNALS, "filters": FILTERS, "weights": np.ones(SIGNALS.shape), "penalty": 0.5, "n_jobs": 1}
    hidden = np.zeros(given[word].shape, bool)
    unmasked = pt.encode(**{**given, word: np.ma.masked_array(given[word], hidden)})
    assert _told(unmasked) == _told(pt.encode(**given))
    hidden[0, 3] = True
    with pytest.raises(ValueError, match=word):
        pt.encode(**{**given, word: np.ma.masked_array(given[word], hidden)})


def test_masked_samples_count_as_missing_where_samples_may_be_missing():
    hidden = np.zeros(SIGNALS.shape, bool)
    hidden[0, 3:6] = True
    model = pt.BatchCSC(3, 5, 0.5, max_iter=1, n_jobs=1, random_state=0)
    missing = np.where(hidden, np.nan, SIGNALS)
    masked = np.ma.masked_array(SIGNALS, hidden)
    assert _told(model.fit(masked).filters_) == _told(model.fit(missing).filters_)
    assert _told(model.transform(masked)) == _told(model.transform(missing))
    weights = 1.0 - hidden
    one, other = (pt.encode(signals, FILTERS, 0.5, weights=weights) for signals in (masked, SIGNALS))
    assert _told(one) == _told(other)
    for picture in (IMAGE, (255 * IMAGE).astype(np.uint8)):
        masked = np.ma.masked_array(picture, MASK)
        assert _told(pt.inpaint(masked, **PICTURES)) == _told(pt.inpaint(picture, MASK, **PICTURES))
