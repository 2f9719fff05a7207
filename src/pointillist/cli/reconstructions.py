"""Pictures of what codes make of images, in a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointillist.plot.style import save_image


class Reconstructions:
    """Writes reconstructions as PNG files to a folder, named after the signals.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    normalise : {"contrast", "none"}
        How the signals were prepared.
    """

    def __init__(self, folder: Path, normalise: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._normalise = folder, normalise
        self._taken: set[str] = set()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._taken)

    def path(self, name: str) -> Path:
        """The file for the next signal of that name."""
        file, _, entry = name.partition("[")
        stem = Path(file).stem + (f"-{entry.rstrip(']')}" if entry else "")
        unique, number = stem, 2
        while unique in self._taken:
            unique, number = f"{stem}-{number}", number + 1
        self._taken.add(unique)
        return self._folder / f"{unique}.png"

    def write(self, name: str, signal: NDArray, residual: NDArray, decode: Callable[[], Any]) -> None:
        """Write one, from the signal and what its codes leave of it; where it was not seen, they are decoded."""
        fit = signal - residual.reshape(signal.shape)
        if np.isnan(fit).any():
            fit = np.where(np.isnan(signal), decode()[0], fit)
        # Files hold 0 to 1; contrast-normalised signals have no such range, so the signal's own is used.
        low, high = (0.0, 1.0) if self._normalise == "none" else np.percentile(signal, [0.5, 99.5])
        pixels = np.round(255 * np.clip((fit - low) / max(high - low, 1e-12), 0, 1)).astype(np.uint8)
        save_image(np.moveaxis(pixels, 0, -1) if signal.ndim == 3 else pixels, self.path(name))
