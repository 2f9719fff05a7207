"""Mutations of JSON: entries of other types, missing, renamed or too many, and texts that are hardly JSON."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

DEEP = "[" * 500 + "]" * 500
STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1e308, 10**400, 2**63, 2**40, -0.5, float("nan"), float("inf"), "", "cuda", "tcp://x:1", "\x1b[2J",
    "\udcff\u202e", "../../secret", "[bold]x[/bold]", "<img onerror=alert(1)>", "x" * 5000, [], [[]], {}, [1, "a"],
    [2**40, 2**40], {"tuple": 3}, {"tuple": [0]}, {"array": "filters"}, {"array": []}, {"class": "Ridge", "settings": {}},
    {"class": "open", "settings": {"file": "/etc/passwd"}}, {"class": [], "settings": None},
)  # fmt: skip
_NAMES = ("", "cluster", "callbacks", "device", "__class__", "x\x1b[31m", "\u202e")


def places(value: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every entry of nested lists and mappings."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*inside, key)
        yield from places(item, (*inside, key))


def mutated_json(rng: random.Random, value: Any) -> Any:
    """A JSON value with one entry replaced, removed, renamed, added, or made a number beside its own."""
    value = copy.deepcopy(value)
    ways = list(places(value))
    if not ways:
        return copy.deepcopy(rng.choice(STRANGE))
    way = rng.choice(ways)
    holder = value
    for key in way[:-1]:
        holder = holder[key]
    last = way[-1]
    action = rng.choice(["replace", "replace", "replace", "number", "remove", "rename", "add"])
    if action == "number" and isinstance(holder[last], int | float):
        holder[last] = rng.choice([0, 1, -1, 2, 3, 2**20, 2**31, 2**40, holder[last] + 1, -holder[last], 0.5])
    elif action in ("replace", "number"):
        holder[last] = copy.deepcopy(rng.choice(STRANGE))
    elif action == "remove":
        del holder[last]
    elif isinstance(holder, dict):
        holder[rng.choice(_NAMES)] = holder.pop(last) if action == "rename" else copy.deepcopy(rng.choice(STRANGE))
    else:
        holder.append(copy.deepcopy(rng.choice(STRANGE)))
    return value


def mutated_text(rng: random.Random, value: Any) -> bytes:
    """The text of a mutated value, which now and then is no text, or no JSON, or JSON that nobody should write."""
    for _ in range(rng.randint(1, 2)):
        value = mutated_json(rng, value)
    text = json.dumps(value)
    if rng.random() < 0.8:
        return text.encode()
    deep = rng.choice([500, 5000, 100_000])
    return rng.choice(
        [
            text.encode("utf-16"),
            b"\xff\xfe" + text.encode(),
            b"\xef\xbb\xbf" + text.encode(),
            b"[" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            text[: rng.randrange(len(text))].encode(),
            text.replace("{", '{"a": 1, "a": 2, ', 1).encode(),
            text.replace("1", "1" + "0" * 5000, 1).encode(),
            text.replace('"', '"\\ud800', 1).encode(),
            text.replace('"', '"\x1b[31m', 1).encode(),
            b"null",
            b"",
            b" " * (2**24 + 2 if rng.random() < 0.1 else 99),
        ]
    )
