"""Files opened and written with care: only regular ones are read, and a name holds either the old content or all of the new.

A file is written into a temporary folder beside its place and moved there when it is complete. The folder's name says whose
it is: ``.pointillist-MACHINE-PROCESS-RANDOM``, which tells work in progress from what a killed program left.
"""

import hashlib
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pointillist.errors import PointillistError, UnreadableFileError
from pointillist.system import flush_file, flush_folder, is_running, machine, replace_file

logger = logging.getLogger(__name__)

_NOWHERE = secrets.token_hex(16)
"""Stands for a machine that the system does not tell from others: nobody else's, so that nothing is taken away."""


def check_regular(
    path: str | os.PathLike[str], what: str = "file", refusal: type[PointillistError] = UnreadableFileError
) -> None:
    """Raise unless a path leads to a regular file, which can be opened without waiting and has a size.

    Parameters
    ----------
    path : str or path
        A symbolic link is followed.
    what : str
        What the file should be, for the message.
    refusal : type of exception
        What to raise for a pipe, a socket, a device or a folder.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    """
    if not Path(path).exists():
        raise missing(path, what)
    kind = stat.S_IFMT(Path(path).stat().st_mode)
    if kind != stat.S_IFREG:
        found = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}.get(kind, "a device")
        raise refusal(f"{path} is {found}, not a file: give the {what} itself")


def read_whole(path: str | os.PathLike[str], what: str = "file", most: int | None = None) -> bytes:
    """Content of a regular file of at most so many bytes; every error names it, also that of a disk which fails."""
    check_regular(path, what)
    size = Path(path).stat().st_size
    if most is not None and size > most:
        raise UnreadableFileError(f"{path} is no {what}: it has {size:,} bytes, more than {most:,}")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def missing(path: str | os.PathLike[str], what: str) -> FileNotFoundError:
    """The error that there is nothing at a path."""
    advice = ": standard input is not read, save it as a file and give that" if str(path) == "-" else ""
    return FileNotFoundError(f"no such {what}: {path}{advice}")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error now if a file could not be written at ``path`` later.

    Meant to be called before a long computation. It creates nothing, and cannot foresee a full disk.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError, OSError
        With one line that names the path and says what is in the way.
    """
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {target}: it is a folder; give a file name")
    if any(part.exists() and not part.is_dir() for part in (folder, *folder.parents)):
        raise NotADirectoryError(f"cannot write {target}: {folder} is not a folder")
    if not folder.exists():
        raise FileNotFoundError(f"cannot write {target}: folder {folder} does not exist; create it first")
    # Replacing a device such as /dev/null by a plain file would break it for every other program.
    if target.exists() and not target.is_file():
        raise OSError(f"cannot write {target}: it is not a regular file")
    folder = target.resolve().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot write {target}: no permission to create files in {folder}")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"cannot write {target}: the existing file is read-only")


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to, and move it to ``path`` once the block has succeeded.

    The temporary file has the same name, in a temporary folder beside ``path``: whatever else the writer puts there stays in
    that folder too. It is flushed to the disk before it takes the place of ``path``, so that neither a crash nor a full disk
    leaves half a file there. If the block raises, ``path`` stays as it was and the temporary folder is removed. Those that
    programs of this machine left in the same folder when they were killed are removed too.

    Parameters
    ----------
    path : str or path
        A symbolic link is followed. The permissions of an existing file are kept.

    Yields
    ------
    Path
        An existing empty file to be written.

    Raises
    ------
    OSError
        As `check_writable`, or when writing fails; the message names ``path``.
    """
    check_writable(path)
    target = Path(path).resolve()
    _remove_abandoned(target.parent)
    folder = target.parent / f".pointillist-{_here()}-{os.getpid()}-{secrets.token_hex(3)}"
    temporary = folder / target.name
    try:
        folder.mkdir()
        # Not mkstemp, which would give the file private permissions instead of those of the umask.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        flush_file(temporary)
        replace_file(temporary, target)
    except OSError as error:
        if error.errno is not None and str(error.filename) in ("None", str(temporary), str(folder)):
            raise OSError(error.errno, f"cannot write: {error.strerror}", str(path)) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    flush_folder(target.parent)


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary folders of programs on this machine that do not run any more."""
    pattern = re.compile(rf"\.pointillist-{_here()}-([0-9]{{1,9}})-[0-9a-f]{{6}}")
    for entry in folder.glob(".pointillist-*"):
        name = pattern.fullmatch(entry.name)
        # A link or a file of that name is no work of ours.
        if name and not is_running(int(name[1])) and entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
            logger.info("removed %s, which a killed program left", entry)


def _here() -> str:
    """This machine in digits."""
    return hashlib.sha256((machine() or _NOWHERE).encode()).hexdigest()[:12]


def stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Device, number, size and time of a file, which change when it is written again; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
