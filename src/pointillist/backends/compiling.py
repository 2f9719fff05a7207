from functools import partial

from numba import njit

kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
helper = partial(njit, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
spliced = njit(nogil=True, inline="always")
