"""Files opened and written with care: only regular ones are read, and a name holds either the old content or all of the new.

What goes into the file is the business of the caller.
"""

import hashlib
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from pointillist.errors import PointillistError, UnreadableFileError
from pointillist.system import flush_file, flush_folder, is_running, machine, replace_file

logger = logging.getLogger(__name__)

_MACHINE_DIGITS, _PROCESS_DIGITS, _RANDOM_DIGITS = 12, 6, 6
_DIGITS = _MACHINE_DIGITS + _PROCESS_DIGITS + _RANDOM_DIGITS
"""Digits that the name of a temporary folder ends with: whose it is, and something random."""
_UNKNOWN = secrets.token_hex(16)
_SPECIAL = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a folder"))


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
    mode = Path(path).stat().st_mode
    if not stat.S_ISREG(mode):
        found = next((name for test, name in _SPECIAL if test(mode)), "a device")
        raise refusal(f"{path} is {found}, not a file: give the {what} itself")


def read_whole(path: str | os.PathLike[str], what: str = "file", most: int | None = None) -> bytes:
    """What a regular file of at most so many bytes holds; every error names it, also that of a disk which fails."""
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
    if _passes_through_file(folder):
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
def atomic_path(path: str | os.PathLike[str], *, family: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Give a temporary path to write to, and move it to ``path`` once the block has succeeded.

    The temporary file has the same name, in a temporary folder beside ``path``: whatever else the writer puts there stays in
    that folder too. It is flushed to the disk before it takes the place of ``path``, so that neither a crash nor a full disk
    leaves half a file there. If the block raises, ``path`` stays as it was and the temporary folder is removed. Those that
    programs of this machine left in the same folder when they were killed are removed too.

    Parameters
    ----------
    path : str or path
        A symbolic link is followed. The permissions of an existing file are kept.
    family : str or path, optional
        The file whose `remove_leftovers` takes away the temporary folder of a program that was killed; ``path`` itself
        unless another is named.

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
    prefix = _prefix(target if family is None else Path(family).resolve())
    _tidy(target.parent)
    folder = target.parent / f"{prefix}{_mark()}"
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


def remove_leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """Remove the temporary folders that killed programs left while writing ``path`` or a file of its family.

    Those of programs that still run on this machine stay. On other machines nobody may be writing it meanwhile.
    """
    target = Path(path).resolve()
    named = sorted(target.parent.glob(f"{_prefix(target)}{'[0-9a-f]' * _DIGITS}"))
    # A link or a file of that name is nobody's work of ours.
    left = [folder for folder in named if folder.is_dir() and not folder.is_symlink() and not _in_use(folder)]
    for folder in left:
        _remove(folder)
    return left


def remove_abandoned(folder: str | os.PathLike[str]) -> None:
    """Remove the temporary folders of programs on this machine that do not run any more."""
    try:
        ours = f"{_machine()}{'[0-9a-f]' * (_DIGITS - _MACHINE_DIGITS)}"
        named = sorted(Path(folder).glob(f".pointillist-{'[0-9a-f]' * 12}-{ours}"))
    except OSError as error:
        logger.debug("cannot look through %s: %s", folder, error)
        return
    for left in named:
        if left.is_dir() and not left.is_symlink() and not is_running(_writer(left)):
            _remove(left)


@lru_cache(maxsize=64)
def _tidy(folder: Path) -> None:
    """Remove once in a process what others have left in a folder."""
    remove_abandoned(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, onerror=_tell)
    if not folder.exists():
        logger.info("removed %s, which a killed program had left", folder)


def stamp(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """What changes when a file is written again, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _tell(remove: object, path: str, error: object) -> None:
    logger.warning("%s, which a killed program had left, cannot be removed", path)


def _prefix(target: Path) -> str:
    """What the names of a file's temporary folders begin with; short, however long its own name is."""
    return f".pointillist-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"


def _mark() -> str:
    """The end of a temporary folder's name: machine and process, which tell who has left it, and something random."""
    process = os.getpid() % 16**_PROCESS_DIGITS
    return f"{_machine()}{process:0{_PROCESS_DIGITS}x}{secrets.token_hex(_RANDOM_DIGITS // 2)}"


def _writer(folder: Path) -> int:
    """The number of the process that made a temporary folder."""
    return int(folder.name[-_DIGITS:][_MACHINE_DIGITS:][:_PROCESS_DIGITS], 16)


def _in_use(folder: Path) -> bool:
    """Whether another program on this machine may still be writing in a temporary folder."""
    ours = folder.name[-_DIGITS:].startswith(_machine())
    return ours and _writer(folder) != os.getpid() and is_running(_writer(folder))


def _machine() -> str:
    """This machine in digits; those of nobody else where it cannot be told from others, so that nothing is taken away."""
    return hashlib.sha256((machine() or _UNKNOWN).encode()).hexdigest()[:_MACHINE_DIGITS]


def _passes_through_file(folder: Path) -> bool:
    return any(part.exists() and not part.is_dir() for part in (folder, *folder.parents))
