"""Image files of any sizes as a source: names at hand, pixels decoded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray
from PIL import Image

from pointillist.data.images import image_size, load_image
from pointillist.data.sources.base import StoredSource, file_fingerprint
from pointillist.errors import UnreadableFileError


class ImageSource(StoredSource):
    """One signal for each image file.

    Parameters
    ----------
    files : sequence of paths
    grey : bool
        Whether to convert to grey, (H, W), or give colour, (3, H, W); see `load_image`.
    max_pixels : int or None
        Larger images count as unreadable, before they are decoded. None is Pillow's warning level, 89 megapixels, beyond
        which an image file may be a decompression bomb.

    Examples
    --------
    >>> import pointillist as pt
    >>> from PIL import Image
    >>> Image.new("L", (40, 30)).save("black.png")
    >>> pt.ImageSource(["black.png"]).read(0).shape
    (30, 40)
    """

    decoding: ClassVar[int] = 24  # colour as stored and converted, as floats, and grey

    def __init__(
        self, files: Sequence[str | os.PathLike[str]], *, grey: bool = True, max_pixels: int | None = None
    ) -> None:
        if not files:
            raise ValueError("files is empty: give at least one image file")
        self.files = [os.fspath(file) for file in files]
        self.grey = grey
        self.max_pixels = Image.MAX_IMAGE_PIXELS if max_pixels is None else max_pixels

    def __len__(self) -> int:
        return len(self.files)

    def read(self, index: int, epoch: int = 0) -> NDArray:
        try:
            return load_image(self.files[index], grey=self.grey, max_pixels=self.max_pixels)
        except OSError as error:  # gone, or not to be read, since the files were listed
            raise UnreadableFileError(f"cannot read {self.files[index]}: {error.strerror or error}") from error

    def shape(self, index: int) -> tuple[int, ...]:
        try:
            size = image_size(self.files[index], max_pixels=self.max_pixels)
        except OSError as error:
            raise UnreadableFileError(f"cannot read {self.files[index]}: {error.strerror or error}") from error
        return size if self.grey else (3, *size)

    def name(self, index: int, epoch: int = 0) -> str:
        return self.files[index]

    def describe(self) -> dict[str, Any]:
        return {"kind": "images", "signals": len(self), "grey": self.grey, "content": file_fingerprint(self.files)}
