"""Learning with filters of low rank over channels: patterns and shapes come back, and nothing else changes."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.errors import ModelFileError
from pointillist.storage import load_model, save_model

SIGNALS = {"1-D": ((60,), 7), "2-D": ((16, 15), (3, 4)), "3-D": ((8, 9, 8), (2, 3, 2))}
LEARNERS = {"batch": lambda **how: pt.BatchCSC(max_iter=3, **how), "online": lambda **how: pt.OnlineCSC(**how)}
SMALL = {"n_filters": 3, "penalty": 0.5, "channels": True, "random_state": 0, "n_jobs": 1}


def drawn(shape, n_signals=4, channels=5, dtype=np.float64):
    return np.random.default_rng(0).standard_normal((n_signals, channels, *shape)).astype(dtype)


def planted(seed=0, channels=12, n_signals=8, samples=300, taps=16, noise=0.1):
    """Three rank-one filters, and noisy signals of sparse non-negative codes for them."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((3, channels))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    shapes = np.stack([np.sin(np.linspace(0, 2 * np.pi * (k + 1), taps)) * np.hanning(taps) for k in range(3)])
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    spikes = rng.random((n_signals, 3, samples)) < 0.01
    codes = np.where(spikes, rng.uniform(4, 8, spikes.shape), 0)
    courses = np.stack([[np.convolve(z, v, "same") for z, v in zip(one, shapes, strict=True)] for one in codes])
    signals = np.einsum("kc,nkt->nct", patterns, courses)
    return patterns, shapes, signals + noise * rng.standard_normal(signals.shape)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("shape", SIGNALS)
@pytest.mark.parametrize("rank", [1, 2])
def test_filters_are_patterns_times_shapes(learner, shape, rank):
    space, size = SIGNALS[shape]
    signals = drawn(space)
    model = LEARNERS[learner](filter_size=size, rank=rank, **SMALL).fit(signals)
    singular = np.linalg.svd(model.filters_.reshape(3, 5, -1), compute_uv=False)
    assert np.all(singular[:, rank:] < 1e-6)
    assert np.all(singular[:, rank - 1] > 1e-3)
    assert model.patterns_.shape == (3, rank, 5)
    assert model.shapes_.shape == (3, rank, *model.filters_.shape[2:])
    product = np.einsum("krc,kr...->kc...", model.patterns_, model.shapes_)
    np.testing.assert_allclose(product, model.filters_, atol=1e-6)
    assert len(model.transform(signals)) == 4


@pytest.mark.parametrize("learner", LEARNERS)
def test_planted_patterns_and_shapes_are_found(learner):
    patterns, shapes, signals = planted()
    how = {"batch": {"max_iter": 12}, "online": {"batch_size": 2, "n_epochs": 5}}[learner]
    model = {"batch": pt.BatchCSC, "online": pt.OnlineCSC}[learner](
        6, 24, 0.5, channels=True, nonnegative=True, rank=1, update=pt.FilterUpdate(init="patches"), learning=0.1,
        random_state=0, n_jobs=1, **how,
    )  # fmt: skip
    model.fit(signals)
    like = np.abs(patterns @ model.patterns_[:, 0].T)
    for k, shape in enumerate(shapes):
        cosines = [
            np.max(np.abs(np.correlate(one, shape, "full"))) / np.linalg.norm(one) for one in model.shapes_[:, 0]
        ]
        best = np.argmax(like[k] * cosines)
        assert like[k, best] > 0.99
        assert cosines[best] > 0.95


def test_without_a_rank_nothing_is_split():
    model = pt.BatchCSC(filter_size=7, max_iter=1, **SMALL)
    assert not hasattr(model, "patterns_")
    model.fit(drawn((60,)))
    assert not hasattr(model, "patterns_")
    assert not hasattr(model, "shapes_")
    with pytest.raises(AttributeError, match="learn with rank=1"):
        _ = model.shapes_


@pytest.mark.parametrize("resume", [False, True])
def test_a_model_file_keeps_the_rank(tmp_path, resume):
    path, signals = tmp_path / "model.safetensors", drawn((60,))
    sizes = {"n_filters": [2, 1], "filter_size": [5, 7]}
    model = pt.OnlineCSC(**{**SMALL, **sizes}, rank=2, update=pt.FilterUpdate(zero_mean=True)).fit(signals)
    pt.save(model, path, resume=resume)
    again = pt.load(path)
    assert again.rank == 2
    np.testing.assert_array_equal(again.patterns_, model.patterns_)
    np.testing.assert_array_equal(again.shapes_, model.shapes_)
    if resume:
        np.testing.assert_array_equal(again.partial_fit(signals).filters_, model.partial_fit(signals).filters_)
    else:
        again.partial_fit(signals)
    assert np.all(np.linalg.svd(again.filters_, compute_uv=False)[:, 2:] < 1e-12)


@pytest.mark.parametrize(("entry", "fine"), [("missing", True), (None, True), (2, True), (0, False), ("one", False)])
def test_files_of_earlier_versions_have_no_rank(tmp_path, entry, fine):
    path = tmp_path / "model.safetensors"
    pt.save(pt.OnlineCSC(filter_size=7, update=pt.FilterUpdate(zero_mean=True), **SMALL).fit(drawn((60,))), path)
    stored = load_model(path)
    settings = stored.metadata["parameters"]["update"]["settings"]
    for name in ("rank", "robust", "n_epochs"):
        assert stored.metadata["parameters"].pop(name) is None
    if entry != "missing":
        settings["rank"] = entry
    save_model(path, stored.arrays.pop("filters"), stored.metadata, stored.arrays)
    if fine:
        assert pt.load(path).rank == (None if entry == "missing" else entry)
    else:
        with pytest.raises(ModelFileError, match=r"rank|update"):
            pt.load(path)
