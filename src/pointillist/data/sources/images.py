"""Image files of any sizes as a source: names at hand, pixels decoded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pointillist.data.images import load_image
from pointillist.data.photofiles.reading import photograph_size
from pointillist.data.samples import map_tiff
from pointillist.data.sources.base import StoredSource, file_fingerprint
from pointillist.errors import UnreadableFileError
from pointillist.validation import as_list, as_path, check_arguments, check_index

Found = TypeVar("Found")


class ImageSource(StoredSource):
    """One signal for each image file.

    Parameters
    ----------
    files : sequence of paths
        What `load_image` reads.
    grey : bool
        Whether signals are grey, (height, width), or colour, (3, height, width): channels first, as in all signals.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("L", (40, 30)).save("black.png")
    >>> pt.sources.ImageSource(["black.png"]).read(0).shape
    (30, 40)
    """

    def __init__(self, files: Sequence[str | os.PathLike[str]], *, grey: bool = True) -> None:
        check_arguments(grey=grey)
        self.files = [str(as_path(file, "files")) for file in as_list(files, "files")]
        if not self.files:
            raise ValueError("files is empty: give at least one image file")
        self.grey = grey

    def __len__(self) -> int:
        return len(self.files)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        picture = self._of_file(index, lambda file: load_image(file, grey=self.grey))
        return picture if self.grey else np.ascontiguousarray(np.moveaxis(picture, -1, 0))

    def mapped(self, index: int) -> NDArray:
        """Return signal `index`, left in its file where that is a large grey TIFF image."""
        check_index(index, len(self))
        large = map_tiff(Path(self.files[index])) if self.grey else None
        return self.read(index) if large is None else large

    def shape(self, index: int) -> tuple[int, ...]:
        size = self._of_file(index, photograph_size)
        return size if self.grey else (3, *size)

    def _of_file(self, index: int, read: Callable[[str], Found]) -> Found:
        check_index(index, len(self))
        try:
            return read(self.files[index])
        except OSError as error:  # gone, or not to be read, since the files were listed
            raise UnreadableFileError(f"cannot read {self.files[index]}: {error.strerror or error}") from error

    def name(self, index: int, epoch: int = 0) -> str:
        check_index(index, len(self))
        return self.files[index]

    def describe(self) -> dict[str, Any]:
        return {"kind": "images", "signals": len(self), "grey": self.grey, "content": file_fingerprint(self.files)}
