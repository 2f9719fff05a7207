"""Inputs of every experiment, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from paper import rivals
from paper.inputs import PENALTY, Inputs, Scale
from paper.judging import Trajectory, follow, powers_of_two
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.plot.page import Block, Verdict


@dataclass(frozen=True)
class Outcome:
    """One figure of the paper, repeated: its claims with what was found, and the charts and tables that show it."""

    title: str
    verdicts: Sequence[Verdict]
    blocks: Sequence[Block]
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not all(isinstance(one, Verdict) for one in self.verdicts) or not all(
            isinstance(one, Block) for one in self.blocks
        ):
            raise ValueError(f"figure {self.title!r} must hold verdicts and blocks, and nothing else")


def speed_verdict(claim: str, paper: str, ratio: float | None, least: float, because: str) -> Verdict:
    """The verdict that something is at least so many times as fast; a ratio of None was not reached at all."""
    found = "not reached" if ratio is None else f"{ratio:.1f} times"
    return Verdict(claim, paper, found, ratio is not None and ratio >= least, because)


@dataclass
class Lab:
    """Inputs of one run, filters that several figures need, which are learned once, and whom it tells how far it is."""

    inputs: Inputs
    say: Callable[[str], None] = lambda text: None
    _learned: dict[object, Trajectory] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        """Sizes of the experiments."""
        return self.inputs.scale

    def learned(self, n_filters: int, *, batch_size: int, n_patches: int) -> Trajectory:
        """Our online learner over natural patches, its filters kept at steps 1, 2, 4, … and the last."""
        key = n_filters, batch_size, n_patches
        if key not in self._learned:
            self.say(f"learning {n_filters} filters from {n_patches} patches, {batch_size} in a step")
            size, update = self.scale.filter_size, FilterUpdate(init=self.inputs.start(n_filters))
            model = OnlineCSC(
                n_filters, size, PENALTY, batch_size=batch_size, n_epochs=1, update=update, random_state=0
            )
            patches = self.inputs.patches("train", n_patches)
            self._learned[key] = follow(model, patches, f"K = {n_filters}, η = {batch_size}", due=powers_of_two)
        return self._learned[key]

    def two_sizes(self) -> tuple[Trajectory, Trajectory]:
        """Our online learner in mini-batches, for the under- and the over-complete dictionary."""
        given = {"batch_size": self.scale.batch_size, "n_patches": self.scale.n_patches}
        return self.learned(self.scale.n_filters, **given), self.learned(self.scale.n_overcomplete, **given)

    def learned_by_rival(self) -> Trajectory:
        """The frequency-domain online learner over natural patches, one at a time, with the steps that learn best."""
        if "rival" not in self._learned:
            n_filters, n_patches = self.scale.n_filters, self.scale.n_rival_patches
            self.say(f"{rivals.tuned_name()}: {n_filters} filters from {n_patches} patches")
            patches, start = self.inputs.patches("train", n_patches), self.inputs.start(n_filters)
            self._learned["rival"] = rivals.learn_online(patches, start, rivals.TUNED, passes=1, due=powers_of_two)
        return self._learned["rival"]
