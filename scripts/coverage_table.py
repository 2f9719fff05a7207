"""Print the branch coverage of each package, beside what it must reach.

Usage: ``coverage json -o coverage.json && python scripts/coverage_table.py coverage.json [--strict]``. With ``--strict`` the
exit status is 1 where a package, or all of them together, covers less than its bar.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

BARS = {"storage": 100.0, "model": 100.0}
"""Percentages that packages must reach."""
ALL, BAR = "all host code", 95.0


def packages(report: dict[str, Any]) -> dict[str, Counter[str]]:
    """Counts of statements and branches, and how many were run, of every package and of all together."""
    counts: dict[str, Counter[str]] = {}
    for name, file in report["files"].items():
        inside = Path(name).parts[Path(name).parts.index("pointillist") + 1 :]
        summary = file["summary"]
        own = Counter(
            {
                "statements": summary["num_statements"],
                "branches": summary["num_branches"],
                "all": summary["num_statements"] + summary["num_branches"],
                "covered": summary["covered_lines"] + summary["covered_branches"],
            }
        )
        for package in (inside[0].removesuffix(".py"), ALL):
            counts.setdefault(package, Counter()).update(own)
    return counts


def table(counts: dict[str, Counter[str]]) -> tuple[list[str], bool]:
    """The lines of the table, and whether every bar is reached."""
    lines = [f"{'package':16}{'statements':>12}{'branches':>10}{'covered':>10}{'bar':>8}"]
    reached = True
    for package in sorted(counts, key=lambda one: (one == ALL, one)):
        own, bar = counts[package], BAR if package == ALL else BARS.get(package)
        share = 100 * own["covered"] / own["all"] if own["all"] else 100.0
        short = bar is not None and share < bar
        reached = reached and not short
        wanted = "" if bar is None else f"{bar:g}%{' ✗' if short else ''}"
        lines.append(f"{package:16}{own['statements']:>12,}{own['branches']:>10,}{share:>9.1f}%{wanted:>8}".rstrip())
    return lines, reached


def main() -> int:
    lines, reached = table(packages(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    print("\n".join(lines))
    return 1 if "--strict" in sys.argv and not reached else 0


if __name__ == "__main__":
    sys.exit(main())
