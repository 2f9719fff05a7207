"""Missing pixels come back, in every form of picture."""

import numpy as np
import pytest

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
    assert details.gap <= 0.3
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
    fitted = inpaint(picture, mask, filters, 0.1, keep_seen=False)
    assert not np.array_equal(fitted[~mask], picture[~mask])
    sharper = inpaint(picture, mask, filters, 0.1, keep_seen=False, debias=True)
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
