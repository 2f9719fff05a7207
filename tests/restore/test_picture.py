"""Photographs of every form go in and come out as they were, boxes cover them once, and items are worked on in order."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointillist import estimate_sigma
from pointillist.restore.picture import inside, open_canvas, run_all, tiles, widened


def opened(image, mask=None, **arguments):
    return open_canvas(image, mask, **arguments).picture()


def drawn(shape, dtype):
    values = np.random.default_rng(0).random(shape)
    full = {"uint8": 255, "uint16": 65535}.get(np.dtype(dtype).name, 1)
    return (values * full).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 6), (5, 6, 1), (5, 6, 2), (5, 6, 3), (5, 6, 4)])
def test_there_and_back(dtype, shape):
    image = drawn(shape, dtype)
    canvas = open_canvas(image)
    picture = canvas.picture()
    assert len(picture.planes) in (1, 3)
    assert np.max(picture.planes) <= 1
    back = canvas.photograph(canvas.in_own_type(picture.gather(picture.signals(1)[0])))
    assert back.dtype == image.dtype
    np.testing.assert_allclose(back.astype(float), image.astype(float), rtol=1e-3 if dtype is np.float16 else 1e-6)


def test_channels_may_lie_elsewhere():
    image = drawn((3, 5, 6), np.uint8)
    canvas = open_canvas(image, channel_axis=0)
    assert opened(np.moveaxis(image, 0, -1)[:, :3], channel_axis=-1).shape == (5, 3)
    assert canvas.shape == (5, 6)
    np.testing.assert_array_equal(canvas.photograph(canvas.in_own_type(canvas.picture().planes)), image)


@pytest.mark.parametrize(
    ("values", "scale"), [((0.2, 0.7), 1.0), ((0.0, 255.0), 255.0), ((-5.0, 5.0), 10.0), ((3, 3), 1.0)]
)
def test_scale_of_floats(values, scale):
    assert opened(np.array([values], float)).scale == scale
    assert opened(np.array([values], float), data_range=7.0).scale == 7.0


def test_integers_are_rounded_and_clipped_and_unit_floats_stay_within():
    canvas = open_canvas(np.array([[0, 255]], np.uint8))
    assert canvas.in_own_type(np.array([[[-0.1, 200.6 / 255]]])).tolist() == [[[0, 201]]]
    canvas = open_canvas(np.array([[0.0, 1.0]]))
    assert canvas.in_own_type(np.array([[[-0.1, 1.2]]])).tolist() == [[[0.0, 1.0]]]


def test_masks_and_nan_are_missing():
    image = drawn((5, 6, 3), np.float64)
    image[0, 0, 1] = np.nan
    mask = np.zeros((5, 6), bool)
    mask[1, 2] = True
    picture = opened(image, mask)
    assert picture.weights.sum() == 90 - 1 - 3
    assert not picture.unmixed
    assert np.all(np.isfinite(picture.planes))
    assert opened(image[..., :1], np.zeros((5, 6, 1), np.uint8)).weights.sum() == 30
    assert opened(drawn((5, 6, 4), np.uint8), np.ones((5, 6, 4), bool) * [1, 0, 0, 0][3]).weights.all()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 17))
def test_cells_cover_every_pixel_once(height, width, side):
    times = np.zeros((height, width), int)
    boxes = tiles((height, width), side)
    for box in boxes:
        times[box] += 1
        assert max(times[box].shape) <= side
    assert np.all(times == 1)
    assert boxes == sorted(boxes, key=lambda box: (box[0].start, box[1].start))


def test_widened_stays_within_the_picture_and_inside_finds_the_box_again():
    picture = np.arange(20 * 30).reshape(20, 30)
    for box in tiles(picture.shape, 8):
        outer = widened(box, 5, picture.shape)
        assert all(ends.start >= 0 and ends.stop <= n for ends, n in zip(outer, picture.shape, strict=True))
        np.testing.assert_array_equal(picture[outer][inside(box, outer)], picture[box])
    assert widened((slice(8, 16), slice(8, 16)), 3, (20, 30)) == (slice(5, 19), slice(5, 19))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_progress_is_told_from_the_calling_thread(n_jobs):
    told, threads, done = [], set(), []

    def progress(share):
        told.append(share)
        threads.add(threading.get_ident())

    run_all(done.append, range(20), n_jobs, progress)
    assert sorted(done) == list(range(20))
    np.testing.assert_allclose(told, np.arange(1, 21) / 20)
    assert threads == {threading.get_ident()}
    run_all(done.append, [], n_jobs, progress)
    assert len(done) == len(told) == 20


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


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_sigma_beside_a_picture_and_holes(picture, sigma):
    rng = np.random.default_rng(0)
    noisy = picture + sigma * rng.standard_normal(picture.shape)
    assert estimate_sigma(noisy) == pytest.approx(sigma, rel=0.25)
    mask = rng.random(picture.shape) < 0.1
    assert estimate_sigma(np.where(mask, 0, noisy), mask) == pytest.approx(sigma, rel=0.4)
    assert estimate_sigma(np.where(mask, np.nan, noisy)) == estimate_sigma(np.where(mask, 0, noisy), mask)


def test_sigma_of_colour_is_that_of_its_channels():
    noise = np.random.default_rng(0).standard_normal((64, 64, 3)) * [1.0, 2.0, 3.0]
    expected = np.sqrt(np.mean([estimate_sigma(noise[..., c]) ** 2 for c in range(3)]))
    assert estimate_sigma(noise) == pytest.approx(expected)
    assert estimate_sigma(np.moveaxis(noise, -1, 0), channel_axis=0) == pytest.approx(expected)


def test_nothing_to_measure():
    assert estimate_sigma(np.ones((2, 2))) == 0
    assert estimate_sigma(np.ones((20, 20)), np.arange(400).reshape(20, 20) > 0) == 0
    assert estimate_sigma(np.add.outer(np.arange(20.0), np.arange(20.0))) == pytest.approx(0, abs=1e-12)
