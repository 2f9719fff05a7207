"""Learners: scikit-learn estimators that join solvers for the codes to the dictionary update."""

from pointillist.learners.batch import BatchCSC
from pointillist.learners.online import OnlineCSC

__all__ = ["BatchCSC", "OnlineCSC"]
