"""A folder as they are: many images, of which some are empty, cut short, no images at all, or far too large."""

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done

from pointillist import load
from pointillist.data import photographs

pytestmark = pytest.mark.usefixtures("no_leftovers")
COUNT, DAMAGED = 60, ("9.png", "19.png", "29.png", "39.png")


@pytest.fixture
def many(tmp_path):
    """Images of many sizes; the last of the damaged is beyond the limit: 25 kB on disk, 200 megapixels."""
    folder = tmp_path / "many"
    folder.mkdir()
    picture = (255 * photographs("train")["gravel"]).astype(np.uint8)
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        (height, width), top, left = rng.integers(24, 40, 2), *rng.integers(0, 200, 2)
        Image.fromarray(picture[top : top + height, left : left + width]).save(folder / f"{i}.png")
    whole = (folder / "0.png").read_bytes()
    for name, content in zip(DAMAGED, (b"", whole[: len(whole) // 2], b"this is no picture"), strict=False):
        (folder / name).write_bytes(content)
    Image.new("1", (20_000, 10_000)).save(folder / DAMAGED[3])
    return folder


def test_is_learned_from_with_what_is_damaged_reported(learn, many, tmp_path):
    answer = done(learn("--epochs", "1", "--batch", "20", "--on-error", "skip", paths=[many]))
    assert f"from {COUNT - 4} signals (4 skipped)" in answer.out
    assert "left out 4 signals:" in answer.out
    for path in (many / name for name in DAMAGED):
        assert sum(f"{path} " in line for line in answer.out.splitlines()) == 1, path
        assert sum(f"{path} " in line for line in answer.err.splitlines() if line.startswith("warning:")) == 1, path
    model = load(tmp_path / "out.safetensors")
    assert model.n_seen_ == COUNT - 4
    assert len(model.extra_["data"]["skipped"]) == 4
    assert np.isfinite(model.filters_).all()


def test_crops_pass_over_what_is_damaged(learn, many):
    answer = done(learn("--crops", "400", "--crop-size", "16", "--on-error", "skip", "--batch", "80", paths=[many]))
    assert "(4 skipped)" in answer.out
    assert all(str(many / name) in answer.out for name in DAMAGED)
