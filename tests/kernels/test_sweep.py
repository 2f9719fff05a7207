"""Tests of threads that share the work of one kernel."""

import threading
import time

import numpy as np
import pytest

from pointillist.kernels.compiling import kernel
from pointillist.kernels.sweep import (
    MOST_ITEMS,
    ORDERS,
    announce,
    begin,
    disperse,
    end,
    finish_item,
    make_team,
    take_item,
    wait_for_items,
    wait_for_work,
)


@kernel
def _lead(team, n_items, n_phases, patience, done):
    """Have every item of every phase counted once, and each phase see all of the one before."""
    begin(team)
    for phase in range(n_phases):
        team[ORDERS] = phase
        announce(team, n_items)
        item = take_item(team, 0, 1)
        while item >= 0:
            _count(team, item, done)
            finish_item(team)
            item = take_item(team, 0, 1)
        wait_for_items(team, n_items, patience)
    end(team)


@kernel
def _help(team, rank, n_threads, done, share):
    while wait_for_work(team):
        item = take_item(team, rank, n_threads)
        while item >= 0:
            _count(team, item, done)
            share[0] += 1
            finish_item(team)
            item = take_item(team, rank, n_threads)


@kernel
def _count(team, item, done):
    phase = team[ORDERS]
    before = done[phase - 1].sum() if phase > 0 else done.shape[1]
    done[phase, item] += 1 if before == done.shape[1] else 1000


def _helped(n_items, n_phases, n_helpers, patience=2**40):
    team, done = make_team(), np.zeros((n_phases, n_items), np.int64)
    shares = [np.zeros(1, np.int64) for _ in range(n_helpers)]
    helpers = [
        threading.Thread(target=_help, args=(team, rank, n_helpers + 1, done, shares[rank - 1]))
        for rank in range(1, n_helpers + 1)
    ]
    for helper in helpers:
        helper.start()
    time.sleep(0.01)
    _lead(team, n_items, n_phases, patience, done)
    for helper in helpers:
        helper.join(30)
        assert not helper.is_alive()
    return team, done, sum(int(share[0]) for share in shares)


@pytest.mark.parametrize("n_items", [1, 2, 7, MOST_ITEMS - 1, MOST_ITEMS])
@pytest.mark.parametrize("n_helpers", [0, 1, 3])
def test_every_item_is_done_once_and_phases_follow_each_other(n_items, n_helpers):
    _, done, _ = _helped(n_items, 300, n_helpers)
    np.testing.assert_array_equal(done, 1)


def test_each_thread_begins_in_its_own_place():
    team = make_team()
    _announced(team, 10)
    taken = [_taken(team, rank, 3) for rank in (1, 1, 2, 0, 2, 2, 2, 2, 2, 2, 0)]
    assert taken == [3, 4, 6, 0, 7, 8, 9, 1, 2, 5, -1]


@kernel
def _announced(team, n_items):
    announce(team, n_items)


@kernel
def _taken(team, rank, n_threads):
    return take_item(team, rank, n_threads)


def test_helpers_go_home_without_a_leader():
    team, share = make_team(), np.zeros(1, np.int64)
    _help(team, 1, 2, np.zeros((1, 1), np.int64), share)  # nobody begins: it returns by itself
    assert share[0] == 0
    assert not disperse(team)
    _help(team, 1, 2, np.zeros((1, 1), np.int64), share)
    assert share[0] == 0


def test_a_helper_that_keeps_the_leader_waiting_gets_no_more():
    """One that has taken an item and does not finish it is waited for, and told to go afterwards."""
    team, done, share = make_team(), np.zeros((1, 4), np.int64), np.zeros(1, np.int64)
    _announced(team, 4)
    taken = _taken(team, 1, 2)

    def dawdle():
        time.sleep(0.2)
        done[0, taken] += 1
        _finished(team)

    helper = threading.Thread(target=dawdle)
    helper.start()
    _end_first_phase(team, 4, 1000, done)
    np.testing.assert_array_equal(done, 1)
    helper.join(30)
    assert disperse(team)
    _announced(team, 4)
    _help(team, 1, 2, done, share)
    assert share[0] == 0


@kernel
def _end_first_phase(team, n_items, patience, done):
    """Do what is left of a phase that was announced, and wait for the rest."""
    begin(team)
    item = take_item(team, 0, 1)
    while item >= 0:
        _count(team, item, done)
        finish_item(team)
        item = take_item(team, 0, 1)
    wait_for_items(team, n_items, patience)
    end(team)


@kernel
def _finished(team):
    finish_item(team)
