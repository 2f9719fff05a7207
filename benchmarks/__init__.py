"""Measurements of Pointillist beside SPORCO, in one run and on the same data: ``python -m benchmarks --help``."""
