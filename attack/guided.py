"""Readers attacked with coverage as a guide: bytes that reach new lines are mutated further, by Atheris (libFuzzer).

``python -m attack.guided TARGET CORPUS [libFuzzer's options]`` fuzzes one kind of file in its own process; the attack
does that for some seconds in each attempt. It is skipped where the package atheris is not installed.
"""

from __future__ import annotations

import json
import os
import pkgutil
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from attack.base import Finding

_SECONDS = 20
_CORPUS = Path("attack-output") / "corpus"
_INSTRUMENTED = ["pointillist.storage", "pointillist.learners", "pointillist.data", "pointillist.plot", "tifffile"]


class Target(NamedTuple):
    """One kind of file that is fuzzed."""

    kind: str
    """What `READERS` know it as."""
    suffix: str
    parts: str = ""
    """Of models and codes: the kind of file whose metadata are fuzzed, as JSON, with a checksum that fits."""


TARGETS = {
    "npy": Target("npy", ".npy"),
    "tiff": Target("tiff", ".tif"),
    "png": Target("picture", ".png"),
    "jpeg": Target("picture", ".jpg"),
    "hdf5": Target("hdf5", ".h5"),
    "model": Target("model", ".safetensors", "model"),
    "codes": Target("codes", ".safetensors", "codes"),
    "safetensors": Target("model", ".safetensors"),
}


class Guided:
    """The attack by coverage; an attempt fuzzes one kind of file for some seconds and keeps its corpus for the next."""

    name = "guided"
    about = "readers of files, fuzzed with coverage as a guide"
    patience = 20.0 * _SECONDS

    @property
    def missing(self) -> str:
        """Why it cannot run here."""
        return "" if find_spec("atheris") is not None else "pip install atheris"

    def attempt(self, seed: int, folder: Path) -> list[Finding]:
        """Fuzz the kind of file that is this seed's turn."""
        target = sorted(TARGETS)[seed % len(TARGETS)]
        corpus = _CORPUS.absolute() / target
        corpus.mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={_SECONDS}",
            f"-seed={seed + 1}",
            "-timeout=10",
            "-rss_limit_mb=4096",
            "-max_len=65536",
        ]
        command = [sys.executable, "-m", "attack.guided", target, str(corpus), *options, f"-artifact_prefix={folder}/"]
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace", check=False)
        found = tuple(sorted(folder.glob("[a-z]*-*")))
        if done.returncode == 0 and not found:
            return []
        words = next(
            (line for line in done.stderr.splitlines() if "Fault(" in line or "ERROR" in line), "it ended badly"
        )
        return [Finding(self.name, seed, "fuzzed", f"{target}: {words[:300]}", done.stderr[-20_000:], found)]


def _specimens(target: Target) -> list[bytes]:
    """Well-formed inputs to begin with."""
    from attack.making import specimens
    from attack.specimens import contents_of

    made = [one.files[""] for one in specimens()[target.kind] if one.suffix == target.suffix]
    if target.parts:
        return [json.dumps(contents_of(content, target.parts)[0]).encode() for content in made]
    return made


def _writer(target: Target) -> Callable[[bytes], bytes]:
    """What makes the content of a file of the fuzzer's bytes."""
    if not target.parts:
        return lambda data: data
    from attack.making import specimens
    from attack.nonsense import whole_file
    from attack.specimens import contents_of
    from pointillist.storage.codec import FORMAT_VERSION

    arrays = contents_of(specimens()[target.kind][0].files[""], target.parts)[1]
    start = f'{{"format": "pointillist-{target.parts}", "format_version": {FORMAT_VERSION}, "pointillist_version": "1"'

    def write(data: bytes) -> bytes:
        metadata = data.decode("utf-8", "replace")
        return whole_file(target.parts, None, arrays, text=f'{start}, "created": "x", "metadata": {metadata}}}')

    return write


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    import atheris

    from pointillist import kernels

    target = TARGETS[sys.argv[1]]
    # What is loaded already is not instrumented: numba compiles no function with foreign instructions in it.
    for module in pkgutil.iter_modules(kernels.__path__):
        import_module(f"{kernels.__name__}.{module.name}")
    with atheris.instrument_imports(include=_INSTRUMENTED):
        from attack.judging import judge_reader
        from attack.readers import READERS
    from attack.bytewise import mutated_bytes

    corpus, write = Path(sys.argv[2]), _writer(target)
    for number, content in enumerate(_specimens(target)):
        (corpus / f"specimen-{number}").write_bytes(content)
    path = Path(tempfile.mkdtemp(prefix="guided-")) / f"strange{target.suffix}"
    os.environ["TMPDIR"] = tempfile.tempdir = str(path.parent)

    def test(data: bytes) -> None:
        path.write_bytes(write(data))
        for read in READERS[target.kind]:
            faults = judge_reader(read, path)
            if faults:
                raise AssertionError(str(faults[0]))

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        changed = mutated_bytes(rng, data or b"\0") if rng.random() < 0.5 else atheris.Mutate(data, size)
        return bytes(changed[:size])

    atheris.Setup([sys.argv[0], *sys.argv[2:]], test, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
