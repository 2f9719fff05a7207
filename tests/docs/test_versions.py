"""Versions of the documentation side by side: folders, the list that their menu reads, and the first page."""

import json
import os

import docs_version
import pytest


def _version(folder, name, *pages):
    for page in pages:
        (folder / name / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / page).write_text(name, encoding="utf-8")


def test_versions_are_listed_newest_first_with_their_pages(tmp_path):
    _version(tmp_path, "0.9", "index.html")
    _version(tmp_path, "0.10", "index.html", "api/coding.html")
    _version(tmp_path, "0.11-dev", "index.html")
    (tmp_path / "notes").mkdir()
    assert docs_version.index(tmp_path) == ["0.10", "0.9", "0.11-dev"]
    script = (tmp_path / "versions.js").read_text(encoding="utf-8")
    listed = json.loads(script.removeprefix("window.documentationVersions = "))
    assert listed[0] == {"name": "0.10", "pages": ["api/coding.html", "index.html"]}
    assert 'url=0.10/index.html"' in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("full", "short"), [("0.2.0.dev0", "0.2-dev"), ("0.2.1", "0.2"), ("1.10.0rc1", "1.10")])
def test_the_folder_is_named_by_the_first_two_numbers(monkeypatch, full, short):
    monkeypatch.setattr(docs_version, "version", lambda package: {"pointillist": full}[package])
    assert docs_version.this_version() == short


def test_names_that_are_no_versions_are_refused(tmp_path):
    with pytest.raises(SystemExit, match=r"like 0\.2"):
        docs_version.main(["--version", "../x", "--folder", os.fspath(tmp_path)])
