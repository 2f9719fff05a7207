"""Attacks on the package: strange files, odd calls, hard problems, faults: ``python -m attack --help``."""
