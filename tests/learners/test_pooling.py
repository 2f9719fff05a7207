"""Tests of the step that turns codes into features in a pipeline, and of codes of signals of several sizes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

import pointillist as pt

RNG = np.random.default_rng(0)
LENGTHS = RNG.integers(30, 50, 24)
KINDS = np.arange(24) % 2
SIGNALS = [
    np.sin(np.arange(n) / (1 + 3 * kind)) + 0.1 * RNG.standard_normal(n) for n, kind in zip(LENGTHS, KINDS, strict=True)
]
FILTERS = np.stack([np.sin(np.arange(9)), np.sin(np.arange(9) / 4)]) / 2


def _learner():
    return pt.OnlineCSC(2, 9, penalty=0.5, n_jobs=1, random_state=0)


def test_a_pipeline_classifies_signals_of_several_sizes_and_searches_its_settings():
    pipeline = make_pipeline(_learner(), pt.CodePooling("mean"), LogisticRegression())
    search = GridSearchCV(pipeline, {"codepooling__how": ["mean", "max"], "codepooling__regions": [1, 2]}, cv=2)
    search.fit(SIGNALS, KINDS)
    assert search.score(SIGNALS, KINDS) == 1.0
    assert len(search.best_estimator_[1].get_feature_names_out()) == 2 * search.best_params_["codepooling__regions"]


def test_the_step_does_what_pool_does_and_names_its_features():
    codes = pt.encode(SIGNALS, FILTERS, 0.5).codes
    step = clone(pt.CodePooling("max", regions=2, signs=True)).fit(codes)
    np.testing.assert_array_equal(step.transform(codes), codes.pool("max", regions=2, signs=True))
    names = step.get_feature_names_out().tolist()
    assert names[:3] == ["filter0_positive_region0", "filter0_positive_region1", "filter0_negative_region0"]
    assert len(names) == step.transform(codes).shape[1]
    assert pt.CodePooling().fit(codes).get_feature_names_out().tolist() == ["filter0", "filter1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, 3)), "X must be SparseCodes, which the transform of a learner gives, got ndarray"),
        (pt.SparseCodes([], [], [], 2), "X is empty"),
        (pt.SparseCodes.from_dense(np.ones((1, 3, 4))), "X has codes of 3 filters, those of fit had 2"),
    ],
)
def test_other_input_is_refused(given, message):
    step = pt.CodePooling().fit(pt.SparseCodes.from_dense(np.ones((1, 2, 4))))
    with pytest.raises(ValueError, match=message):
        step.transform(given)


@pytest.mark.parametrize("settings", [{"how": "median"}, {"regions": -1}, {"signs": "both"}])
def test_bad_settings_are_named_when_it_is_fitted(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        pt.CodePooling(**settings).fit(pt.SparseCodes.from_dense(np.ones((1, 2, 4))))


def test_names_go_with_codes_of_several_sizes_through_selecting_pooling_and_files(tmp_path):
    codes = pt.encode(SIGNALS[:4], FILTERS, 0.5).codes
    codes.names = ["a", "b", "c", "d"]
    pt.save_codes(codes, tmp_path / "codes.safetensors")
    loaded = pt.load_codes(tmp_path / "codes.safetensors")
    train, test = train_test_split(loaded, random_state=0)  # lists, as scikit-learn selects signals of several sizes
    assert sorted(name for one in [*train, *test] for name in one.names) == codes.names
    step = pt.CodePooling().fit(train)
    for one in test:
        np.testing.assert_array_equal(step.transform([one])[0], codes.pool()[codes.names.index(one.names[0])])
    assert [len(dense[0]) for dense in loaded.to_dense()] == LENGTHS[:4].tolist()


def test_a_pipeline_gives_tables_with_names():
    """Codes pass on as they are; what the last step makes of them is the table."""
    pandas = pytest.importorskip("pandas")
    pipeline = make_pipeline(_learner(), pt.CodePooling(signs=True)).set_output(transform="pandas")
    table = pipeline.fit_transform(SIGNALS[:4])
    assert isinstance(table, pandas.DataFrame)
    names = list(pipeline.get_feature_names_out())
    assert list(table.columns) == names
    assert names[:2] == ["filter0_positive", "filter0_negative"]
    assert list(pipeline[:-1].get_feature_names_out()) == ["filter0", "filter1"]
