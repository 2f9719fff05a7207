"""Compiled kernels. Nothing above this package knows numba; nothing in it knows problems or learners."""
