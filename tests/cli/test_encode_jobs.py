"""``pointillist encode`` for jobs: plan, limit of memory, resuming, files that are left out, output for other programs."""

import csv
import errno
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import pointillist.cli.encode
from pointillist import load_codes
from pointillist.cli.encode_plan import Pace
from pointillist.cli.inputs import SignalReader
from pointillist.learners.plan import parse_bytes
from pointillist.storage import PartFolder, load_codes_metadata, read_arrays

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture
def job(cli, images, model, tmp_path, monkeypatch):
    """``pointillist encode`` of three small images, in their folder."""
    monkeypatch.chdir(tmp_path)

    def run(*options, output="codes.safetensors"):
        return cli("encode", "model.safetensors", "images", "-o", output, "--jobs", "1", *options)

    return run


@pytest.fixture
def one_by_one(monkeypatch):
    """Code one signal at a time, and end before signal number `stop` with what is raised."""

    def set_up(stop=None, error=KeyboardInterrupt):
        def groups(items, most, **how):
            for item in items:
                if item.number == stop:
                    raise error
                yield [item]

        monkeypatch.setattr(pointillist.cli.encode, "groups", groups)

    return set_up


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def same(one, two):
    """Whether two codes files hold the same bytes; only the time of writing may differ."""
    first, second = (read_arrays(path, "codes") for path in (one, two))
    assert first.metadata == second.metadata
    assert {name: array.tobytes() for name, array in first.arrays.items()} == {
        name: array.tobytes() for name, array in second.arrays.items()
    }


def test_an_interrupted_run_goes_on_where_it_stopped(job, one_by_one, tmp_path, monkeypatch):
    """An interrupted run had to begin again once."""
    assert job(output="whole.safetensors").code == 0
    one_by_one(stop=2)
    answer = job("--checkpoint-every", "1h")
    assert answer.code == 130
    assert answer.err.splitlines()[-1] == (
        "error: interrupted; 2 of 3 signals are coded and kept: go on with the same command and --resume"
    )
    assert not (tmp_path / "codes.safetensors").exists()
    refused = job()
    assert refused.code == 2
    assert "codes.part-00000000.safetensors is a part of a run that has not ended: go on with --resume" in refused.err
    one_by_one()
    read, whole = [], SignalReader.read
    monkeypatch.setattr(SignalReader, "read", lambda reader, number: read.append(number) or whole(reader, number))
    assert job("--resume").code == 0
    assert read == [2]
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]


def test_codes_that_cannot_be_written_are_put_away(job, tmp_path, monkeypatch):
    """A run of hours must not be lost because the last file does not fit on the disk."""
    assert job(output="whole.safetensors").code == 0
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device", "codes.safetensors")
        patch.setattr(pointillist.cli.encode, "save", lambda *given: (_ for _ in ()).throw(full))
        answer = job("--checkpoint-every", "1h")
    assert (answer.code, answer.err.splitlines()[-1]) == (1, "error: codes.safetensors: No space left on device")
    assert [
        len(read_arrays(path, "codes").metadata["signals"]) for path in PartFolder("codes.safetensors").files()
    ] == [3]
    assert job("--resume").code == 0
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]


def test_parts_that_cannot_be_removed_are_a_warning(job, tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", "codes.part")

    monkeypatch.setattr(PartFolder, "clear", refuse)
    answer = job("--checkpoint-every", "1")
    assert answer.code == 0
    assert "warning: the codes are written, but parts of the run cannot be removed" in answer.err


def test_two_runs_to_one_file_are_noticed(job, tmp_path, monkeypatch):
    """The last writer won in silence once."""
    assert "another program" not in job().err
    assert "another program" not in job().err
    grouped = pointillist.cli.encode.groups

    def meanwhile(*given, **how):
        (tmp_path / "codes.safetensors").write_bytes(b"of another run")
        yield from grouped(*given, **how)

    monkeypatch.setattr(pointillist.cli.encode, "groups", meanwhile)
    assert "warning: codes.safetensors was written by another program since this run began" in job().err


def test_ctrl_c_without_parts_leaves_nothing(job, one_by_one, tmp_path):
    one_by_one(stop=2)
    answer = job()
    assert (answer.code, answer.err) == (130, "error: interrupted; no codes were written\n")
    assert names(tmp_path) == ["model.safetensors"]


def test_parts_come_by_signals_and_are_codes_files(job, one_by_one, tmp_path):
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1").code == 130
    parts = PartFolder(tmp_path / "codes.safetensors").files()
    assert [path.name for path in parts] == [f"codes.part-0000000{i}.safetensors" for i in (1, 0)]
    assert load_codes(parts[0]).names == ["images/image2.png"]


def test_a_file_that_cannot_be_read_stops_the_run_and_keeps_what_was_coded(job, images, tmp_path, monkeypatch):
    (images / "image2.png").write_bytes(b"no image")
    monkeypatch.setattr(pointillist.cli.encode_planning, "usual_pace", lambda model: Pace(1, 1, 0))
    answer = job("--checkpoint-every", "1h")
    assert answer.code == 2
    assert "image2.png" in answer.err
    assert load_codes("codes.part-00000000.safetensors").names == ["images/image1.png"]
    answer = job("--resume", "--on-error", "skip")
    assert answer.code == 0, answer.err
    assert load_codes("codes.safetensors").names == ["images/image1.png", "images/image3.png"]
    assert "left out 1 signal:" in answer.out
    assert "wrote the codes of 2 signals (1 skipped)" in answer.out


def test_small_data_are_looked_through_before_the_work(job, images, monkeypatch):
    (images / "image3.png").write_bytes(b"no image")
    monkeypatch.setattr("pointillist.learners.BatchCSC.encode", lambda *_, **__: pytest.fail("worked first"))
    monkeypatch.setattr("pointillist.learners.OnlineCSC.encode", lambda *_, **__: pytest.fail("worked first"))
    assert "image3.png" in job().err


def test_skipped_signals_survive_a_resume(job, one_by_one, images, tmp_path):
    (images / "image0.png").write_bytes(b"no image")
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1h", "--on-error", "skip").code == 130
    one_by_one()
    answer = job("--resume", "--on-error", "skip", "--json")
    assert answer.code == 0
    facts = json.loads(answer.out)
    assert [one["name"] for one in facts["skipped"]] == ["images/image0.png"]
    assert [one["name"] for one in facts["signals"]] == [f"images/image{i}.png" for i in (1, 2, 3)]
    assert load_codes_metadata("codes.safetensors")["skipped"] == facts["skipped"]


@pytest.mark.parametrize("change", ["penalty", "model", "data"])
def test_another_run_is_not_resumed(job, one_by_one, images, learn, tmp_path, change):
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1h").code == 130
    one_by_one()
    if change == "model":
        assert learn("--seed", "3", "--epochs", "1", output=tmp_path / "model.safetensors").code == 0
    if change == "data":
        Image.new("L", (40, 40), 7).save(images / "image9.png")
    answer = job("--resume", *(["--penalty", "0.3"] if change == "penalty" else []))
    assert answer.code == 2
    assert f"belongs to another run: {change}" in answer.err
    assert "Resume with what that had, or remove it" in answer.err


def test_damaged_parts_are_coded_again(job, one_by_one, tmp_path):
    assert job(output="whole.safetensors").code == 0
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1").code == 130
    part = tmp_path / "codes.part-00000000.safetensors"
    part.write_bytes(part.read_bytes()[:200])
    one_by_one()
    answer = job("--resume")
    assert answer.code == 0
    assert "is damaged" in answer.err
    same("codes.safetensors", "whole.safetensors")
    assert names(tmp_path) == ["codes.safetensors", "model.safetensors", "whole.safetensors"]


def test_reconstructions_of_a_resumed_run_have_their_names(job, one_by_one, images, tmp_path):
    (images / "a").mkdir()
    (images / "a" / "image1.png").write_bytes((images / "image1.png").read_bytes())
    options = ["--recursive", "--reconstruction", "pictures"]
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1h", *options).code == 130
    one_by_one()
    answer = job("--resume", *options)
    assert "wrote 4 pictures to pictures" in answer.out
    assert names(tmp_path / "pictures") == ["image1-2.png", "image1.png", "image2.png", "image3.png"]


def test_the_plan_says_what_will_be_done_and_does_nothing(job, tmp_path):
    """The plan names sizes, memory, disk and time, and writes nothing."""
    answer = job("--plan", "--checkpoint-every", "60s")
    assert answer.code == 0, answer.err
    for words in (
        "3 signals, 36×40 at most",
        "program",
        "codes",
        "with parts",
        "to be written: codes.safetensors",
        "time: about",
    ):
        assert words in answer.out, answer.out
    assert names(tmp_path) == ["model.safetensors"]


def test_the_plan_of_a_run_that_is_resumed_touches_nothing(job, one_by_one, tmp_path):
    one_by_one(stop=2)
    assert job("--checkpoint-every", "1").code == 130
    part = tmp_path / "codes.part-00000001.safetensors"
    part.write_bytes(b"damaged")
    answer = job("--plan", "--resume")
    assert answer.code == 0
    assert "3 signals, 36×40 at most, 1 of them coded already" in answer.out
    assert part.read_bytes() == b"damaged"


def test_a_limit_of_memory_is_kept_or_refused(job, monkeypatch):
    assert "--max-memory of 1 MB is not enough" in job("--max-memory", "1M").err
    assert job("--max-memory", "1M").code == 2
    assert "--max-memory must be a size" in job("--max-memory", "much").err
    assert job(output="whole.safetensors").code == 0
    answer = job("--max-memory", "100G")
    assert answer.code == 0
    assert answer.err.startswith("plan: 3 signals, up to ")
    same("codes.safetensors", "whole.safetensors")


def test_csv_and_json_say_what_was_coded(job, images, tmp_path):
    """Both say the same."""
    (images / "image4.png").write_bytes(b"no image")
    answer = job("--on-error", "skip", "--csv", "table.csv", "--json")
    assert answer.code == 0
    facts = json.loads(answer.out)
    with open("table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    codes = load_codes("codes.safetensors")
    assert [row["name"] for row in rows] == [f"images/image{i}.png" for i in (1, 2, 3, 4)]
    for row, entry, index in zip(rows, facts["signals"], codes.indices, strict=False):
        assert float(row["objective"]) == entry["objective"] > 0
        assert float(row["gap"]) == entry["gap"] < 1e-2
        assert int(row["nonzeros"]) == entry["nonzeros"] == len(index)
        assert float(row["seconds"]) == entry["seconds"] > 0
        assert (row["status"], row["shape"], row["reason"]) == ("converged", "36x40", "")
    assert rows[3]["status"] == "skipped"
    assert rows[3]["reason"] == facts["skipped"][0]["reason"]


def test_standard_output_is_for_one_reader(job):
    answer = job("--csv", "-")
    assert answer.code == 0
    assert [line.split(",")[0] for line in answer.out.splitlines()] == [
        "name", *(f"images/image{i}.png" for i in (1, 2, 3))
    ]  # fmt: skip
    assert "wrote the codes of 3 signals" in answer.err
    events = job("--events", "-")
    assert len(events.out.splitlines()) == 1 + load_codes("codes.safetensors").nnz
    for options in (["--csv", "-", "--events", "-"], ["--csv", "-", "--json"]):
        refused = job(*options)
        assert refused.code == 2
        assert "only one of --json, --events - and --csv -" in refused.err


def test_codes_know_their_files(job, images, tmp_path):
    """``load_codes`` did not say once which files were coded."""
    np.save(images / "stack.npy", np.random.default_rng(0).random((2, 20, 20)))
    assert job("-q").code == 0
    codes = load_codes("codes.safetensors")
    assert codes.names == [*(f"images/image{i}.png" for i in (1, 2, 3)), "images/stack.npy[0]", "images/stack.npy[1]"]
    assert codes[3].names == ["images/stack.npy[0]"]


def test_a_file_that_is_left_out_is_mentioned_once_though_a_plan_is_made(job, images):
    (images / "image0.png").write_bytes(b"no image")
    answer = job("--on-error", "skip", "--max-memory", "100G")
    assert answer.code == 0, answer.err
    assert answer.err.count("image0.png") == 1
    for path in images.glob("*.png"):
        Image.new("L", (40, 40), 7).save(path)
    answer = job("--on-error", "skip", "--max-memory", "100G")
    assert answer.code == 2
    assert "none of the 4 signals can be used; the first: images/image0.png is constant" in answer.err


def test_plans_are_for_coordinate_descent(job):
    """The dense codes of ADMM take many times the memory that the plan counts."""
    for option in (["--plan"], ["--max-memory", "9G"]):
        answer = job(*option, "--solver", "admm")
        assert answer.code == 2
        assert "--plan and --max-memory know what coordinate descent needs: say --solver cd" in answer.err


def test_the_plan_counts_the_table_that_is_also_written(job):
    assert "events" in job("--plan", "--events", "events.csv").out
    assert "events" not in job("--plan").out


def test_parts_are_counted_in_signals(job):
    assert "--checkpoint-every must be a number of signals or a time" in job("--checkpoint-every", "3x").err


@pytest.mark.slow
def test_a_run_stays_within_the_limit_that_it_was_given(model, tmp_path):
    np.save(tmp_path / "many.npy", np.random.default_rng(0).random((40, 300, 300)).astype(np.float32))
    command = ["encode", model, tmp_path / "many.npy", "-o", tmp_path / "c.safetensors", "--jobs", "2"]
    command += ["--penalty", "2", "--events", tmp_path / "events.csv"]
    program = "import sys; from pointillist.cli.running import run; from pointillist.learners import memory; "
    program += "assert run(sys.argv[1:]) == 0; print(memory.memory_peak())"

    def peak(limit):
        words = [sys.executable, "-c", program, *map(str, command), "--max-memory", limit]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        planned = re.search(r"up to ([\d.]+ [MG]B) of memory", done.stderr)
        return int(done.stdout.splitlines()[-1]), parse_bytes(planned[1].replace(" ", "")), done.stderr

    peak("9G")  # leaves the compiled kernels on disk
    free, planned, said = peak("9G")
    assert free <= 1.01 * planned  # the plan is shown in three digits
    assert "to stay within" not in said
    limit = planned - 2 * 10**7
    kept, smaller, said = peak(str(limit))
    assert kept <= limit
    assert smaller <= 1.01 * limit
    assert "to stay within" in said
