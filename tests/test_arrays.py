"""Numbers as other libraries hold them; `tests/learners/test_inputs.py` has those libraries themselves."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist.arrays import as_plain


class Table:
    """As much of a table of objects as is looked at."""

    def __init__(self, columns, answer):
        self.columns, self.answer = list(columns), answer
        self.dtypes = {name: SimpleNamespace(kind=kind) for name, kind in columns.items()}

    def __array__(self, dtype=None, copy=None):
        return np.full((2, len(self.columns)), None, object)

    def to_numpy(self, dtype, na_value):
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.asarray(self.answer, dtype)


def test_tables_say_which_columns_hold_no_numbers():
    np.testing.assert_array_equal(as_plain(Table({"a": "f"}, [[1.0], [np.nan]]), "X"), [[1.0], [np.nan]])
    with pytest.raises(ValueError, match="X has columns that do not hold real numbers: when"):
        as_plain(Table({"a": "f", "when": "M"}, TypeError("no")), "X")
    with pytest.raises(TypeError, match="X must hold real numbers: no"):
        as_plain(Table({"a": "f"}, TypeError("no")), "X")


def test_several_variables_and_objects_are_refused_or_read():
    with pytest.raises(TypeError, match="several variables: choose one"):
        as_plain(SimpleNamespace(data_vars={}), "X")
    assert as_plain(np.array([Decimal(1), 2], object), "X").dtype == np.float64
    with pytest.raises(ValueError, match="numbers that float64 cannot hold"):
        as_plain(np.array([10**400, 1], object), "X")
