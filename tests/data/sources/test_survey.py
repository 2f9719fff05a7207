"""Tests of the survey: sizes from heads, whatever is wrapped around a source."""

import warnings

import numpy as np
import pytest
from PIL import Image

from pointillist.data.sources import ArraySource, CropSource, ImageSource, KeptSource, NormalisedSource
from pointillist.data.sources.derived import survey
from pointillist.errors import UnreadableFileError


def images(folder):
    rng = np.random.default_rng(0)
    for i, size in enumerate([(10, 20), (30, 8), (12, 12)]):
        Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)).save(folder / f"{i}.png")
    (folder / "3.png").write_bytes(b"")
    return ImageSource([folder / f"{i}.png" for i in range(4)])


def test_sizes_come_from_the_heads_that_can_be_read(tmp_path):
    seen = survey(images(tmp_path))
    assert (seen.n_signals, seen.looked_at) == (4, 3)
    assert seen.largest == (30, 8)
    assert seen.samples == pytest.approx((200 + 240 + 144) / 3)
    assert seen.keepable == pytest.approx(4 * seen.samples)
    assert survey(images(tmp_path), limit=2).looked_at == 1


def test_images_too_large_to_be_read_do_not_count(tmp_path, monkeypatch):
    source = images(tmp_path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 110)
    monkeypatch.setattr(warnings, "warn", lambda *_: None)
    assert survey(source).largest == (10, 20)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with pytest.raises(UnreadableFileError, match="none of the 4 signals looked at"):
        survey(source)


def test_what_is_wrapped_around_is_seen_through(tmp_path):
    plain = survey(images(tmp_path))
    normalised = survey(KeptSource(NormalisedSource(images(tmp_path))))
    assert normalised.largest == plain.largest
    assert normalised.reading > plain.reading


def test_crops_have_their_own_size_and_what_they_are_cut_from_is_kept(tmp_path):
    seen = survey(CropSource(images(tmp_path), 50, (6, 4)))
    whole = survey(images(tmp_path))
    assert (seen.n_signals, seen.largest, seen.samples) == (50, (6, 4), 24)
    assert (seen.reading, seen.keepable) == (whole.reading, whole.keepable)
    mapped = survey(CropSource(ArraySource(np.zeros((3, 9, 9))), 50, (6, 4)))
    assert (mapped.reading, mapped.keepable) == (0, 0)
