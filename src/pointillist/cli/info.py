"""``pointillist show`` and ``pointillist info``: contents of model files, checkpoints and codes files."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import pointillist as pt
from pointillist.cli.console import count, number, say, show_log, write_json
from pointillist.cli.options import AsJson, Model, Recursive

log = logging.getLogger(__name__)

_NAMED = 3
"""Names of coded signals that are shown."""


def show(
    model: Model,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="The image to write.", show_default="MODEL.png", metavar="FILE.png"),
    ] = None,
) -> None:
    """Draw the filters of a model side by side."""
    from pointillist.plot import save_mosaic
    from pointillist.storage import check_writable

    learned = pt.load(model)
    target = model.with_suffix(".png") if output is None else output
    check_writable(target)
    save_mosaic(target, learned.filters_, channels=learned.channels)
    say(f"wrote {target}")


def info(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="FILES...",
            help="Model files, checkpoints, codes files, or folders of them, as of a run.",
            show_default=False,
        ),
    ],
    recursive: Recursive = None,
    as_json: AsJson = False,
) -> None:
    """Say how a model was learned, how far a run is, or what was coded.

    In folders and patterns, files of others are passed over.
    """
    from rich.table import Table

    from pointillist.cli.reading import found_files
    from pointillist.storage import kind_of

    show_log()
    found = found_files(paths, frozenset((".safetensors",)), recursive)
    every: list[dict[str, Any]] = []
    for one in found:
        for file in one.files:
            try:
                every.append((_codes_facts if kind_of(file) == "codes" else _model_facts)(file))
            except pt.ModelFileError as error:
                if one.named:
                    raise
                log.warning("skipped: %s", error)
    if not every:
        raise ValueError(f"no file of {', '.join(map(str, paths))} was written by pointillist")
    if as_json:
        single = len(found) == 1 and found[0].named
        write_json(every[0] if single else every)
        return
    for position, facts in enumerate(every):
        if position:
            say("")
        lines = _codes_lines(facts) if facts["kind"] in ("codes", "part") else _model_lines(facts)
        drawn = Table(box=None, pad_edge=False, show_header=False)
        drawn.add_column(style="bold", no_wrap=True)
        drawn.add_column(overflow="fold")
        for name, value in lines.items():
            if value not in (None, "", [], {}):
                drawn.add_row(name, _words(value))
        say(drawn)


def _words(value: Any) -> str:
    """A value in a line: settings by name, the first few of a list, a number with four digits."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    if isinstance(value, list):
        more = f" and {len(value) - _NAMED:,} more" if len(value) > _NAMED else ""
        return f"{', '.join(map(str, value[:_NAMED]))}{more}"
    return number(value) if isinstance(value, float) else "unknown" if value is None else str(value)


def _model_facts(path: str) -> dict[str, Any]:
    """Facts about a model; of one that no learner wrote, everything but its filters may be missing or strange."""
    from pointillist.learners.checkpoints import check_checkpoint, check_model, read_history
    from pointillist.learners.watching import finite
    from pointillist.storage import load_model

    stored = load_model(path)
    recorded, filters = stored.metadata, stored.arrays["filters"]
    if "stream" in recorded:
        check_checkpoint(stored)
    elif "class" in recorded:
        check_model(stored)
    history = [finite(info) for info in read_history(stored.arrays)] if "class" in recorded else []
    judged = [info["validation_objective"] for info in history if "validation_objective" in info]
    facts = {
        "file": path,
        "kind": "checkpoint" if "stream" in recorded else "model",
        "created": stored.created,
        "pointillist_version": stored.pointillist_version,
        "class": recorded.get("class"),
        "filters": {"shape": list(filters.shape), "type": str(filters.dtype)},
        "parameters": _mapping(recorded.get("parameters")),
        "preprocessing": _mapping(recorded.get("preprocessing")),
        "extra": _mapping(recorded.get("extra")),
        "seed": recorded.get("seed"),
        "n_iter": recorded.get("step"),
        "n_seen": recorded.get("n_seen"),
        "last": history[-1] if history else {},
        "held_out_objective": judged[-1] if judged else None,
    }
    if facts["kind"] == "checkpoint":
        facts["run"] = {name: recorded[name] for name in ("fit", "data", "environment", "stream", "record")}
    return facts


def _codes_facts(path: str) -> dict[str, Any]:
    """Facts about codes; of those that ``pointillist encode`` did not write, only what the arrays tell."""
    from pointillist.storage import read_codes
    from pointillist.validation import is_number

    codes, recorded = read_codes(path)
    signals = recorded.get("signals")
    rows = [row for row in signals if isinstance(row, dict)] if isinstance(signals, list) else []
    gaps = [row["gap"] for row in rows if is_number(row.get("gap"))]
    skipped = recorded.get("skipped")
    return {
        "file": path,
        "kind": "part" if "first" in recorded and "run" in recorded else "codes",
        "signals": len(codes),
        "filters": codes.n_filters,
        "nonzeros": codes.nnz,
        "type": str(codes.dtype),
        "grids": [list(grid) for grid in dict.fromkeys(codes.grids)],
        "names": codes.names,
        "model": recorded.get("model"),
        "penalty": recorded.get("penalty"),
        "boundary": recorded.get("boundary"),
        "preprocessing": _mapping(recorded.get("preprocessing")),
        "largest_gap": max(gaps, default=None),
        "statuses": dict(Counter(str(row.get("status")) for row in rows)),
        "skipped": skipped if isinstance(skipped, list) else [],
    }


def _codes_lines(facts: dict[str, Any]) -> dict[str, Any]:
    from pointillist.reprs import sizes

    part = ", a part of a run that has not ended: go on with encode --resume" if facts["kind"] == "part" else ""
    gap, skipped = facts["largest_gap"], facts["skipped"]
    return {
        "codes": f"{facts['file']}{part}",
        "signals": f"{facts['signals']:,}, on grids of {_words([sizes(grid) for grid in facts['grids']])}",
        "filters": f"{facts['filters']:,}",
        "non-zeros": f"{facts['nonzeros']:,}, {facts['type']}",
        **{name: facts[name] for name in ("names", "model", "penalty", "boundary", "preprocessing")},
        "status": [f"{amount} {status}" for status, amount in facts["statuses"].items()],
        "largest gap": gap and f"{gap:.1e}",
        "left out": skipped and count(len(skipped), "signal"),
    }


def _model_lines(facts: dict[str, Any]) -> dict[str, Any]:
    from pointillist.reprs import filters_in_words

    last, extra, run = facts["last"], facts["extra"], facts.get("run")
    data = _mapping(extra.get("data"))
    filters = filters_in_words(facts["filters"]["shape"], facts["parameters"].get("channels") is True)
    steps = f"{facts['class']}, {facts['n_iter']} steps, {facts['n_seen']} signals seen, seed {facts['seed']}"
    unnamed = {k: v for k, v in facts["parameters"].items() if k not in ("n_filters", "filter_size", "random_state")}
    place = ""
    if run is not None:
        skipped = sum(run["stream"]["skipped"].values())
        left_out = f", {count(skipped, 'signal')} left out" if skipped else ""
        place = (
            f"in pass {run['stream']['epoch'] + 1} of {run['fit']['n_epochs']}, "
            f"{count(run['stream']['offset'], 'signal')} into it{left_out}; it has not ended: go on with learn --resume"
        )
    return {
        facts["kind"]: facts["file"],
        "written": f"{facts['created']} by pointillist {facts['pointillist_version']}",
        "filters": f"{filters}, {facts['filters']['type']}",
        "learned by": facts["class"] and steps,
        "run": place,
        "preprocessing": facts["preprocessing"] or "not recorded",
        "learned from": data and f"{data.get('signals')} signals of {_words(data.get('paths'))}",
        "seconds": last and f"{last['seconds']:.1f}",
        "last step": last and f"objective {_words(last['objective'])}, {last['nnz']:,} non-zeros",
        "held-out objective": facts["held_out_objective"],
        "stopped early": "yes" if extra.get("stopped_early") else "",
        "parameters": {name: json.dumps(value) for name, value in unnamed.items()},
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
