"""Tests of whole runs: what they write, that they go on after an interruption, and that reports can be redrawn."""

import json

import numpy as np
import pytest
from paper.inputs import Inputs
from paper.iterations import inpaint_by_admm
from paper.judging import exact
from paper.plain import to_plain
from paper.report import Record, read_record

from paper import figure3, redraw, reproduce, rivals
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
    with pytest.raises(ValueError, match="is not a results file"):
        redraw(tmp_path / "results.json", tmp_path)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(ValueError, match="is not a results file"):
        redraw(tmp_path / "results.json", tmp_path)


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


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    run = figure3.run

    def interrupted(lab):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure3, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["fig5", "fig3"], output=tmp_path, quick=True)
    before = read_record(tmp_path / "results.json")
    assert list(before.figures) == ["fig5"]
    monkeypatch.setattr(figure3, "run", run)
    told = []
    after = reproduce(["fig5", "fig3"], output=tmp_path, quick=True, say=told.append)
    assert "fig5 is finished already" in told[0]
    assert list(after.figures) == ["fig3", "fig5"]
    assert to_plain(vars(after.figures["fig5"])) == to_plain(vars(before.figures["fig5"]))


@pytest.mark.parametrize(("load", "said"), [([3.0, 1.0, 1.0], True), ([0.2, 3.0, 3.0], False), ([], False)])
def test_a_busy_machine_is_mentioned(load, said):
    about = {"scale": "quick", "data": "photographs", "rival": "our own"}
    assert ("busy" in " ".join(Record(about, {"load": load, "threads": 2}).remarks())) is said
