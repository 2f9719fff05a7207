"""Which files people mean by the paths that they give: files themselves, and what is in folders."""

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

from pointillist.storage import missing

logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]


def files_of(paths: PathLike | Iterable[PathLike], suffixes: Iterable[str]) -> list[Path]:
    """Replace each folder by the files directly inside it that end in one of the suffixes, in natural order.

    Files named explicitly are kept whatever their suffix. Raises FileNotFoundError for a missing path and
    ValueError for a folder without such files or for no paths at all.
    """
    wanted = frozenset(suffixes)
    roots = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    if not roots:
        raise ValueError("paths is empty: give at least one file or folder")
    files: list[Path] = []
    for root in roots:
        if not root.exists():
            raise missing(root, "file or folder")
        files.extend(_files_in(root, wanted) if root.is_dir() else [root])
    return files


def _files_in(folder: Path, suffixes: frozenset[str]) -> list[Path]:
    visible = [entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    files = [entry for entry in visible if entry.suffix.lower() in suffixes]
    if not files:
        raise ValueError(f"folder {folder} holds no files to read: expected {', '.join(sorted(suffixes))}")
    if len(files) < len(visible):
        logger.info("%s: %d files of other kinds are left out", folder, len(visible) - len(files))
    return sorted(files, key=natural_key)


def natural_key(path: Path) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts 2.png before 10.png: runs of digits compare as numbers, and the name decides between 01 and 1."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name.casefold())
    return [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts], path.name
