"""``pointillist show`` and ``pointillist info``: what is in a model file."""

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from pointillist.cli.console import number, say
from pointillist.learners.persistence import load
from pointillist.learners.schema import check_model, read_history
from pointillist.learners.watching import finite
from pointillist.model.geometry import filters_in_words
from pointillist.report import save_mosaic
from pointillist.storage import Stored, check_writable, load_model


def show_filters(path: Path, output: Path | None) -> None:
    """Draw a model's filters, by default beside the model."""
    model = load(path)
    target = path.with_suffix(".png") if output is None else output
    check_writable(target)
    save_mosaic(target, model.filters_, channels=model.channels)
    say(f"wrote {target}")


def describe(path: Path, *, as_json: bool) -> None:
    """Print how a model was learned."""
    stored = load_model(path)
    if "class" in stored.metadata:
        check_model(stored)
    facts = _facts(path, stored)
    if as_json:
        say(*json.dumps(facts, indent=2, ensure_ascii=False).split("\n"))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(facts):
        table.add_row(name, value)
    say(table)


def _facts(path: Path, stored: Stored) -> dict[str, Any]:
    """What there is to say; of a model that no learner wrote, everything but its filters may be missing or strange."""
    recorded, filters = stored.metadata, stored.arrays["filters"]
    learned = "class" in recorded
    history = [finite(info) for info in read_history(stored.arrays)] if learned else []
    return {
        "file": str(path),
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


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    shape, last, extra = facts["filters"]["shape"], facts["last"], facts["extra"]
    lines = [
        ("model", facts["file"]),
        ("written", f"{facts['created']} by pointillist {facts['pointillist_version']}"),
        (
            "filters",
            f"{filters_in_words(shape, facts['parameters'].get('channels') is True)}, {facts['filters']['type']}",
        ),
    ]
    if facts["class"] is not None:
        steps = f"{facts['n_iter']} steps, {facts['n_seen']} signals seen, seed {facts['seed']}"
        lines.append(("learned by", f"{facts['class']}, {steps}"))
    lines.append(("preprocessing", ", ".join(f"{k} {v}" for k, v in facts["preprocessing"].items()) or "not recorded"))
    data = _mapping(extra.get("data"))
    if data:
        paths = data.get("paths")
        where = ", ".join(map(str, paths)) if isinstance(paths, list) else str(paths)
        lines.append(("learned from", f"{data.get('signals')} signals of {where}"))
    if last:
        lines.append(("seconds", f"{last['seconds']:.1f}"))
        lines.append(("last step", f"objective {_number(last['objective'])}, {last['nnz']:,} non-zeros"))
    if facts["held_out_objective"] is not None:
        lines.append(("held-out objective", _number(facts["held_out_objective"])))
    if extra.get("stopped_early"):
        lines.append(("stopped early", "yes"))
    named = ("n_filters", "filter_size", "random_state")
    rest = {k: v for k, v in facts["parameters"].items() if k not in named}
    if rest:
        lines.append(("parameters", ", ".join(f"{k} {json.dumps(v)}" for k, v in rest.items())))
    return lines


def _number(value: float | None) -> str:
    return "unknown" if value is None else number(value)
