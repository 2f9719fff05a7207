"""What the site's build makes from code: mathematics and verdicts."""

import json

import pytest


def test_mathematics_becomes_mathml():
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: pip install -e '.[docs]'")
    from docs_mathematics import to_mathml

    made = to_mathml(r'<p><span class="arithmatex">\(a &lt; b\)</span></p><div class="arithmatex">\[x^2\]</div>')
    assert made.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    assert "&#x0003C;" in made
    assert '<div class="equation" tabindex="0"><math' in made


def test_verdicts_are_kept_of_full_runs_only(tmp_path, monkeypatch):
    import docs_verdicts

    one = {"claim": "It is fast", "paper": "2 times", "ours": "1 | 3 times", "holds": False, "because": "it is slow."}
    facts = {"when": "2026-01-02 03:04", "processor": "a processor", "threads": 2, "python": "3.11", "versions": {}}
    results = {
        "about": {"scale": "full", "rival": "SPORCO"}, "facts": {**facts, "platform": "not to be told"}, "pending": [],
        "figures": {"fig1": {"verdicts": [one, {**one, "holds": True}], "seconds": 90.0}},
    }  # fmt: skip
    monkeypatch.setattr(docs_verdicts, "TARGET", tmp_path / "reproduce.json")
    record = json.dumps(docs_verdicts.kept(results))
    assert "not to be told" not in record
    (tmp_path / "reproduce.json").write_text(record, encoding="utf-8")
    assert "1 of 2 claims hold" in docs_verdicts.page()
    with pytest.raises(ValueError, match="full scale"):
        docs_verdicts.kept({**results, "about": {"scale": "quick"}})
