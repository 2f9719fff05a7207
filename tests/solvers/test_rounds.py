"""The driver of the rounds, over working sets that follow a script."""

from types import SimpleNamespace

import numpy as np
import pytest

from pointillist.problem import Certificate, Geometry, Problem, broadcast_penalty
from pointillist.solvers import CoordinateDescent, Status
from pointillist.solvers import on_device as on_devices
from pointillist.solvers.encoding import encode, max_penalty
from pointillist.solvers.on_device import DeviceDescent, DeviceWorkingSets
from pointillist.solvers.rounds import Look, solve_by_rounds

GEOMETRY = Geometry((5,), (1,), 1, "same")
PROBLEM = Problem(filters=np.ones((2, 1, 1)), geometry=GEOMETRY, penalty=broadcast_penalty([2.0, 3.0], 2, GEOMETRY))


class Scripted:
    """Working sets whose looks find what the script says: (objective, gap, ratio) for each signal and round."""

    problem, epsilon = PROBLEM, 1e-3

    def __init__(self, *scripts, exact=None, eased=False):
        self.scripts, self.n_signals, self.exact, self.eased = scripts, len(scripts), exact, eased
        self.calls, self.rounds = [], 0

    def look(self, active, *, last):
        self.calls.append(("look", active.tolist(), last))
        return Look(*np.array([self.scripts[i][min(self.rounds, len(self.scripts[i]) - 1)] for i in active]).T)

    def enlarge(self, active, cell, floors):
        self.calls.append(("enlarge", active.tolist(), cell, floors.tolist()))

    def descend(self, active, targets, raised):
        self.calls.append(("descend", active.tolist(), targets.tolist(), raised.tolist()))
        self.rounds += 1

    def prune(self, active, share):
        self.calls.append(("prune", active.tolist()))

    def collect(self):
        self.calls.append(("collect",))
        return [np.array([i]) for i in range(self.n_signals)], [np.ones(1)] * self.n_signals

    def recheck(self, i, indices, values):
        self.calls.append(("recheck", i, indices.tolist()))
        return self.exact

    def residuals(self):
        self.calls.append(("residuals",))
        return [np.zeros((1, 5))] * self.n_signals

    def named(self, verb):
        return [call[1:] for call in self.calls if call[0] == verb]


def test_signals_end_one_by_one_and_the_others_go_on():
    sets = Scripted([(9, 0.5, 3), (8, 0.001, 1)], [(7, 0.01, 1)], [(9, 0.5, 2), (8, 0.5, 2), (7, 0.0, 1)])
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert [active for active, _ in sets.named("look")] == [[0, 1, 2], [0, 2], [2]]
    assert result.iterations.tolist() == [1, 0, 2]
    assert result.objective.tolist() == [8, 7, 7]
    assert result.gap.tolist() == [0.001, 0.01, 0.0]
    assert result.status is Status.CONVERGED
    assert [index.tolist() for index in result.codes.indices] == [[0], [1], [2]]
    assert not sets.named("recheck")
    assert not sets.named("prune")


def test_targets_and_cells_follow_the_settings():
    looks = [(9 - i, 0.5, ratio) for i, ratio in enumerate((3.0, 7.0, 7.0, 1.001, 1.1))]
    sets = Scripted([*looks, (1, 0.0, 1)])
    solve_by_rounds(sets, CoordinateDescent(tol=0.01, inner=0.1, cells=(4, 2)))
    targets = [target for _, (target,), _ in sets.named("descend")]
    # In the first rounds a violation counts as three penalties at most; targets are never less than four roundings.
    np.testing.assert_allclose(targets, [2 * 0.2, 2 * 0.3, 2 * 0.6, 2 * 4e-3, 2 * 0.01])
    assert [cell for _, cell, _ in sets.named("enlarge")] == [4, 2, 2, 2, 2]
    assert {floor for *_, (floor,) in sets.named("enlarge")} == {1.004}
    assert all(raised == [1.0] for *_, raised in sets.named("descend"))


def test_penalties_are_raised_to_a_part_of_the_largest_correlation():
    ratios = [(200.0, 150.0, 80.0, 3.0, 5.0, 1.5), (1.5,) * 6]
    sets = Scripted(*([(9 - i, 0.5, ratio) for i, ratio in enumerate(some)] for some in ratios), eased=True)
    solve_by_rounds(sets, CoordinateDescent(tol=0.01, inner=0.1, cells=(1,), max_iter=6))
    raised = np.array([raised for *_, raised in sets.named("descend")])
    # Two fifths of the correlation, but no more than six tenths of the last; the last round is for the penalty itself.
    expected = [0.6**-5, 0.6**-4, 0.6**-3, 1.2, 1.0, 1.0]
    np.testing.assert_allclose(raised, np.stack([expected, np.ones(6)], axis=1))
    np.testing.assert_allclose([floors for *_, floors in sets.named("enlarge")], 1.004 * raised)
    targets = np.array([targets for _, targets, _ in sets.named("descend")])
    np.testing.assert_allclose(
        targets[3:, 0], [2 * 0.1 * (ratio - up) for ratio, up in zip(ratios[0][3:], expected[3:], strict=True)]
    )
    np.testing.assert_allclose(targets[:, 1], 2 * 0.1 * 0.5)


def test_with_many_rounds_penalties_are_raised_as_far_as_correlations_go():
    sets = Scripted([(9 - i, 0.5, 200.0 * 0.5**i) for i in range(9)] + [(0, 0.0, 1)], eased=True)
    solve_by_rounds(sets, CoordinateDescent(tol=0.01, max_iter=5000))
    np.testing.assert_allclose([raised for *_, (raised,) in sets.named("descend")][:7], 80.0 * 0.5 ** np.arange(7))


def test_no_signal_is_done_after_a_round_for_raised_penalties():
    sets = Scripted([(9, 0.5, 100.0), (8, 0.001, 50.0), (7, 0.001, 1.5)], [(9, 0.001, 100.0)], eased=True)
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert sets.named("descend")[0][2] == [40.0]
    assert sets.named("descend")[1][2] == [1.0]  # the certificate is good already, so the penalty itself is next
    assert result.iterations.tolist() == [2, 0]  # without codes there is nothing that penalties could have shrunk


def test_with_a_ridge_penalties_are_not_raised():
    sets = Scripted([(5.0, 0.5, 70.0)], eased=True)
    solve_by_rounds(sets, CoordinateDescent(tol=0.0, ridge=1.0, max_iter=4))
    assert all(raised == [1.0] for *_, raised in sets.named("descend"))


def test_a_guess_is_not_for_raised_penalties():
    sets = Scripted([(9, 0.9, 100.0), (8, 0.29, 50.0)], eased=True)
    assert solve_by_rounds(sets, CoordinateDescent(tol=0.3)).iterations.tolist() == [1]
    assert [raised for *_, raised in sets.named("descend")] == [[1.0]]


def test_with_a_ridge_a_violation_counts_as_one_penalty_at_most_in_all_rounds():
    sets = Scripted([(5.0, 0.5, 7.0)])
    solve_by_rounds(sets, CoordinateDescent(tol=0.0, inner=0.1, ridge=1.0, max_iter=4))
    np.testing.assert_allclose([target for _, (target,), _ in sets.named("descend")], [2 * 0.1] * 4)


def test_signals_that_stall_are_given_up_and_evaluated_exactly():
    sets = Scripted([(5.0, 0.5, 2)], exact=Certificate(4.5, 1e-3, np.zeros((1, 5))))
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01))
    assert result.iterations.tolist() == [6]
    assert (result.objective[0], result.gap[0], result.status) == (4.5, 1e-3, Status.CONVERGED)
    assert [call[0] for call in sets.calls[-3:]] == ["collect", "recheck", "residuals"]


@pytest.mark.parametrize(("exact", "gap"), [(4.0, 1 - 2.5 / 4.0), (6.0, 1 - 2.5 / 6.0), (2.5, 0.0), (np.nan, 0.9)])
def test_what_bounds_the_optimum_is_told_beside_the_exact_objective(exact, gap):
    """A look may round the objective; half of five is what the optimum is at least all the same."""
    sets = Scripted([(5.0, 0.5, 2)], exact=Certificate(exact, 0.9, np.zeros((1, 5))))
    assert solve_by_rounds(sets, CoordinateDescent(tol=1e-9)).gap[0] == pytest.approx(gap, abs=1e-15)


@pytest.mark.parametrize("rule", [None, lambda found: found.ratio > 1])
def test_all_rounds_are_the_limit(rule):
    sets = Scripted([(9 - i, 0.5, 2) for i in range(9)], [(1, 0.5, 1), (1, 0.0, 1)])
    result = solve_by_rounds(sets, CoordinateDescent(tol=0.01, max_iter=3), rule)
    assert result.statuses[0] is Status.ITERATION_LIMIT
    assert result.iterations.tolist() == [3, 1 if rule is None else 0]
    assert sets.named("recheck") == ([(0, [0])] if rule is None else [])  # which has nothing to say here
    assert result.gap[0] == 0.5


def test_a_ridge_has_all_its_rounds_then_drops_the_smallest_codes():
    sets = Scripted([(5.0, 0.5, 2)])
    solve_by_rounds(sets, CoordinateDescent(tol=0.0, ridge=1.0, max_iter=8))
    assert [last for _, last in sets.named("look")] == [False] * 8 + [True]
    assert len(sets.named("prune")) == 1
    assert [call[0] for call in sets.calls].index("prune") == len(sets.calls) - 4
    assert not sets.named("recheck")


@pytest.mark.parametrize("objective", [np.nan, np.inf])
def test_what_is_not_finite_ends_at_once(objective):
    sets = Scripted([(objective, np.nan, 2)])
    result = solve_by_rounds(sets, CoordinateDescent())
    assert result.status is Status.DIVERGED
    assert result.iterations.tolist() == [0]
    assert not sets.named("recheck")


class ScriptedBatch:
    """A device's batch of three signals: scans on tensor cores are rough, and the second is not far from the optimum."""

    def __init__(self, engine, signals, weights):
        self.looks, self.descents, self.enlarged = [], [], []

    def look(self, active, tensor=False):
        self.looks.append((active.tolist(), tensor))
        ratio = np.array([2.0, 1.0, 1.0])
        ones = np.ones(3)
        return SimpleNamespace(loss=ones, energy=2 * ones, price=0 * ones, ratio=ratio, box=np.array([1.0, 1.0, 0.0]))

    def enlarge(self, active, cell, floors):
        self.enlarged.append((active.tolist(), cell, floors.tolist()))

    def descend(self, active, targets, raised, max_sweeps, extra, ridge):
        self.descents.append((active.tolist(), targets.tolist(), raised.tolist(), max_sweeps, extra, ridge))


@pytest.fixture
def device_sets(monkeypatch):
    monkeypatch.setattr(on_devices, "SignalGroup", ScriptedBatch)
    engine = SimpleNamespace(has_tensor_scan=True)
    state = SimpleNamespace(problem=PROBLEM, engine=engine, rounding=1e-6, tensor_rounding=1e-1)
    return DeviceWorkingSets(DeviceDescent(), state, [np.ones((1, 5))] * 3, slice(0, 3), None)


def test_only_doubtful_signals_are_scanned_again_in_float32(device_sets):
    found = device_sets.look(np.arange(3), last=False)
    assert device_sets.group.looks == [([0, 1, 2], True), ([1], False)]
    assert found.gap[0] > 0.1
    assert found.gap[1] < 1e-5
    assert found.gap[2] == 0.0
    assert found.ratio.tolist() == [2.0, 1.0, 1.0]


def test_targets_reach_their_signals_on_a_device(device_sets):
    device_sets.enlarge(np.array([0, 2]), 3, np.array([1.5, 3.0]))
    device_sets.descend(np.array([0, 2]), np.array([0.5, 0.25]), np.array([1.5, 3.0]))
    assert device_sets.group.enlarged == [([0, 2], 3, [1.5, 0.0, 3.0])]
    extra = CoordinateDescent().extra
    assert device_sets.group.descents == [([0, 2], [0.5, 0.0, 0.25], [1.5, 0.0, 3.0], 20, extra, 0.0)]


def test_far_answers_of_a_device_are_not_evaluated_again(device_sets):
    device_sets.look(np.arange(3), last=False)
    assert device_sets.recheck(0, np.array([0]), np.ones(1)) is None
    assert device_sets.recheck(1, np.array([0]), np.ones(1)).residual.ravel().tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_codes_that_hang_together_are_descended_on_further():
    """With the same share in all rounds this takes more than two hundred."""
    rng = np.random.default_rng(3)
    signals, filters = rng.standard_normal((2, 9, 10)), rng.standard_normal((4, 3, 3))
    found = encode(signals, filters, 1e-3 * np.max(max_penalty(signals, filters)))
    assert found.status is Status.CONVERGED
    assert found.iterations.max() < 60
