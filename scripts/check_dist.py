"""Check a built wheel and sdist as a stranger meets them.

Usage: ``python scripts/check_dist.py dist [--tag v0.2.0]``. The sdist must hold tests, documentation and
changelog. The wheel is installed into a clean environment in a temporary folder, where the command line and the demo are
run. With a tag, it must name the version that was built.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

IN_SDIST = ["CHANGELOG.md", "LICENSE", "CITATION.cff", "Makefile", "mkdocs.yml", "docs/index.md", "tests/conftest.py"]
IN_SDIST += ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "docs/support.md", "packaging/conda/recipe.yaml"]
IN_SDIST += ["tests/cli/test_learn.py", "scripts/docs_hooks.py", "examples/gallery/masked.py", "notebooks/tour.ipynb"]
IN_WHEEL = ["pointillist/py.typed", "pointillist/__init__.pyi", "pointillist/plot/assets/page.html"]
IN_WHEEL += ["pointillist/data/dictionaries/natural-100.safetensors", "pointillist/data/photographs/coffee.jpg"]


def check(folder: Path, tag: str | None) -> None:
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    if tag is not None and tag != f"v{version}":
        raise SystemExit(
            f"the tag is {tag}, but {version} was built: commit what is changed, and build the tagged commit"
        )
    _contents(wheel, sdist)
    _smoke(wheel, version)
    print(f"{wheel.name} and {sdist.name} hold what they should, and the wheel works in a clean environment")


def _contents(wheel: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        metadata = archive.read(next(name for name in packed if name.endswith(".dist-info/METADATA"))).decode()
    missing = sorted({*IN_SDIST} - held) + sorted({*IN_WHEEL} - packed)
    if missing:
        raise SystemExit(f"missing in the built files: {', '.join(missing)}")
    strays = sorted(name for name in packed if not name.startswith("pointillist"))
    if strays:
        raise SystemExit(f"the wheel holds what is not the package: {', '.join(strays)}")
    relative = re.findall(r"\]\((?!https?:)[^)]*\)", metadata)
    if relative:
        raise SystemExit(f"links that lead nowhere on a package index: {', '.join(relative)}")


def _smoke(wheel: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pointillist-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        venv.create(home / "venv", with_pip=True)
        scripts = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        # Nothing of the surrounding environment, so that the wheel is what is imported.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

        def run(*words: str | Path) -> str:
            done = subprocess.run(words, cwd=home, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            return done.stdout.strip()

        run(scripts / "python", "-m", "pip", "install", "--quiet", wheel.resolve())
        printed = run(scripts / "pointillist", "--version")
        if printed != f"pointillist {version}":
            raise SystemExit(f"the installed command calls itself {printed!r}")
        run(scripts / "pointillist", "demo", "--output", "demo", "--quiet")
        made = sorted(path.name for path in (home / "demo").iterdir())
        if not {"filters.safetensors", "filters.png"} <= set(made):
            raise SystemExit(f"the demo wrote only {', '.join(made)}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="the tag of the release, v and the version")
    given = parser.parse_args(arguments)
    check(given.folder, given.tag)


if __name__ == "__main__":
    main(sys.argv[1:])
