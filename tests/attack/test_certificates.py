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
