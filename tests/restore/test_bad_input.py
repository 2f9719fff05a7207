"""The bad-input matrix of the library: every task meets every kind of bad picture and option with one clear line."""

from functools import partial

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


def _task(function, *given, filters=FILTERS):
    return lambda image, **options: function(image, *given, **{"filters": filters, "penalty": 0.05, **options})


TASKS = {
    "inpaint": _inpaint,
    "denoise": _task(denoise),
    "deblur": _task(deblur, np.ones((3, 3))),
    "super_resolve": _task(super_resolve, 2),
    "demosaic": _task(demosaic, filters=COLOURED),
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
        (np.zeros((0, 24)), "empty"), (np.zeros((20, 24, 0)), ""), (np.full((20, 24), np.nan), "missing"),
        (np.where(HOLES, np.inf, RAMP), "infinite"), (RAMP.astype(complex), "complex128"),
        (np.zeros((20, 24), np.int32), "int32"), (RAMP > 0.5, "bool"), (np.full((20, 24), "x"), "must hold"),
        (np.full((20, 24), "x", object), "object"), (np.full((20, 24), None), "missing"), (np.zeros(24), "shape"),
        (np.zeros((2, 3, 20, 24)), "shape"), (np.zeros((7, 20, 24), np.uint16), "shape"), (np.zeros((3, 20, 24)), ""),
        (np.array(0.5), "shape"), (np.full((1, 1), 0.5), "image"), (np.full((2, 24), 0.5), "image"),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else None,
)  # fmt: skip
def test_pictures_that_cannot_be_mended(task, image, word):
    _refused(lambda: task(image), word)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": -1.0}, ["penalty", "positive"]), ({"penalty": 0}, ["penalty", "positive"]),
        ({"penalty": float("nan")}, ["penalty"]), ({"penalty": "low"}, ["penalty", "5%"]),
        ({"penalty": "-5%"}, ["penalty", "positive"]), ({"penalty": True}, ["penalty"]),
        ({"tol": 0.0}, ["tol", "positive"]), ({"boundary": "circular"}, ["boundary", "same"]),
        ({"n_jobs": 0}, ["n_jobs"]), ({"data_range": 0.0}, ["data_range", "positive"]),
        ({"filters": np.ones((4, 5))}, ["filters"]), ({"filters": np.full((4, 5, 5), np.nan)}, ["filters"]),
        ({"filters": np.ones((0, 5, 5))}, ["filters"]), ({"filters": np.ones((4, 2, 5, 5))}, ["filters", "channel"]),
        ({"filters": "natural-7"}, ["filters"]), ({"filters": np.ones((4, 50, 50))}, ["at least"]),
    ],
    ids=lambda value: (
        f"{next(iter(value))} {np.shape(next(iter(value.values()))) or value}" if isinstance(value, dict) else ""
    ),
)  # fmt: skip
def test_options_out_of_range(task, options, words):
    _refused(lambda: task(RAMP, **options), *words)


@pytest.mark.parametrize(
    ("image", "axis", "word"),
    [
        (RAMP, 5, "does not fit"), (RAMP, 0, "does not fit"), (np.zeros((20, 24, 9)), 2, "9 entries"),
        (np.zeros((20, 24, 3)), None, "channel_axis=None is for grey"),
        (np.zeros((3, 20, 24)), "auto", "say by channel_axis"), (np.zeros((3, 20, 3)), "auto", "say by channel_axis"),
    ],
)  # fmt: skip
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
        (np.zeros((24, 20), bool), "shape"), (np.zeros(5, bool), "shape"), (np.zeros((20, 24, 3), bool), "shape"),
        (np.ones((20, 24), bool), "missing"), (np.full((20, 24), np.nan), "mask"), (np.full((20, 24), "x"), "mask"),
    ],
    ids=["turned", "line", "colour", "all", "nan", "text"],
)  # fmt: skip
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


NAN, INF = float("nan"), float("inf")
SQUARE = np.ones((3, 3))
PSFS = [np.ones((21, 3)), np.ones((3, 25)), np.ones((0, 3)), np.ones(3), np.zeros((3, 3)), np.full((3, 3), NAN), "x"]
KERNELS = ["sinc", np.ones(3), np.zeros((2, 2)), SQUARE, np.full((2, 2), NAN)]
CALLS = [
    *(("psf", deblur, RAMP, psf) for psf in PSFS),
    *(("sigma negative", denoise, RAMP, sigma) for sigma in (-1.0, NAN, INF)),
    *(("sigma negative", partial(deblur, sigma=sigma), RAMP, SQUARE) for sigma in (-1.0, NAN, INF)),
    ("noise", partial(denoise, noise="brown"), RAMP),
    *(("gain", partial(denoise, noise="poisson", gain=gain), RAMP) for gain in (0.0, NAN)),
    ("nothing but outliers", partial(denoise, noise="salt_pepper"), np.zeros((20, 24))),
    ("negative", partial(denoise, noise="poisson"), RAMP - 0.5),
    *(("texture between 0 and 1", partial(inpaint, texture=texture), RAMP, HOLES) for texture in (1.5, NAN)),
    *(("factor", super_resolve, RAMP, factor) for factor in (0, -2, 1.5, True, "2", None)),
    *(("kernel", partial(super_resolve, kernel=kernel), RAMP) for kernel in KERNELS),
    *(("pattern", partial(demosaic, filters=COLOURED), RAMP, pattern) for pattern in ("RGB", "", None, 7)),
]
"""Words of the message, a call and the arguments that it is given by position."""


@pytest.mark.parametrize(("words", "call", "given"), [(words, call, given) for words, call, *given in CALLS])
def test_values_out_of_range(words, call, given):
    more = {} if "filters" in getattr(call, "keywords", {}) else {"filters": FILTERS}
    _refused(lambda: call(*given, **more), *words.split())


def test_a_mosaic_wants_colour_filters_and_one_plane():
    _refused(lambda: demosaic(RAMP, filters=FILTERS), "filters", "colour")
    _refused(lambda: demosaic(np.dstack([RAMP] * 3), filters=COLOURED), "mosaic", "shape")
    _refused(lambda: demosaic(np.where(np.indices(RAMP.shape).sum(0) % 2, np.nan, RAMP), filters=COLOURED), "mosaic")
