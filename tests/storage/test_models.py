"""Tests of the model file: filters that can be used, and nothing else."""

import numpy as np
import pytest

from pointillist.errors import ModelFileError
from pointillist.storage import load_model, save_model, write_arrays


@pytest.fixture
def filters():
    return np.random.default_rng(0).standard_normal((4, 5, 5)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_filters_metadata_and_arrays_come_back(tmp_path, filters, dtype):
    save_model(tmp_path / "m", filters.astype(dtype), {"lam": 0.1}, {"usage": np.arange(4.0)})
    model = load_model(tmp_path / "m")
    assert model.arrays["filters"].dtype == dtype
    np.testing.assert_array_equal(model.arrays["filters"], filters.astype(dtype))
    np.testing.assert_array_equal(model.arrays["usage"], np.arange(4.0))
    assert model.metadata == {"lam": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"filters": np.ones((2, 3), dtype=int)}, "filters must be float16, float32 or float64, got int64"),
        ({"filters": np.full((2, 3), np.nan)}, "filters hold NaN"),
        ({"filters": np.ones(3)}, "filters must have shape"),
        ({"filters": np.ones((0, 3))}, "filters must have shape"),
        ({"arrays": {"filters": np.ones(2)}}, "reserved name"),
    ],
)
def test_what_is_no_model_is_not_written(tmp_path, filters, change, message):
    with pytest.raises(ValueError, match=message):
        save_model(tmp_path / "m", **({"filters": filters, "metadata": {}} | change))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.ones(2)}, "holds no filters"),
        ({"filters": np.ones((2, 2), dtype=np.int32)}, "got int32"),
        ({"filters": np.full((2, 2), np.inf)}, "filters hold NaN or infinity"),
        ({"filters": np.ones(2)}, "filters must have shape"),
    ],
)
def test_unusable_filters_in_the_file(tmp_path, arrays, message):
    write_arrays(tmp_path / "m", "model", {}, arrays)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "m")
