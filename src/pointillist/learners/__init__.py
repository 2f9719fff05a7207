"""Learners: scikit-learn estimators that join solvers for the codes to the dictionary update."""

from pointillist.dictionary.robust import Robust
from pointillist.dictionary.update import FilterUpdate
from pointillist.learners.batch import BatchCSC
from pointillist.learners.coding import Ridge
from pointillist.learners.online import OnlineCSC

__all__ = ["BatchCSC", "FilterUpdate", "OnlineCSC", "Ridge", "Robust"]
