"""What the site's build makes from code: mathematics and verdicts."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


def _script(name, needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed: pip install -e '.[docs]'")
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_mathematics_becomes_mathml():
    to_mathml = _script("docs_mathematics", "latex2mathml").to_mathml
    inline = to_mathml(r'<p><span class="arithmatex">\(a &lt; b\)</span></p>')
    assert inline.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert "&#x0003C;" in inline
    block = to_mathml('<div class="arithmatex">\\[\nx^2\n\\]</div>')
    assert '<div class="equation" tabindex="0"><math' in block
    assert "<msup>" in block


def test_verdicts_are_kept_of_full_runs_only(tmp_path, monkeypatch):
    verdicts = _script("docs_verdicts", "json")
    one = {"claim": "It is fast", "paper": "2 times", "ours": "1 | 3 times", "holds": False, "because": "it is slow."}
    facts = {"when": "2026-01-02 03:04", "processor": "a processor", "threads": 2, "python": "3.11", "versions": {}}
    results = {
        "about": {"scale": "full", "rival": "SPORCO"},
        "facts": {**facts, "platform": "not to be told"},
        "pending": [],
        "figures": {"fig1": {"verdicts": [one, {**one, "holds": True}], "seconds": 90.0}},
    }
    target = tmp_path / "reproduce.json"
    monkeypatch.setattr(verdicts, "TARGET", target)
    record = verdicts.kept(results)
    target.write_text(verdicts.json.dumps(record), encoding="utf-8")
    assert "not to be told" not in target.read_text(encoding="utf-8")
    page = verdicts.page()
    assert "1 of 2 claims hold" in page
    assert "- It is fast. **Doesn't hold**: paper 2 times; ours 1 | 3 times, because it is slow." in page
    assert "- It is fast. **Holds**: paper 2 times; ours 1 | 3 times, because it is slow." in page
    with pytest.raises(ValueError, match="full scale"):
        verdicts.kept({**results, "about": {"scale": "quick"}})
