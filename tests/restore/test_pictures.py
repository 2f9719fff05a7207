"""Photographs of every form go in and come out as they were."""

import numpy as np
import pytest

from pointillist.restore.pictures import open_canvas


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
    picture = opened(image)
    assert len(picture.planes) in (1, 3)
    assert np.max(picture.planes) <= 1
    back = picture.photograph(picture.gather(picture.signals(1)[0]))
    assert back.dtype == image.dtype
    np.testing.assert_allclose(back.astype(float), image.astype(float), rtol=1e-3 if dtype is np.float16 else 1e-6)


def test_channels_may_lie_elsewhere():
    image = drawn((3, 5, 6), np.uint8)
    picture = opened(image, channel_axis=0)
    assert opened(np.moveaxis(image, 0, -1)[:, :3], channel_axis=-1).shape == (5, 3)
    assert picture.shape == (5, 6)
    np.testing.assert_array_equal(picture.photograph(picture.planes), image)


@pytest.mark.parametrize(
    ("values", "scale"), [((0.2, 0.7), 1.0), ((0.0, 255.0), 255.0), ((-5.0, 5.0), 10.0), ((3, 3), 1.0)]
)
def test_scale_of_floats(values, scale):
    assert opened(np.array([values], float)).scale == scale
    assert opened(np.array([values], float), data_range=7.0).scale == 7.0


def test_integers_are_rounded_and_clipped_and_unit_floats_stay_within():
    picture = opened(np.array([[0, 255]], np.uint8))
    assert picture.photograph(np.array([[[-0.1, 200.6 / 255]]])).tolist() == [[0, 201]]
    picture = opened(np.array([[0.0, 1.0]]))
    assert picture.photograph(np.array([[[-0.1, 1.2]]])).tolist() == [[0.0, 1.0]]


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


@pytest.mark.parametrize(
    ("image", "arguments", "message"),
    [
        (np.ones((4, 4), bool), {}, "image must hold uint8"),
        (np.ones((4, 4), np.int32), {}, "image must hold uint8"),
        (np.ones((4, 4), complex), {}, "image must hold real numbers"),
        (np.ones(4), {}, "image must be"),
        (np.ones((4, 4, 5)), {}, "image must be"),
        (np.ones((3, 9, 9)), {}, "say by channel_axis"),
        (np.ones((3, 9, 3)), {}, "say by channel_axis"),
        (np.ones((2, 9, 9, 3)), {}, "stacks"),
        (np.ones((9, 9, 3)), {"channel_axis": None}, "channel_axis=None is for grey"),
        (np.ones((0, 4)), {}, "image is empty"),
        (np.full((4, 4), np.inf), {}, "image holds 16 infinite"),
        (np.ones((4, 4)), {"mask": np.ones((4, 5), bool)}, "mask has shape"),
        (np.ones((4, 4)), {"mask": np.ones((4, 4), bool)}, "mask leaves nothing"),
        (np.ones((4, 4)), {"mask": np.full((4, 4), np.nan)}, "mask must hold booleans"),
        (np.ones((5, 4, 3)), {"mask": np.ones((5, 4, 3), bool) * [True, False, False]}, "mask leaves nothing of one"),
        (np.full((4, 4), np.nan), {}, "mask leaves nothing"),
        (np.ones((4, 4)), {"channel_axis": 0}, "channel_axis"),
        (np.ones((4, 4, 9)), {"channel_axis": 2}, "channel_axis"),
        (np.ones((4, 4)), {"data_range": 0}, "data_range"),
    ],
)
def test_bad_pictures_are_named(image, arguments, message):
    with pytest.raises(ValueError, match=message):
        opened(image, **arguments)
