"""Kernels by their parameters."""

import numpy as np
import pytest

from pointillist.restore import gaussian_kernel, motion_kernel


@pytest.mark.parametrize(("length", "angle"), [(1, 0), (5, 30), (12.5, 90), (7, 171)])
def test_a_motion_has_its_length_and_angle(length, angle):
    kernel = motion_kernel(length, angle)
    assert kernel.sum() == pytest.approx(1)
    np.testing.assert_allclose(kernel, kernel[::-1, ::-1], atol=0.02)
    rows, columns = np.indices(kernel.shape) - (len(kernel) - 1) / 2
    spread = np.array([[np.sum(kernel * a * b) for a in (columns, -rows)] for b in (columns, -rows)])
    along = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    assert along @ spread @ along == pytest.approx(length**2 / 12, abs=0.45)
    assert abs(along @ spread @ [-along[1], along[0]]) < 0.1


def test_a_gaussian_has_its_deviation():
    kernel = gaussian_kernel(2.0)
    offsets = np.arange(len(kernel)) - (len(kernel) - 1) / 2
    assert kernel.sum() == pytest.approx(1)
    assert np.sum(kernel.sum(axis=0) * offsets**2) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("sigma", [0, -1, np.nan, np.inf])
def test_bad_widths(sigma):
    with pytest.raises(ValueError, match="sigma must be positive"):
        gaussian_kernel(sigma)


@pytest.mark.parametrize(("length", "angle"), [(0.5, 0), (np.nan, 0), (5, np.inf), (2000, 0)])
def test_bad_motions(length, angle):
    with pytest.raises(ValueError, match=r"length must lie in|angle must be a finite"):
        motion_kernel(length, angle)
