"""Tests of whole runs: what they write, that they go on after an interruption, and that reports can be redrawn."""

import json

import numpy as np
import pytest
from paper.inputs import QUICK, Inputs
from paper.iterations import inpaint_by_admm
from paper.judging import Trajectory, exact
from paper.lab import Lab
from paper.record import Record, read_record, summary

from paper import figure3, redraw, reproduce, rivals
from pointillist.plot.blocks import to_plain
from pointillist.solvers.encoding import decode

pytestmark = pytest.mark.usefixtures("tiny")


def test_writes_results_and_a_report_that_can_be_redrawn(tmp_path):
    told = []
    record = reproduce(["fig3", "fig5"], output=tmp_path / "a", quick=True, say=told.append)
    assert list(record.figures) == ["fig3", "fig5"]
    assert sum(text.startswith("learning 4 filters") for text in told) == 1
    page = (tmp_path / "a" / "report.html").read_text()
    redraw(tmp_path / "a" / "results.json", tmp_path / "b")
    assert (tmp_path / "b" / "report.html").read_text() == page
    assert "our own frequency-domain reference" in page


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    run = figure3.run

    def interrupted(lab):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure3, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["fig5", "fig3"], output=tmp_path, quick=True)
    before = read_record(tmp_path / "results.json")
    assert before.pending == ["fig3"]
    monkeypatch.setattr(figure3, "run", run)
    kept = {path: path.read_bytes() for path in (tmp_path / "learned").iterdir()}
    for path, whole in kept.items():
        path.write_bytes(whole[:100])
    told = []
    monkeypatch.setattr(figure3, "run", lambda lab: lab.two_sizes() and interrupted(lab))
    with pytest.raises(KeyboardInterrupt):
        reproduce(["fig5", "fig3"], output=tmp_path, quick=True, say=told.append)
    assert any(text.endswith("; learning again") for text in told)
    monkeypatch.setattr(figure3, "run", run)
    told = []
    after = reproduce(["fig5", "fig3"], output=tmp_path, quick=True, say=told.append)
    assert after.figures["fig5"] == before.figures["fig5"]
    assert after.pending == []
    assert not any(text.startswith("learning") for text in told)  # fig5 had learned what fig3 needs
    assert "fig5 finished already" in told[0]


def test_a_finished_run_starts_afresh_but_keeps_other_figures(tmp_path):
    first = reproduce(["fig3"], output=tmp_path, quick=True)
    second = reproduce(["fig5"], output=tmp_path, quick=True)
    assert second.token != first.token
    assert to_plain(vars(second.figures["fig3"])) == to_plain(vars(first.figures["fig3"]))
    told = []
    reproduce(["fig3"], output=tmp_path, quick=True, say=told.append)
    assert any(text.startswith("learning") for text in told)


def test_results_stay_until_there_are_new_ones(tmp_path, monkeypatch):
    """A run that failed took the results of the one before with it once."""
    first = reproduce(["fig3"], output=tmp_path, quick=True)
    run = figure3.run

    def full(lab):
        raise OSError("No space left on device")

    monkeypatch.setattr(figure3, "run", full)
    with pytest.raises(OSError, match="No space"):
        reproduce(["fig3"], output=tmp_path, quick=True)
    kept = read_record(tmp_path / "results.json")
    assert to_plain(vars(kept.figures["fig3"])) == to_plain(vars(first.figures["fig3"]))
    assert kept.pending == ["fig3"]
    monkeypatch.setattr(figure3, "run", run)
    again = reproduce(["fig3"], output=tmp_path, quick=True)
    assert again.pending == []
    assert again.figures["fig3"].seconds != first.figures["fig3"].seconds


def test_results_of_other_settings_are_mentioned(tmp_path):
    reproduce(["fig3"], output=tmp_path, quick=True)
    plain = json.loads((tmp_path / "results.json").read_text())
    plain["about"]["version"] = "0.0"
    (tmp_path / "results.json").write_text(json.dumps(plain))
    told = []
    reproduce(["fig3"], output=tmp_path, quick=True, say=told.append)
    assert "have other settings and are replaced" in told[0]


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match=r"figures must be among fig1, .* got 'fig9'"):
        reproduce(["fig9"], output=tmp_path, quick=True)
    with pytest.raises(FileNotFoundError, match=r"holds no fruit_normalised\.npz"):
        reproduce(["fig1"], output=tmp_path, data=tmp_path)
    (tmp_path / "results.json").write_text("[]")
    with pytest.raises(ValueError, match="of another version"):
        redraw(tmp_path / "results.json", tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(ValueError, match="is not a results file"):
        redraw(tmp_path / "results.json", tmp_path)


@pytest.mark.parametrize(("load", "said"), [([3.0, 1.0, 1.0], True), ([0.2, 3.0, 3.0], False), ([], False)])
def test_a_busy_machine_is_mentioned(load, said):
    about = {"scale": "quick", "data": "photographs", "rival": "our own"}
    record = Record(about, {"load": load, "threads": 2})
    assert ("busy" in summary(record)) is said


def test_results_are_plain_json_without_nan(tmp_path):
    reproduce(["fig1"], output=tmp_path, quick=True)
    plain = json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail)
    assert plain["figures"]["fig1"]["verdicts"][0]["kind"] == "Verdict"


def test_the_papers_iterations_come_to_the_exact_minimiser(tiny):
    picture = Inputs(tiny).pictures[0]
    filters = Inputs(tiny).start(4)
    seen = np.random.default_rng(0).random(picture.shape) < 0.5
    # The other solver's widest grid is the iterations' own: codes wherever a filter touches the image.
    result = exact([picture], filters, 0.4, weights=[seen.astype(np.float32)], boundary="full")
    minimiser = decode(result.codes, filters, boundary="full")[0]
    dense, sparse = inpaint_by_admm(filters, picture, seen, 0.4, 300)
    scale = np.abs(minimiser).max()
    np.testing.assert_allclose(sparse[seen], minimiser[seen], atol=0.03 * scale)
    np.testing.assert_allclose(dense, sparse, atol=0.03 * scale)


@pytest.mark.slow
def test_sporco_learns_where_it_is_installed(tiny, monkeypatch):
    pytest.importorskip("sporco")
    monkeypatch.setattr(rivals, "has_sporco", lambda: True)
    inputs = Inputs(tiny)
    batch = rivals.learn_batch(inputs.train, inputs.start(4), 0.2)
    online = rivals.learn_online(inputs.train, inputs.start(4), rivals.TUNED, passes=1)
    for path in (batch, online):
        assert path.filters[-1].shape == (4, 5, 5)
        assert path.seconds[-1] > 0
    assert online.seen == [1, 2]


def test_results_of_a_stranger_are_text_or_refused(tmp_path):
    """Nothing in a results file becomes markup, and nothing strange in it is more than one line."""
    nasty = 'x" onerror="alert(1)<script>\x1b[2J'
    picture = {"kind": "Picture", "source": "data:image/png;base64,AA==", "width": nasty, "height": 1, "alt": nasty}
    figure = {"title": nasty, "verdicts": [], "blocks": [picture | {"caption": nasty, "crisp": False}], "seconds": 1}
    facts = {"when": nasty, "platform": nasty, "processor": nasty, "threads": 1, "load": [], "python": nasty}
    about = {"data": nasty, "scale": nasty, "rival": nasty}
    plain = {"format": 2, "about": about, "facts": facts | {"versions": {}}, "token": nasty, "pending": [nasty]}
    plain["figures"] = {nasty: figure}
    file = tmp_path / "results.json"
    file.write_text(json.dumps(plain))
    redraw(file, tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "<script>\x1b" not in page
    assert 'onerror="' not in page
    picture = figure["blocks"][0]
    for name, value in (("source", nasty), ("kind", []), ("more", nasty)):
        figure["blocks"] = [picture | {name: value}]
        file.write_text(json.dumps(plain))
        with pytest.raises(ValueError, match=r"results\.json is not a results file"):
            redraw(file, tmp_path)
    for name in plain:
        file.write_text(json.dumps({key: value for key, value in plain.items() if key != name}))
        with pytest.raises(ValueError, match=r"results\.json is not a results file"):
            redraw(file, tmp_path)


@pytest.mark.parametrize(
    "damage", [lambda content: content[: len(content) // 2], lambda content: b"PK\3\4" + bytes(99)]
)
def test_what_was_kept_and_is_damaged_is_learned_again(tmp_path, damage):
    said = []
    lab = Lab(Inputs(QUICK), tmp_path, "token", said.append)
    lab._keep("ours", Trajectory("ours", [1.0], [3], [np.ones((2, 3, 3), np.float32)]))
    assert Lab(Inputs(QUICK), tmp_path, "token")._is_kept("ours")
    assert not Lab(Inputs(QUICK), tmp_path, "another")._is_kept("ours")
    (file,) = (tmp_path / "learned").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert not Lab(Inputs(QUICK), tmp_path, "token", said.append)._is_kept("ours")
    assert str(file) in said[-1]
    assert said[-1].endswith("; learning again")
