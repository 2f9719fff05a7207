"""scikit-learn's own checks of estimators, but for those that signals of any length cannot pass."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import pointillist as pt

SMALL = {"n_filters": 2, "filter_size": 2, "penalty": 0.1, "random_state": 0, "n_jobs": 1}
LEARNERS = [pt.BatchCSC(max_iter=2, **SMALL), pt.OnlineCSC(batch_size=8, **SMALL)]
ANY_LENGTH = "filters code signals of any length, so another number of samples than in fit is no error"
CONSTANT = "constant signals are refused, and this check's data hold some"
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": ANY_LENGTH,
    "check_transformer_general": ANY_LENGTH,
    "check_estimators_dtypes": CONSTANT,
    "check_estimators_pickle": f"{CONSTANT}: of two samples one is NaN; pickling is tested beside",
}


@parametrize_with_checks(LEARNERS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda model: type(model).__name__)
class TestManners:
    signals = np.random.default_rng(0).standard_normal((6, 30))

    def test_integers_are_signals(self, learner):
        whole = np.round(10 * self.signals).astype(int)
        assert learner.fit(whole).transform(whole).nnz > 0

    def test_samples_are_counted_where_all_signals_have_as_many(self, learner):
        assert learner.fit(self.signals).n_features_in_ == 30
        assert learner.transform(self.signals[:, :12]).shape == (6, 2, 12)
        learner.fit([self.signals[0], self.signals[1, :20]])
        assert not hasattr(learner, "n_features_in_")

    def test_a_table_has_names(self, learner):
        class Table:
            columns = tuple(f"t{i}" for i in range(30))

            def __array__(self, dtype=None, copy=None):
                return TestManners.signals

        model = learner.fit(Table())
        assert tuple(model.feature_names_in_) == Table.columns
        np.testing.assert_array_equal(model.transform(Table()), model.transform(self.signals))
        assert not hasattr(learner.fit(self.signals), "feature_names_in_")

    def test_codes_are_arrays_for_what_comes_next(self, learner):
        codes = learner.fit(self.signals).transform(self.signals)
        np.testing.assert_array_equal(np.asarray(codes), codes.to_dense())
        assert np.asarray(codes, np.float32).dtype == np.float32

    def test_searches_in_processes_score_as_here(self, learner):
        here, there = (
            GridSearchCV(learner, {"penalty": [0.1, 0.3]}, cv=2, n_jobs=n).fit(self.signals).cv_results_ for n in (1, 2)
        )
        np.testing.assert_array_equal(here["mean_test_score"], there["mean_test_score"])
        assert np.all(np.isfinite(cross_val_score(learner, self.signals, cv=3)))
