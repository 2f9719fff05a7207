"""Every exception and warning of the package, at the bottom of all layers, so that each layer can raise them.

All exceptions derive from `PointillistError` and from the built-in exception that fits, so that both of
``except pt.PointillistError`` and ``except ValueError`` catch them. Wrong arguments are plain ``ValueError`` or
``TypeError``; missing files and missing permissions keep Python's own exceptions.
"""


class PointillistError(Exception):
    """Base of all exceptions that the package defines.

    Examples
    --------
    >>> import pointillist as pt
    >>> issubclass(pt.ModelFileError, pt.PointillistError), issubclass(pt.ModelFileError, ValueError)
    (True, True)
    """


class UnreadableFileError(PointillistError, ValueError):
    """A file exists but does not hold what was asked for; the message names the file and the reason.

    Examples
    --------
    >>> import pathlib
    >>> import pointillist as pt
    >>> _ = pathlib.Path("notes.png").write_text("no picture")
    >>> try:
    ...     pt.load_image("notes.png")
    ... except pt.UnreadableFileError:
    ...     print("skipped")
    skipped
    """


class UnusableSignalError(UnreadableFileError):
    """A signal was read, but nothing can be learned from it: it is constant, smaller than the filters, or not finite.

    Examples
    --------
    >>> import pointillist as pt
    >>> issubclass(pt.UnusableSignalError, pt.UnreadableFileError)
    True
    """


class ModelFileError(PointillistError, ValueError):
    """A file is not a model or not codes that this version can read; the message names the file and the reason.

    Examples
    --------
    >>> import pathlib
    >>> import pointillist as pt
    >>> _ = pathlib.Path("broken.safetensors").write_bytes(b"not a model")
    >>> try:
    ...     pt.load("broken.safetensors")
    ... except pt.ModelFileError:
    ...     print("learn it again")
    learn it again
    """


class FileVersionError(ModelFileError):
    """A file that pointillist wrote is in a format that this version does not read.

    Examples
    --------
    >>> import pointillist as pt
    >>> issubclass(pt.FileVersionError, pt.ModelFileError)
    True
    """


class CheckpointError(PointillistError, ValueError):
    """A checkpoint cannot be used for this run; the message names the file and the reason.

    Examples
    --------
    >>> import pointillist as pt
    >>> issubclass(pt.CheckpointError, pt.PointillistError)
    True
    """


class BlurMisfitWarning(UserWarning):
    """The blur given does not fit the picture, which was returned as it came.

    Examples
    --------
    >>> import warnings
    >>> import pointillist as pt
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     same = pt.deblur(pt.photographs("test")["coffee"], pt.motion_kernel(20, 120))
    >>> caught[0].category.__name__
    'BlurMisfitWarning'
    """
