"""The examples in all docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import pointillist

MODULES = [
    "pointillist",
    *(
        module.name
        for module in pkgutil.walk_packages(pointillist.__path__, "pointillist.")
        if not module.name.endswith("__main__")
    ),
]
WITH_EXAMPLES = {"pointillist.codes", "pointillist.solvers.encoding", "pointillist.learners.estimators"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    if name.startswith("pointillist.mne"):
        pytest.importorskip("mne", reason="MNE is not installed: pip install -e '.[mne]'")
    monkeypatch.chdir(tmp_path)
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0
    assert outcome.attempted > 0 or name not in WITH_EXAMPLES
