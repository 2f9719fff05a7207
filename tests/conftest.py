"""What several test modules share: independent dense references, drawn problems and where the paper's data lie.

Nothing here uses the package's own kernels to say what is right: matrices come from scipy's convolutions, optima from
scikit-learn's coordinate descent.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.signal
from hypothesis import settings
from sklearn.linear_model import Lasso

from pointillist.codes import SparseCodes
from pointillist.dictionary.statistics import CodedBatch, make_statistics
from pointillist.problem import Geometry, Problem, broadcast_penalty, certificate
from pointillist.sampling import Sample

settings.register_profile("pointillist", deadline=None, max_examples=25, derandomize=True, database=None)
settings.load_profile("pointillist")


def _convolve(codes, filter_, boundary):
    """One channel of one filter, by scipy: what the boundary's name means."""
    if boundary == "circular":
        padded = np.zeros(codes.shape)
        padded[tuple(slice(f) for f in filter_.shape)] = filter_
        centre = [-((f - 1) // 2) for f in filter_.shape]
        padded = np.roll(padded, centre, tuple(range(filter_.ndim)))
        return np.fft.ifftn(np.fft.fftn(codes) * np.fft.fftn(padded)).real
    mode = {"valid": "full", "same": "same", "full": "valid"}[boundary]
    return scipy.signal.convolve(codes, filter_, mode=mode, method="direct")


def _synthesise(codes, filters, boundary):
    """Signal (channels, *space) of dense codes (n_filters, *grid), in float64."""
    codes, filters = np.asarray(codes, np.float64), np.asarray(filters, np.float64)
    return np.stack(
        [
            sum(_convolve(code, one[c], boundary) for code, one in zip(codes, filters, strict=True))
            for c in range(filters.shape[1])
        ]
    )


def _dense_matrix(filters, geometry, codes=None):
    """D as (channels · samples, n_filters · positions), or the columns of some codes."""
    n_positions, columns = int(np.prod(geometry.grid)), []
    for j in range(len(filters) * n_positions) if codes is None else codes:
        k, position = divmod(int(j), n_positions)
        code = np.zeros(geometry.grid)
        code.ravel()[position] = 1
        columns.append(_synthesise(code[None], filters[k : k + 1], geometry.boundary).ravel())
    return np.array(columns).T


def _lasso(matrix, signal, penalty, weights=None, nonnegative=False):
    """Optimal codes and objective, by scikit-learn on rescaled columns and rows, to 1e-12 of the signal's energy."""
    n_codes = matrix.shape[1]
    penalty = np.broadcast_to(np.asarray(penalty, np.float64), (n_codes,))
    x = np.asarray(signal, np.float64).ravel()
    w = np.ones(x.size) if weights is None else np.asarray(weights, np.float64).ravel()
    scaled = np.sqrt(w)[:, None] * matrix / penalty
    solver = Lasso(alpha=1 / x.size, fit_intercept=False, tol=1e-12, max_iter=200_000, positive=nonnegative).fit(
        scaled, np.sqrt(w) * x
    )
    codes = solver.coef_ / penalty
    objective = 0.5 * np.sum(w * (x - matrix @ codes) ** 2) + np.sum(penalty * np.abs(codes))
    return SimpleNamespace(codes=codes, objective=float(objective))


def _filters(rng, n_filters, channels, size, dtype=np.float64):
    drawn = rng.standard_normal((n_filters, channels, *size))
    norms = np.sqrt(np.sum(drawn.reshape(n_filters, -1) ** 2, axis=1))
    return (drawn / norms.reshape(-1, *([1] * (drawn.ndim - 1)))).astype(dtype)


def _problem(rng, signal, size, *, n_filters=3, channels=1, boundary="same", weights=None, penalty=None, **more):
    """A random `Problem` and one signal for it; the penalty is a fifth of the one that gives zero."""
    dtype = more.pop("dtype", np.float64)
    sample = more.pop("sample", None)
    more["drawn"] = None if sample is None else Sample(flat=sample)
    geometry = Geometry(signal, size, channels, boundary)
    filters = _filters(rng, n_filters, channels, size, dtype)
    x = rng.standard_normal((channels, *signal)).astype(dtype)
    if weights == "mask":
        weights = (rng.random((channels, *signal)) < 0.7).astype(dtype)
    elif weights == "uneven":
        weights = (3 * rng.random((channels, *signal))).astype(dtype)
    price = broadcast_penalty(0.4 if penalty is None else penalty, n_filters, geometry)
    return Problem(filters=filters, geometry=geometry, penalty=price, weights=weights, **more), x


def _add(sums, problem, signal, indices, values, residual, weight):
    """Add one coded signal to statistics."""
    codes = SparseCodes([indices], [values], [problem.geometry.grid], problem.n_filters)
    weights = None if problem.weights is None else [problem.weights]
    batch = CodedBatch([signal], weights, codes, [residual], problem.geometry.boundary)
    sums.add(batch, problem.filters, np.array([weight]))


def _coded(rng, signal, size, share=0.1, **how):
    """A problem, a signal and codes that are not optimal for it, with the residual they leave."""
    problem, x = _problem(rng, signal, size, **how)
    indices = np.flatnonzero(rng.random(problem.n_filters * problem.geometry.n_positions) < share)
    values = rng.standard_normal(len(indices)).astype(x.dtype)
    return problem, x, indices, values, certificate(problem, 0, x, indices, values).residual.astype(x.dtype)


def _sums(kind, seed, signal, size, *, n_filters=4, channels=1, n_signals=3, **how):
    """Statistics of some random signals with random codes."""
    rng, sums = np.random.default_rng(seed), make_statistics(kind, n_filters, channels, size)
    for _ in range(n_signals):
        _add(sums, *_coded(rng, signal, size, n_filters=n_filters, channels=channels, **how), 1.0)
    return sums


def _surrogate(sums, filters):
    """½ dᵀCd − Bᵀd, which is ½ Σ w (x − Zd)² or what majorises it but for a constant."""
    quadratic = sum(np.vdot(one, sums.product(filters.astype(np.float64), k)) for k, one in enumerate(filters))
    return 0.5 * quadratic - np.vdot(filters.astype(np.float64), sums.linear)


def _swept(filters, sums, constraints, n_sweeps=1, **how):
    """Filters after some sweeps of statistics."""
    for _ in range(n_sweeps):
        filters = sums.sweep(filters, constraints, **how)
    return filters


def _matched(found, planted):
    """For each planted filter the largest |cosine| with any found filter over all shifts (in 1 or more dimensions)."""
    best = np.zeros(len(planted))
    for i, truth in enumerate(planted):
        for guess in found:
            correlation = scipy.signal.correlate(guess, truth, mode="full", method="direct")
            norm = np.linalg.norm(guess) * np.linalg.norm(truth)
            best[i] = max(best[i], np.max(np.abs(correlation)) / max(norm, 1e-12))
    return best


@pytest.fixture(scope="session")
def reference():
    """Independent slow answers: `synthesise`, `matrix`, `lasso`; `filters` and `problem` draw; `matched` compares."""
    return SimpleNamespace(
        synthesise=_synthesise,
        matrix=_dense_matrix,
        lasso=_lasso,
        filters=_filters,
        problem=_problem,
        add=_add,
        coded=_coded,
        sums=_sums,
        swept=_swept,
        surrogate=_surrogate,
        matched=_matched,
    )


@pytest.fixture(scope="session")
def paper_data():
    """The folder of the paper's images; skips where it is not at hand."""
    folder = os.environ.get("POINTILLIST_DATA")
    if not folder:
        pytest.skip("POINTILLIST_DATA does not name the folder with the paper's images")
    path = Path(folder)
    if not (path / "fruit_normalised.npz").is_file():
        pytest.skip(f"{path} holds no fruit_normalised.npz")
    return path


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the documentation's site, built without a warning."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed: pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Make what was captured fit to be sent between processes: some tests print text that has no encoding."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report
