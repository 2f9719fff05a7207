"""The paper's inpainting table and its claims about over-complete dictionaries, on the paper's own ten images.

``POINTILLIST_DATA=../shared/data python -m benchmarks.inpainting_table --output bench-output [--masks 5] [--quick]``

(i) repeats the paper's protocol, (ii) shows what `pt.inpaint` gives people, (iii) counts non-zeros. Our own dictionaries are
learned from the natural patches only, and kept in the output folder: they must not be shipped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.fft
import scipy.signal
import scipy.sparse.linalg
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from rich.console import Console

import pointillist as pt
from benchmarks import measure, tables
from benchmarks.inputs import Inputs
from benchmarks.tables import Table
from pointillist import restore

PAPER = {
    "paper (a), 100 filters of an earlier method": [
        29.58,
        28.19,
        29.44,
        29.63,
        28.89,
        29.33,
        28.13,
        30.14,
        27.42,
        30.89,
    ],
    "paper (b), its 100 filters": [29.63, 28.22, 29.57, 29.90, 29.12, 29.59, 28.05, 30.17, 27.53, 31.08],
    "paper (c), its 400 filters": [30.24, 28.34, 29.95, 30.30, 29.43, 29.96, 28.24, 30.57, 27.72, 31.67],
}
PENALTY = 0.4
SEEN = 0.5
ITERATIONS = 50
LEARNING = {"sampling": 0.1, "batch_size": 10, "forgetting": 2.0, "random_state": 0}
LEARNING_PENALTY = 1.0

Rebuild = Callable[[NDArray, NDArray], dict[str, NDArray]]
"""From an image and what was seen of it to one or more reconstructions by name."""


def paper_admm(
    filters: NDArray, image: NDArray, seen: NDArray, penalty: float, iterations: int
) -> tuple[NDArray, NDArray]:
    """The paper's ADMM over all codes (ρ = 10λ, α = 1.8), and what its two variables make of the image.

    The dense one solves the quadratic step, the sparse one has gone through the threshold; they agree only at the optimum.
    With v = z + u the iteration needs a single array of codes: z = soft(v), u = clip(v), and
    v ← v − α clip(v) + α/ρ Aᵀ(b − s) where (ρ + AAᵀ) s = A(Aᵀb + ρ(z − u)). Codes sit wherever a filter touches the image,
    so AAᵀ is a convolution with the filters' summed autocorrelation, and solved by conjugate gradients on the image.
    """
    rho, alpha = 10 * penalty, 1.8
    size, margin = filters.shape[1], filters.shape[1] - 1
    flat = np.ascontiguousarray(filters.reshape(len(filters), -1), np.float32)
    weights = seen.astype(np.float64)
    grid = tuple(n + margin for n in image.shape)
    gram = _Autocorrelation(filters, image.shape)
    threshold = np.float32(penalty / rho)

    def adjoint(residual: NDArray) -> NDArray:
        windows = sliding_window_view(np.pad(residual.astype(np.float32), margin), (size, size))
        return flat @ windows.reshape(-1, size * size).T

    def forward(codes: NDArray) -> NDArray:
        columns = (flat.T @ codes).reshape(size, size, *grid)
        padded = np.zeros(tuple(n + 2 * margin for n in image.shape))
        for i in range(size):
            for j in range(size):
                padded[i : i + grid[0], j : j + grid[1]] += columns[i, j]
        return padded[margin:-margin, margin:-margin]

    def product(s: NDArray) -> NDArray:
        s = s.reshape(image.shape)
        return (rho * s + weights * gram(weights * s)).ravel()

    system = scipy.sparse.linalg.LinearOperator((image.size, image.size), product, dtype=np.float64)
    target = weights * image
    seen_twice = weights * gram(target)
    v = np.zeros((len(filters), grid[0] * grid[1]), np.float32)
    s = target.ravel()
    for _ in range(iterations):
        clipped = np.clip(v, -threshold, threshold)
        difference = forward(v - 2 * clipped)  # D(z − u)
        s, _ = scipy.sparse.linalg.cg(system, (seen_twice + rho * weights * difference).ravel(), x0=s, rtol=1e-6)
        left = weights * (image - s.reshape(image.shape))
        dense = difference + gram(left) / rho
        clipped *= np.float32(alpha)
        v -= clipped
        v += adjoint((alpha / rho) * left)
    return dense, forward(v - np.clip(v, -threshold, threshold))


class _Autocorrelation:
    """DDᵀ on an image."""

    def __init__(self, filters: NDArray, shape: tuple[int, ...]) -> None:
        self._shape, self._radius = shape, filters.shape[1] - 1
        kernel = sum(scipy.signal.correlate2d(one, one) for one in filters.astype(np.float64))
        self._fast = tuple(scipy.fft.next_fast_len(n + 2 * self._radius, real=True) for n in shape)
        self._spectrum = scipy.fft.rfft2(kernel, self._fast)

    def __call__(self, image: NDArray) -> NDArray:
        full = scipy.fft.irfft2(scipy.fft.rfft2(image, self._fast) * self._spectrum, self._fast)
        return full[tuple(slice(self._radius, self._radius + n) for n in self._shape)]


def own_filters(inputs: Inputs, count: int, folder: Path, say: Callable[[str], None]) -> NDArray:
    """Filters learned from the natural training patches by our online learner, kept in a file."""
    file = folder / f"own_{count}.npy"
    if file.exists():
        say(f"{count} filters from {file}")
        return np.load(file)
    patches = inputs.natural("train", 40 if inputs.quick else 1900)
    model = pt.OnlineCSC(count, 11, LEARNING_PENALTY, **LEARNING).fit(patches)
    say(f"{count} filters learned from {len(patches)} patches in {model.history_[-1]['seconds']:.0f} s")
    np.save(file, model.filters_)
    return model.filters_


def masks(image: NDArray, number: int, count: int) -> list[NDArray]:
    return [np.random.default_rng([number, trial]).random(image.shape) < SEEN for trial in range(count)]


def exact(filters: NDArray, name: str) -> Rebuild:
    """Our certified minimiser; the seen pixels are not put back."""

    def rebuild(image: NDArray, seen: NDArray) -> dict[str, NDArray]:
        result = pt.encode([image], filters, PENALTY, weights=[seen.astype(np.float32)])
        return {f"{name}, exact minimiser": pt.decode(result.codes, filters)[0]}

    return rebuild


def iterated(filters: NDArray, name: str) -> Rebuild:
    """The paper's iterations, rebuilt from either variable."""

    def rebuild(image: NDArray, seen: NDArray) -> dict[str, NDArray]:
        dense, sparse = paper_admm(filters, image, seen, PENALTY, ITERATIONS)
        return {f"{name}, 50 ADMM, quadratic variable": dense, f"{name}, 50 ADMM, thresholded": sparse}

    return rebuild


def given(filters: NDArray, name: str) -> Rebuild:
    """What people get: seen pixels kept, everything else chosen automatically."""
    return lambda image, seen: {f"pt.inpaint, {name}": restore.inpaint(image, ~seen, filters=filters)}


def protocol(images: list[NDArray], methods: list[Rebuild], n_masks: int, say: Callable[[str], None]) -> Table:
    """PSNR of every image and reconstruction, mean over the masks."""
    columns = ["", *[str(i + 1) for i in range(len(images))], "mean", "s"]
    table = Table("PSNR in dB of the whole image, peak = range", columns)
    for name, row in PAPER.items():
        table.add(name, *[f"{value:.2f}" for value in row[: len(images)]], f"{np.mean(row[: len(images)]):.2f}", None)
    for rebuild in methods:
        begin, rows = time.perf_counter(), {}
        for number, image in enumerate(images):
            for seen in masks(image, number, n_masks):
                for name, answer in rebuild(image, seen).items():
                    rows.setdefault(name, np.zeros(len(images)))[number] += pt.psnr(image, answer) / n_masks
        spent = (time.perf_counter() - begin) / (len(images) * n_masks)
        for name, row in rows.items():
            say(f"{name}: mean {np.mean(row):.3f} dB, {spent:.1f} s an image")
            table.add(name, *[f"{value:.2f}" for value in row], f"{np.mean(row):.2f}", f"{spent:.1f}")
    return table


def counted(images: list[NDArray], filters: NDArray, penalty: float) -> tuple[float, float]:
    """Mean PSNR of plain coding, and codes of at least 0.1 per pixel."""
    result = pt.encode(images, filters, penalty)
    fits = pt.decode(result.codes, filters)
    quality = np.mean([pt.psnr(image, fit) for image, fit in zip(images, fits, strict=True)])
    large = sum(int(np.sum(np.abs(values) >= 0.1)) for values in result.codes.values)
    return float(quality), large / sum(image.size for image in images)


def overcomplete(images: list[NDArray], few: NDArray, many: NDArray, penalty: float = 1.0) -> Table:
    """Plain coding with 100 and 400 filters at equal λ, then with λ of the 400 raised to equal PSNR, and to equal number."""
    table = Table(
        "Plain coding of the ten images",
        ["", "λ", "PSNR dB", "codes ≥ 0.1 per pixel", "codes against 100 filters"],
        note="The paper: 8-10 % fewer codes and over 1 dB better with 400 filters.",
    )
    quality, number = counted(images, few, penalty)
    rows = [
        ("100 filters", penalty, quality, number),
        ("400 filters, equal λ", penalty, *counted(images, many, penalty)),
    ]
    for label, place in (("400 filters, equal PSNR", 0), ("400 filters, equal number", 1)):
        low, high = penalty / 2, 4 * penalty
        for _ in range(7):
            middle = (low * high) ** 0.5
            enough = counted(images, many, middle)[place] > (quality, number)[place]
            low, high = (middle, high) if enough else (low, middle)
        rows.append((label, middle, *counted(images, many, middle)))
    for name, price, decibels, share in rows:
        table.add(name, price, f"{decibels:.2f}", f"{share:.4f}", f"{100 * (share / number - 1):+.1f} %")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inpainting_table", description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--masks", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--only", nargs="+", choices=("protocol", "given", "overcomplete"))
    arguments = parser.parse_args()
    inputs = Inputs(quick=arguments.quick)
    if inputs.folder is None:
        parser.error("POINTILLIST_DATA must name the folder with the paper's images")
    folder: Path = arguments.output / ("quick" if arguments.quick else "")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if Console().is_terminal else 180)
    chosen = arguments.only or ["protocol", "given", "overcomplete"]

    def say(text: str) -> None:
        console.print(f"  [dim]{text}[/dim]")

    count, n_masks, side = (2, 1, 64) if arguments.quick else (10, arguments.masks, 256)
    pictures = [pt.load_image(inputs.folder / "inpainting" / f"{i}.jpg") for i in range(count)]
    images = [pt.contrast_normalise(picture)[:side, :side] for picture in pictures]
    paper, few, many = inputs.overcomplete, *(own_filters(inputs, n, folder, say) for n in (100, 400))

    found: list[Table] = []
    named = {"our 400": many, "our 100": few, "the paper's 400": paper}
    if "protocol" in chosen:
        methods = [make(bank, name) for name, bank in named.items() for make in (exact, iterated)]
        found.append(protocol(images, methods, n_masks, say))
    if "given" in chosen:
        found.append(protocol(images, [given(many, "our 400"), given(few, "our 100")], n_masks, say))
    if "overcomplete" in chosen:
        found.append(overcomplete(images, few, many))
    for table in found:
        tables.show(table, console)
    record = {"facts": measure.facts(), "masks": n_masks, "tables": [vars(table) for table in found]}
    (folder / "inpainting_table.json").write_text(json.dumps(measure.plain(record), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
