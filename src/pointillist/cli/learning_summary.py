"""What ``pointillist learn`` says and records when a run has ended: data, examples for the report, and the last lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from pointillist.cli.console import count, number, say
from pointillist.cli.inputs import Wanted
from pointillist.cli.learning_request import LearnRequest, Survival
from pointillist.data.sources import Source, UnreadBatch, read_batch
from pointillist.learners import BatchCSC, OnlineCSC
from pointillist.reprs import filters_in_words

if TYPE_CHECKING:
    from pointillist.plot import Example

_SHOWN = 4  # signals in a report
NAMED = 20
"""Skipped files that the summary names; the model file lists all of them."""


def examples(request: LearnRequest, source: Source, others: Source | None) -> list[Example]:
    """Some signals for the report, held-out ones first; what cannot be read is passed over."""
    held_out = [] if others is None else _examples(request, request.held_out, others, _SHOWN, held_out=True)
    return held_out + _examples(request, request.wanted, source, _SHOWN - len(held_out), held_out=False)


def _examples(request: LearnRequest, wanted: Wanted, source: Source, most: int, *, held_out: bool) -> list[Example]:
    from pointillist.plot import Example  # drawing is loaded when there is something to draw

    shown: list[Example] = []
    photographs = wanted.photographs()
    for index in range(len(source)):
        if len(shown) >= most:
            break
        unread = UnreadBatch(0, index, (index,))
        for signal in read_batch(source, unread, lambda signal: request.box, "skip").signals:
            stored = None if photographs is None else _picture(photographs.read(index))
            shown.append(Example(source.name(index), signal, held_out, stored))
    return shown


def _picture(pixels: NDArray) -> NDArray | None:
    """Pixels that people can look at, grey or in colour; None for others."""
    return None if pixels.ndim == 3 and len(pixels) != 3 else pixels


def data_summary(request: LearnRequest, source: Source, skipped: dict[str, int]) -> dict[str, Any]:
    """What the model file says about the data."""
    wanted = request.wanted
    crops = {} if wanted.crops is None else {"crops": wanted.crops, "crop_size": list(wanted.crop_size)}
    return {
        "paths": [str(path) for path in wanted.paths],
        "signals": len(source) - (len(skipped) if wanted.crops is None else 0),
        **crops,
        "skipped": list(skipped),
        "validation": [str(path) for path in request.validation],
    }


def preprocessing(request: LearnRequest) -> dict[str, str]:
    """What the model file says about the preparation of signals, for whoever is to prepare others in the same way."""
    wanted = request.wanted
    layout = {} if wanted.layout is None else {"channels": wanted.layout}
    return {"normalise": wanted.normalise, **layout}


def summarise(
    request: LearnRequest, model: BatchCSC | OnlineCSC, n_signals: int, skipped: dict[str, int], missed: int | None
) -> None:
    """Print what was learned; `missed` is the number of steps that a run that was stopped early should have taken."""
    last = model.history_[-1]
    lines = []
    if missed is not None:
        again = "; go on with the same command and --resume" if request.survival != Survival() else ""
        lines.append(f"stopped early, after step {model.n_iter_} of {missed}{again}")
    crops = request.wanted.crops is not None
    used = model.n_seen_ if crops else n_signals - len(skipped)
    left_out = f" ({len(skipped)} skipped)" if skipped else ""
    lines.append(
        f"learned {filters_in_words(model.filters_.shape, model.channels, 'filters ')}{update_words(model)} from "
        f"{count(used, 'crop' if crops else 'signal')}{left_out} in {last['seconds']:.1f} s, {count(model.n_iter_, 'step')}"
    )
    which = "of the last mini-batch" if request.mode == "online" else "of all signals"
    lines.append(f"objective {which} {number(last['objective'])}, {last['nnz']:,} non-zeros")
    if "outliers" in last:
        left = [int(info["outliers"]) for info in model.history_]
        lines.append(f"left {count(left[-1], 'window')} out of the last step as outliers, {sum(left):,} of all steps")
    judged = [info["validation_objective"] for info in model.history_ if "validation_objective" in info]
    if judged:
        lines.append(f"objective of the held-out signals {number(judged[0])} → {number(judged[-1])}")
    lines += _left_out(skipped)
    written = [request.output, request.mosaic, request.report, request.log, request.tensorboard]
    lines.append(f"wrote {' and '.join(str(path) for path in written if path is not None)}")
    lines.append(f"next: pointillist show {request.output}")
    say(*lines)


def update_words(model: BatchCSC | OnlineCSC) -> str:
    """What is special about filters by the way they are updated, as `` (rank 1, robust)``; empty where nothing is."""
    words = [] if model.rank is None else [f"rank {model.rank}"]
    words += [] if model.robust is None else ["robust"]
    return f" ({', '.join(words)})" if words else ""


def _left_out(skipped: dict[str, int]) -> list[str]:
    if not skipped:
        return []
    shown = [f"  {why}" for why in list(skipped)[:NAMED]]
    more = [f"  and {len(skipped) - NAMED} more, which the model file lists"] if len(skipped) > NAMED else []
    return [f"left out {count(len(skipped), 'signal')}:", *shown, *more]
