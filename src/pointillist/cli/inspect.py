"""``pointillist show`` and ``pointillist info``: what is in a model file."""

import json
from pathlib import Path
from typing import Any

from rich.table import Table

from pointillist.cli.console import number, out
from pointillist.learners.packing import unpack_history
from pointillist.learners.persistence import load
from pointillist.learners.watching import finite
from pointillist.model.geometry import sizes
from pointillist.report import save_mosaic
from pointillist.storage import Stored, check_writable, load_model


def show_filters(path: Path, output: Path | None) -> None:
    """Draw a model's filters, by default beside the model."""
    model = load(path)
    target = path.with_suffix(".png") if output is None else output
    check_writable(target)
    save_mosaic(target, model.filters_, channels=model.channels)
    out().print(f"wrote {target}", markup=False, soft_wrap=True)


def describe(path: Path, *, as_json: bool) -> None:
    """Print how a model was learned."""
    facts = _facts(path, load_model(path))
    console = out()
    if as_json:
        console.print(json.dumps(facts, indent=2, ensure_ascii=False), markup=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(facts):
        table.add_row(name, value.replace("[", r"\["))
    console.print(table)


def _facts(path: Path, stored: Stored) -> dict[str, Any]:
    recorded, filters = stored.metadata, stored.arrays["filters"]
    history = [finite(info) for info in unpack_history(stored.arrays)] or [{}]
    return {
        "file": str(path),
        "created": stored.created,
        "pointillist_version": stored.pointillist_version,
        "class": recorded.get("class"),
        "filters": {"shape": list(filters.shape), "type": str(filters.dtype)},
        "parameters": recorded.get("parameters", {}),
        "preprocessing": recorded.get("preprocessing", {}),
        "extra": recorded.get("extra", {}),
        "seed": recorded.get("seed"),
        "n_iter": recorded.get("step"),
        "n_seen": recorded.get("n_seen"),
        "last": history[-1],
        "held_out_objective": next(
            (info["validation_objective"] for info in reversed(history) if "validation_objective" in info), None
        ),
    }


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    shape, last, data = facts["filters"]["shape"], facts["last"], facts["extra"].get("data", {})
    lines = [
        ("model", facts["file"]),
        ("written", f"{facts['created']} by pointillist {facts['pointillist_version']}"),
        ("filters", f"{shape[0]} of {sizes(shape[1:])}, {facts['filters']['type']}"),
        (
            "learned by",
            f"{facts['class']}, {facts['n_iter']} steps, {facts['n_seen']} signals seen, seed {facts['seed']}",
        ),
        ("preprocessing", ", ".join(f"{k} {v}" for k, v in facts["preprocessing"].items()) or "not recorded"),
    ]
    if data:
        lines.append(("learned from", f"{data.get('signals')} signals of {', '.join(data.get('paths', []))}"))
    if last:
        lines.append(("seconds", f"{last['seconds']:.1f}"))
        lines.append(("last step", f"objective {_number(last['objective'])}, {last['nnz']:,} non-zeros"))
    if facts["held_out_objective"] is not None:
        lines.append(("held-out objective", _number(facts["held_out_objective"])))
    if facts["extra"].get("stopped_early"):
        lines.append(("stopped early", "yes"))
    named = ("n_filters", "filter_size", "random_state")
    rest = {k: v for k, v in facts["parameters"].items() if k not in named}
    lines.append(("parameters", ", ".join(f"{k} {json.dumps(v)}" for k, v in rest.items())))
    return lines


def _number(value: float | None) -> str:
    return "unknown" if value is None else number(value)
