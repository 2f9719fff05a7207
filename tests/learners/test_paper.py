"""The paper's numbers, on the paper's images; needs POINTILLIST_DATA."""

import numpy as np
import pytest

import pointillist as pt

pytestmark = pytest.mark.slow
PAPERS = {"n_filters": 100, "filter_size": 11, "solver": "admm", "sampling": pt.Draws(0.1, "codes"), "random_state": 0}


def images(folder, name):
    return np.load(folder / f"{name}_normalised.npz")["images"]


@pytest.fixture(scope="module")
def batch_model(paper_data):
    return pt.BatchCSC(**PAPERS, max_iter=12).fit(images(paper_data, "fruit"))


def test_batch_learning_follows_the_papers_curve(batch_model):
    objectives = [info["objective"] for info in batch_model.history_]
    assert objectives[0] == pytest.approx(1.68e4, rel=0.03)
    assert objectives[-1] == pytest.approx(1.34e4, rel=0.03)


@pytest.mark.parametrize(("name", "count", "bound"), [("fruit", 10, 11_800), ("city", 4, 5_100)])
def test_its_dictionary_codes_well(batch_model, paper_data, name, count, bound):
    signals = images(paper_data, name)[:count]
    result = pt.encode(signals, batch_model.filters_, 1.0, tol=1e-3)
    assert result.status is pt.Status.CONVERGED
    assert result.objective.sum() <= bound


def test_one_online_pass_codes_unseen_images(paper_data):
    model = pt.OnlineCSC(**PAPERS, batch_size=1).fit(images(paper_data, "fruit"))
    result = pt.encode(images(paper_data, "city")[:4], model.filters_, 1.0, tol=1e-3)
    assert result.objective.sum() <= 5_300
