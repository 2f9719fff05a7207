"""Keep the verdicts of a full reproduction for the documentation: ``python scripts/docs_verdicts.py report/results.json``.

The record in docs/measured/reproduce.json has the claims, what was found and the machine; the site's build makes the
lists on the page "Reproduce the paper" from it.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "measured" / "reproduce.json"
_FIGURES = {"complexity": "complexity"} | {f"fig{i}": f"Fig. {i}" for i in range(1, 6)}


def kept(results: dict[str, Any]) -> dict[str, Any]:
    """What the documentation needs of a results file."""
    if results["about"]["scale"] != "full" or results["pending"]:
        raise ValueError("keep the verdicts of a finished run at full scale: python -m paper --data DIR")
    verdicts = [
        {"figure": _FIGURES[name], **{key: one[key] for key in ("claim", "paper", "ours", "holds", "because")}}
        for name, figure in results["figures"].items()
        for one in figure["verdicts"]
    ]
    minutes = sum(figure["seconds"] for figure in results["figures"].values()) / 60
    facts = {key: results["facts"][key] for key in ("when", "processor", "threads", "python", "versions")}
    return {"facts": facts, "about": results["about"], "minutes": minutes, "verdicts": verdicts}


def page() -> str:
    """The verdicts as lists, figure by figure, under a line about the run."""
    record = json.loads(TARGET.read_text(encoding="utf-8"))
    facts, verdicts = record["facts"], record["verdicts"]
    met = sum(one["holds"] for one in verdicts)
    lines = [
        f"*{facts['when'][:10]}: {facts['processor']}, {facts['threads']} threads, {record['minutes']:.0f} minutes; the "
        f"frequency-domain method is {record['about']['rival']}. {met} of {len(verdicts)} claims hold.*\n"
    ]
    for figure, some in groupby(verdicts, lambda one: one["figure"]):
        lines.append(f"**{figure}**\n")
        for one in some:
            verdict = "Holds" if one["holds"] else "Doesn't hold"
            words = f"paper {one['paper']}; ours {one['ours']}, because {one['because'].rstrip('.')}."
            lines.append(f"- {one['claim']}. **{verdict}**: {words}")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TARGET.write_text(json.dumps(kept(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
