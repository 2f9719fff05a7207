"""Signals of users are brought here to where they are solved for, and checked there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from pointillist.arrays import any_resident, to_host
from pointillist.cuda.device import is_cpu
from pointillist.solvers.resident import device_namespace, moves_whole, upload
from pointillist.validation import HOST, Namespace, as_weights, check_varied, checked_signals, take_seen

Choose = Callable[[list[NDArray], list[NDArray] | None], Sequence[int]]
"""A function that gets signals and their weights, each (channels, *space), and returns the numbers of those to take."""


def stay_resident(signals: Any, device: str) -> bool:
    """Whether signals live on a device and are to be solved for there."""
    return not is_cpu(device) and any_resident(signals)


def on_host(arrays: Any) -> Any:
    """An array, or a list of them, brought from whatever device they live on."""
    return [to_host(one) for one in arrays] if isinstance(arrays, list | tuple) else to_host(arrays)


@contextmanager
def _namespace(signals: Any, weights: Any, device: str, *, move: bool) -> Iterator[tuple[Any, Any, Namespace]]:
    """Signals and weights, and the namespace in which they are checked."""
    if stay_resident(signals, device):
        with device_namespace(device) as space:
            yield signals, weights, space
    elif move and weights is None and not is_cpu(device) and moves_whole(signals, device):
        with device_namespace(device) as space:
            yield upload(signals, space.device), None, space
    else:
        yield on_host(signals), on_host(weights), HOST


def take_signals(
    signals: Any,
    weights: Any,
    ndim: int,
    *,
    channels: bool,
    device: str = "cpu",
    to_learn: bool = False,
    move: bool = False,
    choose: Choose | None = None,
) -> tuple[list[NDArray], list[NDArray] | None]:
    """Signals and their weights, each (channels, *space), checked; samples of weight zero become zero.

    Signals that live on a device stay there if `device` is one; all others come to the host. Without weights NaN marks what
    was not seen. With `move` an array of several signals goes to the device too, where it is checked faster. With
    `to_learn` errors call the signals X, and constant ones are refused. `choose` leaves signals out before they are looked
    at more closely.
    """
    name = "X" if to_learn else "signals"
    with _namespace(signals, weights, device, move=move) as (given, given_weights, space):
        arrays = checked_signals(given, ndim, channels=channels, name=name, space=space)
        seen = as_weights(given_weights, arrays, channels=channels, space=space, all_seen=choose is None)
        if choose is not None:
            chosen = choose(arrays, seen)
            arrays, seen = [arrays[i] for i in chosen], None if seen is None else [seen[i] for i in chosen]
            if not arrays:
                return [], None
        arrays, seen = take_seen(arrays, seen, name, space)
        if to_learn:
            check_varied(arrays, seen, name, space)
        return arrays, seen
