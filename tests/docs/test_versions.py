"""Versions of the documentation side by side: folders, the list that their menu reads, and the first page."""

import os

import docs_version
import pytest


def test_versions_are_listed_newest_first(tmp_path):
    for name in ("0.9", "0.10", "0.11-dev"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "notes").mkdir()
    assert docs_version.index(tmp_path) == ["0.10", "0.9", "0.11-dev"]
    assert '"pages": ["index.html"]' in (tmp_path / "versions.js").read_text(encoding="utf-8")
    assert 'url=0.10/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_names_that_are_no_versions_are_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"like 0\.2"):
        docs_version.main(["--version", "../x", "--folder", os.fspath(tmp_path)])
