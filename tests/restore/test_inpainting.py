"""Missing pixels come back in every form of picture: tiles join without seams, holes end where their border says."""

import tracemalloc

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import pointillist as pt
from pointillist.restore import Details, inpaint
from pointillist.restore.engine import Settings
from pointillist.restore.inpainting import TUNING, Coding, beside, fill, scattered
from pointillist.restore.picture import Canvas, open_canvas
from pointillist.restore.prediction import TUNING as PREDICTION
from pointillist.restore.smooth import smooth_part
from pointillist.solvers.base import Status

TILE = TUNING.tile


@pytest.fixture(scope="module")
def mask(picture):
    return np.random.default_rng(1).random(picture.shape) < 0.4


def test_better_than_the_smooth_part_and_seen_pixels_kept(picture, mask, error):
    mended, details = inpaint(picture, mask, return_details=True, deviations=True)
    assert isinstance(details, Details)
    np.testing.assert_array_equal(mended[~mask], picture[~mask])
    alone = smooth_part(picture[None], (~mask)[None].astype(float), mu=0.02).sharp[0]
    assert error(mended[mask], picture[mask]) < 0.95 * error(alone[mask], picture[mask])
    assert details.status is Status.CONVERGED
    assert details.gap <= 0.8
    assert details.penalty > 0
    assert details.seconds > 0
    assert details.codes.nnz > 0
    assert details.unsettled <= 1e-3
    assert details.deviation.shape == picture.shape
    np.testing.assert_array_equal(details.missing, mask)


def test_dark_pictures_are_restored_as_well(picture, mask, filters, error):
    """A 12-bit picture in 16 bits, say: the automatic penalty follows the picture's own contrast."""
    dark = np.rint(4095 * picture).astype(np.uint16)
    mended = inpaint(dark, mask, filters)
    assert error(mended / 4095, inpaint(picture, mask, filters)) < 0.01


def test_colour_with_grey_and_colour_filters(colour_picture, filters, colour_filters, error):
    mask = np.random.default_rng(2).random(colour_picture.shape[:2]) < 0.4
    blank = np.where(mask[..., None], 0, colour_picture)
    for bank in (filters, colour_filters):
        mended, details = inpaint(blank, mask, bank, 0.03, return_details=True, method="codes")
        assert mended.shape == blank.shape
        assert error(mended, colour_picture) < 0.3 * error(blank, colour_picture)
        assert len(details.codes) == (3 if bank.ndim == 3 else 1)
        refined, details = inpaint(blank, mask, bank, 0.03, return_details=True)
        assert error(refined, colour_picture) < 0.95 * error(mended, colour_picture)
        assert len(details.codes) == 1


def test_options(picture, mask, filters, error):
    fitted = inpaint(picture, mask, filters, 0.1, method="codes", keep_seen=False)
    assert not np.array_equal(fitted[~mask], picture[~mask])
    sharper = inpaint(picture, mask, filters, 0.1, method="codes", keep_seen=False, debias=True)
    assert error(sharper[~mask], picture[~mask]) < error(fitted[~mask], picture[~mask])
    full = inpaint(picture, mask, filters, "2%", boundary="full", tol=1e-2, n_jobs=2)
    assert error(full, picture) < 0.1


def test_grey_pictures_refuse_colour_filters(picture, mask, colour_filters):
    with pytest.raises(ValueError, match="filters have 3 channels"):
        inpaint(picture, mask, colour_filters)


def scratches(shape, *those):
    """Straight scratches, each given by its slope, where it begins and its width in pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    return np.any([np.abs(y - a * x - b) < width / 2 * np.hypot(1, a) for a, b, width in those], axis=0)


def test_lines_and_holes_in_a_sky_leave_no_scar():
    """Truth in the middle of this sky is about 213 233 248."""
    shape = (427, 640)
    y, x = np.mgrid[:427, :640]
    sky = np.stack([255 - 90 * y / 427 + 6 * x / 640, 255 - 45 * y / 427, 255 - 10 * y / 427 - 3 * x / 640], axis=-1)
    sky = np.rint(np.minimum(sky, 255)).astype(np.uint8)
    mask = scratches(shape, (0.4, 30, 12), (-0.6, 400, 12))
    for top, left in ((60, 500), (200, 120), (330, 420), (15, 15), (426, 600)):
        mask |= np.hypot(y - top, x - left) < 15
    damaged = sky.copy()
    damaged[mask] = (255, 0, 255)
    for method in ("auto", "codes"):
        mended = inpaint(damaged, mask, method=method)
        assert np.max(np.abs(mended.astype(int) - sky)) <= 2


def test_scratches_in_a_photograph(error):
    picture = pt.photographs("test", grey=False)["coffee"][:200, :240]
    picture = np.rint(255 * picture).astype(np.uint8)
    mask = scratches((200, 240), (0.3, 20, 3), (-0.5, 150, 4), (0.9, -40, 2), (0.1, 120, 5))

    def quality(mended):
        return 20 * np.log10(255 / error(mended[mask], picture[mask]))

    weights = np.broadcast_to(~mask, (3, *mask.shape)).astype(float)
    alone = 255 * np.moveaxis(smooth_part(np.moveaxis(picture / 255, -1, 0), weights).sharp, 0, -1)
    reached = quality(inpaint(np.where(mask[..., None], np.uint8(0), picture), mask))
    assert reached > 24.35 - 0.3
    assert reached > quality(alone) + 1


@pytest.mark.parametrize("method", ["auto", "neighbours", "codes"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_seen_pixels_are_kept_bit_for_bit(colour_picture, dtype, method):
    full = {np.uint8: 255, np.uint16: 65535}.get(dtype, 0.937)
    picture = (full * colour_picture).astype(dtype)
    mask = scratches(picture.shape[:2], (0.5, 10, 3))
    given = picture.copy()
    mended = inpaint(given, mask, method=method)
    assert mended.dtype == dtype
    np.testing.assert_array_equal(mended[~mask], picture[~mask])
    np.testing.assert_array_equal(given, picture)
    assert not np.array_equal(mended[mask], picture[mask])


def test_methods_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="method must be one of auto, neighbours, codes"):
        inpaint(np.zeros((20, 20)), np.eye(20, dtype=bool), method="magic")
    with pytest.raises(ValueError, match="image must have at least 11 × 11"):
        inpaint(np.zeros((5, 5)), np.eye(5, dtype=bool), method="codes")


def test_details_where_nothing_is_coded(picture):
    mask = scratches(picture.shape, (0.4, 10, 4))
    mended, details = inpaint(255 * picture, mask, data_range=255.0, return_details=True, deviations=True)
    assert np.isnan(details.penalty)
    assert (details.gap, details.objective, details.unsettled) == (0, 0, 0)
    assert len(details.codes) == 0
    assert details.codes.nnz == 0
    assert details.status is Status.CONVERGED
    assert details.smooth is None
    np.testing.assert_array_equal(details.missing, mask)
    np.testing.assert_array_equal(details.deviation > 0, mask)
    # The deviations are in the picture's own units, and about as large as the errors.
    wrong = np.sqrt(np.mean((mended - 255 * picture)[mask] ** 2))
    assert 0.3 < np.sqrt(np.mean(details.deviation[mask] ** 2)) / wrong < 2


def test_first_guesses_are_coded_to_the_tolerance_that_is_given(picture, mask):
    _, details = inpaint(picture, mask, tol=0.05, return_details=True)
    assert 0 < details.gap <= 0.05


def test_channels_may_lie_first_and_alpha_is_kept(colour_picture):
    mask = scratches(colour_picture.shape[:2], (0.5, 10, 3), (-0.3, 60, 2))
    plain = inpaint(colour_picture, mask)
    turned = np.moveaxis(colour_picture, -1, 0)
    first, details = inpaint(turned, mask, channel_axis=0, return_details=True, deviations=True)
    np.testing.assert_array_equal(np.moveaxis(first, 0, -1), plain)
    assert details.deviation.shape == mask.shape
    alpha = np.random.default_rng(0).random(mask.shape)
    mended = inpaint(np.dstack([colour_picture, alpha]), mask)
    np.testing.assert_array_equal(mended[..., :3], plain)
    np.testing.assert_array_equal(mended[..., 3], alpha)


def test_nan_and_masks_of_any_order_are_the_same_damage(colour_picture):
    mask = scratches(colour_picture.shape[:2], (0.5, 10, 3))
    plain = inpaint(colour_picture, mask)
    np.testing.assert_array_equal(inpaint(np.where(mask[..., None], np.nan, colour_picture)), plain)
    np.testing.assert_array_equal(inpaint(colour_picture, np.asfortranarray(mask)), plain)
    np.testing.assert_array_equal(inpaint(colour_picture, np.repeat(mask[..., None], 3, axis=2)), plain)
    np.testing.assert_array_equal(inpaint(colour_picture, mask, n_jobs=1), plain)
    np.testing.assert_allclose(inpaint(np.asfortranarray(colour_picture), mask), plain, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 3), (1, 20), (20, 1), (1, 2), (5, 3, 3)])
def test_tiny_pictures(shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    picture = (0.2 + 0.02 * y + 0.03 * x).reshape(*shape[:2], *[1] * (len(shape) - 2)) * np.ones(shape)
    mask = np.zeros(shape[:2], bool)
    mask[shape[0] // 2, shape[1] // 2] = True
    mended, details = inpaint(picture, mask, return_details=True, deviations=True)
    np.testing.assert_allclose(mended, picture, atol=0.031 if shape == (1, 2) else 1e-6)
    assert np.all(np.isfinite(details.deviation))


@pytest.mark.parametrize("shape", [(3, 3), (40, 40), (100, 100), (300, 290, 3)])
def test_a_single_seen_pixel_is_everywhere(shape):
    picture = np.zeros(shape, np.uint8)
    place = (shape[0] // 2, shape[1] // 2)
    picture[place] = 77
    mask = np.ones(shape[:2], bool)
    mask[place] = False
    np.testing.assert_array_equal(inpaint(picture, mask), np.full(shape, 77))


def test_codes_alone_reach_into_holes_larger_than_their_tiles(filters):
    picture = np.full((1120, 600), 0.6)
    mask = np.zeros(picture.shape, bool)
    mask[470:1070] = True
    np.testing.assert_allclose(inpaint(picture, mask, filters, 0.1, method="codes"), 0.6, atol=1e-3)


def waves(height, width):
    """A smooth picture of 3 channels in [0, 1] without straight lines, (3, height, width)."""
    y, x = np.mgrid[:height, :width]
    wave = np.sin(x / 9 + 0.5 * np.sin(y / 14)) * np.cos(y / 11)
    return np.stack([0.5 + 0.3 * wave, 0.5 + 0.2 * wave + 0.0005 * x, 0.4 - 0.25 * wave])


def sky(height, width):
    y, x = np.mgrid[:height, :width]
    return np.stack([0.8 - 0.3 * y / height + 0.05 * x / width, 0.9 - 0.2 * y / height, 0.97 - 0.1 * x / width])


def filled(planes, missing, coding=None, n_jobs=1, progress=None, **options):
    """Planes with their missing pixels filled in by neighbours, and the deviations."""
    out, deviation = np.where(missing, np.nan, planes), np.zeros((1, *missing.shape))
    settings = Settings(n_jobs=n_jobs, progress=progress)
    fill(Canvas(out.copy(), missing[None]), out, settings, coding, deviation=deviation, **options)
    return out, deviation[0]


def lines(height, width):
    """Scratches 3 pixels wide along and across the borders of tiles."""
    missing = np.zeros((height, width), bool)
    for at in range(20, height, 36):
        missing[at : at + 3] = True
    for at in range(TILE - 1, width, TILE):
        missing[:, at : at + 3] = True
    return missing


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
    values, _ = filled(stripes, missing)
    assert error(values[:, missing], stripes[:, missing]) < 0.02


def test_what_lies_farther_than_the_surroundings_does_not_matter():
    planes = waves(3 * TILE, 3 * TILE)
    missing = np.zeros(planes.shape[1:], bool)
    missing[TILE + 50 : TILE + 58, TILE + 40 : TILE + 90] = True
    other = np.random.default_rng(0).random(planes.shape)
    near = (slice(None), *2 * [slice(TILE - PREDICTION.surroundings, 2 * TILE + PREDICTION.surroundings)])
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
    out, _ = filled(planes, missing)
    assert np.max(np.abs(out - planes)) < 0.01


def test_expected_errors_inside_a_deep_hole_are_not_zero():
    rng = np.random.default_rng(0)
    planes = waves(200, 200) + 0.02 * rng.standard_normal((3, 200, 200))
    missing = np.zeros((200, 200), bool)
    missing[60:130, 70:140] = True
    _, spread = filled(planes, missing)
    assert np.all(spread[missing] > 0)
    assert not np.any(spread[~missing])
    assert np.median(spread[85:105, 95:115]) > np.median(spread[60:62, 70:140])


def test_the_number_of_threads_does_not_matter():
    rng = np.random.default_rng(1)
    planes, missing = waves(200, 210), rng.random((200, 210)) < 0.01
    missing[50:90, 100:150] = True
    for one, other in zip(*(filled(planes, missing, n_jobs=n) for n in (1, 3)), strict=True):
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
    huge = 1e40 * planes
    fill(Canvas(1e40 * planes, missing[None], 1e40), huge, Settings())
    np.testing.assert_allclose(huge[:, missing] / 1e40, filled(planes, missing)[0][:, missing], atol=1e-5)


def test_a_mask_for_each_channel_by_neighbours():
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
def test_progress_rises_to_one(n_jobs):
    planes, missing = waves(300, 290), lines(300, 290)
    missing[40:90, 40:90] = True
    told = []
    filled(planes, missing, n_jobs=n_jobs, progress=told.append)
    assert told == sorted(told)
    assert told[0] > 0
    assert told[-1] == pytest.approx(1)


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


HEIGHT, WIDTH = 260, 400


def halves(left, right, seed=0):
    """A picture (260, 400) with noise of one deviation on its left and of another on its right."""
    noise = np.random.default_rng(seed).standard_normal((HEIGHT, WIDTH))
    return 0.5 + noise * np.where(np.arange(WIDTH) < WIDTH // 2, left, right)


def damage(side):
    """Scattered pixels in the tiles of one side alone."""
    missing = np.random.default_rng(1).random((HEIGHT, WIDTH)) < 0.3
    missing[:, 120:280] = False
    missing[:, 280:] &= side == "right"
    missing[:, :120] &= side == "left"
    return missing


def coder(picture, missing, filters, price="auto", trusted=False):
    canvas = open_canvas(picture, missing, data_range=1.0)
    return Coding(filters[:, None], price).coder(canvas, Settings(n_jobs=1), trusted=trusted)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("price", ["auto", "5%"])
def test_the_penalty_is_that_of_the_damaged_part(filters, side, price):
    """What lies on the other side changes nothing; ten times the detail here asks for more penalty."""
    quiet, loud = (0.005, 0.1) if side == "left" else (0.1, 0.005), (0.05, 0.1) if side == "left" else (0.1, 0.05)
    missing = damage(side)
    here = coder(halves(*quiet), missing, filters, price).penalty
    other = halves(quiet[0], quiet[1] / 3) if side == "left" else halves(quiet[0] / 3, quiet[1])
    assert coder(other, missing, filters, price).penalty == here
    assert coder(halves(*loud), missing, filters, price).penalty > 3 * here


@pytest.mark.parametrize("price", ["auto", "5%"])
def test_little_that_was_seen_leaves_something_to_choose_by(filters, price):
    """A hole of a whole tile, and a picture of one pixel."""
    for shape, seen in (((HEIGHT, WIDTH), np.s_[:128]), ((100, 100), np.s_[50:51, 50:51])):
        missing = np.ones(shape, bool)
        missing[seen] = False
        assert 0 < coder(halves(0.05, 0.05)[: shape[0], : shape[1]], missing, filters, price).penalty < 1


def scattered_and_scratched():
    """Scattered pixels in the first tile, and a scratch in the last ones."""
    missing = np.zeros((128, WIDTH), bool)
    missing[:, :128] = np.random.default_rng(2).random((128, 128)) < 0.4
    missing[60:63, 300:390] = True
    return missing


@pytest.mark.parametrize(("everywhere", "boxes"), [(False, {(0, 0)}), (True, {(0, 0), (0, 208), (0, 336)})])
def test_only_scattered_pixels_are_coded_unless_everywhere(filters, everywhere, boxes):
    missing = scattered_and_scratched()
    settings = Settings(n_jobs=1)
    picture = halves(0.05, 0.05)[:128]
    canvas = open_canvas(picture, missing, data_range=1.0)
    target = picture[None].copy()
    made = fill(canvas, target, settings, Coding(filters[:, None], 0.1), everywhere=everywhere)
    assert set(made[0].coded) == boxes
    np.testing.assert_array_equal(target[0][~missing], picture[~missing])
    assert np.all(target[0][missing] != picture[missing])


def test_each_mask_has_a_coder_of_its_own(filters):
    rng = np.random.default_rng(3)
    picture = rng.random((60, 64, 3))
    missing = rng.random(picture.shape) < 0.3
    missing[..., 1] = False
    settings = Settings(n_jobs=1)
    canvas = open_canvas(picture, missing)
    target = np.moveaxis(picture, -1, 0).copy()
    made = fill(canvas, target, settings, Coding(filters[:, None], 0.1))
    assert len(made) == 2
    np.testing.assert_array_equal(np.moveaxis(target, 0, -1)[~missing], picture[~missing])


def test_codes_are_trusted_where_they_tell_hidden_pixels_better(filters):
    """A picture that is made of the filters, and one that is a smooth random texture."""
    rng = np.random.default_rng(5)
    codes = np.where(rng.random((48, 96, 96)) < 3e-4, 1.0, 0.0)
    drawn = 0.5 + sum(scipy.signal.convolve(z, f, "same") for z, f in zip(codes, filters, strict=True))
    texture = 0.5 + scipy.ndimage.gaussian_filter(rng.standard_normal((96, 96)), 1.2)
    missing = rng.random((96, 96)) < 0.4

    def trust(picture):
        return coder(picture, missing, filters, 0.02, trusted=True).trust

    assert 0 <= trust(texture) < 0.3 < trust(drawn) <= 1
