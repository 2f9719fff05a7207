"""``pointillist encode`` for jobs: plan, limit of memory, resuming, files that are left out, output for other programs."""

import csv
import errno
import json

import numpy as np
import pytest
from PIL import Image
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist.storage import PartFolder, load_codes_metadata, read_arrays

pytestmark = pytest.mark.usefixtures("no_leftovers")
COUNT = 6
"""Images, of which four are coded together by one thread."""


@pytest.fixture
def job(cli, images, model, tmp_path, monkeypatch):
    """``pointillist encode`` of six small images, in their folder."""
    monkeypatch.chdir(tmp_path)
    for i in (4, 5, 6):
        Image.open(images / f"image{i - 3}.png").transpose(0).save(images / f"image{i}.png")

    def run(*options, output="codes.safetensors"):
        return cli("encode", "model.safetensors", "images", "-o", output, "--jobs", "1", *options)

    return run


@pytest.fixture
def interrupted(job, monkeypatch):
    """A run that Ctrl-C, or another error, ends after the first four signals, or before call number `call` of the coder."""

    def run(*options, error=KeyboardInterrupt, call=2):
        calls = []
        encode = pt.OnlineCSC.encode

        def stop(model, signals, **how):
            calls.append(signals)
            if len(calls) == call:
                raise error
            return encode(model, signals, **how)

        with monkeypatch.context() as patch:
            patch.setattr(pt.OnlineCSC, "encode", stop)
            return job(*options)

    return run


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def same(one, two):
    """Whether two codes files hold the same bytes; only the time of writing may differ."""
    first, second = (read_arrays(path, "codes") for path in (one, two))
    assert first.metadata == second.metadata
    assert {name: array.tobytes() for name, array in first.arrays.items()} == {
        name: array.tobytes() for name, array in second.arrays.items()
    }


def test_an_interrupted_run_goes_on_where_it_stopped(job, interrupted, images, tmp_path):
    """An interrupted run had to begin again once."""
    assert job(output="whole.safetensors").code == 0
    answer = interrupted("--checkpoint-every", "1h", "--reconstruction", "pictures")
    assert answer.code == 130
    assert answer.err.splitlines()[-1] == (
        "error: interrupted; 4 of 6 signals are coded and kept: go on with the same command and --resume"
    )
    assert not (tmp_path / "codes.safetensors").exists()
    refused(job(), "codes.part-00000000.safetensors is a part of a run that has not ended: go on with --resume")
    answer = done(interrupted("--resume", "--reconstruction", "pictures", call=3))
    assert "wrote 6 pictures to pictures" in answer.out
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]
    assert names(tmp_path / "pictures") == sorted(path.name for path in images.iterdir())


def test_codes_that_cannot_be_written_are_put_away(job, tmp_path, monkeypatch):
    """A run of hours must not be lost because the last file does not fit on the disk."""
    assert job(output="whole.safetensors").code == 0
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device", "codes.safetensors")
        patch.setattr(pt, "save_codes", lambda *given: (_ for _ in ()).throw(full))
        answer = job("--checkpoint-every", "1h")
    assert (answer.code, answer.err.splitlines()[-1]) == (1, "error: codes.safetensors: No space left on device")
    parts = PartFolder("codes.safetensors").files()
    assert [len(read_arrays(path, "codes").metadata["signals"]) for path in parts] == [COUNT]
    assert job("--resume").code == 0
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]


def test_parts_that_cannot_be_removed_are_a_warning(job, monkeypatch):
    def refuse(path, missing_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    save = pt.save_codes
    monkeypatch.setattr(
        pt, "save_codes", lambda *given: (save(*given), monkeypatch.setattr("pathlib.Path.unlink", refuse))
    )
    answer = done(job("--checkpoint-every", "1"))
    assert "warning: the run has ended, but its parts cannot be removed" in answer.err


def test_two_runs_to_one_file_are_noticed(job, tmp_path, monkeypatch):
    """The last writer won in silence once."""
    assert "another program" not in job().err
    assert "another program" not in job().err
    encode = pt.OnlineCSC.encode

    def meanwhile(model, signals, **how):
        (tmp_path / "codes.safetensors").write_bytes(b"of another run")
        return encode(model, signals, **how)

    monkeypatch.setattr(pt.OnlineCSC, "encode", meanwhile)
    assert "warning: codes.safetensors was written by another program since this run began" in job().err


def test_ctrl_c_without_parts_leaves_nothing(interrupted, tmp_path):
    answer = interrupted()
    assert (answer.code, answer.err) == (130, "error: interrupted; no codes were written\n")
    assert names(tmp_path) == ["model.safetensors"]


def test_parts_come_by_signals_and_are_codes_files(interrupted, tmp_path):
    assert interrupted("--checkpoint-every", "1").code == 130
    (part,) = PartFolder(tmp_path / "codes.safetensors").files()
    assert pt.load_codes(part).names == [f"images/image{i}.png" for i in (1, 2, 3, 4)]


def test_small_data_are_looked_through_before_the_work(images, interrupted):
    (images / "image3.png").write_bytes(b"no image")
    refused(interrupted(error=AssertionError("worked first"), call=1), "image3.png")


def test_skipped_signals_survive_a_resume(job, interrupted, images):
    (images / "image0.png").write_bytes(b"no image")
    assert interrupted("--checkpoint-every", "1h", "--on-error", "skip").code == 130
    answer = done(job("--resume", "--on-error", "skip", "--json"))
    facts = json.loads(answer.out)
    assert [one["name"] for one in facts["skipped"]] == ["images/image0.png"]
    assert [one["name"] for one in facts["signals"]] == [f"images/image{i}.png" for i in range(1, COUNT + 1)]
    assert load_codes_metadata("codes.safetensors")["skipped"] == facts["skipped"]


@pytest.mark.parametrize("change", ["penalty", "model", "data"])
def test_another_run_is_not_resumed(job, interrupted, images, learn, tmp_path, change):
    assert interrupted("--checkpoint-every", "1h").code == 130
    if change == "model":
        assert learn("--seed", "3", "--epochs", "1", output=tmp_path / "model.safetensors").code == 0
    if change == "data":
        Image.new("L", (40, 40), 7).save(images / "image9.png")
    refused(
        job("--resume", *(["--penalty", "0.3"] if change == "penalty" else [])),
        f"belongs to another run: {change}",
        "Resume with what that had, or remove it",
    )


def test_damaged_parts_are_coded_again(job, interrupted, tmp_path):
    assert job(output="whole.safetensors").code == 0
    assert interrupted("--checkpoint-every", "1").code == 130
    part = tmp_path / "codes.part-00000000.safetensors"
    part.write_bytes(part.read_bytes()[:200])
    answer = done(job("--resume"))
    assert "is damaged" in answer.err
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]


def test_the_plan_codes_some_signals_and_writes_nothing(job, interrupted, tmp_path):
    answer = done(job("--plan"))
    for words in ("6 signals", "time: about", "memory:", "for the codes", "nothing was written"):
        assert words in answer.out, answer.out
    assert names(tmp_path) == ["model.safetensors"]
    assert interrupted("--checkpoint-every", "1").code == 130
    part = tmp_path / "codes.part-00000000.safetensors"
    before = part.read_bytes()
    answer = done(job("--plan", "--resume"))
    assert "6 signals, 4 of them coded already" in answer.out
    assert part.read_bytes() == before


def test_a_limit_of_memory_is_kept_or_refused(job, tmp_path):
    refused(job("--max-memory", "1M"), "--max-memory 1.0 MB is not enough: coding has taken")
    assert names(tmp_path) == ["model.safetensors"]
    assert "'--max-memory': 'much' is not a size" in job("--max-memory", "much").err
    assert job("--max-memory", "100G").code == 0


def test_csv_and_json_say_what_was_coded(job, images):
    (images / "image7.png").write_bytes(b"no image")
    answer = done(job("--on-error", "skip", "--csv", "table.csv", "--json"))
    facts = json.loads(answer.out)
    with open("table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    codes = pt.load_codes("codes.safetensors")
    assert [row["name"] for row in rows] == [f"images/image{i}.png" for i in range(1, 8)]
    for row, entry, index in zip(rows, facts["signals"], codes.indices, strict=False):
        assert float(row["objective"]) == entry["objective"] > 0
        assert float(row["gap"]) == entry["gap"] < 1e-2
        assert int(row["nonzeros"]) == entry["nonzeros"] == len(index)
        assert float(row["seconds"]) == entry["seconds"] > 0
        assert (row["status"], row["shape"], row["reason"]) == ("converged", "36x40", "")
    assert rows[-1]["status"] == "skipped"
    assert rows[-1]["reason"] == facts["skipped"][0]["reason"]


def test_standard_output_is_for_one_reader(job):
    answer = done(job("--csv", "-"))
    first = [line.split(",")[0] for line in answer.out.splitlines()]
    assert first == ["name", *(f"images/image{i}.png" for i in range(1, COUNT + 1))]
    assert "wrote the codes of 6 signals" in answer.err
    events = job("--events", "-")
    assert len(events.out.splitlines()) == 1 + pt.load_codes("codes.safetensors").nnz
    for options in (["--csv", "-", "--events", "-"], ["--csv", "-", "--json"]):
        refused(job(*options), "only one of --json, --events - and --csv -")


def test_codes_know_their_files(job, images):
    """``load_codes`` did not say once which files were coded."""
    np.save(images / "stack.npy", np.random.default_rng(0).random((2, 20, 20)))
    assert job("-q").code == 0
    codes = pt.load_codes("codes.safetensors")
    assert codes.names[COUNT:] == ["images/stack.npy[0]", "images/stack.npy[1]"]
    assert codes[COUNT].names == ["images/stack.npy[0]"]


def test_nothing_that_can_be_used_is_an_error(job, images):
    for path in images.glob("*.png"):
        Image.new("L", (40, 40), 7).save(path)
    for options in ((), ("--plan",)):
        refused(
            job("--on-error", "skip", *options),
            "none of the 6 signals can be used; the first: images/image1.png is constant",
        )
