"""Build the documentation of one version into a folder of its own, beside those of other versions.

``python scripts/docs_version.py [--version 0.2] [--folder site-versions]`` builds ``site-versions/0.2`` and writes the
list that the menu of every version reads, ``site-versions/versions.js``, and a first page that leads to the newest
release. The whole folder can be put on any web server, or opened from the disk.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FIRST = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Pointillist</title>
<meta http-equiv="refresh" content="0; url={0}/index.html"><a href="{0}/index.html">Pointillist {0}</a></html>
"""


def this_version() -> str:
    """The first two numbers of the installed version, with "dev" where it is not released."""
    full = version("pointillist")
    short = ".".join(full.split(".")[:2])
    return f"{short}-dev" if "dev" in full else short


def rank(name: str) -> tuple[bool, list[int]]:
    """What versions are sorted by: releases before development, then by number."""
    return "dev" not in name, [int(number) for number in re.findall(r"\d+", name)]


def build(folder: Path, name: str) -> None:
    """Build the pages of one version."""
    environment = {**os.environ, "POINTILLIST_DOCS_VERSION": name, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str((folder / name).resolve())]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def index(folder: Path) -> list[str]:
    """Write the list of versions, newest first, and the page that leads to the newest."""
    found = [path.parent for path in folder.glob("*/index.html")]
    found.sort(key=lambda path: rank(path.name), reverse=True)
    versions = [
        {"name": path.name, "pages": sorted(page.relative_to(path).as_posix() for page in path.rglob("*.html"))}
        for path in found
    ]
    (folder / "versions.js").write_text(f"window.documentationVersions = {json.dumps(versions)}\n", encoding="utf-8")
    (folder / "index.html").write_text(_FIRST.format(found[0].name), encoding="utf-8")
    return [path.name for path in found]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--version", default=this_version(), help="name of the folder; by default that of the installed package"
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "site-versions", help="where all versions are")
    given = parser.parse_args(arguments)
    if not re.fullmatch(r"\d[\w.-]*", given.version):
        raise SystemExit(f"--version must be like 0.2 or 0.3-dev, got {given.version!r}")
    given.folder.mkdir(parents=True, exist_ok=True)
    build(given.folder, given.version)
    print(f"{given.folder}: {', '.join(index(given.folder))}")


if __name__ == "__main__":
    main()
