"""What happens to an item that cannot be read or used: it ends the work, or it is left out, counted and said once."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from pointillist.errors import UnreadableFileError

logger = logging.getLogger(__name__)

OnError = Literal["raise", "skip"]
Item = TypeVar("Item")
Content = TypeVar("Content")


class Skipped(dict[str, int]):
    """Why items were left out, and how often."""

    def note(self, reasons: Iterable[str]) -> None:
        """Count the reasons, and warn of each when it first comes up."""
        for why in reasons:
            if why not in self:
                logger.warning("skipped: %s", why)
            self[why] = self.get(why, 0) + 1


def noted(before: Mapping[str, int], reasons: Iterable[str]) -> dict[str, int]:
    """Why items were left out `before`, with further `reasons` counted; each is warned of when it first comes up."""
    skipped = Skipped(before)
    skipped.note(reasons)
    return dict(skipped)


def nothing_usable(reasons: Iterable[str]) -> ValueError:
    """The error that no signal is left, with the first of the reasons."""
    first = next(iter(reasons), None)
    return ValueError(f"X gave no signal that can be used{'' if first is None else f'; the first: {first}'}")


def skips(on_error: OnError) -> bool:
    """Whether an `on_error`, which is checked, leaves items out."""
    check_on_error(on_error)
    return on_error == "skip"


def check_on_error(on_error: str) -> None:
    """Refuse an `on_error` that is neither "raise" nor "skip"."""
    if not isinstance(on_error, str) or on_error not in ("raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')


def read_each(items: Sequence[Item], read: Callable[[Item], Content], on_error: OnError) -> list[Content]:
    """Read every item; with "skip" those for which `read` raises `UnreadableFileError` are left out.

    Raises ValueError if nothing is left.
    """
    check_on_error(on_error)
    skipped, found = Skipped(), []
    for item in items:
        try:
            found.append(read(item))
        except UnreadableFileError as error:
            if on_error == "raise":
                raise
            skipped.note([str(error)])
    if not found:
        raise ValueError(f"none of the {len(items)} items can be used; the first: {next(iter(skipped))}")
    return found
