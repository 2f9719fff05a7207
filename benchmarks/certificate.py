"""What certainty costs: ``python -m benchmarks.certificate [--quick] [--count 2000]``.

The time to a certified gap of 1e-3 beside the time to a true excess of 1e-3, which only somebody who knows the optimum can
stop at; how far the gap overstates the excess on the way; and random problems of all kinds against exact answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import problems
from benchmarks.context import Context, parser
from benchmarks.measure import in_turns, threads
from benchmarks.reach import CERTIFIED, EXCESS, Optimum, Reached, Task, optimum_of, reach
from benchmarks.tables import Findings, Table, chart

PENALTIES = (1.0, 0.3, 0.1)
SIDES = (100, 512)
COUNT, QUICK_COUNT = 2000, 40
"""Random problems."""
_NEVER = 1e-12


def run(context: Context, count: int | None = None) -> Findings:
    """Measure both times for all penalties and sides, then attack the bound with `count` problems."""
    count = context.pick(COUNT, QUICK_COUNT) if count is None else count
    costs = Table(
        f"Time to a certified gap of {CERTIFIED:g} over time to a true excess of {EXCESS:g}, at most {threads()} threads",
        ["case", "certified ms", "rounds", "excess ms", "excess setting", "ratio", "excess when certified"],
        note="The shortest of several runs in turns. What the second stops at, rounds or a tolerance, was found from the "
        "optimum with no clock running. A contrast-normalised photograph, the shipped 100 filters of 11×11.",
    )
    slack = Table(
        "The certified gap over the true excess, round by round",
        ["case", "round", "gap", "true excess", "gap / excess"],
    )
    curves = {}
    for side in context.pick(SIDES, (64,)):
        image = photograph(side)
        for penalty in context.pick(PENALTIES, PENALTIES[:2]):
            name = f"{side}×{side}, λ = {penalty:g}"
            context.say(name)
            task = Task(image[None], pt.load_filters("natural-100"), penalty)
            optimum = optimum_of(task, 1e-6 if side > 200 else 1e-7)
            costs.add(name, *_cost(task, optimum, reach(task, optimum), context.pick(5, 2)))
            path = gaps(task, optimum, context.pick(12, 4))
            for number, (gap, excess) in enumerate(path, 1):
                slack.add(name, number, gap, excess, gap / excess if excess > 0 else None)
            curves[name] = ([max(excess, 1e-9) for _, excess in path], [gap for gap, _ in path])
    drawn = chart("Gap and true excess", "true excess", "certified gap", curves, log_y=True)
    context.say(f"{count} random problems")
    return Findings([costs, slack, bounds(count)], [drawn], {"penalties": PENALTIES, "sides": SIDES, "problems": count})


def photograph(side: int) -> NDArray:
    """A contrast-normalised photograph (side, side) float32: a shipped one where it suffices, scikit-image's otherwise."""
    picture = pt.photographs("test")["camera"]
    if side > min(picture.shape):
        from skimage import data

        picture = data.camera() / 255.0
    if side > min(picture.shape):
        raise ValueError(f"side must be at most {min(picture.shape)}, got {side}")
    first = [(length - side) // 2 for length in picture.shape]
    image = pt.contrast_normalise(np.asarray(picture, np.float32))
    return np.ascontiguousarray(image[first[0] : first[0] + side, first[1] : first[1] + side], np.float32)


def _cost(task: Task, optimum: Optimum, reached: Reached, repeats: int) -> list[Any]:
    """The cells after a row's name."""
    certifying = pt.solvers.CoordinateDescent(tol=CERTIFIED)
    answer = task.solve(certifying)
    works: dict[str, Callable[[], Any]] = {"certified": partial(task.solve, certifying)}
    works |= {name: partial(task.solve, solver) for name, solver in reached.solvers.items()}
    times = in_turns(works, repeats, summary=min)
    certified = times["certified"]  # such an answer lies within the excess as well
    spent, setting = min((one, name) for name, one in times.items())
    rounds = int(np.max(answer.iterations))
    return [1e3 * certified, rounds, 1e3 * spent, setting, certified / spent, optimum.excess(answer.objective)]


def gaps(task: Task, optimum: Optimum, most: int) -> list[tuple[float, float]]:
    """Relative gap and true excess after one round, two, and so on, until the gap is certified or there were `most`."""
    found: list[tuple[float, float]] = []
    while len(found) < most and (not found or found[-1][0] > CERTIFIED):
        result = task.solve(pt.solvers.CoordinateDescent(tol=_NEVER, max_iter=len(found) + 1))
        found.append((float(np.max(result.gap)), optimum.excess(result.objective)))
    return found


def bounds(count: int) -> Table:
    """The margins of random problems: how far the certified lower bound lies below the exact optimum."""
    verdicts: dict[str, list[problems.Verdict]] = {"all": []}
    for seed in range(count):
        problem = problems.draw(seed)
        verdict = problems.examine(problem)
        for kind in ("all", *problems.kinds_of(problem)):
            verdicts.setdefault(kind, []).append(verdict)
    gaps_of_exact = [one.exactness for one in verdicts["all"]] or [0.0]
    exact = f"{np.mean(np.array(gaps_of_exact) <= problems.EXACT):.1%}"
    columns = ["kind", "problems", "converged", "violated bounds", "falsely converged", "smallest margin"]
    table = Table(
        f"{count} random problems of all kinds against exact answers",
        [*columns, "median gap / excess"],
        note="Margin: how far the certified lower bound lies below the optimum, relative to it, of signals with codes; "
        f"below zero it would be wrong. {exact} of the exact answers are certified to {problems.EXACT:g}, all to "
        f"{max(gaps_of_exact):.1e}. Falsely converged: said to have converged with a gap above the tolerance.",
    )
    for kind in sorted(verdicts, key=lambda name: (name != "all", name)):
        table.add(kind, *_summary(verdicts[kind]))
    return table


def _summary(some: list[problems.Verdict]) -> list[Any]:
    """The cells after a kind's name."""
    if not some:
        return [0, None, None, None, None, None]
    slack = [one.slack for one in some if one.slack is not None]
    converged = f"{np.mean([one.converged for one in some]):.0%}"
    violated = sum(one.margin < -problems.ROUNDING for one in some)
    falsely = sum(one.converged and one.gap > one.tol for one in some)
    middle = float(np.median(slack)) if slack else None
    margin = min((one.coded_margin for one in some if one.coded_margin is not None), default=None)
    return [len(some), converged, violated, falsely, margin, middle]


def main() -> None:
    options = parser("benchmarks.certificate", "What certainty costs, and whether the bound holds.")
    options.add_argument("--count", type=int, help=f"random problems ({COUNT}; {QUICK_COUNT} with --quick)")
    arguments = options.parse_args()
    context = Context.of(arguments)
    begin = time.perf_counter()
    found = run(context, arguments.count)
    context.record("certificate", found, "photographs of scikit-image", time.perf_counter() - begin)


if __name__ == "__main__":
    main()
