"""Fig. 1: batch learning for several sampling rates, beside the frequency-domain method, over iterations and time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import rivals
from paper.frequency import BatchFrequency
from paper.inputs import PENALTY
from paper.judging import compile_step, follow, judge
from paper.lab import Lab, Outcome, speed_verdict
from paper.timing import first_at_most, shortest
from pointillist.learners import BatchCSC, FilterUpdate
from pointillist.parallel import effective_jobs
from pointillist.plot.figures import Chart, Curve
from pointillist.plot.page import Block, Cell, SideBySide, Table, Text, Verdict
from pointillist.problem import Geometry, Problem, broadcast_penalty
from pointillist.sampling import Draws, draw_sample
from pointillist.solvers.admm import SampledOperator, make_system

TITLE = "Fig. 1: sampling the codes"
FRACTIONS = (1.0, 0.5, 0.2, 0.1, 0.05)
ADMM_ITERATIONS = 10
ADMM, OURS, FFT = "the paper's ADMM", "our default solver", "frequency domain"

SIX = 5.0
"""Times as fast that count as about six."""
GOOD_ENOUGH = 0.05
"""Excess of the last objective over that with all codes, relative, up to which a sampling rate is "good enough"."""
SETTLED = 0.02
"""Change over the last two iterations below which learning counts as converged."""
ORDERED = 0.01
"""Relative difference of two objectives from which on their order counts."""


@dataclass(frozen=True)
class Learned:
    """One learner: its clock and training objective after each iteration, and what its last filters are worth.

    `gap` is the mean relative duality gap of the last iteration's codes; `trained` and `unseen` are the objectives of the
    training and of unseen images for the last filters.
    """

    seconds: list[float]
    objectives: list[float]
    gap: float
    trained: float
    unseen: float

    @property
    def pace(self) -> float:
        """Median seconds of an iteration."""
        return float(np.median(np.diff([0.0, *self.seconds])))


BySolver = dict[str, dict[float, Learned]]
"""Learners with the paper's solver and ours, for every sampling rate."""


def run(lab: Lab) -> Outcome:
    """Learn for every sampling rate with the paper's solver and ours, and in the frequency domain."""
    learned = {name: {p: _learn(lab, solver, p) for p in FRACTIONS} for name, solver in ((ADMM, "admm"), (OURS, "cd"))}
    reference = _frequency(lab)
    words = (
        f"{len(lab.inputs.train)} images, {lab.scale.n_filters} filters of {lab.scale.filter_size}×"
        f"{lab.scale.filter_size}, λ = 1. The objective is that of each iteration's codes with its new filters. The "
        "frequency-domain curve is our own reference: ten ADMM iterations for the codes and ten for the filters, on "
        "images that wrap around."
    )
    charts: list[Block] = [
        SideBySide([_chart(name, some, reference, clock) for clock in ("iteration", "seconds")])
        for name, some in learned.items()
    ]
    race, level = _race(lab)
    verdicts = [*speed_verdicts(learned, reference, _constant_part(lab)), *quality_verdicts(learned), level]
    return Outcome(TITLE, verdicts, [Text(words), *charts, _table(learned, reference), race])


def _learn(lab: Lab, solver: str, p: float) -> Learned:
    lab.say(f"batch, {solver}, p = {p:g}")
    scale, train = lab.scale, lab.inputs.train
    update = FilterUpdate(init=lab.inputs.start(scale.n_filters))
    given: dict[str, Any] = {"sampling": Draws(p, "codes"), "solver": solver, "update": update, "random_state": 0}
    model = BatchCSC(scale.n_filters, scale.filter_size, PENALTY, max_iter=scale.iterations, **given)
    compile_step(model, train)
    model.fit(train)
    history = [(info["seconds"], info["objective"]) for info in model.history_]
    return _valued(lab, history, model.history_[-1]["gap"], model.filters_)


def _frequency(lab: Lab) -> Learned:
    lab.say("batch, frequency domain")
    learner = BatchFrequency(lab.inputs.train, lab.inputs.start(lab.scale.n_filters))
    history = [(learner.seconds, value) for value in islice(learner, lab.scale.iterations)]
    return _valued(lab, history, float("nan"), learner.filters)


def _valued(lab: Lab, history: list[tuple[float, float]], gap: float, filters: NDArray) -> Learned:
    trained, unseen = (judge(images, filters).objective for images in (lab.inputs.train, lab.inputs.judged))
    return Learned([spent for spent, _ in history], [value for _, value in history], gap, trained, unseen)


def _chart(name: str, runs: dict[float, Learned], reference: Learned, clock: str) -> Chart:
    timed = clock == "seconds"

    def across(run: Learned) -> list[float]:
        return run.seconds if timed else [float(i) for i in range(1, len(run.seconds) + 1)]

    curves = [Curve(f"p = {p:g}", across(run), run.objectives, f"c{i}") for i, (p, run) in enumerate(runs.items())]
    curves.append(Curve(FFT, across(reference), reference.objectives, "c1", "dashed"))
    title = f"{name[0].upper()}{name[1:]}, over {clock.rstrip('s')}s"
    return Chart(title, "seconds of learning" if timed else "iteration", "objective", curves, log_x=timed)


def _table(learned: BySolver, reference: Learned) -> Table:
    named = {f"{name}, p = {p:g}": run for name, runs in learned.items() for p, run in runs.items()}
    rows: list[list[Cell]] = [
        [name, run.pace, reference.pace / run.pace, run.objectives[-1], run.trained, run.unseen]
        for name, run in {**named, FFT: reference}.items()
    ]
    return Table(
        ["", "s per iteration", "times as fast as frequency domain", "last objective", "training", "unseen"],
        rows,
        "After all iterations",
        "Training and unseen: the objective of the training and of unseen images for the last filters, by one exact coder "
        "over all codes.",
    )


def speed_verdicts(learned: BySolver, reference: Learned, constant: float) -> list[Verdict]:
    """Verdicts about the time of an iteration; `constant` is the part of it in seconds that no sampling makes shorter."""
    paces = {name: (runs[1.0].pace, runs[0.1].pace) for name, runs in learned.items()}
    full, tenth = paces[ADMM]
    faster = full / tenth
    fixed = f", of which its quadratic step's factor and substitutions take {constant:.2f} s for any p"
    found = ", ".join(f"{full / tenth:.1f} times ({name})" for name, (full, tenth) in paces.items())
    sampled = Verdict(
        "A tenth of the codes makes an iteration about six times as fast as all of them",
        "6 times",
        found,
        faster >= SIX,
        f"an iteration of {ADMM} takes {full:.2f} s with all codes and {tenth:.2f} s with a tenth"
        + ("." if faster >= SIX else f"{fixed}."),
    )
    return [sampled] + [
        speed_verdict(
            f"With p = 0.1, an iteration of {name} is at least twice as fast as in the frequency domain",
            "2 times (170 s against 350 s for 14 iterations)",
            reference.pace / pace,
            2,
            f"an iteration takes {pace:.2f} s, in the frequency domain {reference.pace:.2f} s.",
        )
        for name, (_, pace) in paces.items()
    ]


def quality_verdicts(learned: BySolver) -> list[Verdict]:
    """Verdicts about the objectives that sampling leads to."""
    verdicts = []
    for name, runs in learned.items():
        excess = {p: runs[p].trained / runs[1.0].trained - 1 for p in (0.2, 0.1)}
        worst = max(excess.values())
        verdicts.append(
            Verdict(
                f"p between 0.1 and 0.2 is good enough ({name})",
                "slightly higher objective than with all codes",
                ", ".join(f"p = {p:g}: {100 * value:+.1f} %" for p, value in excess.items())
                + " of the training objective",
                worst <= GOOD_ENOUGH,
                "the filters, valued on the training images by an exact coder, end "
                f"{distance_in_words(worst)} those of all codes; {100 * GOOD_ENOUGH:.0f} % above is the limit here.",
            )
        )
    admm = learned[ADMM]
    values = [admm[p].objectives[-1] for p in FRACTIONS]
    ordered = all(b > a * (1 - ORDERED) for a, b in pairwise(values))
    left = f"{admm[1.0].gap:.2f} with all codes and {admm[0.05].gap:.2f} with the fewest"
    why = f", but does not rise at every step; ten ADMM iterations leave a relative gap of {left}."
    change = max(abs(run.objectives[-1] / run.objectives[-3] - 1) for run in admm.values())
    return [
        *verdicts,
        Verdict(
            "The fewer codes are sampled, the higher the objective, but only slightly",
            "the order of the curves",
            ", ".join(f"{value:,.0f} (p = {p:g})" for p, value in zip(FRACTIONS, values, strict=True)),
            ordered,
            f"from p = 1 to p = 0.05 the last objective of {ADMM} changes by {100 * (values[-1] / values[0] - 1):+.1f} %"
            + (", and rises at every step." if ordered else why),
        ),
        Verdict(
            "All sampling rates converge after 10 to 12 iterations",
            "10 to 12 iterations",
            f"{100 * change:.1f} % change over the last two of {len(admm[1.0].objectives)} iterations",
            change <= SETTLED,
            f"no curve of {ADMM} moves by more than {100 * change:.1f} %; {100 * SETTLED:.0f} % counts as converged.",
        ),
    ]


def distance_in_words(excess: float) -> str:
    """Distance of the worst of several objectives above or below another, in words."""
    return f"at most {100 * excess:.1f} % above" if excess > 0 else f"at least {-100 * excess:.1f} % below"


def _constant_part(lab: Lab) -> float:
    """Seconds of an ADMM iteration that do not depend on p: factor and substitutions of the matrix of samples."""
    train, start = lab.inputs.train, lab.inputs.start(lab.scale.n_filters)[:, None]
    geometry = Geometry(train.shape[1:], start.shape[2:], 1, "same")
    penalty = broadcast_penalty(PENALTY, len(start), geometry)
    sample = draw_sample(len(start), geometry.grid, Draws(0.1, "codes"), 0, 1)
    operator = SampledOperator(Problem(filters=start, geometry=geometry, penalty=penalty, drawn=sample), None)

    def work() -> None:
        system = make_system("cholesky", operator, 10 * PENALTY)
        for _ in range(ADMM_ITERATIONS):
            system(train[:, None], effective_jobs(-1))

    return shortest(work, 1)


def _race(lab: Lab) -> tuple[Table, Verdict]:
    """Time of our learner to the level of the frequency-domain one, both valued by the exact coder."""
    scale, start, name = lab.scale, lab.inputs.start(lab.scale.n_filters), rivals.rival_name()
    lab.say(f"race against {name} for {scale.rival_seconds:.0f} s")
    rival = rivals.learn_batch(lab.inputs.train, start, scale.rival_seconds)
    update, count = FilterUpdate(init=start), 2 * scale.iterations
    model = BatchCSC(scale.n_filters, scale.filter_size, PENALTY, max_iter=count, update=update, random_state=0)
    mine = follow(model, lab.inputs.train, OURS)
    levels, values = ([one.objective for one in path.judged(lab.inputs.train)] for path in (rival, mine))
    reached = [first_at_most(mine.seconds, values, level) for level in levels]
    ratios = [None if when is None else spent / when for spent, when in zip(rival.seconds, reached, strict=True)]
    table = Table(
        [f"{name} after", "training objective", "ours: seconds to it", "times as fast"],
        [[f"{spent:.1f} s", *others] for spent, *others in zip(rival.seconds, levels, reached, ratios, strict=True)],
        "Seconds to the same level, batch",
        "Every dictionary is valued on the training images by one exact coder, with the clocks stopped.",
    )
    never = f"ends at {values[-1]:,.0f} after {mine.seconds[-1]:.1f} s."
    return table, speed_verdict(
        "Batch learning reaches the level of the frequency-domain method at least twice as fast",
        "2 times",
        ratios[-1],
        2,
        f"{name} ends at {levels[-1]:,.0f} after {rival.seconds[-1]:.1f} s; {OURS} "
        + (never if reached[-1] is None else f"is there after {reached[-1]:.2f} s."),
    )
