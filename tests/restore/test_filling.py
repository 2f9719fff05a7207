"""Tiles join without seams, large holes end where their border says, and nothing else is touched or copied."""

import tracemalloc

import numpy as np
import pytest

from pointillist.restore import inpaint
from pointillist.restore.filling import TILE, Filling, Holed, beside, fill, scattered
from pointillist.restore.neighbourhood import SURROUNDINGS


def waves(height, width):
    """A smooth picture of 3 channels in [0, 1] without straight lines, (3, height, width)."""
    y, x = np.mgrid[:height, :width]
    wave = np.sin(x / 9 + 0.5 * np.sin(y / 14)) * np.cos(y / 11)
    return np.stack([0.5 + 0.3 * wave, 0.5 + 0.2 * wave + 0.0005 * x, 0.4 - 0.25 * wave])


def sky(height, width):
    y, x = np.mgrid[:height, :width]
    return np.stack([0.8 - 0.3 * y / height + 0.05 * x / width, 0.9 - 0.2 * y / height, 0.97 - 0.1 * x / width])


def filled(planes, missing, **options):
    """Planes with their missing pixels as `fill` gives them, how often each was given, and the deviations."""
    out, times, spread = planes.copy(), np.zeros(missing.shape, int), np.zeros(missing.shape)

    def sink(rows, columns, values, deviation):
        out[:, rows, columns] = values
        times[rows, columns] += 1
        if deviation is not None:
            spread[rows, columns] = deviation

    fill(Holed(np.where(missing, np.nan, planes), missing), Filling(**options), sink)
    return out, times, spread


def lines(height, width):
    """Scratches 3 pixels wide along and across the borders of tiles."""
    missing = np.zeros((height, width), bool)
    for at in range(20, height, 36):
        missing[at : at + 3] = True
    for at in range(TILE - 1, width, TILE):
        missing[:, at : at + 3] = True
    return missing


def test_every_missing_pixel_is_given_once_and_no_other():
    planes, missing = waves(300, 290), lines(300, 290)
    out, times, _ = filled(planes, missing)
    np.testing.assert_array_equal(times, missing)
    np.testing.assert_array_equal(out[:, ~missing], planes[:, ~missing])


def test_no_seams_between_tiles():
    planes = waves(300, 290)
    missing = np.zeros((300, 290), bool)
    for at in range(7, 300, 12):
        missing[at : at + 4] = True
    wrong = np.abs(filled(planes, missing)[0] - planes).max(axis=0)
    near = np.zeros_like(missing)
    for at in (TILE, 2 * TILE):
        near[at - 2 : at + 2], near[:, at - 2 : at + 2] = True, True
    inner = np.zeros_like(missing)
    inner[16:-16, 16:-16] = True
    there, elsewhere = wrong[missing & near & inner], wrong[missing & ~near & inner]
    assert np.sqrt(np.mean(there**2)) < 1.5 * np.sqrt(np.mean(elsewhere**2))
    assert np.max(there) < 0.01


def test_narrow_tiles_at_the_far_border_see_as_much_as_others(error):
    """The last tile has 6 × 6 pixels: without surroundings it could not know the stripes."""
    y, x = np.mgrid[: TILE + 6, : TILE + 6]
    stripes = (0.5 + 0.3 * np.sin(0.86 * (0.8 * x + 0.6 * y)))[None]
    missing = np.zeros(stripes.shape[1:], bool)
    missing[TILE - 5 : TILE + 5, TILE - 5 : TILE + 5] = True
    values, _, _ = filled(stripes, missing)
    assert error(values[:, missing], stripes[:, missing]) < 0.02


def test_what_lies_farther_than_the_surroundings_does_not_matter():
    planes = waves(3 * TILE, 3 * TILE)
    missing = np.zeros(planes.shape[1:], bool)
    missing[TILE + 50 : TILE + 58, TILE + 40 : TILE + 90] = True
    other = np.random.default_rng(0).random(planes.shape)
    near = (slice(None), *2 * [slice(TILE - SURROUNDINGS, 2 * TILE + SURROUNDINGS)])
    other[near] = planes[near]
    np.testing.assert_array_equal(filled(other, missing)[0][:, missing], filled(planes, missing)[0][:, missing])
    other[near] += 0.1
    assert np.all(filled(other, missing)[0][:, missing] != filled(planes, missing)[0][:, missing])


@pytest.mark.parametrize(
    "place",
    [
        (slice(70, 130), slice(90, 150)),
        (slice(0, 70), slice(0, 60)),
        (slice(60, 120), slice(-50, None)),
        (slice(30, 31 + TILE + 40), slice(20, 20 + TILE + 50)),
    ],
    ids=["hole", "corner", "border", "larger than a tile"],
)
def test_deep_holes_in_a_sky(place):
    planes = sky(220, 240)
    missing = np.zeros(planes.shape[1:], bool)
    missing[place] = True
    out, times, _ = filled(planes, missing)
    np.testing.assert_array_equal(times, missing)
    assert np.max(np.abs(out - planes)) < 0.01


def test_a_hole_over_whole_tiles_is_filled_from_several_levels():
    planes = sky(3 * TILE, 3 * TILE)
    missing = np.zeros(planes.shape[1:], bool)
    missing[40:-40, 40:-40] = True
    out, times, _ = filled(planes, missing)
    np.testing.assert_array_equal(times, missing)
    assert np.max(np.abs(out - planes)) < 0.02


def test_expected_errors_inside_a_deep_hole_are_not_zero():
    rng = np.random.default_rng(0)
    planes = waves(200, 200) + 0.02 * rng.standard_normal((3, 200, 200))
    missing = np.zeros((200, 200), bool)
    missing[60:130, 70:140] = True
    _, _, spread = filled(planes, missing, deviations=True)
    assert np.all(spread[missing] > 0)
    assert not np.any(spread[~missing])
    assert np.median(spread[85:105, 95:115]) > np.median(spread[60:62, 70:140])


def test_the_number_of_threads_does_not_matter():
    rng = np.random.default_rng(1)
    planes, missing = waves(200, 210), rng.random((200, 210)) < 0.01
    missing[50:90, 100:150] = True
    for one, other in zip(*(filled(planes, missing, n_jobs=n, deviations=True) for n in (1, 3)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_types_of_samples_agree():
    planes, missing = waves(150, 140), lines(150, 140)
    missing[60:100, 20:60] = True
    picture = np.moveaxis(planes, 0, -1)
    truth = inpaint(picture, missing, method="neighbours", data_range=1.0)
    for dtype, full, apart in (
        (np.uint8, 255, 0.02),
        (np.uint16, 65535, 1e-3),
        (np.float16, 1, 0.02),
        (np.float32, 1, 1e-4),
    ):
        own = (np.rint(full * picture) if full > 1 else picture).astype(dtype)
        answer = inpaint(own, missing, method="neighbours", data_range=full)
        assert answer.dtype == dtype
        np.testing.assert_array_equal(answer[~missing], own[~missing])
        np.testing.assert_allclose(answer[missing] / full, truth[missing], atol=apart)


def test_large_values_and_offsets_do_not_matter():
    """Kelvin, say, or a picture of 1e30 in float64: coarse pictures are float32 only in units of full scale."""
    planes = sky(150, 150)
    missing = np.zeros((150, 150), bool)
    missing[40:90, 40:90] = True
    expected, _, _ = filled(planes, missing)
    huge = {}

    def sink(rows, columns, values, deviation):
        huge.update(zip(zip(rows.tolist(), columns.tolist(), strict=True), values.T, strict=True))

    fill(Holed(1e40 * planes, missing, 1e40), Filling(), sink)
    np.testing.assert_allclose([huge[tuple(at)] for at in np.argwhere(missing)], expected[:, missing].T, atol=1e-5)


def test_a_mask_for_each_channel():
    picture = np.moveaxis(waves(150, 160), 0, -1)
    missing = np.zeros(picture.shape, bool)
    missing[40:44, :, 0], missing[:, 60:64, 1] = True, True
    answer, details = inpaint(picture, missing, method="neighbours", return_details=True, deviations=True)
    np.testing.assert_array_equal(answer[~missing], picture[~missing])
    assert np.max(np.abs(answer - picture)) < 0.01
    assert details.deviation.shape == picture.shape
    np.testing.assert_array_equal(details.deviation > 0, missing)


@pytest.mark.parametrize("hole", [False, True])
def test_memory_goes_with_the_damage(hole):
    """Nothing of the picture's size is made in floating point: that would be 72 MB in float64 for 3000 × 3000 pixels."""
    picture = np.full((3000, 3000), 100, np.uint8)
    picture[:, 1500:] += 20
    missing = np.zeros(picture.shape, bool)
    missing[700:703, 1300:1700] = True
    if hole:
        missing[1000:1040, 1000:1040] = True
    inpaint(picture[:200, :200], missing[600:800, 1300:1500], method="neighbours", n_jobs=2)
    tracemalloc.start()
    try:
        answer = inpaint(picture, missing, method="neighbours", n_jobs=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(answer[~missing], picture[~missing])
    assert peak - answer.nbytes < 60e6


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_rises_to_one_and_what_it_raises_ends_the_work(n_jobs):
    planes, missing = waves(300, 290), lines(300, 290)
    missing[40:90, 40:90] = True
    told = []
    filled(planes, missing, n_jobs=n_jobs, progress=told.append)
    assert told == sorted(told)
    assert told[0] > 0
    assert told[-1] == pytest.approx(1)
    for kind in (RuntimeError, KeyboardInterrupt):
        seen = []

        def stop(share, seen=seen, kind=kind):
            seen.append(share)
            raise kind("stopped")

        with pytest.raises(kind, match="stopped"):
            filled(planes, missing, n_jobs=n_jobs, progress=stop)
        assert len(seen) == 1


def test_progress_rises_to_one_where_only_some_channels_are_damaged():
    picture, told = np.moveaxis(waves(60, 60), 0, -1), []
    missing = np.zeros(picture.shape, bool)
    missing[20:24, 10:50, 1] = True
    inpaint(picture, missing, method="neighbours", progress=told.append)
    assert told[-1] == pytest.approx(1)


def test_scattered_and_beside():
    rng = np.random.default_rng(2)
    missing = np.zeros((60, 60), bool)
    missing[20:40, 20:40] = True
    assert not scattered(missing)
    rim = beside(missing)
    assert np.count_nonzero(rim) == 22**2 - 20**2
    assert not np.any(rim & missing)
    assert scattered(rng.random((60, 60)) < 0.3)
    assert not scattered(rng.random((60, 60)) < 0.03)
    assert not scattered(np.ones((5, 5), bool))


@pytest.mark.parametrize(("scatter", "everywhere", "called"), [(0.4, False, 1), (0.0, False, 0), (0.0, True, 1)])
def test_first_guesses_are_coded_where_pixels_are_scattered_or_everywhere(scatter, everywhere, called):
    planes, missing = waves(90, 80), np.random.default_rng(3).random((90, 80)) < scatter
    missing[30:34] = True
    boxes = []

    def coded(part, seen, box, n_jobs):
        boxes.append(box)
        np.testing.assert_array_equal(seen, ~missing[box])
        np.testing.assert_array_equal(part[:, seen], planes[(slice(None), *box)][:, seen])
        return np.mean(planes[(slice(None), *box)], axis=0)

    out, _, _ = filled(planes, missing, coded=coded, everywhere=everywhere)
    assert len(boxes) == called
    assert np.max(np.abs(out - planes)) < 0.05
