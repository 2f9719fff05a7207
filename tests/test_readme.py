"""The README: its Python example runs as it stands, its BibTeX is right, and a package index can show it."""

import re
import runpy
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_bibtex_says_what_the_citation_file_says():
    entry = re.search(r"```bibtex\n(@inproceedings.*?\n})", README.read_text(encoding="utf-8"), re.S).group(1)
    citation = README.with_name("CITATION.cff").read_text(encoding="utf-8").partition("preferred-citation:")[2]
    plain = entry.replace(r"{\'a}", "á")
    names = re.findall(r"family-names: (.*)\n\s+given-names: (.*)", citation)
    assert " and ".join(", ".join(name) for name in names) in plain
    for key in ("title", "year", "collection-title"):
        assert f"{{{re.search(rf'^  {key}: (.*)$', citation, re.M).group(1)}}}" in plain


def test_the_package_index_gets_a_description_that_renders_there(monkeypatch):
    setuptools = pytest.importorskip("setuptools", reason="setuptools is not installed")
    given = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path(str(README.with_name("setup.py")))
    text = given["long_description"]
    assert given["long_description_content_type"] == "text/markdown"
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", text), "no pictures or links that only the repository has"
    assert "@inproceedings{" in text
    assert len(text) > 0.8 * len(README.read_text(encoding="utf-8"))
