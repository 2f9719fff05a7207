"""What every experiment is given, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pointillist.learners import OnlineCSC
from pointillist.report.blocks import Block, Verdict
from pointillist.reproduce import rivals
from pointillist.reproduce.inputs import PENALTY, Inputs, Scale
from pointillist.reproduce.judging import Trajectory, follow, powers_of_two
from pointillist.storage import atomic_path


@dataclass(frozen=True)
class Outcome:
    """One figure of the paper, repeated: what it claimed, what was found, and the charts and tables that show it."""

    title: str
    verdicts: Sequence[Verdict]
    blocks: Sequence[Block]
    seconds: float = 0.0


def speed_verdict(claim: str, paper: str, ratio: float | None, least: float, because: str) -> Verdict:
    """The verdict that something is at least so many times as fast; a ratio of None was not reached at all."""
    found = "not reached" if ratio is None else f"{ratio:.1f} times"
    return Verdict(claim, paper, found, ratio is not None and ratio >= least, because)


@dataclass
class Lab:
    """Inputs of one run, where it keeps what several figures need, and whom it tells how far it is.

    `token` names the run: what was kept by another run is not used.
    """

    inputs: Inputs
    folder: Path
    token: str
    say: Callable[[str], None] = lambda text: None
    _learned: dict[str, Trajectory] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        """How large the experiments are."""
        return self.inputs.scale

    def learned(self, n_filters: int, *, batch_size: int, n_patches: int) -> Trajectory:
        """Our online learner over natural patches, its filters kept at steps 1, 2, 4, … and the last."""

        def learn() -> Trajectory:
            self.say(f"learning {n_filters} filters from {n_patches} patches, {batch_size} in a step")
            size, start = self.scale.filter_size, self.inputs.start(n_filters)
            model = OnlineCSC(n_filters, size, PENALTY, batch_size=batch_size, init=start, random_state=0)
            patches = self.inputs.patches("train", n_patches)
            OnlineCSC(**model.get_params()).fit(patches[:1])  # compiles, so that the first step is not slower
            return follow(model, patches, f"K = {n_filters}, η = {batch_size}", due=powers_of_two)

        return self._kept(f"ours-{n_filters}-{batch_size}-{n_patches}", learn)

    def learned_by_rival(self) -> Trajectory:
        """The frequency-domain online learner over natural patches, one at a time, with the steps that learn best."""

        def learn() -> Trajectory:
            scale = self.scale
            self.say(f"{rivals.tuned_name()}: {scale.n_filters} filters from {scale.n_rival_patches} patches")
            patches, start = self.inputs.patches("train", scale.n_rival_patches), self.inputs.start(scale.n_filters)
            return rivals.learn_online(patches, start, rivals.TUNED, passes=1, due=powers_of_two)

        return self._kept("rival", learn)

    def _kept(self, name: str, learn: Callable[[], Trajectory]) -> Trajectory:
        """What was learned under this name, from memory, from the folder of this very run, or now."""
        file = self.folder / "learned" / f"{name}.npz"
        if name not in self._learned:
            self._learned[name] = self._read(file) or learn()
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(file) as temporary, temporary.open("wb") as opened:
                np.savez(opened, token=self.token, **vars(self._learned[name]))
        return self._learned[name]

    def _read(self, file: Path) -> Trajectory | None:
        if not file.is_file():
            return None
        with np.load(file, allow_pickle=False) as stored:
            if str(stored["token"]) != self.token:
                return None
            return Trajectory(
                str(stored["name"]), stored["seconds"].tolist(), stored["seen"].tolist(), list(stored["filters"])
            )
