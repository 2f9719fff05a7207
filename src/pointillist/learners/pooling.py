"""A step between a learner and a classifier in scikit-learn's pipelines: codes become features of one length."""

from __future__ import annotations

from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pointillist.codes import SparseCodes, regions_along
from pointillist.validation import check_arguments


class CodePooling(TransformerMixin, BaseEstimator):
    """Pool the codes that a learner gives into features, as `SparseCodes.pool` does, for a classifier that comes next.

    Parameters
    ----------
    how : {"sum", "mean", "max", "count"}
        What is made of the ``|codes|`` of a filter in a region. "mean" does not grow with the size of a signal.
    regions : int or tuple of int
        Into how many equal parts each axis of a signal is cut; 1 pools over the whole signal.
    signs : bool
        Whether positive and negative codes are pooled apart, which makes twice as many features.

    Attributes
    ----------
    n_filters_ : int
        Filters of the codes that it was fitted to.
    regions_ : tuple of int
        Regions along each axis.

    Examples
    --------
    >>> import numpy as np, pointillist as pt
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> slow, fast = np.sin(np.arange(60) / 4), np.sin(np.arange(60))
    >>> signals = np.array([slow, fast] * 10) + 0.1 * rng.standard_normal((20, 60))
    >>> learner = pt.OnlineCSC(n_filters=2, filter_size=9, penalty=0.5, random_state=0)
    >>> pipeline = make_pipeline(learner, pt.CodePooling(), LogisticRegression())
    >>> pipeline.fit(signals, [0, 1] * 10).score(signals, [0, 1] * 10)
    1.0
    """

    def __init__(self, how: str = "sum", *, regions: int | tuple[int, ...] = 1, signs: bool = False) -> None:
        self.how = how
        self.regions = regions
        self.signs = signs

    def fit(self, X: SparseCodes, y: Any = None) -> Self:
        """Check the settings against the codes `X` and note how many features there are; `y` is not used."""
        check_arguments(how=self.how, signs=self.signs)
        codes = _codes(X)
        self.regions_ = regions_along(self.regions, len(codes.grids[0]))
        self.n_filters_ = codes.n_filters
        return self

    def transform(self, X: SparseCodes) -> NDArray[np.floating]:
        """Return the features (n_signals, n_features) of the codes `X`."""
        check_is_fitted(self)
        codes = _codes(X)
        if codes.n_filters != self.n_filters_:
            raise ValueError(f"X has codes of {codes.n_filters} filters, those of fit had {self.n_filters_}")
        return codes.pool(self.how, regions=self.regions, signs=self.signs)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Return a name for each feature, such as ``filter3_negative_region0``; `input_features` is not used."""
        check_is_fitted(self)
        signs = ("_positive", "_negative") if self.signs else ("",)
        places = [f"_region{i}" for i in range(prod(self.regions_))] if prod(self.regions_) > 1 else [""]
        names = [f"filter{k}{sign}{place}" for k in range(self.n_filters_) for sign in signs for place in places]
        return np.asarray(names, object)


def _codes(X: Any) -> SparseCodes:
    """Codes of at least one signal, or an error that says where they come from."""
    if isinstance(X, list | tuple) and X and all(isinstance(one, SparseCodes) for one in X):
        X = SparseCodes.concatenate(X)  # as scikit-learn selects signals of several sizes
    if not isinstance(X, SparseCodes):
        raise ValueError(f"X must be SparseCodes, which the transform of a learner gives, got {type(X).__name__}")
    if not len(X):
        raise ValueError("X is empty: give the codes of at least one signal")
    return X
