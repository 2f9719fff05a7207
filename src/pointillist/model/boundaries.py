"""The names of the boundaries, apart from what they mean (see `geometry`): the command line lists them at once."""

BOUNDARIES = ("valid", "same", "full", "circular")
