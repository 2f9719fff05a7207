"""``pointillist show`` and ``pointillist info``: contents of model files, checkpoints and codes files."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import pointillist as pt
from pointillist.cli.console import count, number, say, show_log, write
from pointillist.cli.options import AsJson, Model, Recursive

if TYPE_CHECKING:
    from pointillist.storage import Stored

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

    show_log()
    found = found_files(paths, frozenset((".safetensors",)), recursive)
    every: list[dict[str, Any]] = []
    for one in found:
        for file in one.files:
            try:
                every.append(_facts(Path(file)))
            except pt.ModelFileError as error:
                if one.named:
                    raise
                log.warning("skipped: %s", error)
    if not every:
        raise ValueError(f"no file of {', '.join(map(str, paths))} was written by pointillist")
    if as_json:
        single = len(found) == 1 and found[0].named
        write(json.dumps(every[0] if single else every, indent=2, ensure_ascii=False).split("\n"))
        return
    for position, facts in enumerate(every):
        if position:
            say("")
        lines = _codes_lines(facts) if facts["kind"] in ("codes", "part") else _model_lines(facts)
        drawn = Table(box=None, pad_edge=False, show_header=False)
        drawn.add_column(style="bold", no_wrap=True)
        drawn.add_column(overflow="fold")
        for name, value in lines.items():
            if value:
                drawn.add_row(name, value)
        say(drawn)


def _facts(path: Path) -> dict[str, Any]:
    from pointillist.learners.checkpoints import check_checkpoint, check_model
    from pointillist.storage import kind_of, load_model

    if kind_of(path) == "codes":
        return _codes_facts(path)
    stored = load_model(path)
    if "stream" in stored.metadata:
        check_checkpoint(stored)
    elif "class" in stored.metadata:
        check_model(stored)
    return _model_facts(path, stored)


def _model_facts(path: Path, stored: Stored) -> dict[str, Any]:
    """Facts about a model; of one that no learner wrote, everything but its filters may be missing or strange."""
    from pointillist.learners.checkpoints import read_history
    from pointillist.learners.watching import finite

    recorded, filters = stored.metadata, stored.arrays["filters"]
    learned = "class" in recorded
    history = [finite(info) for info in read_history(stored.arrays)] if learned else []
    facts = {
        "file": str(path),
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
        "held_out_objective": next(
            (info["validation_objective"] for info in reversed(history) if "validation_objective" in info), None
        ),
    }
    if facts["kind"] == "checkpoint":
        facts["run"] = {name: recorded[name] for name in ("fit", "data", "environment", "stream", "record")}
    return facts


def _codes_facts(path: Path) -> dict[str, Any]:
    """Facts about codes; of those that ``pointillist encode`` did not write, only what the arrays tell."""
    from pointillist.storage import read_codes
    from pointillist.validation import is_number

    codes, recorded = read_codes(path)
    signals = recorded.get("signals")
    rows = [row for row in signals if isinstance(row, dict)] if isinstance(signals, list) else []
    gaps = [row["gap"] for row in rows if is_number(row.get("gap"))]
    skipped = recorded.get("skipped")
    return {
        "file": str(path),
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


def _codes_lines(facts: dict[str, Any]) -> dict[str, str]:
    from pointillist.reprs import sizes

    part = ", a part of a run that has not ended: go on with encode --resume" if facts["kind"] == "part" else ""
    gap = facts["largest_gap"]
    return {
        "codes": f"{facts['file']}{part}",
        "signals": f"{facts['signals']:,}, on grids of {_first([sizes(grid) for grid in facts['grids']])}",
        "filters": f"{facts['filters']:,}",
        "non-zeros": f"{facts['nonzeros']:,}, {facts['type']}",
        "names": _first(facts["names"] or []),
        **{name: str(facts[name] or "") for name in ("model", "penalty", "boundary")},
        "preprocessing": _settings(facts["preprocessing"]),
        "status": ", ".join(f"{amount} {status}" for status, amount in facts["statuses"].items()),
        "largest gap": "" if gap is None else f"{gap:.1e}",
        "left out": count(len(facts["skipped"]), "signal") if facts["skipped"] else "",
    }


def _model_lines(facts: dict[str, Any]) -> dict[str, str]:
    from pointillist.reprs import filters_in_words

    last, extra, data = facts["last"], facts["extra"], _mapping(facts["extra"].get("data"))
    filters = filters_in_words(facts["filters"]["shape"], facts["parameters"].get("channels") is True)
    steps = f"{facts['class']}, {facts['n_iter']} steps, {facts['n_seen']} signals seen, seed {facts['seed']}"
    paths = data.get("paths")
    where = ", ".join(map(str, paths)) if isinstance(paths, list) else str(paths)
    unnamed = {k: v for k, v in facts["parameters"].items() if k not in ("n_filters", "filter_size", "random_state")}
    return {
        facts["kind"]: facts["file"],
        "written": f"{facts['created']} by pointillist {facts['pointillist_version']}",
        "filters": f"{filters}, {facts['filters']['type']}",
        "learned by": "" if facts["class"] is None else steps,
        "run": _run_words(facts["run"]) if "run" in facts else "",
        "preprocessing": _settings(facts["preprocessing"]) or "not recorded",
        "learned from": f"{data.get('signals')} signals of {where}" if data else "",
        "seconds": f"{last['seconds']:.1f}" if last else "",
        "last step": f"objective {_number(last['objective'])}, {last['nnz']:,} non-zeros" if last else "",
        "held-out objective": "" if facts["held_out_objective"] is None else _number(facts["held_out_objective"]),
        "stopped early": "yes" if extra.get("stopped_early") else "",
        "parameters": ", ".join(f"{k} {json.dumps(v)}" for k, v in unnamed.items()),
    }


def _run_words(run: dict[str, Any]) -> str:
    """The place of a run that wrote a checkpoint, and how to go on."""
    place, skipped = run["stream"], run["stream"]["skipped"]
    left_out = f", {count(sum(skipped.values()), 'signal')} left out" if skipped else ""
    return (
        f"in pass {place['epoch'] + 1} of {run['fit']['n_epochs']}, {count(place['offset'], 'signal')} into it{left_out}; "
        "it has not ended: go on with learn --resume"
    )


def _first(words: list[str]) -> str:
    more = f" and {len(words) - _NAMED:,} more" if len(words) > _NAMED else ""
    return f"{', '.join(words[:_NAMED])}{more}"


def _settings(named: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in named.items())


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: float | None) -> str:
    return "unknown" if value is None else number(value)
