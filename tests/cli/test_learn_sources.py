"""Tests of what ``pointillist learn`` takes: every kind of source gives the filters that the arrays themselves give."""

import json
import subprocess
import sys
from dataclasses import replace
from signal import SIGINT

import numpy as np
import pytest
import tifffile

from pointillist import OnlineCSC, contrast_normalise, load_image, photographs
from pointillist.cli import planning
from pointillist.cli.stopping import GracefulStop
from pointillist.learners.persistence import load
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


def as_hdf5(folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "a.h5", "w") as file:
        file["some/images"] = STACK
    return [f"{folder / 'a.h5'}::some/images"]


def as_zarr(folder):
    zarr = pytest.importorskip("zarr")
    zarr.save(str(folder / "a.zarr"), STACK)
    return [folder / "a.zarr"]


@pytest.mark.parametrize("write", [as_npy, as_pattern, as_tiff, as_hdf5, as_zarr])
def test_every_source_gives_the_same_filters(write, learn, tmp_path, expected):
    answer = learn(*QUICK, paths=write(tmp_path))
    assert answer.code == 0, answer.err
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


def test_the_plan_is_printed_and_nothing_done(learn, tmp_path):
    answer = learn("--plan", "--checkpoint-every", "10s", paths=as_npy(tmp_path))
    assert answer.code == 0, answer.err
    for word in (
        "statistics",
        "program",
        "in all",
        "disk:",
        "with checkpoints",
        "time: about",
        "60 steps of 1 of 4 signals",
    ):
        assert word in answer.out, word
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "images"]


def test_a_run_with_a_limit_says_its_plan_in_one_line_and_keeps_it(learn, tmp_path):
    answer = learn("--epochs", "1", "--max-memory", "9G", paths=as_npy(tmp_path))
    assert sum(line.startswith("plan: up to ") for line in answer.err.splitlines()) == 1
    record = load(tmp_path / "out.safetensors").extra_["plan"]
    assert record["batch_size"] == 1
    assert record["limit"] == 9 * 10**9
    assert record["memory"] > 10**7


def test_nothing_is_tried_out_unless_a_plan_is_asked_for(learn, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "warm_up", lambda *_: pytest.fail("a throw-away step"))
    monkeypatch.setattr(planning, "survey", lambda *_: pytest.fail("a survey"))
    answer = learn("--epochs", "1", paths=as_npy(tmp_path))
    assert answer.code == 0, answer.err
    assert "plan" not in answer.err
    assert "plan" not in load(tmp_path / "out.safetensors").extra_


@pytest.mark.parametrize("mode", [("--mode", "online", "--epochs", "2"), ("--mode", "batch", "--iterations", "2")])
def test_every_file_is_read_once(learn, images, monkeypatch, mode):
    reads = []

    def counting(file, *, grey):
        reads.append(file)
        return load_image(file, grey=grey)

    monkeypatch.setattr("pointillist.data.sources.images.load_image", counting)
    assert learn(*mode, "--init", "patches", "-q").code == 0
    assert sorted(reads) == sorted(str(path) for path in images.iterdir())


def test_a_memory_limit_is_kept_or_refused(learn, tmp_path):
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random((40, 400, 400)).astype(np.float32))
    wide = learn("--plan", "--epochs", "1", "--batch", "40", "--jobs", "2", paths=[tmp_path / "large.npy"])
    assert "steps of 40 of 40" in wide.out
    refused = learn("--max-memory", "20M", paths=as_npy(tmp_path))
    assert refused.code == 2
    assert "--max-memory of 20 MB is not enough" in refused.err
    assert "--max-memory must be a size" in learn("--max-memory", "lots", paths=as_npy(tmp_path)).err


def test_what_a_limit_chose_is_recorded_and_kept_by_a_resumed_run(learn, tmp_path, monkeypatch):
    def tight(run, limit, base, peak=0):
        return replace(run, batch_size=2, prefetch=0, cache=0), ("signals in a batch: 2",)

    def third_step(stop, info):
        stop.number = SIGINT if info["iteration"] == 3 else None
        return stop.requested

    paths, one, two = as_npy(tmp_path), tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    command = ["--epochs", "3", "--batch", "4", "--max-memory", "9G", "--checkpoint-every", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(planning, "within", tight)
        answer = learn(*command, paths=paths, output=one)
        assert "to stay within 9 GB: signals in a batch: 2" in answer.err
        patch.setattr(GracefulStop, "__call__", third_step)
        assert learn(*command, "-q", paths=paths, output=two).code == 130
    model = load(one)
    assert (model.batch_size, model.n_iter_) == (2, 6)
    assert model.extra_["plan"]["limit"] == 9 * 10**9
    assert model.extra_["plan"]["batch_size"] == 2
    assert learn(*command, "--resume", "-q", paths=paths, output=two).code == 0
    np.testing.assert_array_equal(load(two).filters_, model.filters_)


def test_the_log_has_a_line_for_every_step(learn, tmp_path):
    answer = learn("--epochs", "2", "--log", tmp_path / "run.jsonl", paths=as_npy(tmp_path))
    assert answer.code == 0, answer.err
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


@pytest.mark.slow
def test_a_run_stays_within_the_limit_that_it_was_given(tmp_path):
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random((24, 300, 300)).astype(np.float32))
    command = ["learn", tmp_path / "large.npy", "-o", tmp_path / "m.safetensors", "--filters", "4", "--size", "5"]
    command += ["--batch", "24", "--epochs", "1", "--jobs", "2", "-q"]
    program = "import sys; from pointillist.cli.running import run; from pointillist.learners import memory; "
    program += "assert run(sys.argv[1:]) == 0; print(memory.memory_peak())"

    def peak(*more):
        words = [sys.executable, "-c", program, *map(str, command), *more]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return int(done.stdout), load(tmp_path / "m.safetensors").extra_["plan"]

    peak("--max-memory", "9G")  # leaves the compiled kernels on disk
    free, plan = peak("--max-memory", "9G")
    limit = plan["memory"] - 3 * 10**7
    kept, smaller = peak("--max-memory", str(limit))
    assert free <= plan["memory"]
    assert kept <= limit
    assert smaller["limit"] == limit
    assert smaller["memory"] <= limit
