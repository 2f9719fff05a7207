"""The exception that every reader in this layer raises for a file whose content is unusable.

Missing files and missing permissions keep Python's own exceptions and are not wrapped here.
"""


class UnreadableFileError(ValueError):
    """A file exists but does not hold what was asked for; the message names the file and the reason."""
