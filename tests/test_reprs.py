"""What objects say of themselves: a line, without the samples of arrays, whatever they hold."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.reprs import short

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((300, 30)).astype(np.float32)
FILTERS = RNG.standard_normal((50, 5)) / 3
CODES = pt.encode(SIGNALS, FILTERS, 1.5, tol=0.5).codes
MODEL = pt.OnlineCSC(50, 5, np.arange(1.0, 51), batch_size=300, n_epochs=1, random_state=0).fit(SIGNALS)
SOURCE = pt.sources.ArraySource(SIGNALS)
PICTURE = RNG.random((40, 50))


def _npy(folder):
    np.save(folder / "stack.npy", SIGNALS)
    return pt.sources.NpySource(folder / "stack.npy", ndim=1)


OBJECTS = {
    "OnlineCSC(n_filters=50, filter_size=5, penalty=array(50 float64)": lambda _: MODEL,
    "BatchCSC(update=FilterUpdate(init=array(50×5 float64)": lambda _: pt.BatchCSC(
        update=pt.FilterUpdate(init=FILTERS)
    ),
    "SparseCodes(300 signals, on 30, 50 filters": lambda _: CODES,
    "Result(converged, gaps up to ": lambda _: pt.encode(SIGNALS, FILTERS, 1.5, tol=0.5),
    "AnomalyScore(scores=[300 arrays]": lambda _: pt.AnomalyScore(
        list(SIGNALS), {"residual": list(SIGNALS)}, 2.0, (5,)
    ),
    "Details(penalty=0.1": lambda _: pt.Details(0.1, CODES, 1.0, 0.1, pt.Status.CONVERGED, 0.0, PICTURE > 0.5),
    "Photograph(40×50 colour uint8, alpha)": lambda _: pt.Photograph(
        np.zeros((40, 50, 3), np.uint8), np.zeros((40, 50), np.uint8)
    ),
    "ArraySource(300 signals)": lambda _: SOURCE,
    "JoinedSource(600 signals of 2 sources)": lambda _: pt.sources.JoinedSource([SOURCE] * 2),
    "NpySource(300 signals of 30 in ": _npy,
}


@pytest.mark.parametrize("begin", OBJECTS)
def test_objects_say_in_a_line_what_they_are(begin, tmp_path):
    said = repr(OBJECTS[begin](tmp_path)).replace(str(tmp_path), "")
    assert said.startswith(begin)
    assert len(said) < 300
    assert "\n" not in said


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.arange(3), "array([0, 1, 2])"),
        (np.zeros((2, 5), np.float32), "array(2×5 float32)"),
        ("x" * 200, "'" + "x" * 79 + "…"),
        ([], "[]"),
        ([np.zeros(9)] * 2, "[2 arrays]"),
    ],
)
def test_values_are_short(value, expected):
    assert short(value) == expected
