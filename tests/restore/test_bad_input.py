"""The bad-input matrix of the library: every task meets every kind of bad picture and option with one clear line."""

import numpy as np
import pytest

from pointillist.restore import deblur, demosaic, denoise, inpaint, super_resolve

FILTERS = np.random.default_rng(0).standard_normal((4, 5, 5)) / 5
COLOURED = np.random.default_rng(0).standard_normal((4, 3, 5, 5)) / 9
RAMP = np.add.outer(np.arange(20.0), np.arange(24.0)) / 44
HOLES = np.random.default_rng(1).random(RAMP.shape) < 0.3


def _inpaint(image, **options):
    space = np.shape(image)[:2]
    mask = HOLES if space == HOLES.shape else np.zeros(space, bool)
    return inpaint(image, mask, **{"filters": FILTERS, "penalty": 0.05, **options})


def _denoise(image, **options):
    return denoise(image, **{"filters": FILTERS, "penalty": 0.05, **options})


def _deblur(image, **options):
    return deblur(image, np.ones((3, 3)), **{"filters": FILTERS, "penalty": 0.05, **options})


def _super_resolve(image, **options):
    return super_resolve(image, 2, **{"filters": FILTERS, "penalty": 0.05, **options})


def _demosaic(image, **options):
    return demosaic(image, **{"filters": COLOURED, "penalty": 0.05, **options})


TASKS = {
    "inpaint": _inpaint,
    "denoise": _denoise,
    "deblur": _deblur,
    "super_resolve": _super_resolve,
    "demosaic": _demosaic,
}
PICTURES = {name: task for name, task in TASKS.items() if name != "demosaic"}


def _refused(call, *words, kind=ValueError):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 250
    assert not [word for word in words if word not in message], message


@pytest.fixture(params=TASKS)
def task(request):
    return TASKS[request.param]


@pytest.fixture(params=PICTURES)
def mender(request):
    return PICTURES[request.param]


@pytest.mark.parametrize(
    ("image", "word"),
    [
        (np.zeros((0, 24)), "empty"),
        (np.zeros((20, 24, 0)), ""),
        (np.full((20, 24), np.nan), "missing"),
        (np.where(HOLES, np.inf, RAMP), "infinite"),
        (RAMP.astype(complex), "complex128"),
        (np.zeros((20, 24), np.int32), "int32"),
        (RAMP > 0.5, "bool"),
        (np.full((20, 24), "x"), "must hold"),
        (np.full((20, 24), "x", object), "object"),
        (np.full((20, 24), None), "missing"),
        (np.zeros(24), "shape"),
        (np.zeros((2, 3, 20, 24)), "shape"),
        (np.zeros((7, 20, 24), np.uint16), "shape"),
        (np.zeros((3, 20, 24)), ""),
        (np.array(0.5), "shape"),
        (np.full((1, 1), 0.5), "image"),
        (np.full((2, 24), 0.5), "image"),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else None,
)
def test_pictures_that_cannot_be_mended(task, image, word):
    _refused(lambda: task(image), word)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": -1.0}, ["penalty", "positive"]),
        ({"penalty": 0}, ["penalty", "positive"]),
        ({"penalty": float("nan")}, ["penalty"]),
        ({"penalty": "low"}, ["penalty", "5%"]),
        ({"penalty": "-5%"}, ["penalty", "positive"]),
        ({"penalty": True}, ["penalty"]),
        ({"tol": 0.0}, ["tol", "positive"]),
        ({"boundary": "circular"}, ["boundary", "same"]),
        ({"n_jobs": 0}, ["n_jobs"]),
        ({"data_range": 0.0}, ["data_range", "positive"]),
        ({"filters": np.ones((4, 5))}, ["filters"]),
        ({"filters": np.full((4, 5, 5), np.nan)}, ["filters"]),
        ({"filters": np.ones((0, 5, 5))}, ["filters"]),
        ({"filters": np.ones((4, 2, 5, 5))}, ["filters", "channel"]),
        ({"filters": "natural-7"}, ["filters"]),
        ({"filters": np.ones((4, 50, 50))}, ["at least"]),
    ],
    ids=lambda value: (
        f"{next(iter(value))} {np.shape(next(iter(value.values()))) or value}" if isinstance(value, dict) else ""
    ),
)
def test_options_out_of_range(task, options, words):
    _refused(lambda: task(RAMP, **options), *words)


@pytest.mark.parametrize(
    ("image", "axis", "word"),
    [
        (RAMP, 5, "does not fit"),
        (RAMP, 0, "does not fit"),
        (np.zeros((20, 24, 9)), 2, "9 entries"),
        (np.zeros((20, 24, 3)), None, "channel_axis=None is for grey"),
        (np.zeros((3, 20, 24)), "auto", "say by channel_axis"),
        (np.zeros((3, 20, 3)), "auto", "say by channel_axis"),
    ],
)
def test_a_channel_axis_that_does_not_fit(mender, image, axis, word):
    _refused(lambda: mender(image, channel_axis=axis), "channel_axis", word)


def test_an_unknown_option_is_named(task):
    _refused(lambda: task(RAMP, tolerance=0.1), "tolerance", "tol", kind=TypeError)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_every_type_comes_back_as_it_was(task, dtype):
    top = {np.uint8: 255, np.uint16: 65535}.get(dtype, 1)
    mended = task((top * RAMP).astype(dtype))
    assert mended.dtype == dtype
    assert np.all(np.isfinite(mended.astype(float)))


def test_a_flat_picture_stays_flat(task):
    mended = task(np.full((20, 24), 90, np.uint8))
    assert np.all(mended == 90)


def test_alpha_is_given_back(mender):
    alpha = np.arange(480, dtype=np.uint16).reshape(20, 24)
    grey = (60000 * RAMP).astype(np.uint16)
    picture = np.dstack([grey, grey, grey // 2, alpha])
    for given in (picture, np.dstack([grey, alpha])):
        mended = mender(given)
        assert mended.shape[2] == given.shape[2]
        np.testing.assert_array_equal(mended[..., -1][:: mended.shape[0] // 20, :: mended.shape[1] // 24], alpha)


@pytest.mark.parametrize(
    ("mask", "word"),
    [
        (np.zeros((24, 20), bool), "shape"),
        (np.zeros(5, bool), "shape"),
        (np.zeros((20, 24, 3), bool), "shape"),
        (np.ones((20, 24), bool), "missing"),
        (np.full((20, 24), np.nan), "mask"),
        (np.full((20, 24), "x"), "mask"),
    ],
    ids=["turned", "line", "colour", "all", "nan", "text"],
)
def test_masks(mask, word):
    _refused(lambda: inpaint(RAMP, mask, FILTERS, 0.05), "mask", word)


def test_nothing_missing_gives_a_copy():
    mended, details = inpaint(RAMP, np.zeros(RAMP.shape, bool), FILTERS, return_details=True)
    np.testing.assert_array_equal(mended, RAMP)
    assert mended is not RAMP
    assert details.codes.nnz == 0


def test_one_channel_missing_altogether():
    mask = np.zeros((20, 24, 3), bool)
    mask[..., 1] = True
    _refused(lambda: inpaint(np.dstack([RAMP] * 3), mask, FILTERS, 0.05), "mask", "channel")


@pytest.mark.parametrize(
    "psf",
    [np.ones((21, 3)), np.ones((3, 25)), np.ones((0, 3)), np.ones(3), np.zeros((3, 3)), np.full((3, 3), np.nan), "x"],
    ids=["high", "wide", "empty", "line", "zero", "nan", "text"],
)
def test_blurs(psf):
    _refused(lambda: deblur(RAMP, psf, FILTERS, 0.05), "psf")


@pytest.mark.parametrize("sigma", [-1.0, float("nan"), float("inf")])
def test_levels_of_noise(sigma):
    _refused(lambda: denoise(RAMP, sigma, FILTERS), "sigma", "negative")
    _refused(lambda: deblur(RAMP, np.ones((3, 3)), FILTERS, sigma=sigma), "sigma", "negative")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"noise": "brown"}, "noise"),
        ({"noise": "poisson", "gain": 0.0}, "gain"),
        ({"noise": "poisson", "gain": np.nan}, "gain"),
    ],
    ids=str,
)
def test_kinds_of_noise(options, word):
    _refused(lambda: denoise(RAMP, filters=FILTERS, **options), word)


@pytest.mark.parametrize("texture", [1.5, float("nan")])
def test_shares_of_texture(texture):
    _refused(lambda: inpaint(RAMP, HOLES, FILTERS, texture=texture), "texture", "between 0 and 1")


def test_nothing_but_outliers():
    _refused(lambda: denoise(np.zeros((20, 24)), filters=FILTERS, noise="salt_pepper"), "nothing but outliers")


def test_counts_are_not_negative():
    _refused(lambda: denoise(RAMP - 0.5, filters=FILTERS, noise="poisson"), "negative")


@pytest.mark.parametrize("factor", [0, -2, 1.5, True, "2", None])
def test_factors(factor):
    _refused(lambda: super_resolve(RAMP, factor, FILTERS), "factor")


@pytest.mark.parametrize("kernel", ["sinc", np.ones(3), np.zeros((2, 2)), np.ones((3, 3)), np.full((2, 2), np.nan)])
def test_kernels_of_decimation(kernel):
    _refused(lambda: super_resolve(RAMP, 2, FILTERS, kernel=kernel), "kernel")


@pytest.mark.parametrize("pattern", ["RGB", "", None, 7])
def test_patterns(pattern):
    _refused(lambda: demosaic(RAMP, pattern, COLOURED), "pattern")


def test_a_mosaic_wants_colour_filters_and_one_plane():
    _refused(lambda: demosaic(RAMP, filters=FILTERS), "filters", "colour")
    _refused(lambda: demosaic(np.dstack([RAMP] * 3), filters=COLOURED), "mosaic", "shape")
    _refused(lambda: demosaic(np.where(np.indices(RAMP.shape).sum(0) % 2, np.nan, RAMP), filters=COLOURED), "mosaic")
