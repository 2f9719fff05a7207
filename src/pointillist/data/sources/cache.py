"""Arrays that take long to make, kept as long as there is room."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

DEFAULT_CACHE = 2**28


class Cache:
    """Arrays by number, at most so many bytes of them; those asked for longest ago go first. Thread-safe."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"cache must not be negative, got {limit} bytes")
        self.limit = limit
        self.held = 0
        self._arrays: OrderedDict[int, NDArray] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: int, make: Callable[[], NDArray]) -> NDArray:
        """The array of that number, made and kept where it is not there."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        array = make()
        with self._lock:
            if key not in self._arrays and array.nbytes <= self.limit:
                self._arrays[key] = array
                self.held += array.nbytes
                while self.held > self.limit:
                    _, oldest = self._arrays.popitem(last=False)
                    self.held -= oldest.nbytes
        return array

    def __getstate__(self) -> dict[str, Any]:
        return {"limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["limit"])  # type: ignore[misc]
