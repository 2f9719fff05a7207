"""Missing pixels come back, in every form of picture."""

import numpy as np
import pytest

import pointillist as pt
from pointillist.restore import Details, inpaint
from pointillist.restore.smooth import smooth_part
from pointillist.solvers.base import Status


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


def test_dtypes_and_scales_agree(picture, mask, filters, error):
    bytes_ = np.rint(255 * picture).astype(np.uint8)
    wide = np.rint(65535 * picture).astype(np.uint16)
    eight, sixteen = inpaint(bytes_, mask, filters, 0.03), inpaint(wide, mask, filters, 0.03)
    single = inpaint(picture.astype(np.float32), mask, filters, 0.03, data_range=1.0)
    large = inpaint(1000 * picture, mask, filters, 0.03, data_range=1000.0)
    assert (eight.dtype, sixteen.dtype, single.dtype) == (np.uint8, np.uint16, np.float32)
    for other in (sixteen / 65535, single, large / 1000):
        assert error(eight / 255, other) < 5e-3


def test_dark_pictures_are_restored_as_well(picture, mask, filters, error):
    """A 12-bit picture in 16 bits, say: the automatic penalty follows the picture's own contrast."""
    dark = np.rint(4095 * picture).astype(np.uint16)
    mended = inpaint(dark, mask, filters)
    assert error(mended / 4095, inpaint(picture, mask, filters)) < 0.01


def test_nan_is_missing_and_what_lies_under_the_mask_does_not_matter(picture, mask, filters):
    holes = np.where(mask, np.nan, picture)
    np.testing.assert_array_equal(inpaint(holes, None, filters, 0.03), inpaint(picture, mask, filters, 0.03))


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


def test_alpha_is_kept_aside(picture, mask, filters):
    alpha = np.random.default_rng(3).integers(0, 256, picture.shape).astype(np.uint8)
    grey = np.rint(255 * picture).astype(np.uint8)
    mended = inpaint(np.stack([grey, alpha], axis=-1), mask, filters, 0.03)
    np.testing.assert_array_equal(mended[..., 1], alpha)
    np.testing.assert_array_equal(mended[..., 0], inpaint(grey, mask, filters, 0.03))


def test_a_mask_for_each_channel(colour_picture, filters, error):
    mask = np.random.default_rng(4).random(colour_picture.shape) < 0.3
    mended = inpaint(colour_picture, mask, filters, 0.03)
    np.testing.assert_array_equal(mended[~mask], colour_picture[~mask])
    assert error(mended[mask], colour_picture[mask]) < 0.1


def test_options(picture, mask, filters, error):
    fitted = inpaint(picture, mask, filters, 0.1, method="codes", keep_seen=False)
    assert not np.array_equal(fitted[~mask], picture[~mask])
    sharper = inpaint(picture, mask, filters, 0.1, method="codes", keep_seen=False, debias=True)
    assert error(sharper[~mask], picture[~mask]) < error(fitted[~mask], picture[~mask])
    full = inpaint(picture, mask, filters, "2%", boundary="full", tol=1e-2, n_jobs=2)
    assert error(full, picture) < 0.1


def test_nothing_missing_is_nothing_done(picture, filters):
    mended, details = inpaint(picture, np.zeros(picture.shape, bool), filters, return_details=True)
    np.testing.assert_array_equal(mended, picture)
    assert mended is not picture
    assert details.codes.nnz == 0


def test_a_constant_picture_and_a_large_hole(filters):
    image = np.full((40, 40), 77, np.uint8)
    mask = np.zeros((40, 40), bool)
    mask[10:30, 12:33] = True
    np.testing.assert_array_equal(inpaint(image, mask, filters), image)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": np.zeros((1, 1))}, "image must have at least 7 × 7"),
        ({"image": np.zeros((40, 5))}, "image must have at least"),
        ({"mask": np.zeros((3, 3), bool)}, "mask has shape"),
        ({"mask": np.ones((20, 20), bool)}, "mask leaves nothing"),
        ({"penalty": -1.0}, "penalty"),
        ({"tol": -1.0}, "tol"),
        ({"texture": 1.5}, "texture must be a number between 0 and 1"),
        ({"texture": float("nan")}, "texture must be a number between 0 and 1"),
        ({"boundary": "valid"}, "boundary"),
    ],
)
def test_bad_input_is_named(filters, change, message):
    arguments = {"image": np.zeros((20, 20)), "filters": filters, **change}
    with pytest.raises(ValueError, match=message):
        inpaint(**arguments)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "magic"}, "method must be one of auto, neighbours, codes"),
        (
            {"method": "codes", "image": np.zeros((5, 5)), "mask": np.eye(5, dtype=bool)},
            "image must have at least 11 × 11",
        ),
    ],
)
def test_methods_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        inpaint(**{"image": np.zeros((20, 20)), "mask": np.eye(20, dtype=bool), **arguments})


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


def test_details_of_codes(picture, mask):
    _, details = inpaint(picture, mask, method="codes", return_details=True)
    assert details.deviation is None
    assert details.codes.nnz > 0
    assert 0 < details.gap <= 0.3
    assert 0 <= details.unsettled <= 1e-3


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


def test_a_hole_larger_than_tiles():
    y, x = np.mgrid[:320, :320]
    picture = np.rint(60 + 100 * x / 320 + 60 * y / 320).astype(np.uint8)
    mask = np.zeros(picture.shape, bool)
    mask[100:290, 100:290] = True  # a whole tile lies deep in it
    mended, details = inpaint(picture, mask, return_details=True, deviations=True)
    assert np.max(np.abs(mended.astype(int) - picture)) <= 4
    assert np.all(np.isfinite(details.deviation))
