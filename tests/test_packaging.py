"""Files for other people's machines say what the Makefile and pyproject.toml say."""

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
TARGETS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M).group(1).split())


def _steps(workflow):
    """What each job of a workflow runs, once for every entry of its matrix that a target's name holds."""
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
        for step in job["steps"]:
            for choice in matrix if "run" in step else ():
                words = step["run"]
                for name, value in choice.items():
                    words = words.replace(f"${{{{ matrix.{name} }}}}", value)
                yield words


@pytest.mark.parametrize("path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_jobs_run_targets_that_exist(path):
    steps = [words for words in _steps(yaml.safe_load(path.read_text(encoding="utf-8"))) if "choco" not in words]
    assert steps
    for words in steps:
        program, target, *_ = words.split()
        assert program == "make"
        assert target in TARGETS


def test_the_conda_recipe_asks_for_the_same_versions():
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
    other = {"matplotlib": "matplotlib-base"}
    wanted = [re.match(r"([\w-]+)(>=[\d.,<]+)", one).groups() for one in PROJECT["dependencies"]]
    expected = {f"{other.get(name.lower(), name.lower())} {bound}" for name, bound in wanted if name != "jpeglib"}
    assert {one for one in recipe["requirements"]["run"] if not one.startswith("python ")} == expected


def test_one_version():
    """The changelog's newest heading is the version that a development version leads to; tags name released ones."""
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M).group(1)
    assert SETTINGS["tool"]["setuptools_scm"]["fallback_version"] == f"{heading}.dev0"
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
