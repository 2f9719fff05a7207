"""Files that people mean by the paths that they give: one grammar for the library and for all commands.

A path is a file; a folder, for the files in it, and in its subfolders if asked for; a pattern such as ``photos/**/*.jpg``;
or an array in a file, ``FILE::NAME``. What is read from the files is the business of others.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path

from pointillist.storage import missing
from pointillist.validation import as_list, as_path, check_arguments

logger = logging.getLogger(__name__)

PathLike = str | os.PathLike[str]

STORE_SUFFIXES = frozenset((".zarr", ".zip"))
"""Ends of the names of stores of arrays; such a folder is one thing, and never searched for files."""
TABLE_SUFFIXES = frozenset((".csv", ".tsv"))
"""Ends of the names of tables in text. They are read where they are named, and never from folders, since many folders hold a
table about the other files in them."""
_LOOKED_AT = 100_000
"""Files in subfolders that are looked at, only to say how many are not read."""


@dataclass(frozen=True)
class Found:
    """The files that one path stands for.

    Attributes
    ----------
    root : Path
        The folder that was searched; of a file that was named itself, the one that it lies in.
    files : list of str
        In natural order, folder by folder; an array in a file is ``FILE::NAME``.
    named : bool
        Whether the path named the file itself, rather than a folder or a pattern.
    """

    root: Path
    files: list[str]
    named: bool = False


def find_files(
    path: PathLike, suffixes: Iterable[str], *, recursive: bool | None = None, remedy: str = "recursive=True"
) -> Found:
    """Find the files that a path stands for: itself, what is in a folder, or what a pattern matches.

    Parameters
    ----------
    path : str or path
        A file named explicitly is kept whatever its suffix, and so is what a pattern matches. Names that begin with a point
        are left out of folders and patterns, and links to folders are not followed.
    suffixes : iterable of str
        The ends of file names that are read from folders.
    recursive : bool or None
        Whether files in subfolders are read too. None does not read them and warns of how many there are; False does not
        read them and says nothing.
    remedy : str
        What messages call the way to read subfolders.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path, or the pattern matches nothing.
    ValueError
        If the folder holds no such files.
    """
    given, wanted = os.fspath(path), frozenset(suffixes)
    container, mark, name = given.partition("::")
    if Path(given).is_dir() and Path(given).suffix.lower() not in STORE_SUFFIXES:
        return _in_folder(Path(given), wanted, recursive, remedy)
    if Path(given).exists() or (mark and Path(container).exists()):
        return Found(Path(container).parent, [given], named=True)
    if not has_magic(container):
        raise missing(container, "file or folder")
    matches = [Path(match) for match in glob(container, recursive=True)]
    files = sorted((file for file in matches if file.is_file() or _is_store(file)), key=_natural)
    if not files:
        folders = f", only folders ({len(matches)}): end it in /* or /**/*" if matches else ""
        raise FileNotFoundError(f"no file matches {given}{folders}")
    parts = Path(container).parts
    root = Path(*parts[: next(i for i, part in enumerate(parts) if has_magic(part))])
    return Found(root, [f"{file}{mark}{name}" for file in files])


def files_of(
    paths: PathLike | Iterable[PathLike], suffixes: Iterable[str], *, recursive: bool | None = None
) -> list[str]:
    """The files that all these paths stand for, in order, as `find_files` finds them.

    Raises
    ------
    ValueError
        If there are no paths at all.
    """
    check_arguments(recursive=recursive)
    given = [paths] if isinstance(paths, str | os.PathLike) else as_list(paths, "paths")
    if not given:
        raise ValueError("paths is empty: give at least one file, folder or pattern")
    found = [find_files(as_path(one, "paths"), suffixes, recursive=recursive) for one in given]
    return [file for one in found for file in one.files]


def _in_folder(folder: Path, suffixes: frozenset[str], recursive: bool | None, remedy: str) -> Found:
    walk = _walk(folder)
    visible = next(walk)
    below = () if recursive is False else islice(chain.from_iterable(walk), None if recursive else _LOOKED_AT)
    here, deeper = ([file for file in files if file.suffix.lower() in suffixes] for files in (visible, below))
    unread = f"{len(deeper):,} more in subfolders not read; {remedy} reads them too"
    if not here and not (recursive and deeper):
        where = f"; {unread}" if deeper else ""
        tables = sorted({file.suffix for file in visible if file.suffix.lower() in TABLE_SUFFIXES})
        if tables and ".npy" in suffixes:
            where += f"; its tables are read if they are named: '{folder}/*{tables[0]}'"
        raise ValueError(f"folder {folder} holds no files to read: expected {', '.join(sorted(suffixes))}{where}")
    if deeper and recursive is None:
        logger.warning("%s: %s", folder, unread)
    files = sorted([*here, *(deeper if recursive else [])], key=_natural)
    return Found(folder, [str(file) for file in files])


def _walk(folder: Path) -> Iterator[list[Path]]:
    """Visible files of a folder and of its subfolders; stores of arrays are not searched, nor are links to folders.

    Subfolders that may not be read are passed over; the folder itself, and a disk that fails, raise OSError.
    """

    def refuse(error: OSError) -> None:
        if Path(error.filename or folder) == folder:
            raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [one for one in folders if not one.startswith(".") and not _is_store(Path(place, one))]
        yield [path for name in names if not name.startswith(".") and (path := Path(place, name)).is_file()]


def _is_store(path: Path) -> bool:
    return path.suffix.lower() in STORE_SUFFIXES and path.is_dir()


def _natural(path: Path) -> tuple[str, list[tuple[int, str]], str]:
    """A key that sorts 2.png before 10.png, folder by folder: runs of digits compare as numbers."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path.name.casefold())
    return str(path.parent), [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts], path.name
