"""Tests of ``pointillist show`` and ``pointillist info``."""

import json

import numpy as np
from PIL import Image
from safetensors.numpy import save_file
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist import SparseCodes, save_codes


def test_show_writes_beside_the_model_by_default(cli, model):
    answer = done(cli("show", model))
    assert answer.out == f"wrote {model.with_suffix('.png')}\n"
    assert min(Image.open(model.with_suffix(".png")).size) >= 500


def test_show_elsewhere(cli, model, tmp_path):
    assert cli("show", model, "-o", tmp_path / "elsewhere.jpg").code == 0
    assert Image.open(tmp_path / "elsewhere.jpg").format == "JPEG"
    refused(cli("show", model, "-o", tmp_path / "elsewhere.xyz"), "end it in .png")


def test_info_in_words(cli, model):
    answer = done(cli("info", model))
    for words in ("4 of 5×5, float32", "OnlineCSC, 6 steps", "normalise contrast", "penalty 1.0", "3 signals of"):
        assert words in answer.out


def test_info_as_json(cli, model):
    facts = json.loads(cli("info", model, "--json").out)
    assert facts["filters"] == {"shape": [4, 5, 5], "type": "float32"}
    assert facts["parameters"]["n_filters"] == 4
    assert facts["last"]["iteration"] == 6


def test_info_of_codes(cli, model, images, tmp_path, monkeypatch):
    """A codes file was refused once."""
    monkeypatch.chdir(tmp_path)
    assert cli("encode", "model.safetensors", "images", "-q").code == 0
    answer = done(cli("info", "codes.safetensors"))
    lines = dict(line.strip().split(maxsplit=1) for line in answer.out.splitlines())
    assert lines["signals"] == "3, on grids of 36×40"
    assert lines["names"] == "images/image1.png, images/image2.png, images/image3.png"
    assert lines["status"] == "3 converged"
    assert lines["model"] == "model.safetensors"
    facts = json.loads(cli("info", "codes.safetensors", "--json").out)
    assert (facts["kind"], facts["signals"], facts["filters"], facts["grids"]) == ("codes", 3, 4, [[36, 40]])
    assert facts["largest_gap"] < 1e-2


def test_info_of_codes_that_python_wrote(cli, tmp_path):
    codes = SparseCodes.from_dense(np.eye(3)[None].astype(np.float32))
    odd = {"signals": [{"gap": 10**400}, {"gap": True}], "skipped": {}, "preprocessing": [], "penalty": "high"}
    for metadata in ({}, odd, {**odd, "signals": 3}):
        save_codes(codes, tmp_path / "c", metadata)
        answer = done(cli("info", tmp_path / "c"))
        assert "3, float32" in answer.out


def test_info_of_a_run_that_has_not_ended(cli, learn, model, images, tmp_path, monkeypatch):
    """Checkpoints were shown as models once, without a word about their run, and folders were refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    one_step = pt.Checkpoints("run/out.safetensors", every=1)
    signals = pt.contrast_normalise(pt.load_signals("images"))
    pt.OnlineCSC(4, 5, n_epochs=2, n_jobs=1).fit(signals, checkpoint=one_step, callbacks=[lambda info: True])
    words = ["encode", "model.safetensors", "images", "-o", "run/codes.safetensors", "--checkpoint-every", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(pt, "save_codes", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli(*words).code == 130
    save_file({"x": np.zeros(3)}, tmp_path / "run" / "foreign.safetensors")
    answer = done(cli("info", "run"))
    assert "checkpoint" in answer.out
    assert "in pass 1 of 2, 1 signal into it; it has not ended: go on with learn --resume" in answer.out
    assert (
        "codes.part-00000000.safetensors, a part of a run that has not ended: go on with encode --resume" in answer.out
    )
    assert "skipped: run/foreign.safetensors is a safetensors file, but not one written by pointillist" in answer.err
    kinds = [facts["kind"] for facts in json.loads(cli("info", "run/*", "--json").out)]
    assert sorted(kinds) == ["checkpoint", "part"]
