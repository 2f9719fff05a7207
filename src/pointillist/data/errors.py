"""The exceptions that every reader in this layer raises for content that is unusable.

Missing files and missing permissions keep Python's own exceptions where a file is asked for by name; in a stream of many
they are wrapped too.
"""


class UnreadableFileError(ValueError):
    """A file exists but does not hold what was asked for; the message names the file and the reason."""


class UnusableSignalError(UnreadableFileError):
    """A signal was read, but nothing can be learned from it: constant, smaller than the filters, not finite."""
