"""A folder as they are: thousands of images, of which some are empty, cut short, no images at all, or far too large."""

import numpy as np
import pytest
from PIL import Image

from pointillist import load
from pointillist.data import photographs

pytestmark = pytest.mark.usefixtures("no_leftovers")


def damage(folder, stem, kind, whole):
    """One file that cannot be used; `whole` is a file that can."""
    path = folder / f"{stem}.png"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut short":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "text":
        path.write_text("this is no picture")
    else:  # beyond the limit: 25 kB on disk, 200 megapixels
        Image.new("1", (20_000, 10_000)).save(path)
    return path


KINDS = ("empty", "cut short", "text", "bomb")


def make_folder(folder, count, damaged):
    """`count` files, of which `damaged` cannot be used, spread among the others; returns these."""
    folder.mkdir()
    picture = (255 * photographs("train")["gravel"]).astype(np.uint8)
    rng = np.random.default_rng(0)
    bad = set(np.linspace(1, count - 1, damaged).astype(int).tolist())
    assert len(bad) == damaged
    broken = []
    whole = b""
    for i in range(count):
        height, width = rng.integers(24, 40, 2)
        top, left = rng.integers(0, picture.shape[0] - height), rng.integers(0, picture.shape[1] - width)
        name = folder / f"{i}.png"
        if i in bad:
            broken.append(damage(folder, i, KINDS[len(broken) % len(KINDS)], whole))
        else:
            Image.fromarray(picture[top : top + height, left : left + width]).save(name)
            whole = name.read_bytes()
    return broken


@pytest.mark.parametrize(
    ("count", "damaged"), [(60, 10), pytest.param(5000, 20, marks=pytest.mark.slow)], ids=["short", "5000 images"]
)
def test_is_learned_from_with_what_is_damaged_reported(learn, tmp_path, count, damaged):
    broken = make_folder(tmp_path / "many", count, damaged)
    answer = learn("--epochs", "1", "--batch", "20", "--on-error", "skip", paths=[tmp_path / "many"])
    assert answer.code == 0, answer.err
    assert f"from {count - damaged:,} signals ({damaged} skipped)" in answer.out
    assert f"left out {damaged} signals:" in answer.out
    for path in broken:
        assert sum(f"{path} " in line for line in answer.out.splitlines()) == 1, path
        assert sum(f"{path} " in line for line in answer.err.splitlines() if line.startswith("warning:")) == 1, path
    model = load(tmp_path / "out.safetensors")
    assert model.n_seen_ == count - damaged
    assert len(model.extra_["data"]["skipped"]) == damaged
    assert np.isfinite(model.filters_).all()


def test_crops_pass_over_what_is_damaged(learn, tmp_path):
    broken = make_folder(tmp_path / "many", 12, 3)
    answer = learn(
        "--crops", "150", "--crop-size", "16", "--on-error", "skip", "--batch", "30", paths=[tmp_path / "many"]
    )
    assert answer.code == 0, answer.err
    assert "(3 skipped)" in answer.out
    assert all(str(path) in answer.out for path in broken)
