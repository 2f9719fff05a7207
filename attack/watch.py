"""How long an attempt has worked, whatever else the machine does."""

from __future__ import annotations

import time

from pointillist.kernels.compiling import working_time

PATIENCE = 10.0
"""Seconds of work that a call may take."""
FORGIVEN = 120.0
"""Seconds after which an attempt is ended: kernels that must be compiled, and a busy machine, are forgiven up to here."""
MEMORY = 4 * 2**30
"""Bytes of address space that a call may take; arguments are small."""


class Watch:
    """Seconds of work since it was made: by the processor's clock, and by the one on the wall less compilation."""

    def __init__(self) -> None:
        self._begin = working_time(), time.process_time()

    @property
    def seconds(self) -> float:
        """The smaller of both: another process may have had the processor, and several threads may have worked."""
        return min(working_time() - self._begin[0], time.process_time() - self._begin[1])
