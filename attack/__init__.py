"""Attacks on the package: mutated files, odd calls, adversarial problems and faults, each by seeds that repeat.

``python -m attack`` runs them for a time, goes on where an earlier run stopped, and keeps whatever reproduces a finding.
"""
