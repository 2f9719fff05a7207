"""Tests of the figures: they are written whole, show what they should."""

import numpy as np
import pytest
from PIL import Image

from pointillist import SparseCodes
from pointillist.plot import save_convergence, save_reconstruction


def _history(count, held_out=False, noise=0.0):
    rng = np.random.default_rng(0)
    records = []
    for i in range(1, count + 1):
        objective = 100 / i + 50 + noise * rng.standard_normal()
        records.append({"iteration": i, "seconds": 0.1 * i, "objective": objective})
        if held_out and i % 2:
            records[-1]["validation_objective"] = 10 + 5 / i
    return records


@pytest.mark.parametrize("history", [_history(1), _history(5), _history(100, True, 30.0), _history(70, True)])
def test_convergence_of_any_history(tmp_path, history):
    save_convergence(history, tmp_path / "c.png")
    width, height = Image.open(tmp_path / "c.png").size
    rows = 1 + any("validation_objective" in info for info in history)
    assert (width, height) == (1425, 510 * rows)
    assert [path.name for path in tmp_path.iterdir()] == ["c.png"]


def test_vector_formats_and_others(tmp_path):
    save_convergence(_history(3), tmp_path / "c.svg")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    with pytest.raises(ValueError, match=r"figures end in \.png"):
        save_convergence(_history(3), tmp_path / "c.txt")
    with pytest.raises(ValueError, match="nothing was learned"):
        save_convergence([], tmp_path / "c.png")


@pytest.mark.parametrize("grid", [(20, 30), (16, 26), (24, 34)])
def test_reconstruction_with_any_boundary(tmp_path, grid):
    rng = np.random.default_rng(0)
    image = rng.standard_normal((20, 30))
    dense = np.where(rng.random((1, 4, *grid)) < 0.05, 1.5, 0.0)
    save_reconstruction(image, 0.8 * image, SparseCodes.from_dense(dense), tmp_path / "r.png")
    pixels = np.asarray(Image.open(tmp_path / "r.png").convert("RGB"))
    assert pixels.shape[1] > 3 * pixels.shape[0]
    orange = (pixels[..., 0] > 200) & (pixels[..., 2] < 120)
    assert not orange[:, : pixels.shape[1] // 2].any()
    assert orange[:, 3 * pixels.shape[1] // 4 :].any()


def test_reconstruction_without_codes(tmp_path):
    image = np.random.default_rng(0).standard_normal((20, 30))
    save_reconstruction(image, 0 * image, SparseCodes.from_dense(np.zeros((1, 4, 20, 30))), tmp_path / "r.png")
    assert (tmp_path / "r.png").exists()


@pytest.mark.parametrize(("shape", "grid"), [((200,), 200), ((5, 200), 181), ((2, 200), 219)])
def test_reconstruction_of_signals_in_time(tmp_path, shape, grid):
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(shape)
    dense = np.zeros((1, 4, grid))
    dense[0, 1, 50], dense[0, 2, 120] = 2.0, -1.0
    save_reconstruction(signal, 0.8 * signal, SparseCodes.from_dense(dense), tmp_path / "r.png")
    pixels = np.asarray(Image.open(tmp_path / "r.png").convert("RGB")).astype(int)
    orange = (pixels[..., 0] > 200) & (pixels[..., 2] < 120)
    rows, columns = np.nonzero(orange)
    assert 0.2 * len(pixels) < rows.mean() < 0.8 * len(pixels)
    assert np.ptp(columns) < 20
    expected = (50 + (200 - grid) / 2) / 199
    assert 0.8 * expected + 0.05 < columns.mean() / pixels.shape[1] < expected + 0.1


def test_reconstruction_refuses_what_it_cannot_draw(tmp_path):
    codes = SparseCodes.from_dense(np.zeros((2, 4, 20, 30)))
    with pytest.raises(ValueError, match="one image, got 2"):
        save_reconstruction(np.zeros((20, 30)), np.zeros((20, 30)), codes, tmp_path / "r.png")
    with pytest.raises(ValueError, match="one shape"):
        save_reconstruction(np.zeros((20, 30)), np.zeros((20, 31)), codes[0], tmp_path / "r.png")
