"""``pointillist demo``: filters from the shipped photographs, judged on one that was held out, with pictures."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.cli.console import say, show_log, tell
from pointillist.cli.learn import fit
from pointillist.cli.starting import FILTER_SIZE
from pointillist.data import contrast_normalise, photographs
from pointillist.kernels.compiling import working_time
from pointillist.kernels.precompile import end_compiling, is_compiling
from pointillist.learners import OnlineCSC
from pointillist.learners.calibration import compile_update
from pointillist.learners.persistence import save
from pointillist.metrics import psnr
from pointillist.reprs import sizes
from pointillist.solvers.base import Result
from pointillist.storage import check_writable

N_FILTERS = 64
PENALTY = 1.0
N_EPOCHS = 3
HELD_OUT = "camera"
CROP = 120  # about the side of the crops that photographs are cut into: many small steps learn sooner than few large
VALIDATIONS = 34
VALIDATION_SIDE = 176  # the middle of the held-out photograph is followed while learning, all of it judged at the end

_FILES = ("filters.safetensors", "filters.png", "convergence.png", "reconstruction.png", "report.html")


def run(folder: Path, *, seed: int, jobs: int, quiet: bool) -> None:
    """Learn, judge, draw and summarise."""
    show_log(quiet=quiet)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"--output {folder} is a file: give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        check_writable(folder / name)

    begin = working_time()
    train, photograph = _signals()
    test = contrast_normalise(photograph)
    model = OnlineCSC(
        n_filters=N_FILTERS, filter_size=FILTER_SIZE, penalty=PENALTY, n_epochs=N_EPOCHS, n_jobs=jobs, random_state=seed
    )
    if not quiet:
        tell(f"learning {N_FILTERS} filters of {sizes([FILTER_SIZE] * 2)} from {len(train)} crops of photographs")
    how: dict[str, Any] = {"validations": VALIDATIONS, "prepare": partial(_compile, model)}
    ending = fit(model, train, [_middle(test)], quiet=quiet, **how)
    result = model.encode([test])
    data = {"signals": len(train), "paths": ["the shipped photographs"]}
    about = {"data": data, "stopped_early": ending.early}
    save(model, folder / _FILES[0], preprocessing={"normalise": "contrast"}, extra=about)
    _draw(folder, model, photograph, result, len(train))
    if not quiet:
        _summarise(folder, model, test, result, working_time() - begin)
    ending.tell()


def _compile(model: OnlineCSC) -> None:
    """Compile the update while a second process compiles the solver, where one was begun because no kernels were on disk."""
    if is_compiling():
        compile_update(model, [3 * FILTER_SIZE] * 2)
        end_compiling()


def _draw(folder: Path, model: OnlineCSC, photograph: NDArray, result: Result, n_crops: int) -> None:
    """Draw filters, convergence and the held-out photograph, and write the report."""
    # Loaded when there is something to draw: learning begins sooner.
    from pointillist.plot import Example, save_convergence, save_mosaic, save_reconstruction, write_learning_report

    _, filters, convergence, reconstruction, report = (folder / name for name in _FILES)
    test = contrast_normalise(photograph)
    save_mosaic(filters, model.filters_)
    save_convergence(model.history_, convergence)
    save_reconstruction(test, test - result.residuals[0][0], result.codes, reconstruction)
    name, image = next(iter(photographs("train").items()))
    colour = np.moveaxis(photographs("train", grey=False)[name], -1, 0)
    trained = Example(name, contrast_normalise(image), stored=colour)
    write_learning_report(
        report,
        model,
        [Example(HELD_OUT, test, held_out=True, stored=photograph), trained],
        title="Filters from a few photographs",
        data={"signals": f"{n_crops} crops of the shipped photographs, contrast-normalised"},
    )


def _signals() -> tuple[list[NDArray], NDArray]:
    """Pieces of the training photographs, and the held-out one."""
    train = [crop for image in photographs("train").values() for crop in _crops(contrast_normalise(image))]
    return train, photographs("test")[HELD_OUT]


def _middle(image: NDArray) -> NDArray:
    corner = [max(0, (side - VALIDATION_SIDE) // 2) for side in image.shape]
    return image[tuple(slice(c, c + VALIDATION_SIDE) for c in corner)]


def _crops(image: NDArray) -> list[NDArray]:
    rows, columns = (max(1, round(side / CROP)) for side in image.shape)
    strips = np.array_split(image, rows, axis=0)
    return [crop for strip in strips for crop in np.array_split(strip, columns, axis=1)]


def _summarise(folder: Path, model: OnlineCSC, test: NDArray, result: Result, seconds: float) -> None:
    quality = psnr(test, test - result.residuals[0][0])
    share = 100 * result.codes.nnz / test.size
    model_file = folder / _FILES[0]
    lines = [
        f"learned {len(model.filters_)} filters in {model.history_[-1]['seconds']:.1f} s "
        f"({seconds:.1f} s with judging and drawing)",
        f"held-out photograph {HELD_OUT}: PSNR {quality:.1f} dB from {result.codes.nnz:,} non-zeros, "
        f"{share:.1f} % of its pixels",
        f"its codes are certified to be within {100 * result.gap[0]:.2g} % of the optimum ({result.status.value})",
        f"wrote {', '.join(_FILES)} to {folder}",
        f"open {folder / _FILES[-1]} in a browser, then try your own: pointillist encode {model_file} PHOTO.jpg",
        "or learn from a folder: pointillist learn FOLDER -o filters.safetensors --report report.html",
    ]
    say(*lines)
