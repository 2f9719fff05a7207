"""The attack on certificates: all twists occur, seeds repeat, and a wrong certificate is found."""

from dataclasses import replace

import numpy as np
import pytest

import pointillist as pt
from attack import certificates, twists


def test_all_twists_occur_and_a_seed_repeats_them():
    drawn = [certificates.quietly(lambda seed=seed: twists.draw(seed)) for seed in range(60)]
    assert {name for _, names in drawn for name in names} == set(twists.TWISTS)
    again, names = certificates.quietly(lambda: twists.draw(7))
    assert names == drawn[7][1]
    for one, other in zip(again["signals"], drawn[7][0]["signals"], strict=True):
        np.testing.assert_array_equal(one, other)


def test_magnitudes_reach_far():
    sizes = {"float32": [], "float64": []}
    for seed in range(300):
        kind = (np.float32, np.float64)[seed % 2]
        problem = {"signals": np.ones((1, 5), kind), "filters": np.ones((1, 2), kind), "weights": None, "penalty": 1.0}
        twists.magnitudes(np.random.default_rng(seed), problem)
        sizes[problem["signals"].dtype.name].append(float(np.max(problem["signals"])))
    for name, reach in twists.REACH.items():
        assert np.isfinite(sizes[name]).all()
        assert np.log10(min(sizes[name])) < 0.9 * -reach
        assert np.log10(max(sizes[name])) > 0.9 * reach


RNG = np.random.default_rng(0)
PROBLEM = {
    "signals": RNG.standard_normal((2, 40)), "filters": RNG.standard_normal((2, 5)),
    "penalty": 0.5, "weights": None, "boundary": "same", "solver": pt.solvers.CoordinateDescent(tol=1e-2), "channels": False,
    "nonnegative": False, "sampling": 1.0, "n_jobs": 1,
}  # fmt: skip


def _boasting(result):
    return replace(result, gap=np.zeros_like(result.gap), objective=result.objective)


def _early(result):
    return replace(result, gap=result.gap + 1)


def _not_finite(result):
    return replace(result, objective=result.objective * np.inf)


def _rounded(result):
    return replace(result, objective=result.objective * (1 + 1e-8))


def _shifted(result):
    return replace(result, residuals=[one + 1e-3 for one in result.residuals])


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (_boasting, "bound"),
        (_early, "bound"),
        (_not_finite, "not finite"),
        (_rounded, "objective"),
        (_shifted, "residual"),
    ],
)
def test_wrong_certificates_are_found(change, kind):
    result = pt.encode(**PROBLEM)
    assert not list(certificates.faults(PROBLEM, result))
    assert kind in [found for found, _, _ in certificates.faults(PROBLEM, change(result))]


def test_refusals_are_faults_unless_there_is_a_reason():
    error = ValueError("signals[0] is too large")
    assert not certificates.refusable(PROBLEM, error)
    assert certificates.refusable({**PROBLEM, "filters": np.ones((1, 50))}, error)
    assert certificates.refusable(PROBLEM, ValueError("signals[0] has codes that float32 cannot hold"))


def test_a_problem_that_is_refused_is_found(monkeypatch):
    def refuse(**given):
        raise ValueError("signals must be something else")

    monkeypatch.setattr(pt, "encode", refuse)
    assert [kind for kind, _, _ in certificates.examined(PROBLEM)] == ["refused"]
