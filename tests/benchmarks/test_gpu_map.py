"""The map on a device, without one: NumPy stands for CuPy, and SPORCO or a coder that knows the answer for its port."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft
from benchmarks.gpu import EXPERIMENTS
from benchmarks.gpu_map import SIDES, TOLERANCES, Point, device_map, filters_of, leads, measure, points
from benchmarks.gpu_tuned import Port, Problem, batches, iterations_to, judge_of, rate, smallest, tune
from benchmarks.reach import EXCESS, Task, optimum_of
from benchmarks.tables import Table
from benchmarks.tuned import objective, quickest

import pointillist as pt

PENALTY = 0.2
PORT = Port(np, "sporco", lambda: None, lambda: 4e5)


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((4, 3, 3))
    filters /= np.linalg.norm(filters, axis=(1, 2), keepdims=True)
    return Task(rng.standard_normal((3, 16, 15)).astype(np.float32), filters.astype(np.float32), PENALTY, "circular")


@pytest.fixture(scope="module")
def problem(task):
    return Problem(task.images, task.filters, PENALTY, optimum_of(task).objective)


@pytest.fixture(scope="module")
def inputs(task):
    larger = np.random.default_rng(1).standard_normal((2, 11, 11)).astype(np.float32) / 11
    patches = np.random.default_rng(2).standard_normal((8, 20, 20)).astype(np.float32)
    images = np.tile(task.images, (1, 2, 2))
    return SimpleNamespace(
        train=images[:2], unseen=images[2:], filters=larger, patches=lambda split, count: patches[:count]
    )


@pytest.fixture(scope="module")
def codes(task):
    """Optimal codes (H, W, 1, n, K) in SPORCO's order, at the corners of the filters."""
    centred = np.stack(task.solve(pt.solvers.CoordinateDescent(tol=1e-5)).codes.to_dense())
    return np.roll(centred, (-1, -1), (-2, -1)).transpose(2, 3, 0, 1)[:, :, None]


@dataclass(frozen=True)
class KnowingPort(Port):
    """Its codes halve their distance to the optimum every few iterations: 4 at ρ = 2, more at others."""

    codes: np.ndarray = None

    def solver(self, images, filters, penalty, rho, iterations, **options):
        shown = self.codes[:, :, :, np.linspace(0, self.codes.shape[3] - 1, images.shape[-1]).astype(int)]
        coder, halving = SimpleNamespace(k=0, Y=None), 4 * max(rho / 2, 2 / rho)

        def solve():
            for coder.k in range(iterations):
                coder.Y = shown * (1 - 0.5 ** ((coder.k + 1) / halving))
                if options.get("Callback") and options["Callback"](coder):
                    break

        coder.solve = solve
        return coder


@pytest.fixture(scope="module")
def knowing(codes):
    return KnowingPort(np, "", lambda: None, lambda: 4e5, codes)


def test_the_judge_is_the_exact_objective(task, problem, codes):
    rough = np.asarray(0.9 * codes, np.float32)
    spectra = scipy.fft.rfft2(task.filters.astype(np.float64), s=(16, 15)).transpose(1, 2, 0)
    each = [objective(task.images[i].astype(np.float64), spectra, rough[:, :, 0, i], PENALTY) for i in range(3)]
    excess = judge_of(PORT, problem)
    assert excess(rough) == pytest.approx(np.mean(each / problem.optimum - 1), rel=1e-9)
    assert 0 <= excess(codes) < 1e-5


def test_iterations_are_the_fewest_after_which_the_mean_excess_is_small(sporco, problem):
    count = iterations_to(PORT, problem, 1.0, 200, 100)
    excess = judge_of(PORT, problem)

    def after(iterations):
        solver = PORT.solver(PORT.moved(problem.images), PORT.moved(problem.filters), PENALTY, 1.0, iterations)
        solver.solve()
        return excess(solver.getcoef())

    assert after(count) <= EXCESS < after(count - 1)
    assert iterations_to(PORT, problem, 1.0, count - 1, 100) is None
    assert iterations_to(PORT, problem, 1.0, count, 1) == count  # the last one is always looked at
    assert iterations_to(PORT, problem, 1.0, 0, 100) is None


def test_sporco_is_tuned_and_timed(sporco, problem):
    best = tune(PORT, problem, 200, shares=(0.2, 0.02))
    assert best.reached
    assert best.iterations <= iterations_to(PORT, problem, 2.2, 200, 100)
    found = rate(PORT, problem, best)
    assert found.images > 0
    assert found.batch in batches(PORT, problem)


def test_the_best_parameter_is_found_by_a_coder_that_knows_it(knowing, problem):
    best = tune(knowing, problem, 400, shares=(0.2, 0.02))
    assert best.reached
    assert best.rho == pytest.approx(2.2)  # a fifth of 50 λ + 1, whose neighbours are further from 2
    assert best.iterations == iterations_to(knowing, problem, 2.2, 400, 100)


def test_what_is_out_of_reach_is_said_to_be(knowing, problem):
    assert tune(knowing, problem, 3, shares=(0.2,)) == (0.2 * 11, 3, False)


def test_neighbours_are_tried_while_they_are_better():
    asked = {}

    def needed(rho, most):
        asked[round(rho, 2)] = most
        count = int(10 + abs(np.log(rho / 5)) * 20)
        return count if count <= most else None

    best, tried = quickest(needed, 10.0, 100, (0.2, 0.1, 1.0))
    assert best == (pytest.approx(10 / 1.5**2), 12)
    assert tried == {"2": 28, "1": None, "10": 23, "6.67": 15, "4.44": 12, "2.96": None}
    assert asked[1.0] == 27  # cut short where it needs more than the best so far
    assert quickest(lambda rho, most: None, 10.0, 100, (0.2,)) == (None, {"2": None})


def test_a_larger_batch_must_be_clearly_quicker():
    assert smallest({10: 1.0, 40: 0.99, 160: 0.97}) == 160
    assert smallest({10: 1.0, 40: 0.99, 160: 0.985}) == 10


def test_batches_fit_into_memory(problem):
    codes = 4 * 4 * 16 * 15
    ports = [Port(np, "", lambda: None, lambda n=n: n * 20 * codes) for n in (1e9, 600, 0)]
    assert [batches(port, problem) for port in ports] == [[250, 1000, 4000], [250, 600], [1]]


def test_every_point_is_measured_once():
    names = points()
    assert len(names) == 4 + 5 + 4
    assert list(names.values())[:5] == ["λ = 1", "λ = 0.3", "λ = 0.1", "λ = 0.03", "5×5"]
    assert names[Point(0.1, count=400)] == "400 filters, λ = 0.1"
    assert all(point.images in (512, 1024, 2048) for point in names)


def test_a_row_has_both_leads(monkeypatch, sporco, inputs):
    monkeypatch.setattr("benchmarks.gpu_map.some_filters", lambda inputs, count: inputs.filters)
    row = measure(inputs, Point(0.2), Port(np, "sporco", lambda: None, lambda: 1e6), "cpu", quick=True)
    assert row["lead"] == pytest.approx(row["ours images/s"] / row["SPORCO images/s"])
    assert row["certified lead"] == pytest.approx(row["certified images/s"] / row["SPORCO images/s"])
    assert "× ADMM, ρ = " in row["SPORCO setting"]
    assert "not reached" not in row["SPORCO setting"]
    assert float(row["our tolerance"]) in TOLERANCES
    assert row["optimum certified to"] <= 1e-4
    assert 0 < row["codes a pixel"] < 2


def test_without_sporco_and_with_a_refused_size_there_are_rows(monkeypatch, inputs):
    monkeypatch.setattr("benchmarks.gpu_map.missing", lambda: "sporco.cupy finds no device")
    chosen = {Point(side=5): "5×5", Point(side=31): "31×31"}
    monkeypatch.setattr("benchmarks.gpu_map.points", lambda: chosen)

    def refusing(inputs, side, n_patches, device):
        if side == 31:
            raise ValueError("filters of 1×(1, 31, 31) do not fit a block's shared memory")
        return filters_of(inputs, side, n_patches, device)

    monkeypatch.setattr("benchmarks.gpu_map.filters_of", refusing)
    monkeypatch.setattr(Point, "images", property(lambda self: 3))
    monkeypatch.setattr("benchmarks.gpu_map.N_PATCHES", 4)
    rows = device_map(inputs, "cpu", quick=False)
    table = Table.of("T", rows)
    assert [row[table.columns.index("case")] for row in table.rows] == ["5×5", "31×31"]
    assert rows[0]["SPORCO setting"] == "not run: sporco.cupy finds no device"
    assert rows[0]["ours images/s"] > 0
    assert rows[0]["lead"] is None
    assert rows[1]["our tolerance"].startswith("refused: filters of 1×(1, 31, 31)")
    assert leads(rows) == []


def test_maps_show_what_was_measured():
    rows = [
        {"λ": 1.0, "filter side": 11, "filters": 100, "lead": 9.0, "certified lead": 4.0},
        {"λ": 0.1, "filter side": 11, "filters": 400, "lead": 8.0, "certified lead": None},
    ]
    by_penalty, by_size, by_number = leads(rows)
    assert by_penalty["rows"] == ["to 0.1%", "certified to 0.1%"]
    assert by_penalty["values"] == [[9.0, None, None, None], [4.0, None, None, None]]
    assert by_size["values"][0][SIDES.index(11)] == 9.0
    assert by_number["rows"][2] == "λ = 0.1, to 0.1%"
    assert by_number["values"] == [[None, 9.0, None], [None, 4.0, None], [None, None, 8.0], [None, None, None]]


def test_it_is_an_experiment_with_a_title():
    assert device_map in EXPERIMENTS
    assert all(str(one.__doc__).splitlines()[0].endswith(".") for one in EXPERIMENTS)
