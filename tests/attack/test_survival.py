"""Attacks by faults, kills and failing system calls find planted defects, and nothing where there are none."""

import os
import sys
import tempfile
from itertools import islice
from pathlib import Path

import pytest
from attack.faults import Faults
from attack.jobs import JOBS, Job
from attack.kills import Kills
from attack.survival import Proving
from attack.syscalls import Calls

pytestmark = pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="forks processes")

CAREFUL, CARELESS, TALKATIVE = (
    Job(name, (f"@planted:{name}", "out/answer.json"), "out/answer.json")
    for name in ("careful", "careless", "talkative")
)
PEACE = {}


@pytest.fixture(scope="module")
def proving(tmp_path_factory):
    """One server for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        proving = Proving((CAREFUL, CARELESS, TALKATIVE))
        proving.move_in(tmp_path_factory.mktemp("proving"))
        proving.undisturbed = PEACE
        _ = proving.programs
        yield proving
        proving.close()


def use(proving, attack):
    """Let an attack work in a place that is made already."""
    attack.proving.home, attack.proving.programs, attack.proving.undisturbed = proving.home, proving.programs, PEACE
    return attack


def attempts(attack, tmp_path):
    """Findings of one attempt after the other."""
    for seed in range(60):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            yield attack.attempt(seed, Path(folder))


@pytest.mark.parametrize(
    ("kind", "job", "finding"),
    [
        (Faults, CARELESS, "lost"),
        (Faults, TALKATIVE, "unnamed error"),
        (Kills, CARELESS, "lost"),
        pytest.param(Calls, CARELESS, "lost", marks=pytest.mark.skipif(bool(Calls().missing), reason="no strace")),
    ],
)
def test_planted_defects_are_found(proving, tmp_path, kind, job, finding):
    found = attempts(use(proving, kind([job])), tmp_path)
    assert any(one.kind == finding for some in found for one in some)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Faults, Kills])
def test_nothing_is_found_where_nothing_is_wrong(proving, tmp_path, kind):
    attack = use(proving, kind([CAREFUL]))
    assert list(islice(attempts(attack, tmp_path), 24)) == [[]] * 24
    assert kind is Faults or attack.done["kills"] > 20


@pytest.mark.slow
def test_runs_of_the_package_survive(tmp_path):
    """A fault and a chain of kills for each kind of run."""
    for attack in (Faults(), Kills()):
        for seed in range(3 * len(JOBS)):
            (tmp_path / f"{attack.name}{seed}").mkdir()
            assert attack.attempt(97 * seed, tmp_path / f"{attack.name}{seed}") == []
        attack.close()
