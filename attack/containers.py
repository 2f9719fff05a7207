"""Zarr stores and HDF5 files that ask for too much: codecs that run code, other people's files, knots of links, bombs."""

from __future__ import annotations

import io
import json
import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from attack.bytewise import mutated_bytes
from attack.jsonwise import mutated_text
from attack.specimens import STACK, Files
from attack.traps import Traps, bombs

_CODECS: tuple[Any, ...] = (
    {"id": "pickle"}, {"id": "pickle", "protocol": 0}, {"id": "json2"}, {"id": "msgpack2"}, {"id": "vlen-utf8"},
    {"id": "vlen-array", "dtype": "<f4"}, {"id": "delta", "dtype": "|O"}, {"id": "delta", "dtype": "<f4"},
    {"id": "astype", "encode_dtype": "<f4", "decode_dtype": "|O"},
    {"id": "quantize", "digits": 1, "dtype": "<f4"}, {"id": "fixedscaleoffset", "scale": 0, "offset": 0, "dtype": "<f4"},
    {"id": "packbits"}, {"id": "bitround", "keepbits": 3}, {"id": "shuffle", "elementsize": 0}, {"id": "blosc"},
    {"id": "zstd"}, {"id": "lz4"}, {"id": "bz2"}, {"id": "lzma"}, {"id": "gzip"}, {"id": "crc32"}, {"id": "categorize"},
    {"id": "base64"}, {"id": "n5_wrapper"}, {"id": "../x"}, {"id": "\x1b[31m"}, {"id": 5}, {}, "zlib", 5,
)  # fmt: skip
_BOMBS = ("zlib", "bz2", "lzma", "gzip")
_LARGE: tuple[dict[str, Any], ...] = (
    {"shape": [2**40, 8, 9]}, {"shape": [4, 32, 32], "chunks": [1, 2**15, 2**15]}, {"chunks": [2**40, 8, 9]},
    {"shape": [2**63, 2**63, 9]}, {"shape": [-1, 8, 9]}, {"shape": [3, 0, 9]}, {"chunks": [0, 0, 0]}, {"shape": []},
    {"shape": [3] * 40, "chunks": [1] * 40}, {"dtype": "|O"}, {"dtype": [["a", "<f4"]]}, {"dtype": "<M8[ns]"},
    {"fill_value": "NaN"}, {"fill_value": "\x1b[31m"}, {"order": "X"}, {"dimension_separator": "../"}, {"zarr_format": 1},
)  # fmt: skip


def mutated_store(rng: random.Random, files: Files, traps: Traps) -> Files:
    """A store whose metadata or chunks are changed, or ask for what no store should ask."""
    changed = dict(files)
    name = next(one for one in (".zarray", "zarr.json") if one in files)
    plain: dict[str, Any] = json.loads(files[name])
    chunks = sorted(one for one in files if one != name)
    choice = rng.random()
    if choice < 0.3:
        changed[name] = mutated_text(rng, plain)
    elif choice < 0.45:
        chunk = rng.choice(chunks)
        changed[chunk] = mutated_bytes(rng, changed[chunk], list(files.values()))
    elif choice < 0.6:
        changed[name] = json.dumps({**plain, **_asked(rng, plain)}).encode()
    elif choice < 0.96:
        changed |= _coded(rng, plain, name, chunks, traps)
    else:
        changed |= _bomb(rng, plain, name, chunks)
    if rng.random() < 0.1:
        changed[rng.choice([".zattrs", ".zgroup", ".zmetadata", "inner/zarr.json", "x\x1b[31m/.zarray"])] = (
            mutated_text(rng, plain)
        )
    return changed


def _asked(rng: random.Random, plain: dict[str, Any]) -> dict[str, Any]:
    asked = dict(rng.choice(_LARGE))
    if plain["zarr_format"] == 3:
        if "dtype" in asked:
            asked["data_type"] = asked.pop("dtype")
        if "chunks" in asked:
            asked["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": asked.pop("chunks")}}
    return asked


def _coded(rng: random.Random, plain: dict[str, Any], name: str, chunks: list[str], traps: Traps) -> Files:
    """The store with another codec, and chunks that are pickles, which that codec may load."""
    codec = rng.choice(_CODECS)
    if plain["zarr_format"] == 2:
        place = rng.choice([{"compressor": codec}, {"filters": [codec]}, {"filters": [codec], "compressor": None}])
        asked = {**plain, **place, **rng.choice([{}, {}, {"dtype": "|O"}])}
    else:
        settings = {key: value for key, value in codec.items() if key != "id"} if isinstance(codec, dict) else {}
        own = codec.get("id", "") if isinstance(codec, dict) else codec
        new = {"name": rng.choice([own, f"numcodecs.{own}"]), "configuration": settings}
        inside = {
            "chunk_shape": rng.choice([[1, 8, 9], [1, 4, 3], [0, 0, 0], [1, 1]]),
            "codecs": [*plain["codecs"], new],
            "index_codecs": rng.choice([[new], plain["codecs"][:1]]),
        }
        sharded = {"name": "sharding_indexed", "configuration": inside}
        asked = {**plain, "codecs": rng.choice([[*plain["codecs"], new], [new], [sharded], [new, *plain["codecs"]]])}
    held = rng.choice([traps.pickle, zlib.compress(traps.pickle), None])
    return {name: json.dumps(asked).encode(), **({} if held is None else dict.fromkeys(chunks, held))}


def _bomb(rng: random.Random, plain: dict[str, Any], name: str, chunks: list[str]) -> Files:
    """The store with a chunk that becomes a gigabyte, though its array is small."""
    codec = rng.choice(_BOMBS)
    if plain["zarr_format"] == 2:
        asked = {**plain, "compressor": {"id": codec, **({"format": 1} if codec == "lzma" else {})}}
    else:
        how = {"name": "gzip", "configuration": {"level": 1}}
        if codec != "gzip":
            how = {"name": f"numcodecs.{codec}", "configuration": {}}
        asked = {**plain, "codecs": [plain["codecs"][0], how]}
    return {name: json.dumps(asked).encode(), chunks[0]: bombs()[codec]}


def mutated_hdf5(rng: random.Random, content: bytes, traps: Traps) -> bytes:
    """An HDF5 file with something in it that no file of a friend has."""
    import h5py

    stream = io.BytesIO(content)
    with h5py.File(stream, "r+") as file:
        rng.choice(_HDF5)(h5py, file, rng, traps)
    return stream.getvalue()


def _external_link(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    file["group/images"] = h5py.ExternalLink(
        rng.choice([str(traps.secret), "/etc/hostname", "../secret.h5", "."]), "/group/images"
    )


def _external_storage(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    external = [(str(traps.secret), 0, 4 * 3 * 8 * 9)]
    file.create_dataset("group/images", (3, 8, 9), "f4", external=external)


def _virtual(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    layout = h5py.VirtualLayout((3, 8, 9), "f4")
    layout[...] = h5py.VirtualSource(rng.choice([str(traps.secret), "."]), "group/images", (3, 8, 9))
    file.create_virtual_dataset("group/images", layout)


def _knot(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    group = file["/"]
    for level in range(30):
        group["a"] = h5py.SoftLink(f"/{'b/' * level}")
        group["b"] = group.file["/"] if rng.random() < 0.3 else h5py.SoftLink("/a/a")
        group = group.create_group("c")
    file["group/images"] = h5py.SoftLink("/a/" + "a/b/" * 30)


def _claims(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    shape, chunks = rng.choice(
        [
            ((2**40, 8, 9), (1, 8, 9)),
            ((3, 2**20, 2**20), (1, 64, 64)),
            ((4, 2**15, 2**15), (1, 2**14, 2**15)),
            ((0, 8, 9), None),
        ]
    )
    file.create_dataset("group/images", shape, "f4", chunks=chunks)


def _odd_type(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    kind = rng.choice(
        ["c16", "f2", "?", "S7", h5py.string_dtype(), h5py.vlen_dtype("f4"), h5py.ref_dtype, ">i8", "u8", "V5"]
    )
    compound = np.dtype([("a\x1b[31m", "f4"), ("b", "i2")])
    file.create_dataset("group/images", (3, 8, 9), compound if rng.random() < 0.2 else kind)


def _chunk_bomb(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    del file["group/images"]
    dataset = file.create_dataset("group/images", (3, 8, 9), "f4", chunks=(1, 8, 9), compression="gzip")
    dataset.id.write_direct_chunk((0, 0, 0), bombs()["zlib"])


def _odd_names(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    for name in (b"\xff\xfe", "\x1b[2J\u202e".encode(), b"a" * 3000, b"[bold]x", b"..", b"new\nline"):
        file.create_dataset(name, data=STACK)
    file["group/images"].attrs["x\x1b[31m"] = "\x1b[2J"


def _many(h5py: Any, file: Any, rng: random.Random, traps: Traps) -> None:
    for i in range(300):
        file[f"group/{i}"] = file["group"]
    file.move("group/images", "images" if rng.random() < 0.5 else "group/other")


_HDF5: tuple[Callable[[Any, Any, random.Random, Traps], None], ...] = (
    _external_link, _external_storage, _virtual, _knot, _claims, _odd_type, _chunk_bomb, _odd_names, _many,
)  # fmt: skip
