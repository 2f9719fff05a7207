"""Tests of what is read from times; no test asks how long anything takes."""

import pytest
from paper.timing import exponent, first_at_most, repeated


def test_levels_and_exponents():
    assert first_at_most([1, 2, 3], [9, 5, 4], 5) == 2
    assert first_at_most([1, 2, 3], [9, 5, 4], 3) is None
    assert exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)


def test_work_is_warmed_up_once():
    calls = []
    assert len(repeated(lambda: calls.append(1), 3)) == 3
    assert len(calls) == 4
