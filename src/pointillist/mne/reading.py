"""Files of `CSC`, read."""

from __future__ import annotations

import os

from pointillist.errors import ModelFileError
from pointillist.mne.csc import CSC
from pointillist.mne.storing import load_parts


def read_csc(fname: str | os.PathLike[str]) -> CSC:
    """Read a model that `CSC.save` wrote. Nothing in the file is run: it holds arrays and plain values.

    Parameters
    ----------
    fname : str or path

    Returns
    -------
    CSC
        Fitted, on the CPU, with the patterns' positions: `plot_components` works without the recording.

    Raises
    ------
    FileNotFoundError, PermissionError
    ModelFileError
        If the file is not one of a `CSC`.

    Examples
    --------
    >>> import mne, numpy as np
    >>> from pointillist.mne import CSC, read_csc
    >>> data = 1e-6 * np.random.default_rng(0).standard_normal((2, 1000))
    >>> raw = mne.io.RawArray(data, mne.create_info(2, 100.0, "eeg"), verbose="error").filter(1, None, verbose="error")
    >>> CSC(n_filters=2, duration=0.2, n_passes=1, random_state=0).fit(raw).save("csc.safetensors")
    >>> read_csc("csc.safetensors").get_components().shape
    (2, 2)
    """
    model, sensors, facts = load_parts(fname)
    try:
        csc = CSC(
            len(model.filters_),
            **facts["settings"],
            rank=model.rank,
            nonnegative=model.nonnegative,
            robust=model.robust,
            tol=model.tol,
            n_jobs=model.n_jobs,
            random_state=model.seed_,
        )
    except ValueError as error:
        raise ModelFileError(f"{fname} is a damaged file of a CSC: {error}") from error
    csc.settle(model, sensors)
    csc.exclude = facts["exclude"]
    csc.dropped_, csc.objective_, csc.gap_ = facts["dropped"], facts["objective"], facts["gap"]
    return csc
