"""Layers, light imports, and the laws of the sources; every law is seen to fail on a small package that breaks it."""

import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import laws
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "pointillist"

ALLOWED: dict[str, set[str]] = {}
"""Places that break a law today, by law. One that is mended leaves this table: the test fails until it has."""


@pytest.fixture(scope="module")
def modules():
    return laws.read_modules(PACKAGE)


def test_the_sources_were_found(modules):
    assert len(modules) > 100
    assert "pointillist.learners.batch" in modules


@pytest.mark.parametrize("law", laws.LAWS)
def test_the_sources_keep_the_law(law, modules):
    findings = laws.LAWS[law](modules)
    broken = [str(finding) for finding in findings if finding.key not in ALLOWED.get(law, ())]
    assert not broken, f"{law}:\n" + "\n".join(broken)
    mended = ALLOWED.get(law, set()) - {finding.key for finding in findings}
    assert not mended, f"take these out of ALLOWED, they are mended: {mended}"


@pytest.fixture
def findings_of(tmp_path):
    """A function that writes files of a package `pointillist` and returns what a law finds in it."""

    def check(law, **files):
        folder = tmp_path / "pointillist"
        for name, text in {"__init__": "", **files}.items():
            path = folder.joinpath(*name.split("__in__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(dedent(text))
        return [finding.key for finding in laws.LAWS[law](laws.read_modules(folder))]

    return check


OWNER = "_HIDDEN = 1\nclass Box:\n    _inside = 2\n    def _open(self): pass\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from pointillist.owner import _HIDDEN", "imports pointillist.owner._HIDDEN"),
        ("from .owner import _HIDDEN as shown", "imports pointillist.owner._HIDDEN"),
        ("def f():\n    from pointillist.owner import _HIDDEN", "imports pointillist.owner._HIDDEN"),
        ("from pointillist import owner\nprint(owner._HIDDEN)", "uses owner._HIDDEN"),
        ("import pointillist.owner as o\nclass A:\n    _HIDDEN = 1\nprint(o._HIDDEN)", "uses o._HIDDEN"),
        ("def f(box):\n    return box._inside", "uses box._inside"),
        ("class A:\n    def f(self):\n        self.box._open()", "uses self.box._open"),
        ("def f(box):\n    return getattr(box, '_inside', None)", "uses box._inside"),
        ("from numpy._core import add", "imports numpy._core.add"),
    ],
)
def test_private_names_of_others_are_found(text, found, findings_of):
    assert findings_of("private names", owner=OWNER, user=text) == [f"pointillist.user: {found}"]


@pytest.mark.parametrize(
    "text",
    [
        "_OWN = 1\nprint(_OWN)",
        "class A:\n    def f(self):\n        return self._inherited\n    def g(self):\n        return super()._inherited",
        "class A:\n    def __init__(self):\n        self._x = 1\n    def same(self, other):\n        return other._x",
        "class A:\n    __slots__ = ('_x',)\n    def same(self, other):\n        return other._x",
        "def f(pair):\n    return pair._replace(a=1)",
        "import os\nos._exit(0)",
        "def f(a):\n    return a.__class__",
    ],
)
def test_own_and_documented_names_are_no_findings(text, findings_of):
    assert findings_of("private names", user=text) == []


@pytest.mark.parametrize(
    "back",
    [
        "import pointillist.a",
        "from pointillist.a import one",
        "from . import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pointillist.a import one",
        "def f():\n    from pointillist.a import one",
    ],
)
def test_cycles_are_found_wherever_the_import_stands(back, findings_of):
    files = {
        "a": "from pointillist.b import two\none = 1",
        "b": "from pointillist.c import two",
        "c": f"{back}\ntwo = 2",
    }
    assert findings_of("import cycles", **files) == ["pointillist.a: in a cycle with pointillist.b, pointillist.c"]


def test_a_diamond_is_no_cycle(findings_of):
    files = {"a": "from . import b, c", "b": "from . import d", "c": "from . import d", "d": ""}
    assert findings_of("import cycles", **files) == []


def test_fan_out_counts_distinct_modules(findings_of):
    many = {f"part{i}": "x = y = 1" for i in range(15)}
    all_of_them = "\n".join(f"from pointillist.{name} import x" for name in many)
    below = "\n".join(f"from pointillist.{name} import x, y" for name in list(many)[:14])
    found = findings_of("fan-out", hub=all_of_them, small=below, **many)
    assert found == ["pointillist.hub: imports more than 14 modules (15)"]


def test_long_modules_are_found(findings_of):
    found = findings_of("long modules", long="x = 1\n" * 401, short="x = 1\n" * 400)
    assert found == ["pointillist.long: longer than 400 lines (401)"]


def test_large_classes_are_found_without_counting_what_python_asks_for(findings_of):
    methods = [f"    def m{i}(self): pass" for i in range(14)]
    fair = ["class Fair:", *methods, "    def __len__(self): return 1", "    def _hidden(self): pass"]
    large = ["class Large:", *fair[1:], "    @property", "    def size(self): return 1"]
    found = findings_of("large classes", a="\n".join([*fair, *large]))
    assert found == ["pointillist.a: Large has more than 15 methods (16)"]


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(x, Dense)",
        "isinstance(x, (int, Dense))",
        "isinstance(x, int | Dense)",
        "issubclass(x, Dense)",
        "type(x) is Dense",
        "[1 for _ in x if type(x) in (Dense, int)]",
    ],
)
def test_questions_after_the_class_of_statistics_or_solvers_are_found(question, findings_of):
    files = {
        "dictionary__in__sums": "class Sums: pass",
        "dictionary__in____init__": "from pointillist.dictionary.sums import Sums",
        "learners__in__own": "from pointillist.dictionary import Sums\nclass Dense(Sums): pass",
        "learners__in__step": f"from pointillist.learners.own import Dense\ndef f(x):\n    return {question}",
    }
    assert findings_of("class tests in learners", **files) == ["pointillist.learners.step: asks for Dense"]


def test_matching_the_class_of_a_solver_is_found_and_other_questions_are_free(findings_of):
    step = """
        from pointillist.solvers.base import Cd
        def f(x):
            match x:
                case Cd():
                    return isinstance(x, str)
    """
    files = {"solvers__in__base": "class Cd: pass", "learners__in__step": step, "restore__in__a": step}
    assert findings_of("class tests in learners", **files) == ["pointillist.learners.step: asks for Cd"]


@pytest.mark.parametrize("text", ["The same of tiles.", "The same; in float64.", "Of B and C in float64."])
def test_riddles_are_found(text, findings_of):
    files = {
        "a": f'"""{text}"""',
        "b": f'def f():\n    """{text}"""',
        "c": f'class C:\n    size = 1\n    """{text}"""',
        "clear": '"""The same codes as NumPy arrays."""\ndef often():\n    """Often called."""',
    }
    assert findings_of("riddles", **files) == [
        "pointillist.a: the module is described by a riddle",
        "pointillist.b: f is described by a riddle",
        "pointillist.c: size is described by a riddle",
    ]


def _lint(folder, **environment):
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed beside this Python")
    done = subprocess.run(
        [command, "--no-cache", "--config", folder / "pyproject.toml"],
        cwd=folder,
        env=environment or None,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_imports_keep_the_contracts():
    assert " 0 broken." in _lint(ROOT)


@pytest.mark.parametrize(
    ("module", "text", "contract"),
    [
        ("model/a.py", "import pointillist.learners", "Imports point down the layers"),
        ("solvers/a.py", "def f():\n    import pointillist.dictionary", "Imports point down the layers"),
        ("attic/__init__.py", "", "Imports point down the layers"),
        ("solvers/a.py", "def f():\n    import numba", "Nothing above backends knows numba, llvmlite or CuPy"),
        ("restore/a.py", "from llvmlite import ir", "Nothing above backends knows numba, llvmlite or CuPy"),
        ("app/a.py", "import cupy", "Nothing above backends knows numba, llvmlite or CuPy"),
        ("model/a.py", "import pointillist.backends.cuda", "Nothing above backends knows numba, llvmlite or CuPy"),
        ("learners/a.py", "import pointillist.mne", "Imports point down the layers"),
        ("mne/a.py", "def f():\n    import pointillist.cli", "Imports point down the layers"),
        (
            "cli/a.py",
            "import pointillist.backends",
            "Commands, pages, reports and MNE's estimator never reach backends",
        ),
        ("restore/a.py", "import pointillist.data.photofiles", "Restoration knows pictures, not their files"),
    ],
)
def test_contracts_are_broken_by(module, text, contract, tmp_path):
    """The contracts of pyproject.toml, on a package of empty layers and one file that breaks one of them."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(settings)["tool"]["importlinter"]["contracts"][0]["layers"]
    for layer in {name.strip() for row in rows for name in row.split("|")} | {"data/photofiles", "backends/cuda"}:
        folder = tmp_path / "pointillist" / layer
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
    (tmp_path / "pointillist" / "__init__.py").touch()
    broken = tmp_path / "pointillist" / module
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(text)
    (tmp_path / "pyproject.toml").write_text(settings[settings.index("[tool.importlinter]") :])
    said = _lint(tmp_path, PYTHONPATH=str(tmp_path))
    assert " 1 broken." in said, said
    assert f"{contract} BROKEN" in said


@pytest.mark.parametrize("heavy", ["matplotlib", "typer", "cupy", "torch", "dask", "mne"])
def test_importing_the_package_stays_light(heavy, imported):
    assert "pointillist.learners.batch" in imported
    assert heavy not in imported


@pytest.fixture(scope="module")
def imported():
    """Modules that a fresh interpreter has after `import pointillist` and making a learner."""
    script = "import sys, pointillist; pointillist.BatchCSC(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
