"""Compiled kernels. Nothing above this package knows numba; nothing in it knows problems or learners."""

import logging
from typing import Any

from numba.core import event

log = logging.getLogger(__name__)


class _CompilationLog(event.Listener):
    """Say once when kernels have to be compiled: it takes seconds, and a user should know for what."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        kernel = getattr(event.data.get("dispatcher"), "py_func", None)
        if not self._said and getattr(kernel, "__module__", "").startswith(__name__):
            self._said = True
            log.info("compiling kernels for this machine and precision, some seconds; later runs find them on disk")

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


event.register("numba:compile", _CompilationLog())
