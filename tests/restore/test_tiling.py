"""Boxes cover pictures once, and items are worked on in order, in threads, until somebody stops them."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist.restore.tiling import in_turn, inside, moved_in, run_all, tiles, tiles_with, widened


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 17))
def test_cells_cover_every_pixel_once(height, width, side):
    times = np.zeros((height, width), int)
    boxes = tiles((height, width), side)
    for box in boxes:
        times[box] += 1
        assert max(times[box].shape) <= side
    assert np.all(times == 1)
    assert boxes == sorted(boxes, key=lambda box: (box[0].start, box[1].start))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 17), st.integers(0, 5))
def test_cells_with_are_the_cells_that_hold_a_true_pixel(height, width, side, seed):
    mask = np.random.default_rng(seed).random((height, width)) < 0.02
    assert tiles_with(mask, side) == [box for box in tiles(mask.shape, side) if np.any(mask[box])]


def test_widened_stays_within_the_picture_and_inside_finds_the_box_again():
    picture = np.arange(20 * 30).reshape(20, 30)
    for box in tiles(picture.shape, 8):
        outer = widened(box, 5, picture.shape)
        assert all(ends.start >= 0 and ends.stop <= n for ends, n in zip(outer, picture.shape, strict=True))
        np.testing.assert_array_equal(picture[outer][inside(box, outer)], picture[box])
    assert widened((slice(8, 16), slice(8, 16)), 3, (20, 30)) == (slice(5, 19), slice(5, 19))


def test_boxes_at_far_borders_move_in():
    shape = (21, 5)
    assert [moved_in(box, 8, shape)[0] for box in tiles(shape, 8)] == [slice(0, 8), slice(8, 16), slice(13, 21)]
    assert {(box[1].start, box[1].stop) for box in (moved_in(box, 8, shape) for box in tiles(shape, 8))} == {(0, 5)}


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_answers_come_in_order_and_progress_from_the_calling_thread(n_jobs):
    told, threads = [], set()

    def progress(share):
        told.append(share)
        threads.add(threading.get_ident())

    assert list(in_turn(lambda i: i * i, range(20), n_jobs, progress)) == [i * i for i in range(20)]
    np.testing.assert_allclose(told, np.arange(1, 21) / 20)
    assert threads == {threading.get_ident()}
    assert list(in_turn(lambda i: i, [], n_jobs, progress)) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_what_progress_raises_ends_the_work(n_jobs, kind):
    done = []

    def work(i):
        time.sleep(0.002)
        done.append(i)

    def progress(share):
        raise kind("enough")

    with pytest.raises(kind, match="enough"):
        run_all(work, range(5000), n_jobs, progress)
    assert 1 <= len(done) < 5000
    count = len(done)
    time.sleep(0.02)
    assert len(done) == count


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_what_the_work_raises_reaches_the_caller(n_jobs):
    def work(i):
        if i == 3:
            raise ZeroDivisionError("item 3")

    with pytest.raises(ZeroDivisionError, match="item 3"):
        run_all(work, range(8), n_jobs)
