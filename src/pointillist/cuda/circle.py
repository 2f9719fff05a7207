"""Circular signals on a padded grid: behind the circle, its first samples are repeated as far as a filter reaches.

A code at position p adds its filter to the padded samples p … p + size − 1; sample j stands for sample (j − offset) modulo
the length of the circle. Arrays are (…, layers, rows, columns), of NumPy or CuPy, and changed in place.
"""

from typing import Any

Shape = tuple[int, int, int]

AXES = (-1, -2, -3)


def part(axis: int, begin: int, end: int) -> tuple[Any, ...]:
    """An index for the samples begin … end − 1 along one of the last three axes."""
    return (..., slice(begin, end), *[slice(None)] * (-axis - 1))


def extend(array: Any, lengths: Shape) -> None:
    """Repeat the first samples of the circle behind its last."""
    for axis in AXES:
        length, padded = lengths[axis], array.shape[axis]
        if padded > length:
            array[part(axis, length, padded)] = array[part(axis, 0, padded - length)]


def clear(array: Any, lengths: Shape) -> None:
    """Set what lies behind the circle to zero."""
    for axis in AXES:
        array[part(axis, lengths[axis], array.shape[axis])] = 0


def fold(array: Any, lengths: Shape) -> None:
    """Add what lies behind the circle to its first samples, and clear it: the adjoint of `extend`."""
    for axis in AXES:
        length, padded = lengths[axis], array.shape[axis]
        if padded > length:
            behind = array[part(axis, length, padded)]
            array[part(axis, 0, padded - length)] += behind
            behind[...] = 0


def continue_around(array: Any, lengths: Shape, offset: Shape) -> None:
    """Continue around the circle what lies within, at offset … offset + length − 1 along each axis."""
    for axis in AXES:
        length, first = lengths[axis], offset[axis]
        array[part(axis, 0, first)] = array[part(axis, length, length + first)]
    extend(array, lengths)


class Seams:
    """Remembers the repeated samples, to join what was then changed of them and of the samples that they repeat."""

    def __init__(self, array: Any, lengths: Shape, axes: tuple[int, ...]) -> None:
        self.array, self.lengths, self.axes = array, lengths, axes
        self.before = [array[self._behind(axis)].copy() for axis in axes]

    def _behind(self, axis: int) -> tuple[Any, ...]:
        return part(axis, self.lengths[axis], self.array.shape[axis])

    def join(self) -> None:
        """Add the changes of both copies to both."""
        for axis, before in zip(self.axes, self.before, strict=True):
            behind = self.array[self._behind(axis)]
            front = self.array[part(axis, 0, before.shape[axis])]
            front += behind - before
            behind[...] = front
