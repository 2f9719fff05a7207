"""Files that are whole but hold nonsense, as nobody but a stranger would write them: each gets one clear line.

A damaged file is refused by its checksum. Here metadata and arrays are mutated, and the checksum is made to fit.
"""

import copy
import io
import json
import random
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from safetensors.numpy import save_file

import pointillist as pt
from pointillist.cli.running import run
from pointillist.errors import CheckpointError, ModelFileError
from pointillist.storage import codec, read_arrays

SIGNALS = np.random.default_rng(0).standard_normal((3, 60)).astype(np.float32)
DEEP = "[" * 500 + "]" * 500
STRANGE = [
    None, True, 0, -1, 1e308, 10**400, 2**63, -0.5, "", "cuda", "tcp://x:1", "\x1b[2J", "\udcff\u202e", [],
    [[]], {}, [1, "a"], {"tuple": 3}, {"tuple": [0]}, {"array": "filters"}, {"array": []},
    {"class": "Ridge", "settings": {}},
    {"class": "open", "settings": {"file": "/etc/passwd"}}, {"class": [], "settings": None},
]  # fmt: skip
WORST = {"f": [np.nan, np.inf, -1, 0, 1e38], "i": [0, 1, -1, 2**62, -(2**62)], "u": [0, 34, 91, 255], "b": [False]}


def write_anything(path, kind, metadata, arrays, *, text=None):
    """A file with any metadata, or the text of its header, and any arrays, that its checksum calls whole."""
    header = text or json.dumps(
        {
            "format": f"pointillist-{kind}",
            "format_version": codec.FORMAT_VERSION,
            "pointillist_version": codec.own_version(),
            "created": "2030-01-01T00:00:00+00:00",
            "metadata": metadata,
        }
    )
    tensors = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    save_file(tensors, path, {"pointillist": header, "sha256": codec._checksum(header, tensors)})


def places(value, inside=()):
    """The way to every entry of nested lists and mappings."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*inside, key)
        yield from places(item, (*inside, key))


def mutated(rng, metadata):
    """Metadata with one entry replaced, removed, renamed or added."""
    metadata = copy.deepcopy(metadata)
    way = rng.choice(list(places(metadata)))
    holder = metadata
    for key in way[:-1]:
        holder = holder[key]
    action = rng.choice(["replace", "replace", "replace", "remove", "rename", "add"])
    if action == "replace":
        holder[way[-1]] = copy.deepcopy(rng.choice(STRANGE))
    elif action == "remove":
        del holder[way[-1]]
    elif isinstance(holder, dict):
        value = holder.pop(way[-1]) if action == "rename" else 1
        holder[rng.choice(["", "cluster", "callbacks", "x\x1b[31m"])] = value
    return metadata


def mutated_arrays(rng, arrays):
    """Arrays with one of another type or shape, with other values, missing, or too many."""
    arrays = dict(arrays)
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    action = rng.choice(["remove", "rename", "type", "shape", "value", "value", "empty", "json"])
    if action == "rename":
        arrays["\x1b[31m"] = array
    elif action == "type":
        arrays[name] = array.astype(rng.choice([np.int64, np.uint8, np.float16, np.float64, bool]))
    elif action == "shape":
        arrays[name] = rng.choice([array[None], array.ravel()[:-1], np.stack([array, array])])
    elif action == "value":
        flat = array.copy().reshape(-1)
        if flat.size:
            flat[rng.randrange(flat.size)] = rng.choice(WORST[array.dtype.kind])
        arrays[name] = flat.reshape(array.shape)
    elif action == "empty":
        arrays[name] = array.reshape(-1)[:0]
    elif action == "json" and name == "history":
        words = rng.choice(
            [DEEP, "[1]", "{", '[{"iteration": 1, "iteration": 2}]', "null", '"\udcff"', '[{"nnz": "a"}]']
        )
        arrays[name] = np.frombuffer(words.encode("utf-8", "surrogatepass"), np.uint8)
    return arrays


def raw_headers(kind):
    start = f'{{"format": "pointillist-{kind}", "format_version": {codec.FORMAT_VERSION}, '
    whole = '"pointillist_version": "1", "created": "x", "metadata": '
    return [
        start + whole + DEEP + "}",
        start + whole + "[" * 10**5,
        start + whole + '{"a": 1, "a": 2}}',
        start + whole + '{"a": NaN}}',
        start + whole + '{"a": 1' + "0" * 5000 + "}}",
        start + whole + "5}",
        start + '"created": 5, "pointillist_version": [], "metadata": {}}',
        start + '"metadata": {}}',
        f'{{"format": ["pointillist-{kind}"], "format_version": {DEEP}}}',
        "null",
        '"\\ud800"',
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, a checkpoint and codes, as a run writes them, as metadata and arrays."""
    folder = tmp_path_factory.mktemp("made")
    update = pt.FilterUpdate(init=np.ones((3, 5)))
    model = pt.OnlineCSC([2, 1], [3, 5], [0.5, 0.6, 0.7], solver=pt.CoordinateDescent(), update=update, n_jobs=1)
    model.set_params(random_state=0).fit(SIGNALS, checkpoint=pt.Checkpoints(folder / "m", every=1, keep=True))
    pt.save(model, folder / "m", preprocessing={"normalise": "none"}, extra={"data": {"signals": 3, "paths": ["a"]}})
    pt.save_codes(model.transform(SIGNALS), folder / "c")
    checkpoint = next(folder.glob("m.checkpoint-*3.safetensors"))
    read = {"model": (folder / "m", "model"), "checkpoint": (checkpoint, "model"), "codes": (folder / "c", "codes")}
    return {name: read_arrays(path, kind) for name, (path, kind) in read.items()}


def variants(stored, kind, count, seed):
    """Mutations, as arguments for `write_anything`."""
    rng = random.Random(seed)
    for text in raw_headers(kind):
        yield stored.metadata, stored.arrays, text
    for _ in range(count):
        if stored.metadata and rng.random() < 0.6:
            yield mutated(rng, stored.metadata), stored.arrays, None
        else:
            yield stored.metadata, mutated_arrays(rng, stored.arrays), None


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
    assert "unexpected" not in words
    assert "Traceback" not in words
    assert all(char.isprintable() or char == "\n" for char in words), repr(words)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_mutated_models_are_read_or_refused(made, tmp_path):
    path, refused = tmp_path / "m.safetensors", 0
    for i, (metadata, arrays, text) in enumerate(variants(made["model"], "model", 300, 1)):
        write_anything(path, "model", metadata, arrays, text=text)
        model = asked(pt.load, path, words=path)
        refused += model is None
        assert model is None or model.device == "cpu"
        if model is not None and i % 5 == 0:
            asked(model.encode, SIGNALS[:1], kind=ValueError, words="penalty")  # only signals show whether that fits
        if i % 10 == 0:
            check_printed(quietly("info", path)[1])
    assert refused > 100


def test_mutated_checkpoints_are_read_or_refused(made, tmp_path):
    path, refused = tmp_path / "m.checkpoint-00000001.safetensors", 0
    checkpoint = pt.Checkpoints(tmp_path / "m.safetensors")
    for metadata, arrays, text in variants(made["checkpoint"], "model", 200, 2):
        write_anything(path, "model", metadata, arrays, text=text)
        refused += asked(checkpoint.peek, words=tmp_path) is None
    assert refused > 80


def test_mutated_codes_are_read_or_refused(made, tmp_path):
    path, refused = tmp_path / "c.safetensors", 0
    for metadata, arrays, text in variants(made["codes"], "codes", 150, 3):
        write_anything(path, "codes", metadata, arrays, text=text)
        codes = asked(pt.load_codes, path, words=path)
        refused += codes is None
        if codes is not None:
            codes.usage()
    assert refused > 50


def test_mutated_models_in_commands(made, tmp_path):
    np.save(tmp_path / "signals.npy", SIGNALS)
    path = tmp_path / "m.safetensors"
    for metadata, arrays, text in list(variants(made["model"], "model", 12, 4))[8:]:
        write_anything(path, "model", metadata, arrays, text=text)
        for words in (
            ["info", path, "--json"],
            ["show", path, "-o", tmp_path / "m.png"],
            ["encode", path, tmp_path / "signals.npy", "-o", tmp_path / "c.safetensors", "-q"],
        ):
            code, printed = quietly(*words)
            check_printed(printed)
            assert code in (0, 2), printed
