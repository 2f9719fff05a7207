"""Large pictures are restored piece by piece, and say how far they are."""

import numpy as np
import pytest

from pointillist.restore import deblur, denoise, pieces


@pytest.mark.parametrize(
    "restore", [lambda p, **o: denoise(p, **o), lambda p, **o: deblur(p, np.ones((3, 3)), force=True, **o)]
)
def test_progress_counts_the_pieces_and_nothing_inside_of_them(restore, picture, filters, monkeypatch):
    monkeypatch.setattr(pieces, "LARGE", 64)
    monkeypatch.setattr(pieces, "_PIECE", 32)
    large, told = np.tile(picture, (2, 2))[:64, :96], []
    restore(large, filters=filters, sigma=0.05, n_jobs=2, progress=told.append)
    assert told == pytest.approx(np.arange(1, 7) / 6)
