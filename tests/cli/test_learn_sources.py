"""Tests of what ``pointillist learn`` takes: every kind of source gives the filters that the arrays themselves give."""

import json

import numpy as np
import pytest
import tifffile
from tests.cli.conftest import done, refused

from pointillist import OnlineCSC, contrast_normalise, load, load_image, photographs
from pointillist.learners.watching import read_log

pytestmark = pytest.mark.usefixtures("no_leftovers")

STACK = np.stack([photographs("test")["camera"][i : i + 30, i : i + 30] for i in (40, 90, 140, 190)])
QUICK = ("--epochs", "2", "--batch", "2", "--seed", "3", "-q")


@pytest.fixture(scope="module")
def expected():
    signals = contrast_normalise(STACK)
    return OnlineCSC(4, 5, batch_size=2, random_state=3, n_jobs=1, n_epochs=2).fit(signals).filters_


def as_npy(folder):
    np.save(folder / "a.npy", STACK)
    return [folder / "a.npy"]


def as_pattern(folder):
    for i, signal in enumerate(STACK):
        np.save(folder / f"part{i}.npy", signal)
    return [folder / "part*.npy"]


def as_tiff(folder):
    tifffile.imwrite(folder / "a.tif", STACK, photometric="minisblack")
    return [folder / "a.tif"]


@pytest.mark.parametrize("write", [as_npy, as_pattern, as_tiff])
def test_every_source_gives_the_same_filters(write, learn, tmp_path, expected):
    done(learn(*QUICK, paths=write(tmp_path)))
    np.testing.assert_array_equal(load(tmp_path / "out.safetensors").filters_, expected)


def test_crops_are_reproducible_and_recorded(learn, tmp_path):
    crops = ["--crops", "12", "--crop-size", "20x16", "--epochs", "1"]
    for name in ("one", "two"):
        assert learn(*crops, "-q", paths=as_npy(tmp_path), output=tmp_path / name).code == 0
    one, two = load(tmp_path / "one"), load(tmp_path / "two")
    np.testing.assert_array_equal(one.filters_, two.filters_)
    assert one.extra_["data"]["crops"] == 12
    assert one.extra_["data"]["crop_size"] == [20, 16]
    assert one.n_seen_ == 12
    assert "--crops" in learn("--crop-size", "20", paths=as_npy(tmp_path)).err


@pytest.mark.parametrize("mode", [("--batch", "2"), ("--mode", "batch")])
def test_the_plan_takes_two_steps_and_writes_nothing(learn, tmp_path, mode):
    answer = learn("--plan", *mode, *(["--checkpoint-every", "1"] if "--batch" in mode else []), paths=as_npy(tmp_path))
    assert answer.code == 0, answer.err
    steps = "60 steps of 2 of 4 signals" if "--batch" in mode else "12 steps"
    for words in (
        f"4 filters of 5×5: {steps}",
        "time: about",
        "the first 2 steps took",
        "memory:",
        "nothing was written",
    ):
        assert words in answer.out, answer.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "images"]


def test_a_memory_limit_is_kept_or_refused(learn, tmp_path, expected):
    refused(
        learn("--max-memory", "20M", "-q", paths=as_npy(tmp_path)),
        "--max-memory 20.0 MB is not enough: step 1 has taken",
        "--batch",
    )
    assert not (tmp_path / "out.safetensors").exists()
    assert "'--max-memory': 'lots' is not a size" in learn("--max-memory", "lots", paths=as_npy(tmp_path)).err
    assert learn(*QUICK, "--max-memory", "90 GB", paths=as_npy(tmp_path)).code == 0
    np.testing.assert_array_equal(load(tmp_path / "out.safetensors").filters_, expected)


@pytest.mark.parametrize("mode", [("--mode", "online", "--epochs", "2"), ("--mode", "batch", "--iterations", "2")])
def test_every_file_is_read_once(learn, images, monkeypatch, mode):
    reads = []

    def counting(file, *, grey):
        reads.append(file)
        return load_image(file, grey=grey)

    monkeypatch.setattr("pointillist.data.sources.base.load_image", counting)
    assert learn(*mode, "--init", "patches", "-q").code == 0
    assert sorted(reads) == sorted(str(path) for path in images.iterdir())


def test_the_log_has_a_line_for_every_step(learn, tmp_path):
    done(learn("--epochs", "2", "--log", tmp_path / "run.jsonl", paths=as_npy(tmp_path)))
    records = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [record["iteration"] for record in records] == list(range(1, 9))
    assert records == load(tmp_path / "out.safetensors").history_ == read_log(tmp_path / "run.jsonl")


def test_tensorboard_events_are_written(learn, tmp_path):
    pytest.importorskip("tensorboardX")
    assert learn("--epochs", "1", "-q", "--tensorboard", tmp_path / "board", paths=as_npy(tmp_path)).code == 0
    assert any("tfevents" in path.name for path in (tmp_path / "board").iterdir())


def test_checkpoints_are_gone_when_the_run_has_ended(learn, tmp_path, expected):
    paths = as_npy(tmp_path)
    assert learn(*QUICK, "--checkpoint-every", "1", paths=paths).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "images", "out.safetensors"]
    assert learn(*QUICK, "--resume", paths=paths).code == 0
    np.testing.assert_array_equal(load(tmp_path / "out.safetensors").filters_, expected)
    answer = learn("--mode", "batch", "--resume", paths=paths)
    assert "--mode online" in answer.err
