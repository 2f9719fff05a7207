"""The map on a tiny problem: SPORCO is tuned and counted rightly, and a point has both leads."""

import json

import benchmarks.map
import numpy as np
import pytest
import scipy.fft
from benchmarks.context import Context
from benchmarks.map import Case, Outcome, filters_of, measure, mosaic
from benchmarks.reach import EXCESS, Task, optimum_of
from benchmarks.tables import heat_map
from benchmarks.tuned import SHARES, best_rho, iterations_to, objective, tune

import pointillist as pt

PENALTY = 0.2


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((4, 3, 3))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    return Task(rng.standard_normal((2, 16, 15)).astype(np.float32), filters.astype(np.float32), PENALTY, "circular")


def spectra_of(task):
    return scipy.fft.rfft2(task.filters.astype(np.float64), s=task.images.shape[1:]).transpose(1, 2, 0)


def test_the_objective_is_ours(task):
    found = task.solve(pt.solvers.CoordinateDescent(tol=1e-4))
    centred = found.codes.to_dense()[0].transpose(1, 2, 0)
    codes = np.roll(centred, (-1, -1), (0, 1))  # from where a filter's centre lies to where its corner does
    value = objective(task.images[0].astype(np.float64), spectra_of(task), codes, PENALTY)
    assert value == pytest.approx(found.objective[0], rel=1e-6)


def test_iterations_are_those_that_the_returned_codes_need(sporco, task):
    image, optimum = task.images[0], optimum_of(task)
    level = float(optimum.objective[0] * (1 + EXCESS))
    tuned = tune(image, task.filters, PENALTY, level, 300, shares=(0.2, 1.0))
    assert tuned.reached
    (coding, count), *_ = tuned.settings
    assert count == min(n for name, n in tuned.tried.items() if n and name != "ADMM, AutoRho")

    def value(iterations):
        codes = np.squeeze(coding.encode(task.images[:1], task.filters, iterations, penalty=PENALTY))
        return objective(image.astype(np.float64), spectra_of(task), codes, PENALTY)

    assert value(count) <= level < value(count - 1)
    assert iterations_to(coding, image, task.filters, PENALTY, level, count - 1) is None


def test_a_level_that_is_out_of_reach_is_said_to_be(sporco, task):
    tuned = tune(task.images[0], task.filters, PENALTY, 0.0, 3, shares=(0.2,))
    assert not tuned.reached
    assert [count for _, count in tuned.settings] == [3]


def test_the_best_rho_is_the_fixed_one_with_the_fewest_iterations():
    assert best_rho({"ADMM, ρ = 10.2": 57, "ADMM, ρ = 5.1": 60, "ADMM, ρ = 2": None, "ADMM, AutoRho": 40}) == 10.2
    assert best_rho({"ADMM, ρ = 2": None, "ADMM, AutoRho": 40}) is None


def test_the_search_begins_where_an_earlier_run_ended(tmp_path, monkeypatch):
    points = {"T: 5×5": {"iterations": {"ADMM, ρ = 10.2": 57}}, "T: 7×7": {"iterations": {"ADMM, ρ = 10.2": None}}}
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"experiments": {"map": {"settings": {"points": points}}}}))
    monkeypatch.setattr("benchmarks.map.EARLIER", record)
    benchmarks.map.earlier.cache_clear()
    assert benchmarks.map.first_shares("T: 5×5", 1.0) == pytest.approx((0.2,))
    assert benchmarks.map.first_shares("T: 7×7", 1.0) == benchmarks.map.first_shares("T: 9×9", 1.0) == SHARES
    benchmarks.map.earlier.cache_clear()


@pytest.mark.parametrize(("signal", "size"), [((40,), (6,)), ((9, 8, 7), (3, 2, 3))])
def test_lines_and_volumes_are_points_too(sporco, monkeypatch, signal, size):
    monkeypatch.setattr("benchmarks.map.threads", lambda: 1)
    rng = np.random.default_rng(1)
    filters = rng.standard_normal((3, *size)).astype(np.float32) / np.sqrt(np.prod(size))
    case = Case("λ", rng.standard_normal((1, *signal)).astype(np.float32), filters.astype(np.float32), PENALTY)
    outcome = measure(case, limit=400, repeats=1, shares=(0.2,))
    assert outcome.reached
    assert 0 < outcome.density < 3


@pytest.mark.parametrize("n_images", [1, 2])
def test_a_point_has_both_leads(sporco, monkeypatch, task, n_images):
    monkeypatch.setattr("benchmarks.map.threads", lambda: 1)  # tiny transforms wait long for a busy second core
    case = Case("λ", task.images[:n_images], task.filters, PENALTY)
    outcome = measure(case, limit=200, repeats=1, shares=(0.2,))
    assert outcome.reached
    assert 0 < outcome.density < 4
    assert len(outcome.row()) == 10
    ways = "in one call" in outcome.their_setting or "one by one" in outcome.their_setting
    assert ways == (n_images > 1)


def test_leads_are_sporcos_time_over_ours():
    outcome = Outcome("λ", 0.1, 6.0, "3 × ADMM", False, 0.5, "2 rounds", 2.0, 90.0, {}, 1e-8)
    assert outcome.leads == (12.0, 3.0)
    assert outcome.row() == ["λ", 0.1, 6e3, "not reached: 3 × ADMM", 500.0, "2 rounds", 2e3, 12.0, 3.0, 90.0]


def test_a_mosaic_repeats_its_images():
    images = np.arange(3 * 4 * 4).reshape(3, 4, 4)
    made = mosaic(images, 7)
    assert made.shape == (7, 7)
    np.testing.assert_array_equal(made[:4, :4], images[0])
    np.testing.assert_array_equal(made[:4, 4:], images[1][:, :3])
    np.testing.assert_array_equal(made[4:, 4:], images[0][:3, :3])


def test_filters_of_another_size_have_it_and_no_more_than_unit_norm(tmp_path, monkeypatch):
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    context = Context(tmp_path, quick=True)
    context.inputs.__dict__["filters"] = np.random.default_rng(0).standard_normal((3, 11, 11)).astype(np.float32)
    filters = filters_of(context.inputs, 5, 4)
    assert filters.shape == (3, 5, 5)
    assert np.all(np.linalg.norm(filters, axis=(1, 2)) <= 1 + 1e-5)
    assert filters_of(context.inputs, 11) is context.inputs.filters


def test_filters_larger_than_patches_are_learned_from_several_put_together(tmp_path, monkeypatch):
    monkeypatch.delenv("POINTILLIST_DATA", raising=False)
    inputs = Context(tmp_path, quick=True).inputs
    inputs.__dict__["filters"] = np.random.default_rng(0).standard_normal((3, 11, 11)).astype(np.float32)
    side = inputs.patches("train", 1).shape[1] + 1
    assert filters_of(inputs, side, 4).shape == (3, side, side)


def test_heat_maps_count_their_values():
    made = heat_map("T", "λ", ["1", "0.1"], {"a": [1.0, None]})
    assert (made["rows"], made["values"]) == (["a"], [[1.0, None]])
    with pytest.raises(ValueError, match="T: 2 columns, got 1 values of a"):
        heat_map("T", "λ", ["1", "0.1"], {"a": [1.0]})
