"""A long recording of many channels, learned from and coded in bounded memory.

``python -m benchmarks.recording --output bench-output [--samples N] [--channels 8 64] [--format npy zarr hdf5] [--rank 1]``

A recording is simulated into a file: rank-one waveforms at random times, and noise. Filters are learned from windows that
are drawn from it by ``pointillist learn``, the whole of it is coded by ``pointillist encode``, and its codes are written as
events. Each command runs in a process of its own; its time and peak memory are printed, with what ``--max-memory`` planned.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pointillist as pt
from benchmarks import measure
from benchmarks.context import Context, parser
from benchmarks.tables import Table
from pointillist.cli.app import run as command
from pointillist.plot.page import peak_mb
from pointillist.storage import load_codes_metadata

N_FILTERS, TAPS, WINDOW, WINDOWS = 8, 96, 2000, 2000
RATE, EVERY, NOISE = 1000.0, 1500, 0.3
"""Samples in a second; samples between two events of one filter, on average; deviation of the noise beside waveforms of
norm five."""
_PIECE = 2**18


def true_filters(channels: int) -> NDArray:
    """Rank-one waveforms (N_FILTERS, channels, TAPS) of norm one: bursts of several frequencies, each with a pattern."""
    rng = np.random.default_rng(channels)
    times = np.linspace(-1, 1, TAPS)
    shapes = [np.exp(-((3 * times) ** 2)) * np.cos(2 * np.pi * (k + 1) * times + k) for k in range(N_FILTERS)]
    patterns = rng.standard_normal((N_FILTERS, channels))
    filters = patterns[:, :, None] * np.stack(shapes)[:, None]
    return filters / np.sqrt(np.sum(filters**2, axis=(1, 2), keepdims=True))


def pieces(samples: int, channels: int) -> Any:
    """Yield the recording piece by piece, (channels, length) each, so that it is never in memory."""
    rng, filters = np.random.default_rng(0), true_filters(channels)
    carried = np.zeros((channels, TAPS - 1))
    for first in range(0, samples, _PIECE):
        length = min(_PIECE, samples - first)
        piece = np.concatenate([carried, np.zeros((channels, length))], axis=1)
        for one in filters:
            for place in rng.integers(length, size=length // EVERY):
                piece[:, place : place + TAPS] += rng.uniform(3, 6) * one[:, : piece.shape[1] - place]
        carried = piece[:, length:]
        noisy = piece[:, :length] + NOISE / np.sqrt(channels) * rng.standard_normal((channels, length))
        yield first, noisy.astype(np.float32)


def write(path: Path, samples: int, channels: int) -> None:
    """Simulate a recording (channels, samples) into a file of the format that its suffix names."""
    shape, chunks = (channels, samples), (channels, min(2**16, samples))
    if path.suffix == ".npy":
        array: Any = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    elif path.suffix == ".zarr":
        import zarr

        array = zarr.open(str(path), mode="w", shape=shape, chunks=chunks, dtype="f4")
    else:
        import h5py

        array = h5py.File(path, "w").create_dataset("recording", shape, "f4", chunks=chunks)
    for first, piece in pieces(samples, channels):
        array[:, first : first + piece.shape[1]] = piece


def called(words: list[str]) -> dict[str, Any]:
    """Run a command line in this process, which has no other work."""
    begin = time.perf_counter()
    if command(words):
        raise RuntimeError(f"pointillist {' '.join(words)} failed")
    return {"seconds": time.perf_counter() - begin, "command_peak_mb": peak_mb()}


def measured(path: Path, folder: Path, channels: int, rank: int | None = None) -> dict[str, Any]:
    """Learn from windows of a recording, code it whole, write its events; what that took and what came out."""
    model, codes, events = folder / "filters.safetensors", folder / "codes.safetensors", folder / "events.csv"
    learn = ["learn", path, "--ndim", 1, "--channels", "first", "--filters", N_FILTERS, "--size", TAPS, "-o", model]
    learn += ["--crops", WINDOWS, "--crop-size", WINDOW, "--batch", 10, "--epochs", 1, "--penalty", 1.0]
    learn += [] if rank is None else ["--rank", rank]
    learned = measure.apart("benchmarks.recording:called", words=[*map(str, learn), "--max-memory", "2G", "-q"])
    encode = ["encode", model, path, "-o", codes, "--events", events, "--sampling-rate", RATE, "-q"]
    coded = measure.apart("benchmarks.recording:called", words=[str(word) for word in encode])
    facts, fitted = load_codes_metadata(codes)["signals"][0], pt.load(model)
    with events.open() as lines:
        n_events = sum(1 for _ in lines) - 1
    return {
        "learned": learned,
        "coded": coded,
        "planned_mb": fitted.extra_["plan"]["memory"] / 2**20,
        "recovery": pt.recovery_score(fitted.filters_, true_filters(channels), channels=True),
        "gap": facts["gap"],
        "events": n_events,
        "events_mb": events.stat().st_size / 2**20,
    }


def main() -> None:
    options = parser("benchmarks.recording", __doc__, quick=None)
    options.add_argument("--samples", type=int, default=10_000_000)
    options.add_argument("--channels", type=int, nargs="+", default=[8])
    options.add_argument("--format", nargs="+", default=["npy"], choices=["npy", "zarr", "hdf5"])
    options.add_argument("--rank", type=int, help="of the filters over channels; any where it is not given")
    arguments = options.parse_args()
    context = Context.of(arguments)
    columns = ["file", "channels", "MB", "learning s", "peak MB", "planned MB", "recovery"]
    columns += ["coding s", "peak MB", "gap", "events", "CSV MB"]
    kind_of = "" if arguments.rank is None else f", of rank {arguments.rank},"
    table = Table(
        f"{arguments.samples:,} samples: {N_FILTERS} filters of {TAPS}{kind_of} learned from {WINDOWS:,} windows of "
        f"{WINDOW:,}, then all coded",
        columns,
        note=f"{measure.threads()} threads; pointillist learn and pointillist encode, each in a process of its own.",
    )
    for channels in arguments.channels:
        for kind in arguments.format:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"recording.{'h5' if kind == 'hdf5' else kind}"
                write(path, arguments.samples, channels)
                found = measured(path, Path(folder), channels, arguments.rank)
            learned, coded = found["learned"], found["coded"]
            size = 4 * arguments.samples * channels / 2**20
            first = [kind, channels, size, learned["seconds"], learned["command_peak_mb"], found["planned_mb"]]
            second = [f"{found['recovery']:.3f}", coded["seconds"], coded["command_peak_mb"], f"{found['gap']:.1e}"]
            table.add(*first, *second, found["events"], found["events_mb"])
    context.write("recording", [table])


if __name__ == "__main__":
    main()
