"""Odd calls: everything public has usual values, seeds repeat, and planted faults are found."""

import warnings

import numpy as np
import pytest
from attack.surface import Target
from attack.told import held, told

import pointillist as pt
from attack import calls, odd, surface, usual


def test_everything_public_is_found():
    names = {target.name for target in surface.targets(recordings=False)}
    assert {"encode", "BatchCSC", "BatchCSC.fit", "OnlineCSC.partial_fit", "SparseCodes.pool", "plot_codes"} <= names
    assert {"SparseCodes.from_dense", "ArraySource.window", "AnomalyScore.events", "CodePooling.transform"} <= names
    assert not {"Status", "PointillistError", "Source"} & names


def test_what_is_left_out_is_still_there():
    found = {target.name for target in surface.targets()} | set(surface.UNTOUCHED)
    everything = {one.name for name, value in surface.exported(True) for one in surface.of(name, value)}
    assert found == everything


@pytest.mark.parametrize("target", surface.targets(recordings=False), ids=lambda target: target.name)
def test_usual_calls_are_answered(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls.call(target, usual.usual(target))


def _found(function, changed, tmp_path):
    return [finding.kind for finding in calls.judged(0, tmp_path, Target("planted", function), changed)]


def _writes(signals):
    signals[0] = 3


def _warns(signals):
    return np.float64(1e300) * 1e300


def _unnamed(signals):
    raise ValueError("could not convert string to float: 'odd'")


def _named(signals):
    raise ValueError("signals must be numbers")


def _wrong(signals):
    return signals.shape[7]


def _greedy(signals):
    raise MemoryError


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (_writes, ["input changed"]), (_warns, ["warning"]), (_unnamed, ["unnamed error"]), (_wrong, ["unnamed error"]),
        (_greedy, ["memory"]), (_named, []),
    ],
)  # fmt: skip
def test_planted_faults_are_found(function, kinds, tmp_path):
    assert _found(function, {"signals": np.ones(3)}, tmp_path) == kinds


def test_a_layout_or_a_thread_that_matters_is_found(tmp_path):
    target = Target("planted", lambda signals, n_jobs: (signals.flags.c_contiguous, n_jobs))
    pairs = {"fortran": {"signals": np.asfortranarray(np.ones((2, 3)))}, "n_jobs=2": {"n_jobs": 2}}
    usually = {"signals": np.ones((2, 3)), "n_jobs": 1}
    for what, other in pairs.items():
        found = calls.compared(0, tmp_path, target, what, usually, {**usually, **other})
        assert [one.kind for one in found] == ["bits"]
    assert not list(calls.compared(0, tmp_path, target, "nothing", usually, dict(usually)))


def test_a_seed_repeats_its_attempt(tmp_path):
    notes = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        for seed in range(40):
            calls.Calls().attempt(seed, folder)
            notes.append((folder / "attempt.txt").read_text())
    assert notes[:40] == notes[40:]
    assert len(set(notes)) > 30


def test_layouts_hold_the_same_numbers():
    array = np.random.default_rng(0).standard_normal((3, 4))
    found = dict(odd.layouts(array))
    assert len(found) == 9
    for name, other in found.items():
        np.testing.assert_array_equal(np.asarray(other), array, err_msg=name)
    assert found["Fortran"].flags.f_contiguous
    assert not found["read-only"].flags.writeable
    assert found["huge strides"].strides[-1] == 4096 * 8


def test_odd_values_are_of_all_kinds():
    rng = np.random.default_rng(0)
    drawn = [odd.value(rng, np.ones((2, 5))) for _ in range(2000)]
    kinds = {type(one).__name__ for one in drawn}
    assert {"NoneType", "dict", "str", "bytes", "generator", "MaskedArray", "csr_array", "memmap", "Hostile"} <= kinds
    types = {one.dtype.char for one in drawn if isinstance(one, np.ndarray)}
    assert set("?bBhHiIlLefdgFDGOUSMmV") <= types
    assert {one.ndim for one in drawn if isinstance(one, np.ndarray)} >= set(range(6))


def test_answers_differ_by_bits_types_and_layouts():
    array = np.ones((2, 3))
    assert told(array) == told(array.copy())
    for other in (array.astype(np.float32), np.asfortranarray(array), np.nextafter(array, 2), array[:1]):
        assert told(array) != told(other)
    assert told({"a": 1, "seconds": 2.0}) == told({"a": 1, "seconds": 3.0})


def test_arguments_are_watched_inside_of_what_holds_them():
    codes = pt.SparseCodes.from_dense(np.eye(3)[None])
    nested = {"signals": [np.ones(3)], "codes": codes, "masked": np.ma.masked_array(np.ones(2), [True, False])}
    before = held(nested)
    assert held(nested) == before
    codes.values[0][0] = 7
    assert held(nested) != before
