"""Solvers for the codes, behind one protocol: `prepare(problem)` once, `solve(state, signals)` often."""

from pointillist.solvers.admm import FrequencyADMM, SampledADMM
from pointillist.solvers.base import Result, Solver, Status
from pointillist.solvers.coordinate_descent import CoordinateDescent

__all__ = ["CoordinateDescent", "FrequencyADMM", "SampledADMM", "Solver"]  # what `pt.solvers` shows
