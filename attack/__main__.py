"""Attack the package: ``python -m attack [--only files,calls] [--seconds 120 | --count N] [--seed 0] [--jobs 2]``."""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import attack
from attack.base import Attack
from attack.running import Runner, Wanted
from attack.state import State

_FRAME = ("base", "running", "state", "workers", "__main__")
_SECONDS = 120.0
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks that are asked for, print the table, and say by the exit code whether something was found."""
    given = _parser().parse_args(arguments)
    attacks = _able(_chosen(given.only))
    state = State(Path(given.output))
    seconds = _SECONDS if given.seconds is None and given.count is None else given.seconds
    wanted = Wanted(seconds=seconds, count=given.count, seed=given.seed, jobs=given.jobs)
    code = 0
    try:
        Runner(attacks, state, wanted, lambda text: print(_plain(text), flush=True)).run()
    except KeyboardInterrupt:
        code = _INTERRUPTED
        print("interrupted; the same command goes on")
    print(table(attacks, state))
    found = any(state.tally(name).findings for name in attacks)
    if found:
        print(f"what reproduces the findings lies in {state.folder / 'findings'}")
    return code or int(found)


def every_attack() -> dict[str, Attack]:
    """All attacks, by name: each is a class in a module of this package."""
    found: dict[str, Attack] = {}
    for module in pkgutil.iter_modules(attack.__path__):
        if module.name in _FRAME:
            continue
        here = import_module(f"attack.{module.name}")
        for _, one in inspect.getmembers(here, inspect.isclass):
            if one.__module__ == here.__name__ and hasattr(one, "attempt") and hasattr(one, "about"):
                made: Attack = one()  # type: ignore[assignment]
                found[made.name] = made
    return found


def table(attacks: Mapping[str, Attack], state: State) -> str:
    """What was tried and found, a line for each attack."""
    rows = [("attack", "attempts", "seconds", "found", "what it does")]
    for name, one in attacks.items():
        tally = state.tally(name)
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.kinds().items()))
        rows.append((name, f"{tally.attempts:,}", f"{tally.seconds:,.0f}", kinds or "nothing", one.about))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _chosen(only: str | None) -> dict[str, Attack]:
    attacks = every_attack()
    names = list(attacks) if only is None else [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in attacks:
            raise SystemExit(f"there is no attack {name!r}: choose among {', '.join(attacks)}")
    return {name: attacks[name] for name in names}


def _able(attacks: dict[str, Attack]) -> dict[str, Attack]:
    """The attacks that can run here; a line says why another cannot."""
    able = {}
    for name, one in attacks.items():
        reason = getattr(one, "missing", "")
        if reason:
            print(f"{name} is skipped: {reason}")
        else:
            able[name] = one
    return able


def _parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser("python -m attack", description="Attack the package and keep what is found.")
    options.add_argument("--only", metavar="NAMES", help="attacks, separated by commas; all unless given")
    much = options.add_mutually_exclusive_group()
    much.add_argument("--seconds", type=float, help=f"how long all of them take together, {_SECONDS:g} unless given")
    much.add_argument("--count", type=int, help="how many attempts each of them makes instead")
    options.add_argument(
        "--seed", type=int, help="the first attempt; unless given, a run goes on where the last stopped"
    )
    options.add_argument("--jobs", type=int, default=2, help="how many processes there are")
    options.add_argument("--output", default="attack-output", help="folder of the state and the findings")
    return options


def _plain(text: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


if __name__ == "__main__":
    sys.exit(main())
