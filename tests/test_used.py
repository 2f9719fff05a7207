"""What is passed to coding and learning is used, or refused: a walk over all pairs of a mode and an argument.

`TABLE` has for every callable its modes, for every argument another value than usual, and which arguments a mode refuses.
An argument that is not refused must change the answer, unless `HARMLESS` says why it need not. An argument without an
entry fails. Restoration has a walk of its own beside its tests.
"""

import inspect
from dataclasses import dataclass, field

import numpy as np
import pytest

import pointillist as pt

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((4, 40)).astype(np.float32)
SIGNALS[:, 0] *= 9  # boundaries matter
HOLES = (RNG.random(SIGNALS.shape) < 0.8).astype(np.float32)
FILTERS = (RNG.standard_normal((5, 7)) / 3).astype(np.float32)
TWO_CHANNELS = {"signals": np.stack([0 * SIGNALS, SIGNALS], 1), "filters": np.stack([FILTERS, FILTERS / 9], 1)}
START = pt.encode(SIGNALS, FILTERS, 0.9).codes
SOLVERS = {
    "cd": "cd",
    "admm": "admm",
    "fft": "fft",
    "cd object": pt.solvers.CoordinateDescent(max_iter=1, tol=0.5),
    "admm object": pt.solvers.SampledADMM(max_iter=5),
}
OBJECTS = ("cd object", "admm object")
HARMLESS = {
    "n_jobs": "threads change when an answer comes, not the answer",
    "random_state": "a seed is welcome where nothing is drawn",
    "y": "scikit-learn passes it to everything",
    "callbacks": "they look on",
    "prefetch": "reading ahead changes when an answer comes, not the answer",
    "checkpoint": "what is put away does not change what is learned",
    "resume": "without a checkpoint the run begins",
    "validation": "held-out signals are judged, not learned from",
    "validation_every": "held-out signals are judged, not learned from",
    "verbose": "what is printed does not change what is learned",
    "warm_start": "the first fit has no filters to begin with",
    "on_error": "it decides about signals that cannot be used, and all of these can",
}


@dataclass
class Walk:
    """A callable's modes, another value for every argument, what modes refuse, and what an argument needs beside it."""

    call: object
    modes: dict
    others: dict
    refused: dict = field(default_factory=dict)
    beside: dict = field(default_factory=dict)


def _problem(name):
    """What every mode is called with; the frequency solver knows circular signals only."""
    return {"solver": SOLVERS[name], **({"boundary": "circular"} if name == "fft" else {})}


def _told(value):
    """An answer as something to be compared."""
    if isinstance(value, pt.Result):
        return [[v.tobytes() for v in value.codes.values], value.objective.tobytes(), value.gap.tobytes()]
    if isinstance(value, list):
        return [_told(one) for one in value]
    if isinstance(value, pt.PathPoint):
        return [value.penalty, _told(value.result)]
    if hasattr(value, "filters_"):
        judged = [info.get("validation_objective") for info in value.history_]
        return [value.filters_.tobytes(), value.score(SIGNALS[:1]), len(judged)]
    return np.asarray(value).tobytes()


def _encode(**given):
    rough = {"tol": 0.03} if given.get("solver") == "admm" else {}  # takes seconds to 0.001
    return pt.encode(**{"signals": SIGNALS, "filters": FILTERS, "penalty": 0.6, **rough, **given})


def _max_penalty(**given):
    return pt.max_penalty(**{"signals": SIGNALS, "filters": FILTERS, **given})


def _path(**given):
    few = {} if "penalties" in given else {"n": 3, "smallest": 0.3}
    return pt.penalty_path(**{"signals": SIGNALS, "filters": FILTERS, **few, **given})


def _learner(kind):
    fitted = set(inspect.signature(kind.fit).parameters)

    def call(**given):
        own = {name: value for name, value in given.items() if name not in fitted}
        run = {name: value for name, value in given.items() if name in fitted}
        model = kind(**{"n_filters": 3, "filter_size": 5, "penalty": 0.6, "random_state": 0, **own})
        return model.fit(**{"X": SIGNALS, **run})

    return call


CODING = {
    "signals": SIGNALS[::-1],
    "filters": FILTERS[::-1].copy() + 0.1,
    "weights": HOLES,
    "boundary": "valid",
    "channels": True,
    "nonnegative": True,
}
SOLVING = {"solver": "admm", "tol": 0.3, "n_jobs": 1, "device": "nowhere"}
ALONE = {"resume", "validation_every", "cluster"}
CHANNELS = np.stack([SIGNALS, HOLES], 1)
LEARNING = {
    "n_filters": 4, "filter_size": 6, "penalty": 0.9, "sampling": 0.5,
    "solver": pt.solvers.CoordinateDescent(max_iter=2), "boundary": "valid", "channels": True, "nonnegative": True,
    "rank": 1, "robust": pt.Robust(fraction=0.3), "learning": 1e-3, "update": pt.FilterUpdate(init="patches"),
    "tol": 0.3, "n_jobs": 1, "device": "nowhere", "random_state": 1, "X": SIGNALS[:, ::-1], "y": np.zeros(4),
    "weights": HOLES, "validation": SIGNALS[:1] * 2, "callbacks": [lambda info: None], "on_error": "skip",
    "verbose": 2, "warm_start": True,
}  # fmt: skip
TABLE = {
    "encode": Walk(
        _encode,
        {name: _problem(name) for name in SOLVERS},
        {**CODING, **SOLVING, "penalty": 0.9, "sampling": 0.5, "start": START, "random_state": 1, "progress": print},
        {
            "admm": {"start"}, "fft": {"start", "boundary", "weights", "sampling"},
            "cd object": {"tol"}, "admm object": {"tol", "start"},
        },
        beside={"channels": TWO_CHANNELS},
    ),
    "max_penalty": Walk(_max_penalty, {"plain": {}}, CODING, beside={"channels": TWO_CHANNELS}),
    "penalty_path": Walk(
        _path,
        {name: _problem(name) for name in ("cd", "cd object")},
        {**CODING, **SOLVING, "n": 4, "smallest": 0.2, "penalties": [0.7, 0.5]},
        {"cd object": {"tol"}},
        beside={"channels": TWO_CHANNELS},
    ),
    "BatchCSC": Walk(
        _learner(pt.BatchCSC),
        {name: {**_problem(name), "max_iter": 5} for name in SOLVERS},
        {**LEARNING, "max_iter": 2, "min_change": 0.9},
        {"fft": {"boundary", "weights", "sampling"}, **{name: {"learning", "tol"} for name in OBJECTS}},
        beside={"channels": {"X": CHANNELS}, "rank": {"channels": True, "X": CHANNELS}},
    ),
    "OnlineCSC": Walk(
        _learner(pt.OnlineCSC),
        {name: _problem(name) for name in SOLVERS},
        {
            **LEARNING, "batch_size": 3, "n_epochs": 2, "shuffle": False, "prefetch": 1, "cluster": "nowhere",
            "checkpoint": None, "resume": True, "validation_every": 2,
        },
        {
            **dict.fromkeys(SOLVERS, ALONE),
            "fft": ALONE | {"boundary", "weights", "sampling"},
            **dict.fromkeys(OBJECTS, ALONE | {"learning", "tol"}),
        },
        beside={"channels": {"X": CHANNELS}, "rank": {"channels": True, "X": CHANNELS}},
    ),
}  # fmt: skip


def _parameters(name):
    public = getattr(pt, name)
    own = set(inspect.signature(public).parameters)
    return own | set(inspect.signature(public.fit).parameters) - {"self"} if isinstance(public, type) else own


PAIRS = [
    (name, mode, argument) for name in TABLE for mode in TABLE[name].modes for argument in sorted(_parameters(name))
]


@pytest.mark.parametrize("name", TABLE)
def test_every_argument_has_its_place(name):
    assert set(TABLE[name].others) == _parameters(name)


@pytest.fixture(scope="module")
def usual():
    found = {}

    def answer(name, mode, beside):
        key = name, mode, *beside
        if key not in found:
            found[key] = _told(TABLE[name].call(**{**TABLE[name].modes[mode], **beside}))
        return found[key]

    return answer


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "mode", "argument"), PAIRS, ids=str)
def test_an_argument_is_used_or_refused(name, mode, argument, usual, tmp_path):
    walk = TABLE[name]
    if argument in walk.modes[mode] and argument not in walk.refused.get(mode, ()):
        pytest.skip("the mode itself")
    value = pt.Checkpoints(tmp_path / "model.safetensors") if argument == "checkpoint" else walk.others[argument]
    beside = walk.beside.get(argument, {})
    given = {**walk.modes[mode], **beside, argument: value}
    if argument in walk.refused.get(mode, ()) or argument == "device":
        with pytest.raises((ValueError, ConnectionError, ImportError), match=argument):
            walk.call(**given)
    elif argument == "channels" and isinstance(getattr(pt, name), type):
        assert walk.call(**given).filters_.ndim == 3
        with pytest.raises(ValueError, match="larger than the signal"):
            walk.call(**{**walk.modes[mode], **beside})
    elif argument == "rank":
        models = [walk.call(**{**given, "rank": rank}) for rank in (None, value)]
        assert not np.array_equal(models[0].filters_, models[1].filters_)
    elif argument == "progress":
        told = []
        walk.call(**{**given, "progress": told.append})
        assert told
    else:
        same = _told(walk.call(**given)) == usual(name, mode, beside)
        assert not same or argument in HARMLESS
