"""Tests of ``pointillist encode``: the codes it writes are the model's, prepared as the training signals were."""

import numpy as np
import pytest
import tifffile
from PIL import Image
from tests.cli.conftest import done

from pointillist import contrast_normalise, load, load_signals
from pointillist.cli import reading
from pointillist.data.sources import base, stacks
from pointillist.solvers import large_signals
from pointillist.storage import load_codes, load_codes_metadata

pytestmark = pytest.mark.usefixtures("no_leftovers")


def test_codes_are_those_of_transform(cli, images, model, tmp_path):
    answer = done(cli("encode", model, images, "-o", tmp_path / "codes.safetensors"))
    lines = answer.out.splitlines()
    assert lines[0].split() == ["signal", "size", "objective", "relative", "gap", "non-zeros", "PSNR", "status"]
    assert sum("image" in line and "36×40" in line and "converged" in line for line in lines) == 3
    codes = load_codes(tmp_path / "codes.safetensors")
    expected = load(model).transform(contrast_normalise(load_signals(images)))
    np.testing.assert_array_equal(codes.to_dense(), expected.to_dense())
    facts = load_codes_metadata(tmp_path / "codes.safetensors")
    assert facts["preprocessing"] == {"normalise": "contrast"}
    assert [entry["nonzeros"] for entry in facts["signals"]] == [len(index) for index in codes.indices]


def test_penalty_tolerance_and_mixed_sizes(cli, images, model, tmp_path):
    Image.open(images / "image1.png").crop((0, 0, 30, 20)).save(images / "image4.png")
    options = ["--penalty", "0.5", "--tol", "1e-2", "-q"]
    answer = cli("encode", model, images, "-o", tmp_path / "codes.safetensors", *options)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    codes = load_codes(tmp_path / "codes.safetensors")
    assert codes.grids == [(36, 40)] * 3 + [(20, 30)]
    facts = load_codes_metadata(tmp_path / "codes.safetensors")
    assert facts["penalty"] == 0.5
    assert all(entry["gap"] <= 1e-2 for entry in facts["signals"])


def test_reconstructions_look_like_the_signals(cli, images, model, tmp_path):
    np.save(tmp_path / "stack.npy", np.stack(load_signals(images))[:2])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "image1.png").write_bytes((images / "image1.png").read_bytes())
    paths = [images / "image1.png", tmp_path / "other" / "image1.png", tmp_path / "stack.npy"]
    folder = tmp_path / "pictures"
    answer = done(cli("encode", model, *paths, "-o", tmp_path / "c", "--reconstruction", folder, "--penalty", "0.05"))
    assert "wrote 4 pictures" in answer.out
    names = ["image1-2.png", "image1.png", "stack-0.png", "stack-1.png"]
    assert sorted(path.name for path in folder.iterdir()) == names
    picture = np.asarray(Image.open(folder / "image1.png"), float)
    signal = contrast_normalise(load_signals(images / "image1.png")[0])
    assert np.corrcoef(picture.ravel(), signal.ravel())[0, 1] > 0.9


def test_says_so_when_codes_are_not_good(cli, images, model, tmp_path):
    options = ["--solver", "admm", "--tol", "1e-9", "--penalty", "0.01"]
    answer = done(cli("encode", model, images / "image1.png", "-o", tmp_path / "c", *options))
    assert "iteration limit" in answer.out
    assert "1 of 1 signals did not converge" in answer.err


@pytest.mark.parametrize("kind", ["npy", "tif", "packed"])
def test_large_files_stay_on_disk(cli, images, model, tmp_path, monkeypatch, kind):
    """The same codes as for small files, with the signal and its residual in files."""
    pixels = np.asarray(Image.open(images / "image1.png"))
    file = tmp_path / ("big.npy" if kind == "npy" else "big.tif")
    if kind == "npy":
        np.save(file, pixels)
    else:
        colour = np.stack([pixels] * 3, axis=-1)
        tifffile.imwrite(file, colour, photometric="rgb", compression="zlib" if kind == "packed" else None)
    small = cli("encode", model, images / "image1.png", "-o", tmp_path / "small", "--tol", "1e-4")
    for module in (base, stacks, large_signals, reading):
        monkeypatch.setattr(module, "LARGE", 1000)
    signal = load_signals(file)[0]
    assert isinstance(signal, np.memmap)
    assert isinstance(contrast_normalise(signal), np.ndarray)
    large = cli("encode", model, file, images / "image2.png", "-o", tmp_path / "large", "--tol", "1e-4")
    assert (small.code, large.code) == (0, 0), large.err
    one, two = (load_codes_metadata(tmp_path / name)["signals"][0] for name in ("small", "large"))
    assert two["objective"] == pytest.approx(one["objective"], rel=1e-4)
    assert two["psnr"] == pytest.approx(one["psnr"], abs=0.01)
    assert two["status"] == "converged"
    assert len(load_codes(tmp_path / "large")) == 2


def test_nan_marks_samples_that_were_not_seen(cli, images, learn, tmp_path):
    """A model learned from a stack with gaps codes the same stack, and its pictures have no holes."""
    stack = np.stack(load_signals(images)).astype(np.float32)
    stack[:, 10:14, 12:20] = np.nan
    np.save(tmp_path / "gaps.npy", stack)
    done(learn("--normalise", "none", "--penalty", "0.02", paths=[tmp_path / "gaps.npy"]))
    model = tmp_path / "out.safetensors"
    answer = cli("encode", model, tmp_path / "gaps.npy", "-o", tmp_path / "c", "--reconstruction", tmp_path / "made")
    assert answer.code == 0, answer.err
    expected = load(model).transform(stack)
    np.testing.assert_array_equal(load_codes(tmp_path / "c").to_dense(), expected.to_dense())
    entry = load_codes_metadata(tmp_path / "c")["signals"][0]
    seen, whole = ~np.isnan(stack[0]), load(model).inverse_transform(expected)[0]
    error = np.mean((stack[0] - whole)[seen] ** 2)
    assert entry["psnr"] == pytest.approx(10 * np.log10(np.ptp(stack[0][seen]) ** 2 / error), abs=0.01)
    picture = np.asarray(Image.open(tmp_path / "made" / "gaps-0.png"), float) / 255
    np.testing.assert_allclose(picture, np.clip(whole, 0, 1), atol=0.5 / 255 + 1e-4)


def test_nan_is_refused_where_gaps_cannot_be_left_out(cli, images, model, learn, tmp_path, monkeypatch):
    stack = np.stack(load_signals(images))
    stack[0, 3, 3] = np.nan
    np.save(tmp_path / "gaps.npy", stack)
    contrast = cli("encode", model, tmp_path / "gaps.npy", "-o", tmp_path / "c")
    monkeypatch.setattr(reading, "LARGE", 1000)
    assert learn("--normalise", "none", "--penalty", "0.02").code == 0
    large = cli("encode", tmp_path / "out.safetensors", tmp_path / "gaps.npy", "-o", tmp_path / "c")
    for answer in (contrast, large):
        assert answer.code == 2
        assert "gaps.npy" in answer.err
        assert "holds NaN" in answer.err
