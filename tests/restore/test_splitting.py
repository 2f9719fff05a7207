"""The turns of a linear step and a coding: the step against a dense solve, the codes against what they must explain."""

import numpy as np
import pytest

from pointillist.codes import SparseCodes
from pointillist.problem import Geometry
from pointillist.restore.blur import Blur
from pointillist.restore.engine import Settings, convolution, synthesise
from pointillist.restore.splitting import Blurred, code_in_turns

RNG = np.random.default_rng(0)


def blurred_detail(boundary, kernel=(4, 3), size=(3, 5), shape=(2, 9, 8)):
    weights = (RNG.random(shape) < 0.8).astype(np.float32)
    detail = RNG.standard_normal(shape).astype(np.float32)
    return Blurred(detail, weights, Blur(RNG.random(kernel) / np.prod(kernel)), size, boundary)


def matrix(blurred):
    """What is seen of each sample of the area: samples × (area's samples), by the definition of the blur."""
    shape, kernel = blurred.detail.shape, blurred.blur.kernel
    seen = Geometry(shape[1:], blurred.blur.extended(blurred.size), 1, blurred.boundary)
    dense = np.zeros((*shape[1:], *blurred.area))
    for row, column, i, j in np.ndindex(*shape[1:], *kernel.shape):
        down, right = row + seen.offset[0] - i, column + seen.offset[1] - j
        if 0 <= down < blurred.area[0] and 0 <= right < blurred.area[1]:
            dense[row, column, down, right] += kernel[i, j]
    return dense.reshape(np.prod(shape[1:]), -1)


@pytest.mark.parametrize("boundary", ["full", "same"])
@pytest.mark.parametrize("kernel", [(4, 3), (7, 1)])
def test_the_linear_step_agrees_with_a_dense_solve(boundary, kernel):
    blurred, rho = blurred_detail(boundary, kernel), 0.1
    target = RNG.standard_normal((2, *blurred.area)).astype(np.float32)
    found = blurred.nearest(np.zeros_like(target), target, rho, 40)
    dense = matrix(blurred)
    for i in range(2):
        weights = blurred.weights[i].ravel()
        normal = dense.T * weights @ dense + rho * np.eye(dense.shape[1])
        right = dense.T @ (weights * blurred.detail[i].ravel()) + rho * target[i].ravel()
        np.testing.assert_allclose(found[i].ravel(), np.linalg.solve(normal, right), atol=1e-3)


@pytest.mark.parametrize("boundary", ["full", "same"])
def test_codes_have_the_places_of_blurred_filters(boundary):
    plain = RNG.standard_normal((3, 1, 5, 5)).astype(np.float32)
    plain /= np.linalg.norm(plain, axis=(2, 3), keepdims=True)
    blur, shape = Blur(np.full((3, 2), 1 / 6)), (1, 40, 36)
    settings = Settings(boundary, tol=0.05)
    operator = convolution(blur.filters(plain), shape, settings)
    places = RNG.choice(operator.geometry.n_positions * 3, 12, replace=False)
    places.sort()
    values = RNG.choice([-1.0, 1.0], 12).astype(np.float32)
    detail = operator.synthesise(places, values)
    found = code_in_turns(Blurred(detail, np.ones_like(detail), blur, (5, 5), boundary), plain, 1e-4, settings)
    seen = operator.synthesise(found.codes.indices[0], found.codes.values[0])
    assert np.linalg.norm(seen - detail) < 0.1 * np.linalg.norm(detail)
    assert found.gap.max() <= 0.05
    sharp = synthesise(found.codes, plain, [shape], blur, boundary)[0]
    right = synthesise(SparseCodes([places], [values], found.codes.grids, 3), plain, [shape], blur, boundary)[0]
    assert np.linalg.norm(sharp - right) < 0.5 * np.linalg.norm(right)
