"""The paper's inpainting table and its claims about over-complete dictionaries, on the paper's own ten images.

``POINTILLIST_DATA=DIR python -m benchmarks.inpainting_table --output bench-output [--masks 5] [--quick]``

(i) repeats the paper's protocol, (ii) shows what `pt.inpaint` gives people, (iii) counts non-zeros, with ``--only longer``
after more and more learning (an hour on two cores, three minutes with ``--device cuda``). Our own dictionaries are learned
from the natural patches only, and kept in the output folder: they must not be shipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from paper.iterations import inpaint_by_admm
from paper.judging import judge

import pointillist as pt
from benchmarks.context import Context, parser
from benchmarks.tables import Table
from paper import figure3, figure4

PAPER = {
    f"paper ({row}), {words}": figure4.PAPER[row]
    for row, words in (("a", "100 filters of an earlier method"), ("b", "its 100 filters"), ("c", "its 400 filters"))
}
PENALTY, ITERATIONS = figure4.PENALTY, figure4.ITERATIONS
LEARNING = {"sampling": 0.1, "batch_size": 10, "update": pt.FilterUpdate(forgetting=2.0), "random_state": 0}
LEARNING_PENALTY = 1.0

Rebuild = Callable[[NDArray, NDArray], dict[str, NDArray]]
"""From an image and what was seen of it to one or more reconstructions by name."""


def own_filters(context: Context, count: int) -> NDArray:
    """Filters learned from the natural training patches by our online learner, kept in a file."""
    file = context.folder / f"own_{count}.npy"
    if file.exists():
        context.say(f"{count} filters from {file}")
        return np.load(file)
    patches = context.inputs.patches("train", context.pick(1900, 40))
    model = pt.OnlineCSC(count, 11, LEARNING_PENALTY, **LEARNING).fit(patches)
    context.say(f"{count} filters learned from {len(patches)} patches in {model.history_[-1]['seconds']:.0f} s")
    np.save(file, model.filters_)
    return model.filters_


def exact(filters: NDArray, name: str) -> Rebuild:
    """Our certified minimiser; the seen pixels are not put back."""
    return lambda image, seen: {f"{name}, exact minimiser": figure4.rebuild(filters, image, seen)}


def iterated(filters: NDArray, name: str) -> Rebuild:
    """The paper's iterations, rebuilt from either variable."""
    names = (f"{name}, 50 ADMM, quadratic variable", f"{name}, 50 ADMM, thresholded")
    return lambda image, seen: dict(zip(names, inpaint_by_admm(filters, image, seen, PENALTY, ITERATIONS), strict=True))


def given(filters: NDArray, name: str) -> Rebuild:
    """What people get: seen pixels kept, everything else chosen automatically."""
    return lambda image, seen: {f"pt.inpaint, {name}": pt.inpaint(image, ~seen, filters=filters)}


def protocol(images: list[NDArray], methods: list[Rebuild], n_masks: int, say: Callable[[str], None]) -> Table:
    """PSNR of every image and reconstruction, mean over the masks."""
    columns = ["", *[str(i + 1) for i in range(len(images))], "mean", "s"]
    table = Table("PSNR in dB of the whole image, peak = range", columns)
    for name, row in PAPER.items():
        table.add(name, *[f"{value:.2f}" for value in row[: len(images)]], f"{np.mean(row[: len(images)]):.2f}", None)
    for rebuild in methods:
        begin, rows = time.perf_counter(), {}
        for number, image in enumerate(images):
            for trial in range(n_masks):
                seen = figure4.seen_pixels(image, number, trial)
                for name, answer in rebuild(image, seen).items():
                    rows.setdefault(name, np.zeros(len(images)))[number] += pt.psnr(image, answer) / n_masks
        spent = (time.perf_counter() - begin) / (len(images) * n_masks)
        for name, row in rows.items():
            say(f"{name}: mean {np.mean(row):.3f} dB, {spent:.1f} s an image")
            table.add(name, *[f"{value:.2f}" for value in row], f"{np.mean(row):.2f}", f"{spent:.1f}")
    return table


def overcomplete(images: list[NDArray], few: NDArray, many: NDArray, *, when: str = "", device: str = "cpu") -> Table:
    """Plain coding with 100 and 400 filters at equal λ, then with λ of the 400 raised to equal number, and to equal PSNR."""
    table = Table(
        f"Plain coding of the ten images{when}",
        ["", "λ", "PSNR dB", "codes ≥ 0.1 per pixel", "codes against 100 filters"],
        note="The paper: 8-10 % fewer codes and over 1 dB better with 400 filters.",
    )
    under, over = (judge(images, bank, device=device) for bank in (few, many))
    rows = {"100 filters": (1.0, under), "400 filters, the same λ": (1.0, over)}
    matched = figure3.match(images, many, under, device=device)
    rows |= {f"400 filters, {words}": found for words, found in matched.items()}
    pixels = sum(image.size for image in images)
    for name, (price, found) in rows.items():
        more = f"{100 * (found.large / under.large - 1):+.1f} %"
        table.add(name, price, f"{found.psnr:.2f}", f"{found.large / pixels:.4f}", more)
    return table


def longer(context: Context, device: str) -> list[Table]:
    """`overcomplete` for filters after one, two, five, ten and twenty passes over the patches, in mini-batches of 20."""
    patches = context.inputs.patches("train", context.pick(1900, 40))
    passes = context.pick((1, 2, 5, 10, 20), (1, 2))
    banks: dict[tuple[int, int], NDArray] = {}
    for count in (100, 400):
        model = pt.OnlineCSC(count, 11, LEARNING_PENALTY, batch_size=20, random_state=0, device=device)
        for number in range(1, passes[-1] + 1):
            order = np.random.default_rng(number).permutation(len(patches))
            for first in range(0, len(patches), 20):
                model.partial_fit(patches[order[first : first + 20]])
            if number in passes:
                banks[count, number] = model.filters_.copy()
                context.say(f"{count} filters, {number} passes: {model.history_[-1]['seconds']:.0f} s")
    return [
        overcomplete(
            context.inputs.pictures,
            banks[100, number],
            banks[400, number],
            when=f", after {number} passes",
            device=device,
        )
        for number in passes
    ]


def main() -> None:
    options = parser("benchmarks.inpainting_table", __doc__)
    options.add_argument("--masks", type=int, default=5)
    options.add_argument("--only", nargs="+", choices=("protocol", "given", "overcomplete", "longer"))
    options.add_argument("--device", default="cpu", help="where to learn and code for --only longer")
    arguments = options.parse_args()
    arguments.output = arguments.output / ("quick" if arguments.quick else "")
    context = Context.of(arguments)
    if context.inputs.folder is None:
        options.error("POINTILLIST_DATA must name the folder with the paper's images")
    chosen, n_masks = arguments.only or ["protocol", "given", "overcomplete"], context.pick(arguments.masks, 1)
    found: list[Table] = []
    if "longer" in chosen:
        found += longer(context, arguments.device)
    if set(chosen) - {"longer"}:
        found += _tables(context, chosen, n_masks)
    title = f"The paper's inpainting images, {n_masks} masks"
    context.write("inpainting_table", found, title=title, data=context.inputs.name, masks=n_masks)


def _tables(context: Context, chosen: list[str], n_masks: int) -> list[Table]:
    """The tables that share dictionaries: those of the paper, and our own."""
    few, many = (own_filters(context, count) for count in (100, 400))
    named = {"our 400": many, "our 100": few, "the paper's 400": context.inputs.overcomplete}
    images, found = context.inputs.pictures, []
    if "protocol" in chosen:
        methods = [make(bank, name) for name, bank in named.items() for make in (exact, iterated)]
        found.append(protocol(images, methods, n_masks, context.say))
    if "given" in chosen:
        found.append(protocol(images, [given(many, "our 400"), given(few, "our 100")], n_masks, context.say))
    if "overcomplete" in chosen:
        found.append(overcomplete(images, few, many))
    return found


if __name__ == "__main__":
    main()
