"""What the site's build makes from code: the picture of the layers and the mathematics."""

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


@pytest.fixture(scope="module")
def layers():
    return _script("docs_layers", "grimp")


def test_every_line_of_the_picture_points_down(layers):
    row = {name: i for i, names in enumerate(layers.layers()) for name in names}
    counts = layers.imports()
    assert counts["solvers", "model"] > 3
    assert all(row[upper] < row[lower] for upper, lower in counts)


def test_picture_shows_every_package_and_import(layers):
    drawn = layers.diagram()
    assert drawn.count("<path") == len(layers.imports())
    assert all(f">{name}</text>" in drawn for names in layers.layers() for name in names)
    assert "\n" not in drawn


def test_a_package_without_a_layer_is_an_error(layers, monkeypatch):
    monkeypatch.setattr(layers, "layers", lambda: [["cli"], ["backends"]])
    with pytest.raises(ValueError, match=r"leave out .*solvers"):
        layers.diagram()


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
