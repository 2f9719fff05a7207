"""Learners: scikit-learn estimators that join solvers for the codes to the dictionary update."""

from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.estimators import BatchCSC, OnlineCSC
from pointillist.learners.step import Ridge

__all__ = ["BatchCSC", "FilterUpdate", "OnlineCSC", "Ridge", "Robust"]
