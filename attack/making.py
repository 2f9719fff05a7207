"""Makes one strange file: chooses a specimen and a mutation by a seed, and writes the outcome."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import NamedTuple

from attack.bytewise import mutated_bytes
from attack.containers import mutated_hdf5, mutated_store
from attack.nonsense import mutated_file, whole_file, with_header
from attack.specimens import (
    Files,
    Specimen,
    contents_of,
    specimens_of_files,
    written_by_runs,
    zarr_store,
    zipped,
)
from attack.structures import STRUCTURES
from attack.traps import Traps, put_in_place

NAMES = {
    "checkpoint": "strange.checkpoint-00000003.safetensors",
    "part": "strange.part-00000000.safetensors",
}
"""Names that files of some kinds must have."""
_ODD_NAMES = tuple(
    f"strange{odd}"
    for odd in ("\x1b[31m", "\u202e", " [bold]", "\nline", "e" * 150, "%s", "\udcff", "\x9b31m", "*", " -o")
)
_SHARES = {"bytes": 0.35, "structure": 0.57, "place": 0.08}


class Strange(NamedTuple):
    """A strange file that lies on the disk."""

    kind: str
    path: Path
    how: str
    """How it was made, for the title of a finding."""


def make_strange(seed: int, folder: Path, traps: Traps) -> Strange:
    """Write the strange file of a seed into a folder."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(specimens()))
    specimen = rng.choice(specimens()[kind])
    how = rng.choices(list(_SHARES), list(_SHARES.values()))[0]
    name = NAMES.get(kind, f"{rng.choice(_ODD_NAMES) if rng.random() < 0.05 else 'strange'}{specimen.suffix}")
    path = folder / name
    files = specimen.files
    if how == "bytes":
        files = _byte_mutated(rng, files)
    elif how == "structure":
        files = _structure_mutated(rng, specimen, traps)
    _write(path, files)
    if how == "place":
        how = put_in_place(path, rng, traps)
    return Strange(kind, path, f"{kind} {specimen.suffix}, {how}")


@functools.cache
def specimens() -> dict[str, list[Specimen]]:
    """Well-formed files by kind."""
    made: dict[str, list[Specimen]] = {}
    for one in [*specimens_of_files(), *_own()]:
        made.setdefault(one.kind, []).append(one)
    return made


@functools.cache
def _contents() -> list[bytes]:
    """Bytes of all specimens, for splices."""
    return [content for several in specimens().values() for one in several for content in one.files.values()]


def _own() -> list[Specimen]:
    """Files that only the package writes."""
    runs = written_by_runs()
    kinds = {"model": "model", "picture model": "model", "checkpoint": "checkpoint", "codes": "codes"}
    found = [Specimen(kind, ".safetensors", {"": runs[name]}) for name, kind in kinds.items()]
    metadata, arrays = contents_of(runs["codes"], "codes")
    row = {"name": "a", "shape": [60], "objective": 1.0, "gap": 0.0, "nonzeros": 2, "psnr": None, "status": "converged"}
    rows, skipped = [{**row, "seconds": 0.1}] * 3, [{"number": 3, "name": "b", "reason": "constant"}]
    part = {"first": 0, "next": 3, "run": {"data": {}}, "signals": rows, "skipped": skipped, **metadata}
    found.append(Specimen("part", ".safetensors", {"": whole_file("codes", part, arrays)}))
    return found


def _byte_mutated(rng: random.Random, files: Files) -> Files:
    name = rng.choice(sorted(files))
    return {**files, name: mutated_bytes(rng, files[name], _contents())}


def _structure_mutated(rng: random.Random, specimen: Specimen, traps: Traps) -> Files:
    if specimen.kind == "zarr":
        form = rng.choice([2, 3])
        if "" in specimen.files:
            return {"": zipped(mutated_store(rng, zarr_store(form), traps))}
        return mutated_store(rng, specimen.files, traps)
    return {"": _content_mutated(rng, specimen, specimen.files[""], traps)}


def _content_mutated(rng: random.Random, specimen: Specimen, content: bytes, traps: Traps) -> bytes:
    kind = specimen.kind
    if kind == "hdf5":
        return mutated_hdf5(rng, content, traps)
    if specimen.suffix == ".safetensors":
        if rng.random() < 0.15:
            return with_header(rng, content)
        inner = {"codes": "codes", "part": "codes"}.get(kind, "model")
        return mutated_file(rng, inner, *contents_of(content, inner))
    change = STRUCTURES.get(specimen.suffix)
    return mutated_bytes(rng, content) if change is None else change(rng, content, traps)


def _write(path: Path, files: Files) -> None:
    for name, content in files.items():
        target = path / name if name else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
