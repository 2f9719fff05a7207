"""Tests of functions that are compiled as a part of kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import types
from numba.core.compiler_lock import global_compiler_lock

from pointillist.kernels.compiling import kernel
from pointillist.kernels.routines import routine, short_routine

_KEPT = """
from pointillist.kernels.compiling import kernel
from pointillist.kernels.routines import routine

@routine
def twice(value):
    return 2 * value

@kernel
def apply(value):
    return twice(value) + 1

assert apply(3) == 7
print(sum(apply.stats.cache_hits.values()), len(twice.overloads))
"""


@pytest.mark.parametrize("decorated", [routine, short_routine])
def test_routines_compute_what_their_functions_do(decorated):
    @decorated
    def square(values, n):
        return values[n] * values[n]

    @decorated
    def squares(values):
        total = 0.0
        for n in range(len(values)):
            total += square(values, n)
        return total

    @kernel
    def length(values, out):
        out[0] = np.sqrt(squares(values)) + square(values, 0)

    for dtype in (np.float32, np.float64):
        out = np.zeros(1, dtype)
        length(np.array([3, 4], dtype), out)
        assert out[0] == 14


def test_a_routine_has_no_machine_code_of_its_own_and_stays_a_call():
    @routine
    def twice(value):
        return 2 * value

    @kernel
    def apply(value):
        return twice(value)

    twice.compile((types.int64,))
    (part,) = twice.overloads.values()
    with global_compiler_lock:
        assert not part.library.get_pointer_to_function(part.fndesc.llvm_func_name)
    assert apply(3) == 6
    assert f"call i32 @{part.fndesc.llvm_func_name}" in apply.inspect_llvm(apply.signatures[0])


def test_errors_of_routines_reach_python():
    @routine
    def inverse(value):
        return 1 // value

    @kernel
    def apply(value):
        return inverse(value)

    assert apply(1) == 1
    with pytest.raises(ZeroDivisionError):
        apply(0)


def test_kernels_on_disk_hold_their_routines(tmp_path):
    """A second process finds the kernel together with what it calls, and compiles nothing."""
    script = tmp_path / "kept.py"
    script.write_text(_KEPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["0", "1"], ["1", "0"]]
