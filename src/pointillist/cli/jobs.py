"""Which files a restoration command reads and writes, settled and checked before any of them is worked on."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from pointillist.cli.console import count
from pointillist.cli.cropping import Crop, parse_crop
from pointillist.cli.paths import found_files
from pointillist.data.photofiles import READABLE_SUFFIXES, answer_suffix, check_format, photograph_size
from pointillist.storage import check_writable

log = logging.getLogger(__name__)

WORDS = {
    "inpaint": "inpainted",
    "denoise": "denoised",
    "deblur": "deblurred",
    "super_resolve": "enlarged",
    "demosaic": "coloured",
}
"""Words at the end of the names of answers, for each command."""

PREVIEW = "preview"
PREVIEW_MARK = ("Software", "pointillist preview")
"""Text in the file of a preview, by which a later one knows that it may take its place."""


@dataclass(frozen=True)
class RestoreRequest:
    """What the user asked a command for that mends pictures; `task` is the command, `options` are its own."""

    task: str
    paths: list[Path]
    output: Path | None
    penalty: str
    filters: str | None
    reference: Path | None
    compare: Path | None
    jobs: int
    device: str
    on_error: str
    options: dict[str, Any] = field(default_factory=dict)
    overwrite: bool = False
    crop: str | None = None
    preview: bool = False
    recursive: bool | None = None

    @property
    def factor(self) -> int:
        """How many times larger an answer is."""
        return int(self.options.get("factor", 1))


@dataclass(frozen=True)
class Job:
    """One photograph to mend with the files that belong to it: answer, mask, reference."""

    source: Path
    target: Path
    reference: Path | None
    mask: Path | None
    compare: Path | None
    crop: Crop | None
    save_mask: Path | None = None


@dataclass(frozen=True)
class _Source:
    """A file to read, and the subfolder of what was searched that it lies in, which its answer goes to as well."""

    path: Path
    inside: Path

    def named(self, folder: Path, end: str) -> Path:
        """The file of this name in a folder, in the same subfolder there, which is made."""
        place = folder / self.inside
        place.mkdir(parents=True, exist_ok=True)
        return place / f"{self.path.stem}{end}"


def make_jobs(request: RestoreRequest) -> tuple[list[Job], int]:
    """Match sources, targets, masks and references, and complain before any work is done.

    Returns the jobs, and how many files were found unusable already and skipped.
    """
    sources, several = _sources(request)
    crop = None if request.crop is None else parse_crop(request.crop)
    targets = _targets(request, sources, several)
    compares = _drawn(request.compare, "--compare", ".png", sources, several)
    masks = _drawn(request.options.get("save_mask"), "--save-mask", "-mask.png", sources, several)
    jobs, skipped = [], 0
    for source, target, compare, save in zip(sources, targets, compares, masks, strict=True):
        try:
            reference = _partner(request.reference, source, "--reference")
            mask = _partner(request.options.get("mask"), source, "--mask")
            job = Job(source.path, target, reference, mask, compare, crop, save)
            _check_sizes(request, job)
        except (ValueError, OSError) as error:
            if request.on_error == "raise":
                raise
            skipped += 1
            log.warning("skipped: %s", error)
            continue
        jobs.append(job)
    _check_names(request, jobs)
    return jobs, skipped


def _sources(request: RestoreRequest) -> tuple[list[_Source], bool]:
    """The files to read, and whether there may be several; what these commands wrote themselves is left out of folders."""
    sources: list[_Source] = []
    several = len(request.paths) > 1
    for path, found in zip(
        request.paths, found_files(request.paths, READABLE_SUFFIXES, request.recursive), strict=True
    ):
        files = [Path(file) for file in found.files]
        if not found.named:
            several = True
            own = [file for file in files if _is_own(file)]
            if len(own) == len(files):
                kind = "folder" if path.is_dir() else "pattern"
                raise ValueError(
                    f"{kind} {path} holds only pictures that pointillist wrote: name those to mend one by one"
                )
            if own:
                log.warning("%s: %s that pointillist wrote skipped", path, count(len(own), "picture"))
            files = [file for file in files if not _is_own(file)]
        sources += [_Source(file, file.parent.relative_to(found.root)) for file in files]
    return sources, several


def _is_own(path: Path) -> bool:
    return path.stem.endswith(tuple(f"-{word}" for word in (*WORDS.values(), PREVIEW)))


def _targets(request: RestoreRequest, sources: list[_Source], several: bool) -> list[Path]:
    """The file that each answer is written to."""
    output = request.output
    if output is None:
        return [_beside(request, source.path) for source in sources]
    if several or output.is_dir():
        if output.exists() and not output.is_dir():
            raise NotADirectoryError(f"--output {output} is a file: give a folder for {count(len(sources), 'file')}")
        ends = [f"-{PREVIEW}.png" if request.preview else answer_suffix(source.path) for source in sources]
        return [source.named(output, end) for source, end in zip(sources, ends, strict=True)]
    check_format(output)
    return [output.with_name(f"{output.stem}-{PREVIEW}.png") if request.preview else output]


def _beside(request: RestoreRequest, source: Path) -> Path:
    if request.preview:
        return source.with_name(f"{source.stem}-{PREVIEW}.png")
    cut = "" if request.crop is None else "-crop"
    return source.with_name(f"{source.stem}{cut}-{WORDS[request.task]}{answer_suffix(source)}")


def _drawn(given: Path | None, option: str, end: str, sources: list[_Source], several: bool) -> list[Path | None]:
    """The file that a picture beside each answer goes to: the one given, or one in the folder given."""
    if given is None:
        return [None] * len(sources)
    if not several:
        check_format(given)
        return [given]
    if given.suffix:
        raise ValueError(f"{option} {given} is one file: give a folder for {count(len(sources), 'file')}")
    return [source.named(given, end) for source in sources]


def _partner(given: Path | None, source: _Source, option: str) -> Path | None:
    """The file itself, or from a folder the one that is named like the source, in the same subfolder."""
    if given is None:
        return None
    if not given.exists():
        raise FileNotFoundError(f"{option} {given} does not exist")
    if not given.is_dir():
        return given
    place = given / source.inside
    inside = sorted(place.iterdir()) if place.is_dir() else []
    named = [path for path in inside if path.stem == source.path.stem and path.is_file()]
    if not named:
        raise FileNotFoundError(f"{option} {place} holds no file named {source.path.stem}")
    return named[0]


def _check_sizes(request: RestoreRequest, job: Job) -> None:
    """Raise if mask, reference or crop do not fit the picture; only the heads of the files are read."""
    if job.crop is None and job.mask is None and job.reference is None:
        return
    height, width = photograph_size(job.source)
    if job.crop is not None and not job.crop.fits((height, width)):
        raise ValueError(f"--crop {job.crop} reaches out of {job.source}, which has {width}×{height} pixels")
    if job.mask is not None and (size := photograph_size(job.mask)) != (height, width):
        raise ValueError(
            f"--mask {job.mask} has {size[1]}×{size[0]} pixels, {job.source} {width}×{height}: they must agree"
        )
    height, width = request.factor * height, request.factor * width
    if job.reference is not None and (size := photograph_size(job.reference)) != (height, width):
        raise ValueError(
            f"--reference {job.reference} has {size[1]}×{size[0]} pixels, the answer to {job.source} {width}×{height}: "
            "they must agree"
        )


def _check_names(request: RestoreRequest, jobs: Sequence[Job]) -> None:
    """Raise if an answer cannot be written, or would take the place of an input, another answer or an older file."""
    pairs = [(path, job) for job in jobs for path in (job.target, job.compare, job.save_mask) if path is not None]
    written = [path for path, _ in pairs]
    name, times = Counter(path.resolve() for path in written).most_common(1)[0] if written else (Path(), 0)
    if times > 1:
        rivals = " and ".join(dict.fromkeys(str(job.source) for path, job in pairs if path.resolve() == name))
        raise ValueError(
            f"{rivals} would be written to {name.name} more than once: mend them one by one, each with its own --output"
        )
    read = {path.resolve() for job in jobs for path in (job.source, job.mask, job.reference) if path is not None}
    for path in written:
        if path.resolve() in read:
            raise ValueError(f"{path} would be written over the input of that name: give another name by --output")
        check_writable(path)
        if path.exists() and not request.overwrite and not (request.preview and _is_preview(path)):
            raise FileExistsError(f"{path} exists already: give --overwrite to replace it, or another name by --output")


def _is_preview(path: Path) -> bool:
    """Whether a file is an earlier preview."""
    try:
        with Image.open(path) as image:
            return image.info.get(PREVIEW_MARK[0]) == PREVIEW_MARK[1]
    except OSError:
        return False
