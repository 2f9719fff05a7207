"""The CUDA engine beside the CPU's: ``python -m benchmarks.gpu --output bench-output [--quick]``.

Agreement, encoding throughput, our lead over SPORCO as a map, online learning, one very large image, volumes and where the
time goes, as tables on the terminal and in ``gpu.json``. Throughput is of `encode` with its checks, from NumPy to NumPy with
transfers and from CuPy to CuPy without. SPORCO's CuPy port is run beside it where it can be imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper.timing import repeated

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.gpu_map import device_map, leads
from benchmarks.inputs import PENALTY, Inputs
from benchmarks.measure import profiled
from benchmarks.sporco_cupy import rival
from benchmarks.tables import Table
from pointillist.cuda.device import open_device
from pointillist.data import photographs
from pointillist.problem import Geometry, Problem, broadcast_penalty
from pointillist.solvers.encoding import encode
from pointillist.solvers.on_device import DeviceDescent

TENSOR_PEAK = 989e12  # bfloat16 operations a second of an H200's tensor cores, by its data sheet
SIDE = 100


def main() -> None:
    options = parser("benchmarks.gpu", __doc__, quick="small sizes: a smoke test")
    options.add_argument("--device", default="cuda")
    options.add_argument("--only", help=f"comma-separated, of {', '.join(one.__name__ for one in EXPERIMENTS)}")
    arguments = options.parse_args()
    chosen = [one for one in EXPERIMENTS if arguments.only is None or one.__name__ in arguments.only.split(",")]
    device = open_device(arguments.device)  # fails at once where there is none
    context, inputs = Context.of(arguments), Inputs()
    name = device.cupy.cuda.runtime.getDeviceProperties(device.number)["name"].decode()
    tables: list[Table] = []
    rates: dict[str, float] = {}
    maps: list[dict[str, Any]] = []
    for experiment in chosen:
        rows = experiment(inputs, arguments.device, context.quick)
        if experiment is rival:
            rates = {row["what"]: row["images/s"] for row in rows}
        if experiment in (throughput, circular):
            for row in rows:
                row["times SPORCO"] = row["images/s"] / rates.get(f"encode {row['filters']}", np.nan)
        if experiment is device_map:
            maps = leads(rows)
        tables.append(Table.of(str(experiment.__doc__).splitlines()[0], rows))
        context.show(tables[-1])
        context.write("gpu", tables, show=False, title=f"On a GPU ({name})", data=inputs.name, maps=maps)


def _seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Median wall time, after one call that compiles."""
    return float(np.median(repeated(work, repeats)))


def _bank(count: int, *size: int) -> NDArray:
    filters = np.random.default_rng(0).standard_normal((count, *size))
    norms = np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    return (filters / norms).astype(np.float32)


def agreement(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Objectives of the CPU and the GPU at the same tolerance (1e-4)."""
    images, rng = inputs.train[:2], np.random.default_rng(0)
    masks = (rng.random(images.shape) < 0.5).astype(np.float32)
    cases: list[tuple[str, NDArray, NDArray, dict[str, Any]]] = []
    for boundary in ("valid", "same", "full", "circular"):
        for masked in (False, True):
            for nonnegative in (False, True):
                options = {"boundary": boundary, "nonnegative": nonnegative, "weights": masks if masked else None}
                label = f"K=100 11×11 {boundary}{' masked' * masked}{' non-negative' * nonnegative}"
                cases.append((label, images, inputs.filters, options))
    for count, side, shape in [(16, 5, (60, 77)), (64, 7, (100, 100)), (30, 21, (100, 100)), (400, 11, (100, 100))]:
        part = images[:, : shape[0], : shape[1]]
        cases.append((f"K={count} {side}×{side} on {shape[0]}×{shape[1]}", part, _bank(count, side, side), {}))
    cases.append(("K=1000 11×11", images, _bank(1000, 11, 11), {}))
    cases.append(("K=400 learned", images, inputs.overcomplete, {}))
    cases.append(("p = 0.1", images, inputs.filters, {"sampling": 0.1, "random_state": 0}))
    cases.append(("300×300, tiles", inputs.large(300)[None], inputs.filters, {}))
    volume = inputs.volumes(1, 40)
    cases.append(("K=20 7×7×7 on 40×40×40, tiles", volume, _bank(20, 7, 7, 7), {}))
    seen = (rng.random(volume.shape) < 0.5).astype(np.float32)
    cases.append(("K=20 5×5×5 full masked", volume, _bank(20, 5, 5, 5), {"boundary": "full", "weights": seen}))
    rows = []
    for label, signals, filters, options in cases[::5] if quick else cases:
        ours = encode(signals, filters, PENALTY, tol=1e-4, device=device, **options)
        theirs = encode(signals, filters, PENALTY, tol=1e-4, **options)
        difference = float(np.max(np.abs(ours.objective / theirs.objective - 1)))
        row = {"problem": label, "relative difference": difference, "GPU gap": float(np.max(ours.gap))}
        rows.append({**row, "CPU gap": float(np.max(theirs.gap)), "codes": ours.codes.nnz, "status": ours.status.value})
    return rows


def throughput(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Encoding 100×100 images, λ = 1, from NumPy to NumPy and from CuPy to CuPy."""
    rows = []
    cupy = open_device(device).cupy
    several = np.concatenate([inputs.train, inputs.unseen])
    for filters, count in ((inputs.filters, 4096), (inputs.overcomplete, 2048)):
        best = encode(several, filters, PENALTY, tol=1e-5, device=device).objective
        images = np.resize(several, (64 if quick else count, SIDE, SIDE))
        for tol in (0.2, 0.1, 0.05, 0.01, 1e-3):
            result = encode(several, filters, PENALTY, tol=tol, device=device)
            seconds = _seconds(lambda f=filters, t=tol, x=images: encode(x, f, PENALTY, tol=t, device=device))
            there = cupy.asarray(images)
            stayed = _seconds(lambda f=filters, t=tol, x=there: encode(x, f, PENALTY, tol=t, device=device))
            excess = result.objective / best - 1
            rows.append(
                {
                    "filters": len(filters),
                    "certified gap": tol,
                    "mean excess": float(np.mean(excess)),
                    "largest excess": float(np.max(excess)),
                    "rounds": float(np.mean(result.iterations)),
                    "images/s": len(images) / seconds,
                    "CuPy images/s": len(images) / stayed,
                }
            )
    return rows


def circular(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Circular images, SPORCO's own problem: encoding 100×100 images, λ = 1, from NumPy to NumPy."""
    rows = []
    several = np.concatenate([inputs.train, inputs.unseen])
    how: dict[str, Any] = {"boundary": "circular", "device": device}
    for filters, count in ((inputs.filters, 4096), (inputs.overcomplete, 2048)):
        images = np.resize(several, (32 if quick else count, SIDE, SIDE))
        best = encode(several, filters, PENALTY, tol=1e-5, **how).objective
        for tol in (0.05, 1e-3):
            excess = encode(several, filters, PENALTY, tol=tol, **how).objective / best - 1
            seconds = _seconds(lambda f=filters, t=tol, x=images: encode(x, f, PENALTY, tol=t, **how))
            row = {"filters": len(filters), "certified gap": tol, "mean excess": float(np.mean(excess))}
            rows.append({**row, "largest excess": float(np.max(excess)), "images/s": len(images) / seconds})
    return rows


def penalties(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Smaller penalties: encoding 100×100 images, 100 filters, from NumPy to NumPy."""
    rows = []
    several = np.concatenate([inputs.train, inputs.unseen])
    for penalty, count in ((1.0, 4096), (0.3, 2048), (0.1, 2048), (0.03, 1024)):
        images = np.resize(several, (len(several) if quick else count, SIDE, SIDE))
        for boundary in ("same", "circular"):
            how: dict[str, Any] = {"boundary": boundary, "device": device}
            best = encode(several, inputs.filters, penalty, tol=1e-4, **how).objective
            for tol in (0.15, 0.1, 1e-3):
                result = encode(several, inputs.filters, penalty, tol=tol, **how)
                seconds = _seconds(lambda x=images, p=penalty, t=tol, h=how: encode(x, inputs.filters, p, tol=t, **h))
                row = {"penalty": penalty, "boundary": boundary, "certified gap": tol}
                excess = result.objective / best - 1
                row |= {"mean excess": float(np.mean(excess)), "largest excess": float(np.max(excess))}
                row |= {"rounds": float(np.mean(result.iterations)), "codes a pixel": result.codes.nnz / several.size}
                rows.append({**row, "images/s": len(images) / seconds})
    return rows


def learning(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Online learning from a stream, p = 0.1, transfers included."""
    stream = inputs.patches("train", 128 if quick else 1600)
    test = inputs.patches("test", 10 if quick else 50)
    cases = [(100, device, 64, True), (100, device, 64, False), (100, device, 256, True), (100, device, 256, False)]
    cases += [(100, "cpu", 64, False), (400, device, 64, True), (400, device, 256, True)]
    rows = []
    for count, where, size, ahead in cases:
        start = inputs.start(count)
        part = stream[:640] if where == "cpu" else np.concatenate([stream] * (1 if quick else 4))
        model = pt.OnlineCSC(
            count,
            11,
            PENALTY,
            sampling=0.1,
            batch_size=size,
            update=pt.FilterUpdate(init=start),
            random_state=0,
            device=where,
        )
        held_out: dict[int, float] = {}
        batches: Any = (part[first : first + size] for first in range(0, len(part), size))
        seen, seconds, begin = 0, 0.0, time.perf_counter()
        for batch in pt.prefetch(batches, where) if ahead else batches:
            model.partial_fit(batch)
            seconds += time.perf_counter() - begin if seen else 0.0  # the first step compiles
            seen += size
            if seen in (640, 1600):
                held_out[seen] = float(np.mean(encode(test, model.filters_, PENALTY, device=device).objective))
            begin = time.perf_counter()
        row = {
            "filters": count,
            "device": where,
            "mini-batch": size,
            "moved ahead": ahead,
            "images/s": (len(part) - size) / max(seconds, 1e-9),
        }
        rows.append({**row, "held out at 640": held_out.get(640), "at 1600": held_out.get(1600)})
    return rows


def large(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """One very large image, 100 filters."""
    side = 512 if quick else 4096
    image = inputs.large(side)[None]
    opened = open_device(device)
    pool = opened.cupy.get_default_memory_pool()
    rows = []
    for tol in (0.1, 1e-2, 1e-3):
        pool.free_all_blocks()
        begin = time.perf_counter()
        result = encode(image, inputs.filters, PENALTY, tol=tol, device=device)
        seconds = time.perf_counter() - begin
        row = {"side": side, "tolerance": tol, "seconds": seconds, "gap": float(result.gap[0])}
        row |= {"rounds": int(result.iterations[0]), "codes": result.codes.nnz, "status": result.status.value}
        rows.append({**row, "device memory (GB)": pool.total_bytes() / 1e9})
    return rows


def volumes(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Volumes of 64×64×64, 50 filters of 7×7×7."""
    signals, filters = inputs.volumes(1 if quick else 16, 24 if quick else 64), _bank(50, 7, 7, 7)
    rows = []
    for tol in (0.1, 1e-2):
        seconds = _seconds(lambda t=tol: encode(signals, filters, PENALTY, tol=t, device=device), 1)
        result = encode(signals, filters, PENALTY, tol=tol, device=device)
        row = {"volumes": len(signals), "tolerance": tol, "seconds": seconds, "volumes/s": len(signals) / seconds}
        row |= {"million voxels/s": signals.size / seconds / 1e6, "gap": float(np.max(result.gap))}
        rows.append({**row, "codes": result.codes.nnz, "status": result.status.value})
    return rows


def restoration(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Half of the pixels of a photograph filled in by the shipped dictionary, everything chosen automatically."""
    picture = np.round(255 * photographs("test")["camera"]).astype(np.uint8)
    rows = []
    for times in (1,) if quick else (1, 2, 4):
        image = np.tile(picture, (times, times))
        mask = np.random.default_rng(0).random(image.shape) < 0.5
        row: dict[str, Any] = {"picture": "×".join(str(side) for side in image.shape)}
        for where in ("cpu", device):
            mended = pt.inpaint(image, mask, device=where)
            row[f"{where} (s)"] = _seconds(lambda x=image, m=mask, d=where: pt.inpaint(x, m, device=d), 1)
            row[f"{where} PSNR (dB)"] = float(pt.psnr(image, mended))
        rows.append(row)
    return rows


def stages(inputs: Inputs, device: str, quick: bool) -> list[dict[str, Any]]:
    """Where the time goes, each stage waited for (they overlap otherwise)."""
    rows = []
    several = np.concatenate([inputs.train, inputs.unseen])
    for filters, tol in ((inputs.filters, 0.1), (inputs.filters, 1e-3), (inputs.overcomplete, 0.05)):
        images = np.resize(several, (64 if quick else 1024, 1, SIDE, SIDE))
        geometry = Geometry((SIDE, SIDE), filters.shape[1:], 1, "same")
        penalty = broadcast_penalty(PENALTY, len(filters), geometry)
        solver = DeviceDescent(settings=pt.solvers.CoordinateDescent(tol=tol), device=device)
        state = solver.prepare(Problem(filters=filters[:, None], geometry=geometry, penalty=penalty))
        solver.solve(state, list(images))
        seconds: dict[str, float] = {}
        state.engine.seconds = seconds
        result = solver.solve(state, list(images))
        work = 2.0 * filters.size * SIDE**2 * float(np.sum(result.iterations + 1))
        row: dict[str, Any] = {"what": f"encode {len(images)}, K={len(filters)}, gap {tol:g}"}
        row |= {f"{name} (ms)": 1e3 * seconds[name] for name in _STAGES}
        row["scan (TFLOP/s)"] = work / seconds["scan"] / 1e12
        rows.append({**row, "part of the tensor peak": 3 * work / seconds["scan"] / TENSOR_PEAK})  # three products each
    return [*rows, _learning_stages(inputs, device, quick)]


_STAGES = ("scan", "selection", "sweeps", "residual", "transfers")


def _learning_stages(inputs: Inputs, device: str, quick: bool) -> dict[str, Any]:
    """The functions in which a learning step with 64 images spends most of its time, in the columns of the encoder's."""
    stream = inputs.patches("train", 320)
    model = pt.OnlineCSC(100, 11, PENALTY, sampling=0.1, batch_size=64, random_state=0, device=device)
    batches = iter(pt.prefetch((stream[first : first + 64] for first in range(0, 320, 64)), device))
    model.partial_fit(next(batches)).partial_fit(next(batches))  # compile
    total, parts = profiled(lambda: [model.partial_fit(batch) for batch in batches])
    each = 1e3 / (model.n_iter_ - 2)
    text = ", ".join(f"{name} {each * spent:.2g} ms" for name, spent in list(parts.items())[:6])
    row: dict[str, Any] = {"what": f"learning step, 64 images: {each * total:.3g} ms, of which {text}"}
    return row | {f"{name} (ms)": None for name in _STAGES} | {"scan (TFLOP/s)": None, "part of the tensor peak": None}


EXPERIMENTS = (
    agreement, rival, throughput, circular, penalties, device_map, learning, large, volumes, restoration, stages
)  # fmt: skip

if __name__ == "__main__":
    main()
