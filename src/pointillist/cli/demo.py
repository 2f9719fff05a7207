"""``pointillist demo``: filters from the shipped photographs, judged on one that was held out, with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pointillist as pt
from pointillist.cli.console import Stopped, say, show_log, tell
from pointillist.cli.options import Folder, Jobs, Quiet, Seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_FILTERS, FILTER_SIZE, N_EPOCHS = 64, 11, 3
HELD_OUT = "camera"
CROP = 120  # about the side of the crops that photographs are cut into: many small steps learn sooner than few large
VALIDATIONS = 34
VALIDATION_SIDE = 176  # the middle of the held-out photograph is followed while learning, all of it judged at the end

_FILES = ("filters.safetensors", "filters.png", "convergence.png", "reconstruction.png", "report.html")


def demo(output: Folder = Path("demo-output"), seed: Seed = 0, jobs: Jobs = -1, quiet: Quiet = False) -> None:
    """Learn filters from the photographs that come with the package, and draw what came out."""
    from pointillist.cli.learn import fit
    from pointillist.kernels.compiling import working_time
    from pointillist.storage import check_writable

    show_log(quiet=quiet)
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: give a folder")
    output.mkdir(parents=True, exist_ok=True)
    files = [output / name for name in _FILES]
    for file in files:
        check_writable(file)
    begin = working_time()
    train = [crop for image in pt.photographs("train").values() for crop in _crops(pt.contrast_normalise(image))]
    photograph = pt.photographs("test")[HELD_OUT]
    test = pt.contrast_normalise(photograph)
    model = pt.OnlineCSC(N_FILTERS, FILTER_SIZE, n_epochs=N_EPOCHS, n_jobs=jobs, random_state=seed)
    if not quiet:
        tell(f"learning {N_FILTERS} filters of {FILTER_SIZE}×{FILTER_SIZE} from {len(train)} crops of photographs")
    corner = [max(0, (side - VALIDATION_SIDE) // 2) for side in test.shape]
    stopped = fit(
        model,
        train,
        [test[tuple(slice(start, start + VALIDATION_SIDE) for start in corner)]],
        steps=N_EPOCHS * len(train),
        quiet=quiet,
        validations=VALIDATIONS,
        prepare=_compile,
    )
    result = model.encode([test])
    about = {
        "data": {"signals": len(train), "paths": ["the shipped photographs"]},
        "stopped_early": stopped is not None and len(model.history_) < N_EPOCHS * len(train),
    }
    pt.save(model, files[0], preprocessing={"normalise": "contrast"}, extra=about)
    _draw(files, model, photograph, result, len(train))
    if not quiet:
        quality = pt.psnr(test, test - result.residuals[0][0])
        say(
            f"learned {len(model.filters_)} filters in {model.history_[-1]['seconds']:.1f} s "
            f"({working_time() - begin:.1f} s with judging and drawing)",
            f"held-out photograph {HELD_OUT}: PSNR {quality:.1f} dB from {result.codes.nnz:,} non-zeros, "
            f"{100 * result.codes.nnz / test.size:.1f} % of its pixels",
            f"its codes are certified to be within {100 * result.gap[0]:.2g} % of the optimum ({result.status.value})",
            f"wrote {', '.join(_FILES)} to {output}",
            f"open {files[-1]} in a browser, then try your own: pointillist encode {files[0]} PHOTO.jpg",
            "or learn from a folder: pointillist learn FOLDER -o filters.safetensors --report report.html",
        )
    if stopped is not None:
        raise Stopped(number=stopped)


def _crops(image: NDArray) -> list[NDArray]:
    import numpy as np

    rows, columns = (max(1, round(side / CROP)) for side in image.shape)
    strips = np.array_split(image, rows, axis=0)
    return [crop for strip in strips for crop in np.array_split(strip, columns, axis=1)]


def _compile() -> None:
    """Compile scans and the update while a second process compiles sweeps, if one was begun: no kernels were on disk then.

    That is a step of a throw-away learner with made-up codes.
    """
    from dataclasses import replace

    import numpy as np

    from pointillist.kernels.precompile import end_compiling, is_compiling
    from pointillist.learners.estimators import training_step

    if is_compiling():
        step = training_step(pt.OnlineCSC(8, FILTER_SIZE))
        batch = step.check(np.random.default_rng(0).standard_normal((1, 3 * FILTER_SIZE, 3 * FILTER_SIZE), np.float32))
        state = step.start(batch, 0)
        result = pt.encode(batch.signals[0], state.filters[:, 0], 1e6)  # scans, and nothing to sweep over
        codes = pt.SparseCodes([np.arange(2)], [np.ones(2, np.float32)], [(3 * FILTER_SIZE,) * 2], 8)
        step.learn(state, batch, replace(result, codes=codes), np.ones(1), 0.0)
        end_compiling()


def _draw(files: list[Path], model: pt.OnlineCSC, photograph: NDArray, result: pt.Result, n_crops: int) -> None:
    """Draw filters, convergence and the held-out photograph, and write the report."""
    import numpy as np

    from pointillist.plot import Example, save_mosaic, write_learning_report
    from pointillist.plot.style import new_figure, save_figure

    _, filters, convergence, reconstruction, report = files
    test = pt.contrast_normalise(photograph)
    save_mosaic(filters, model.filters_)
    figure = new_figure(9.5, 3.4)
    for ax, clock in zip(figure.subplots(1, 2, sharey=True), ("seconds", "iteration"), strict=True):
        pt.plot_convergence(model, against=clock, ax=ax)
    save_figure(figure, convergence)
    figure = new_figure(14.8, 4.3)
    pt.plot_reconstruction(test, test - result.residuals[0][0], codes=result.codes, ax=figure.subplots())
    save_figure(figure, reconstruction, crop=True)
    name, image = next(iter(pt.photographs("train").items()))
    colour = np.moveaxis(pt.photographs("train", grey=False)[name], -1, 0)
    write_learning_report(
        report,
        model,
        [
            Example(HELD_OUT, test, held_out=True, stored=photograph),
            Example(name, pt.contrast_normalise(image), stored=colour),
        ],
        title="Filters from a few photographs",
        data={"signals": f"{n_crops} crops of the shipped photographs, contrast-normalised"},
    )
