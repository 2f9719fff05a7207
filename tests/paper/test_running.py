"""Tests of whole runs: what they write, that they go on after an interruption, and that reports can be redrawn."""

import json

import numpy as np
import pytest
from paper.inputs import Inputs
from paper.iterations import inpaint_by_admm
from paper.judging import exact

from paper import redraw, reproduce, rivals
from pointillist.solvers.encoding import decode

pytestmark = pytest.mark.usefixtures("tiny")


def test_writes_results_and_a_report_that_can_be_redrawn(tmp_path):
    record = reproduce(["fig3", "fig5"], output=tmp_path / "a", quick=True)
    assert list(record.figures) == ["fig3", "fig5"]
    json.loads((tmp_path / "a" / "results.json").read_text(), parse_constant=pytest.fail)  # no NaN
    page = (tmp_path / "a" / "report.html").read_text()
    redraw(tmp_path / "a" / "results.json", tmp_path / "b")
    assert (tmp_path / "b" / "report.html").read_text() == page
    assert "our own frequency-domain reference" in page


@pytest.mark.parametrize("text", ["[]", "{"])
def test_what_is_no_results_file_is_refused(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ValueError, match="is not a results file"):
        redraw(tmp_path / "results.json", tmp_path)


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
