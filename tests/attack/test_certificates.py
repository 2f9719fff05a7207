"""The attack on certificates: all twists occur, seeds repeat, and a wrong certificate is found."""

from dataclasses import replace

import numpy as np
import pytest

import pointillist as pt
from attack import certificates, twists

RNG = np.random.default_rng(0)
PROBLEM = {
    "signals": RNG.standard_normal((2, 40)), "filters": RNG.standard_normal((2, 5)),
    "penalty": 0.5, "weights": None, "boundary": "same", "solver": pt.solvers.CoordinateDescent(tol=1e-2), "channels": False,
    "nonnegative": False, "sampling": 1.0, "n_jobs": 1,
}  # fmt: skip


def test_all_twists_occur_and_a_seed_repeats_them():
    drawn = [certificates.quietly(lambda seed=seed: twists.draw(seed)) for seed in range(60)]
    assert {name for _, names in drawn for name in names} == set(twists.TWISTS)
    again, names = certificates.quietly(lambda: twists.draw(7))
    assert names == drawn[7][1]
    for one, other in zip(again["signals"], drawn[7][0]["signals"], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (lambda result: {"gap": np.zeros_like(result.gap)}, "bound"),
        (lambda result: {"gap": result.gap + 1}, "bound"),
        (lambda result: {"objective": result.objective * np.inf}, "not finite"),
        (lambda result: {"objective": result.objective * (1 + 1e-8)}, "objective"),
        (lambda result: {"residuals": [one + 1e-3 for one in result.residuals]}, "residual"),
    ],
)
def test_wrong_certificates_are_found(changed, kind):
    result = pt.encode(**PROBLEM)
    assert not list(certificates.faults(PROBLEM, result))
    wrong = replace(result, **{"objective": result.objective, **changed(result)})
    assert kind in [found for found, _, _ in certificates.faults(PROBLEM, wrong)]
