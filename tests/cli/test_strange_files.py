"""Files that are whole but hold nonsense, as nobody but a stranger would write them: each gets one clear line.

A damaged file is refused by its checksum. Here metadata and arrays are mutated, and the checksum is made to fit.
"""

import io
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from attack.nonsense import variants
from attack.specimens import SIGNALS, contents_of, written_by_runs

import pointillist as pt
from pointillist.cli.app import run
from pointillist.errors import CheckpointError, ModelFileError


@pytest.fixture(scope="module")
def made():
    """A model, a checkpoint and codes, as a run writes them, as metadata and arrays."""
    runs = written_by_runs()
    kinds = {"model": "model", "checkpoint": "model", "codes": "codes"}
    return {name: contents_of(runs[name], kind) for name, kind in kinds.items()}


def asked(what, *arguments, words, kind=(ModelFileError, CheckpointError)):
    """The answer, or None where it was refused with an error of this kind that has these words in it."""
    try:
        return what(*arguments)
    except kind as error:
        if str(words) not in str(error):
            raise
        return None


def quietly(*words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(word) for word in words])
    return code, out.getvalue() + err.getvalue()


def check_printed(words):
    assert "add --debug" not in words
    assert "Traceback" not in words
    assert all(char.isprintable() or char == "\n" for char in words), repr(words)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "amount", "least"), [("model", 300, 100), ("checkpoint", 200, 80), ("codes", 150, 50)]
)
def test_mutated_files_are_read_or_refused(made, tmp_path, kind, amount, least):
    path, refused = tmp_path / "m.checkpoint-00000001.safetensors", 0
    checkpoints = pt.Checkpoints(tmp_path / "m.safetensors")
    read = {"model": pt.load, "checkpoint": lambda path: checkpoints.peek(), "codes": pt.load_codes}[kind]
    words = tmp_path if kind == "checkpoint" else path
    for i, content in enumerate(variants(*made[kind], "codes" if kind == "codes" else "model", amount, 1)):
        path.write_bytes(content)
        found = asked(read, path, words=words)
        refused += found is None
        if kind == "codes" and found is not None:
            found.usage()
        if kind == "model" and found is not None:
            assert found.device == "cpu"
            if i % 5 == 0:
                asked(
                    found.encode, SIGNALS[:1], kind=ValueError, words="penalty"
                )  # only signals show whether that fits
        if kind == "model" and i % 10 == 0:
            check_printed(quietly("info", path)[1])
    assert refused > least


def test_mutated_models_in_commands(made, tmp_path):
    np.save(tmp_path / "signals.npy", SIGNALS)
    path = tmp_path / "m.safetensors"
    for content in list(variants(*made["model"], "model", 12, 4))[8:]:
        path.write_bytes(content)
        for words in (
            ["info", path, "--json"],
            ["show", path, "-o", tmp_path / "m.png"],
            ["encode", path, tmp_path / "signals.npy", "-o", tmp_path / "c.safetensors", "-q"],
        ):
            code, printed = quietly(*words)
            check_printed(printed)
            assert code in (0, 2), printed
