"""Pictures mended with the same engine: each damage is a weighted coding problem with (blurred) filters."""
