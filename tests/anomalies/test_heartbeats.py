"""Electrocardiograms with marked beats, scored without their marks; needs POINTILLIST_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import pointillist as pt

FOLDER = Path(os.environ.get("POINTILLIST_DATA", "nowhere")) / "ecg"


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="POINTILLIST_DATA does not name a folder with electrocardiograms")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "beat", "least"), [("mba_805", 99, 0.80), ("mba_806", 77, 0.67)])
def test_area_under_the_precision_recall_curve(name, beat, least, seed):
    stored = np.load(FOLDER / f"{name}.npz")
    signals = pt.remove_baseline(stored["signal"][None], beat)
    model = pt.learn_windows(signals, beat, random_state=seed)
    score = pt.anomaly_score(signals, model).scores[0]
    assert average_precision_score(stored["anomaly"], score) >= least
