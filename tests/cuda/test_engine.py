"""Circular signals as a device pads them, checked on the host against the geometry of the CPU."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from pointillist.cuda import engine
from pointillist.cuda.device import source
from pointillist.cuda.plan import as_volume, make_plan
from pointillist.problem import Geometry

CASES = [((9,), (4,)), ((7, 10), (3, 6)), ((5, 6, 8), (5, 1, 4))]


def _geometry(case):
    return Geometry(*case, 2, "circular")


def _padded(geometry, rng):
    return rng.standard_normal((2, *as_volume(geometry.padded)))


@pytest.mark.parametrize("case", CASES)
def test_signals_continue_around(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    signal = rng.standard_normal((2, *geometry.signal))
    padded = np.zeros((2, *as_volume(geometry.padded)))
    offset, lengths = as_volume(geometry.offset, 0), as_volume(geometry.signal)
    inside = tuple(slice(o, o + n) for o, n in zip(offset, lengths, strict=True))
    padded[(slice(None), *inside)] = signal.reshape(2, *lengths)
    engine.continue_around(padded, lengths, offset)
    np.testing.assert_array_equal(padded.ravel(), geometry.spread(signal)[: padded.size])


@pytest.mark.parametrize("case", CASES)
def test_folding_is_what_the_cpu_does_and_the_adjoint_of_extending(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    lengths = as_volume(geometry.signal)
    core = tuple(slice(n) for n in lengths)
    folded, extended = _padded(geometry, rng), _padded(geometry, rng)
    before, other = folded.copy(), extended.copy()
    engine.fold(folded, lengths)
    engine.extend(extended, lengths)
    inner = np.sum(folded[(slice(None), *core)] * other[(slice(None), *core)])
    assert np.sum(before * extended) == pytest.approx(inner, rel=1e-12)
    turned = np.roll(folded[(slice(None), *core)], tuple(-o for o in as_volume(geometry.offset, 0)), (1, 2, 3))
    flat = np.concatenate([before.ravel(), np.zeros(geometry.padded_length - before.size)])
    np.testing.assert_allclose(turned.reshape(2, *geometry.signal), geometry.gather(flat), atol=1e-12)
    assert np.sum(folded != 0) == np.prod(turned.shape), "nothing is left behind the circle"


@pytest.mark.parametrize("case", CASES)
def test_changes_of_both_copies_are_joined(case):
    geometry, rng = _geometry(case), np.random.default_rng(0)
    lengths, array, change = as_volume(geometry.signal), _padded(geometry, rng), _padded(geometry, rng)
    engine.extend(array, lengths)
    start = array.copy()
    seams = engine.Seams(array, lengths, engine.AXES)
    array += change
    seams.join()
    engine.fold(change, lengths)
    engine.extend(change, lengths)
    np.testing.assert_allclose(array, start + change, atol=1e-12)


def test_what_lies_behind_is_cleared():
    array = np.ones((1, 1, 5, 7))
    engine.clear(array, (1, 4, 5))
    assert array.sum() == 20


class Array(np.ndarray):
    """A NumPy array in the place of one of CuPy's."""

    def get(self):
        return np.asarray(self)


class HostDevice:
    """A device whose arrays are NumPy's, and whose kernels only record with how many arguments they are launched."""

    has_tensor_cores = True
    cupy = SimpleNamespace(**vars(np))
    cupy.zeros = lambda *given: np.zeros(*given).view(Array)
    cupy.asarray = lambda *given: np.asarray(*given).view(Array)

    def __init__(self, shared_limit=227 * 1024):
        self.launched, self.shared_limit = {}, shared_limit

    def use(self):
        return nullcontext()

    def upload(self, arrays):
        return np.stack(arrays)

    def upload_all(self, arrays):
        return arrays

    def kernel(self, name, shape, flags, shared):
        def launch(grid, threads, arguments, shared_mem):
            self.launched[name] = len(arguments)

        return launch


def _parameters():
    """How many parameters each kernel of the sources takes."""
    kernels = re.findall(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(([^)]*)\)', source())
    return {name: parameters.count(",") + 1 for name, parameters in kernels}


@pytest.mark.parametrize("shared_limit", [227 * 1024, 20 * 1024])
@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("sampled", [False, True])
def test_kernels_are_launched_with_as_many_arguments_as_they_take(shared_limit, around, sampled):
    """What they compute is tested where there is a device."""
    device, size = HostDevice(shared_limit), (1, 5, 5)
    grid = (1, 90, 90)
    plan = make_plan(grid, size, 1, 4, shared_limit, around=around)
    sample = np.arange(0, 4 * plan.n_positions, 3) if sampled else None
    engine_ = engine.Engine(device, plan, np.ones((4, 1, *size)), np.ones((4, 1)), (0, 2, 2), sample=sample)
    space = grid[1:] if around else (94 - 4, 94 - 4)
    group = engine.SignalGroup(engine_, [np.ones((1, *space), np.float32)] * 2)
    active = np.arange(2)
    group.begin([np.array([0, 3]), np.array([6])], [np.ones(2), np.ones(1)])
    group.look(active, engine_.has_tensor_scan)
    group.look(active)
    group.enlarge(active, 2, np.ones(2))
    group.descend(active, np.full(2, 1.0), np.ones(2), 2, 1)
    group.prune(active, 0.1)
    group.codes[...], group.values[...] = 0, 0
    expected = {"appraise"} if engine_.appraises else {"fill", "subtract", "finish"}
    expected |= {"measure", "scan", "boxes", "enlarge", "descend", "prune"} | ({"mark"} if sampled else set())
    assert expected <= set(device.launched)
    parameters = _parameters()
    assert {name: parameters[name] for name in device.launched} == device.launched
