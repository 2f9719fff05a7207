"""Tests of ``pointillist demo`` with everything made small."""

import pytest
from PIL import Image
from tests.cli.conftest import done, refused

import pointillist as pt
import pointillist.cli
from pointillist import load
from pointillist.cli import learn


@pytest.fixture
def small(monkeypatch):
    photographs = pt.photographs

    def cut(split, grey=True):
        return {name: image[100:150, 100:150] for name, image in list(photographs(split, grey=grey).items())[:2]}

    monkeypatch.setattr(pt, "photographs", cut)
    for name, value in {"N_FILTERS": 4, "FILTER_SIZE": 5, "N_EPOCHS": 2, "CROP": 25}.items():
        monkeypatch.setattr(learn, name, value)


@pytest.mark.usefixtures("small")
def test_writes_pictures_and_a_model(cli, tmp_path):
    folder = tmp_path / "new" / "demo"
    answer = done(cli("demo", "--output", folder, "--jobs", "1"))
    for words in ("PSNR", "non-zeros", "certified", "pointillist encode"):
        assert words in answer.out
    names = ["filters.png", "filters.safetensors", "report.html"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert min(Image.open(folder / "filters.png").size) > 400
    assert "<h2>Reconstructions</h2>" in (folder / "report.html").read_text()
    assert load(folder / "filters.safetensors").filters_.shape == (4, 5, 5)


def test_output_must_not_be_a_file(cli, model):
    refused(cli("demo", "--output", model), "give a folder")


@pytest.mark.parametrize(
    ("words", "begun"), [(["demo", "--what"], [11]), (["demo", "--help"], []), (["--version"], []), ([], [])]
)
def test_only_the_demo_begins_to_compile_before_it_is_loaded(monkeypatch, words, begun):
    sizes = []
    monkeypatch.setattr("pointillist.kernels.precompile.begin_compiling", sizes.append)
    with pytest.raises(SystemExit):
        pointillist.cli.main(words)
    assert sizes == begun
