"""What every experiment is given, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paper import rivals
from paper.inputs import PENALTY, Inputs, Scale
from paper.judging import Trajectory, follow, powers_of_two
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.plot.blocks import Block, Verdict
from pointillist.storage import Stored, read_arrays, write_arrays
from pointillist.storage.schema import check_array, record, text

_KIND = "trajectory"
_check = record({"token": text, "name": text})

LEARNED = "learned"
"""The folder, in that of the report, of filters that several figures share."""


@dataclass(frozen=True)
class Outcome:
    """One figure of the paper, repeated: what it claimed, what was found, and the charts and tables that show it."""

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
        name = f"ours-{n_filters}-{batch_size}-{n_patches}"
        if not self._is_kept(name):
            self.say(f"learning {n_filters} filters from {n_patches} patches, {batch_size} in a step")
            size, update = self.scale.filter_size, FilterUpdate(init=self.inputs.start(n_filters))
            model = OnlineCSC(
                n_filters, size, PENALTY, batch_size=batch_size, n_epochs=1, update=update, random_state=0
            )
            patches = self.inputs.patches("train", n_patches)
            self._keep(name, follow(model, patches, f"K = {n_filters}, η = {batch_size}", due=powers_of_two))
        return self._learned[name]

    def two_sizes(self) -> tuple[Trajectory, Trajectory]:
        """Our online learner in mini-batches, for the under- and the over-complete dictionary."""
        given = {"batch_size": self.scale.batch_size, "n_patches": self.scale.n_patches}
        return self.learned(self.scale.n_filters, **given), self.learned(self.scale.n_overcomplete, **given)

    def learned_by_rival(self) -> Trajectory:
        """The frequency-domain online learner over natural patches, one at a time, with the steps that learn best."""
        if not self._is_kept("rival"):
            n_filters, n_patches = self.scale.n_filters, self.scale.n_rival_patches
            self.say(f"{rivals.tuned_name()}: {n_filters} filters from {n_patches} patches")
            patches, start = self.inputs.patches("train", n_patches), self.inputs.start(n_filters)
            self._keep("rival", rivals.learn_online(patches, start, rivals.TUNED, passes=1, due=powers_of_two))
        return self._learned["rival"]

    def _is_kept(self, name: str) -> bool:
        """Whether something was learned under this name, by now or by the interrupted part of this very run."""
        file = self._file(name)
        if name not in self._learned and file.is_file():
            try:
                self._take_up(name, read_arrays(file, _KIND))
            except ValueError as error:
                self.say(f"{error}; learning again")
        return name in self._learned

    def _take_up(self, name: str, stored: Stored) -> None:
        """Use what was kept if it is of this run; raises ValueError for what is no trajectory."""
        _check(stored.metadata, "metadata")
        filters = check_array(stored.arrays, "filters", "f", (None,) * 4)
        counts = {key: check_array(stored.arrays, key, "if", (len(filters),), least=0) for key in ("seconds", "seen")}
        if stored.metadata["token"] == self.token:
            seconds, seen = (counts[key].tolist() for key in ("seconds", "seen"))
            self._learned[name] = Trajectory(stored.metadata["name"], seconds, seen, list(filters))

    def _keep(self, name: str, learned: Trajectory) -> None:
        file = self._file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        arrays = {key: np.asarray(value) for key, value in vars(learned).items() if key != "name"}
        write_arrays(file, _KIND, {"token": self.token, "name": learned.name}, arrays)
        self._learned[name] = learned

    def _file(self, name: str) -> Path:
        return self.folder / LEARNED / f"{name}.safetensors"
