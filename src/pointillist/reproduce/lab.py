"""What every experiment is given, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from sklearn.base import clone

from pointillist.errors import ModelFileError
from pointillist.learners import FilterUpdate, OnlineCSC
from pointillist.report.blocks import Block, Verdict, from_plain, to_plain
from pointillist.reproduce import rivals
from pointillist.reproduce.inputs import PENALTY, Inputs
from pointillist.reproduce.judging import Path, follow, powers_of_two
from pointillist.reproduce.scale import Scale
from pointillist.storage import read_arrays, write_arrays


@dataclass(frozen=True)
class Outcome:
    """One figure of the paper, repeated: what it claimed, what was found, and the charts and tables that show it."""

    title: str
    verdicts: Sequence[Verdict]
    blocks: Sequence[Block]
    seconds: float = 0.0

    def to_plain(self) -> dict[str, Any]:
        """The outcome as JSON can hold it."""
        return {
            "title": self.title,
            "verdicts": [to_plain(verdict) for verdict in self.verdicts],
            "blocks": [to_plain(block) for block in self.blocks],
            "seconds": self.seconds,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_plain` wrote."""
        verdicts, blocks = ([from_plain(one) for one in plain[name]] for name in ("verdicts", "blocks"))
        if not all(isinstance(one, Verdict) for one in verdicts) or not all(isinstance(one, Block) for one in blocks):
            raise ValueError("a figure holds something else than verdicts and blocks")
        return cls(plain["title"], verdicts, blocks, plain["seconds"])


@dataclass
class Lab:
    """Inputs of one run, where it keeps what several figures need, and whom it tells how far it is.

    `token` names the run: what was kept by another run is not used.
    """

    inputs: Inputs
    folder: FilePath
    token: str
    say: Callable[[str], None] = lambda text: None
    _paths: dict[str, Path] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        return self.inputs.scale

    def learned(self, n_filters: int, *, batch_size: int, n_patches: int) -> Path:
        """Our online learner over natural patches, its filters kept at steps 1, 2, 4, … and the last."""

        def learn() -> Path:
            self.say(f"learning {n_filters} filters from {n_patches} patches, {batch_size} in a step")
            model = OnlineCSC(
                n_filters,
                self.scale.filter_size,
                PENALTY,
                batch_size=batch_size,
                update=FilterUpdate(init=self.inputs.start(n_filters)),
                random_state=0,
            )
            patches = self.inputs.patches("train", n_patches)
            clone(model).fit(patches[:1])  # compiles, so that the first step is not slower
            return follow(model, patches, f"K = {n_filters}, η = {batch_size}", due=powers_of_two)

        return self._kept(f"ours-{n_filters}-{batch_size}-{n_patches}", learn)

    def learned_by_rival(self) -> Path:
        """The frequency-domain online learner over natural patches, one at a time, with the steps that learn best."""

        def learn() -> Path:
            scale = self.scale
            self.say(f"{rivals.tuned_name()}: {scale.n_filters} filters from {scale.n_rival_patches} patches")
            patches, start = self.inputs.patches("train", scale.n_rival_patches), self.inputs.start(scale.n_filters)
            return rivals.learn_online(patches, start, rivals.TUNED, passes=1, due=powers_of_two)

        return self._kept("rival", learn)

    def _kept(self, name: str, learn: Callable[[], Path]) -> Path:
        """What was learned under this name, from memory, from the folder of this very run, or now."""
        file = self.folder / "learned" / f"{name}.safetensors"
        if name not in self._paths:
            self._paths[name] = _read(file, self.token) or learn()
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, self._paths[name], self.token)
        return self._paths[name]


def _read(file: FilePath, token: str) -> Path | None:
    if not file.is_file():
        return None
    try:
        stored = read_arrays(file, "learned")
    except ModelFileError:
        return None
    if stored.metadata.get("token") != token:  # only this very run knows it
        return None
    seconds, seen, filters = (stored.arrays[name] for name in ("seconds", "seen", "filters"))
    return Path(stored.metadata["name"], seconds.tolist(), seen.tolist(), list(filters))


def _write(file: FilePath, path: Path, token: str) -> None:
    arrays = {
        "seconds": np.array(path.seconds, np.float64),
        "seen": np.array(path.seen, np.int64),
        "filters": np.stack(path.filters),
    }
    write_arrays(file, "learned", {"name": path.name, "token": token}, arrays)
