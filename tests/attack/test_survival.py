"""Attacks by faults, kills and failing system calls find planted defects, and nothing where there are none."""

import os
import sys
from pathlib import Path

import pytest
from attack.faults import Faults
from attack.jobs import JOBS, Job
from attack.kills import Kills
from attack.survival import Proving
from attack.syscalls import Calls

pytestmark = pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="forks processes")

CAREFUL, CARELESS, TALKATIVE, FORGETFUL = (
    Job(name, (f"@planted:{name}", "out/answer.json"), "out/answer.json")
    for name in ("careful", "careless", "talkative", "forgetful")
)
ALL = (CAREFUL, CARELESS, TALKATIVE, FORGETFUL)


@pytest.fixture(scope="module")
def proving(tmp_path_factory):
    """One server for all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        proving = Proving(ALL)
        proving.move_in(tmp_path_factory.mktemp("proving"))
        _ = proving.programs
        yield proving
        proving.close()


def kinds(attack, proving, tmp_path, attempts):
    """Kinds of findings of several attempts."""
    attack._proving.home, attack._proving.programs = proving.home, proving.programs
    found = []
    for seed in range(attempts):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += attack.attempt(seed, folder)
    return {one.kind for one in found}, found


def test_calls_are_counted(proving):
    verbs = [verb for verb, _ in proving.peace(CAREFUL).calls]
    written = [verb for verb in verbs if verb in ("mkdir", "open w", "write", "close", "fsync", "replace", "rmdir")]
    careful = ["mkdir", "open w", "close", "open w", "write", "write", "write", "close"]
    assert written == [*careful, "open w", "fsync", "close", "replace", "close", "rmdir", "fsync", "close"]


def test_faults_find_what_is_lost_left_behind_and_said_badly(proving, tmp_path):
    assert kinds(Faults([CAREFUL]), proving, tmp_path, 24)[0] == set()
    for job, kind in ((CARELESS, "lost"), (TALKATIVE, "unnamed error"), (FORGETFUL, "left behind")):
        (tmp_path / job.name).mkdir()
        assert kind in kinds(Faults([job]), proving, tmp_path / job.name, 9)[0]


def test_kills_find_half_a_file(proving, tmp_path):
    attack = Kills([CAREFUL])
    assert kinds(attack, proving, tmp_path, 10) == (set(), [])
    assert attack.kills > 10
    (tmp_path / "careless").mkdir()
    assert "lost" in kinds(Kills([CARELESS]), proving, tmp_path / "careless", 10)[0]


@pytest.mark.skipif(bool(Calls().missing), reason="strace is not here")
def test_system_calls_find_half_a_file(proving, tmp_path):
    assert "lost" in kinds(Calls([CARELESS]), proving, tmp_path, 8)[0]


def test_the_same_seed_is_the_same_attempt(proving):
    attack = Faults([CAREFUL])
    attack._proving.home, attack._proving.programs = proving.home, proving.programs
    assert attack.plan(17) == attack.plan(17)
    assert {attack.plan(seed)[1].at for seed in range(40)} == set(range(1, len(proving.peace(CAREFUL).calls) + 1))


@pytest.mark.slow
def test_runs_of_the_package_survive(tmp_path):
    """A fault and a chain of kills for each kind of run."""
    for attack in (Faults(), Kills()):
        for seed in range(3 * len(JOBS)):
            (tmp_path / f"{attack.name}{seed}").mkdir()
            assert attack.attempt(97 * seed, tmp_path / f"{attack.name}{seed}") == []
        attack.close()
