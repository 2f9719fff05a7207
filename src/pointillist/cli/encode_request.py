"""What the user asked ``pointillist encode`` for, and whether that can be done at all."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pointillist.cli.inputs import Wanted, layout_of, normalisation
from pointillist.cli.learning_request import Survival
from pointillist.cli.paths import DASH
from pointillist.data.damage import OnError
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.learners.checkpoint import parse_every
from pointillist.learners.persistence import load
from pointillist.learners.plan import parse_bytes
from pointillist.solvers import CoordinateDescent, make_solver
from pointillist.storage import check_writable


@dataclass(frozen=True)
class EncodeRequest:
    """What the user asked ``pointillist encode`` for; `settings` holds None where the model's own parameter serves."""

    model: Path
    paths: list[Path]
    output: Path
    settings: dict[str, Any]
    on_error: OnError
    reconstruction: Path | None = None
    layout: str | None = None
    events: Path | None = None
    sampling_rate: float | None = None
    recursive: bool | None = None
    only_plan: bool = False
    max_memory: str | None = None
    survival: Survival = field(default_factory=Survival)
    table: Path | None = None
    as_json: bool = False

    @property
    def limit(self) -> int | None:
        """Bytes of memory to stay within, None without a limit."""
        return None if self.max_memory is None else parse_bytes(self.max_memory)

    @property
    def keeps_parts(self) -> bool:
        """Whether the run puts away what is coded."""
        return self.survival != Survival()

    @property
    def to_stdout(self) -> bool:
        """Whether standard output is for another program to read."""
        return self.as_json or DASH in (self.table, self.events)

    def load(self) -> BatchCSC | OnlineCSC:
        """The model, with the settings that were asked for, once all that can be known to fail has been refused."""
        model = load(self.model)
        self._check(model)
        model.set_params(**{name: value for name, value in self.settings.items() if value is not None})
        if (self.only_plan or self.max_memory) and not isinstance(make_solver(model.solver), CoordinateDescent):
            raise ValueError(
                "--plan and --max-memory know what coordinate descent needs: say --solver cd, or leave them out"
            )
        return model

    def timed(self, rates: Collection[float]) -> "EncodeRequest":
        """The request with the sampling rate that the files themselves say, where none was given."""
        if self.events is None or self.sampling_rate is not None or not rates:
            return self
        if len(rates) > 1:
            several = ", ".join(f"{rate:g}" for rate in sorted(rates))
            raise ValueError(
                f"the times in these tables say that a second has {several} samples: give --sampling-rate, or encode them "
                "apart"
            )
        return replace(self, sampling_rate=next(iter(rates)))

    def wanted(self, model: BatchCSC | OnlineCSC) -> Wanted:
        """Which signals to read, and how to prepare them, as the model's own were."""
        ndim = model.filters_.ndim - 1 - model.channels
        normalise, layout = normalisation(model.preprocessing_), layout_of(model, self.model, self.layout)
        return Wanted(self.paths, ndim, normalise, self.on_error, layout=layout, recursive=self.recursive)

    def choices(self, wanted: Wanted) -> dict[str, Any]:
        """What the codes depend on besides model and data; the number of threads is no part of it."""
        chosen = {name: value for name, value in self.settings.items() if name != "n_jobs"}
        return {**chosen, "channels": wanted.layout}

    def facts(self, model: BatchCSC | OnlineCSC) -> dict[str, Any]:
        """What the codes file says about the run."""
        return {
            "model": str(self.model),
            "penalty": np.asarray(model.penalty).tolist(),
            "boundary": model.boundary,
            "preprocessing": model.preprocessing_,
        }

    def _check(self, model: BatchCSC | OnlineCSC) -> None:
        _ = self.limit, parse_every(self.survival.every or "60s", "signals")  # these raise where they make no sense
        self._check_files()
        if self.sampling_rate is not None and self.events is None:
            raise ValueError("--sampling-rate is for the times of events: say where to with --events FILE.csv")
        if self.sampling_rate is not None and model.filters_.ndim - model.channels != 2:
            raise ValueError("--sampling-rate is for signals in time, of one dimension: leave it out")
        if self.reconstruction is None:
            return
        if model.filters_.ndim - model.channels != 3 or (model.channels and model.filters_.shape[1] != 3):
            raise ValueError("--reconstruction writes images, but the filters are not those of images: leave it out")
        if self.reconstruction.exists() and not self.reconstruction.is_dir():
            raise NotADirectoryError(f"--reconstruction {self.reconstruction} is a file: give a folder")

    def _check_files(self) -> None:
        named = {"--output": self.output, "--events": self.events, "--csv": self.table}
        if sum([self.as_json, self.events == DASH, self.table == DASH]) > 1:
            raise ValueError("only one of --json, --events - and --csv - can have standard output: name files")
        files = {option: path for option, path in named.items() if path is not None and path != DASH}
        for path in files.values():
            check_writable(path)
        if len({path.resolve() for path in files.values()}) < len(files):
            raise ValueError(f"{' and '.join(files)} name the same file: give them different names")
