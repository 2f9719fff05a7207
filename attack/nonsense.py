"""Models, codes and checkpoints that are whole but hold nonsense, as nobody but a stranger would write them.

A damaged file is refused by its checksum. Here metadata and arrays are mutated, and the checksum is made to fit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from attack.jsonwise import DEEP, mutated_json, mutated_text
from pointillist.storage import codec

Arrays = Mapping[str, NDArray[Any]]

_WORST: dict[str, list[Any]] = {
    "f": [np.nan, np.inf, -1, 0, 1e38], "i": [0, 1, -1, 2**62, -(2**62)], "u": [0, 34, 91, 255], "b": [False],
}  # fmt: skip
_TYPES = (np.int64, np.uint8, np.float16, np.float64, bool)
_HISTORIES = (DEEP, "[1]", "{", '[{"iteration": 1, "iteration": 2}]', "null", '"\udcff"', '[{"nnz": "a"}]')


def whole_file(kind: str, metadata: Any, arrays: Arrays, *, text: str | None = None) -> bytes:
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
    return save(tensors, {"pointillist": header, "sha256": codec.checksum(header, tensors)})


def raw_headers(kind: str) -> list[str]:
    """Texts of headers that are hardly JSON, or hold hardly anything."""
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


def mutated_arrays(rng: random.Random, arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Arrays with one of another type or shape, with other values, missing, or too many."""
    changed = dict(arrays)
    name = rng.choice(sorted(changed))
    array = changed.pop(name)
    action = rng.choice(["remove", "rename", "type", "shape", "value", "value", "empty", "json", "several"])
    if action == "rename":
        changed[rng.choice(["\x1b[31m", "a" * 3000, "filters", "../x"])] = array
    elif action == "type":
        changed[name] = array.astype(rng.choice(_TYPES))
    elif action == "shape":
        changed[name] = rng.choice([array[None], array.ravel()[:-1], np.stack([array, array]), array.reshape(-1)])
    elif action in ("value", "several"):
        changed[name] = _with_values(rng, array, 1 if action == "value" else 5)
    elif action == "empty":
        changed[name] = array.reshape(-1)[:0]
    elif action == "json" and name == "history":
        words = rng.choice(_HISTORIES)
        changed[name] = np.frombuffer(words.encode("utf-8", "surrogatepass"), np.uint8)
    return changed


def _with_values(rng: random.Random, array: NDArray[Any], count: int) -> NDArray[Any]:
    flat = array.copy().reshape(-1)
    for _ in range(count if flat.size else 0):
        flat[rng.randrange(flat.size)] = rng.choice(_WORST[array.dtype.kind])
    return flat.reshape(array.shape)


def mutated_file(rng: random.Random, kind: str, metadata: Any, arrays: Arrays) -> bytes:
    """A whole file in which something is nonsense: the header's text, the metadata, or the arrays."""
    choice = rng.random()
    if choice < 0.05:
        return whole_file(kind, metadata, arrays, text=rng.choice(raw_headers(kind)))
    if choice < 0.1:
        text = mutated_text(rng, metadata).decode("utf-8", "replace")
        return whole_file(kind, metadata, arrays, text=text or "null")
    if metadata and choice < 0.6:
        return whole_file(kind, mutated_json(rng, metadata), arrays)
    return whole_file(kind, metadata, mutated_arrays(rng, arrays))


def variants(metadata: Any, arrays: Arrays, kind: str, count: int, seed: int) -> Iterator[bytes]:
    """All odd headers, and so many mutated files."""
    rng = random.Random(seed)
    for text in raw_headers(kind):
        yield whole_file(kind, metadata, arrays, text=text)
    for _ in range(count):
        yield mutated_file(rng, kind, metadata, arrays)


def with_header(rng: random.Random, content: bytes) -> bytes:
    """A safetensors file whose own header, of names, types, shapes and offsets, is mutated; the length is made to fit."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if rng.random() < 0.5:
        name = rng.choice([key for key in header if key != "__metadata__"])
        header[name] = mutated_json(rng, header[name])
        text = json.dumps(header).encode()
    else:
        text = mutated_text(rng, header)
    size = len(text) if rng.random() < 0.9 else rng.choice([0, 2**40, 2**63, max(len(text) - 1, 0), len(text) + 9])
    return size.to_bytes(8, "little") + text + content[8 + length :]
