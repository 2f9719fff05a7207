"""Tests of ``pointillist show`` and ``pointillist info``."""

import json

from PIL import Image


def test_show_writes_beside_the_model_by_default(cli, model):
    answer = cli("show", model)
    assert answer.code == 0
    assert answer.out == f"wrote {model.with_suffix('.png')}\n"
    assert min(Image.open(model.with_suffix(".png")).size) >= 600


def test_show_elsewhere(cli, model, tmp_path):
    assert cli("show", model, "-o", tmp_path / "elsewhere.jpg").code == 0
    assert Image.open(tmp_path / "elsewhere.jpg").format == "JPEG"
    answer = cli("show", model, "-o", tmp_path / "elsewhere.xyz")
    assert answer.code == 2
    assert "end it in .png" in answer.err


def test_info_in_words(cli, model):
    answer = cli("info", model)
    assert answer.code == 0
    for words in ("4 of 5×5, float32", "OnlineCSC, 6 steps", "normalise contrast", "penalty 1.0", "3 signals of"):
        assert words in answer.out


def test_info_as_json(cli, model):
    facts = json.loads(cli("info", model, "--json").out)
    assert facts["filters"] == {"shape": [4, 5, 5], "type": "float32"}
    assert facts["parameters"]["n_filters"] == 4
    assert facts["last"]["iteration"] == 6
