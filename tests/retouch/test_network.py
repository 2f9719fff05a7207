"""The network of plain arrays answers as slow convolutions do, wherever a tile begins."""

import numpy as np
import pytest
from scipy import ndimage

from pointillist.errors import ModelFileError
from pointillist.retouch import network
from pointillist.retouch.network import GRID, Layer, Network, Planes, load_network, read_network, save_network
from pointillist.storage import write_arrays


def convolved(layer, planes):
    """Planes (channels, height, width) convolved one pair of channels after the other, with zeros around them."""
    side = round(np.sqrt(len(layer.taps)))
    kernels = layer.taps.reshape(side, side, *layer.taps.shape[1:])
    return np.stack(
        [
            bias + sum(ndimage.correlate(plane, kernels[..., i, o], mode="constant") for i, plane in enumerate(planes))
            for o, bias in enumerate(layer.biases)
        ]
    )


def answered(layers, picture):
    """What a network answers, step by step: two by two pixels are channels, colours first."""
    planes = np.stack([picture[dy::2, dx::2, c] for c in range(3) for dy in (0, 1) for dx in (0, 1)])
    kept = []
    for level in range(4):
        if level:
            planes = planes.reshape(len(planes), planes.shape[1] // 2, 2, -1, 2).max(axis=(2, 4))
        planes = np.maximum(convolved(layers[f"down.{level}"], planes), 0)
        planes = np.maximum(planes + convolved(layers[f"keep.{level}"], planes), 0)
        kept.append(planes)
    planes = np.maximum(planes + convolved(layers["last"], planes), 0)
    for level in (2, 1, 0):
        up = convolved(layers[f"lift.{level}"], planes).repeat(2, axis=1).repeat(2, axis=2)
        planes = np.maximum(convolved(layers[f"join.{level}"], np.maximum(kept[level] + up, 0)), 0)
        planes = np.maximum(planes + convolved(layers[f"end.{level}"], planes), 0)
    head = convolved(layers["head"], planes)
    answer = np.zeros((len(head) // 4, *picture.shape[:2]))
    for i, (dy, dx) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        answer[:, dy::2, dx::2] = head[i::4]
    return answer


@pytest.mark.parametrize("side", [1, 3])
def test_a_layer_is_a_convolution(side):
    rng = np.random.default_rng(0)
    layer = Layer(*(rng.normal(size=n).astype(np.float32) for n in ((side**2, 5, 7), (7,))))
    values = rng.normal(size=(9, 6, 5)).astype(np.float32)
    expected = np.moveaxis(convolved(layer, np.moveaxis(values, -1, 0)), 0, -1)
    np.testing.assert_allclose(layer(Planes.of(values)).values, expected, rtol=1e-4, atol=1e-4)


def test_long_matrices_are_worked_on_in_parts(monkeypatch):
    rng = np.random.default_rng(1)
    layer = Layer(*(rng.normal(size=n).astype(np.float32) for n in ((9, 2, 3), (3,))))
    planes = Planes.of(rng.normal(size=(20, 30, 2)).astype(np.float32))
    whole = layer(planes).values
    monkeypatch.setattr(network, "_ROWS", 50)
    np.testing.assert_allclose(layer(planes).values, whole, rtol=1e-5, atol=1e-5)


def test_the_answer_is_that_of_slow_convolutions():
    loaded = load_network()
    picture = np.random.default_rng(2).random((48, 32, 3)).astype(np.float32)
    expected = answered(loaded.layers, picture - 0.5)
    got = loaded.log_odds(picture)
    assert got.shape == (2, 48, 32)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (40, 7)])
def test_any_size_is_answered(shape):
    assert load_network().log_odds(np.zeros((*shape, 3), np.float32)).shape[-2:] == shape


def test_pictures_may_begin_anywhere_on_the_grid():
    picture = np.random.default_rng(3).random((176, 176, 3)).astype(np.float32)
    whole, part = (load_network().log_odds(one) for one in (picture, picture[2 * GRID :, GRID:]))
    np.testing.assert_allclose(part[..., 120:, 120:], whole[..., 2 * GRID + 120 :, GRID + 120 :], atol=1e-4)


def test_networks_are_written_and_read_nearly_as_they_were(tmp_path):
    rng = np.random.default_rng(4)
    arrays = {"head.weights": rng.normal(size=(6, 5, 3, 3)), "head.biases": rng.normal(size=6)}
    save_network(tmp_path / "a", arrays, {"steps": 7})
    again, facts = read_network(tmp_path / "a")
    assert isinstance(again, Network)
    assert facts == {"steps": 7}
    weights = again.layers["head"].taps.reshape(3, 3, 5, 6).transpose(3, 2, 0, 1)
    np.testing.assert_allclose(weights, arrays["head.weights"], atol=np.abs(arrays["head.weights"]).max() / 200)
    np.testing.assert_allclose(again.layers["head"].biases, arrays["head.biases"], rtol=1e-6)


def test_files_of_another_kind_are_refused(tmp_path):
    write_arrays(tmp_path / "a", "model", {}, {"filters": np.zeros((2, 3))})
    with pytest.raises(ModelFileError, match="holds pointillist-model, not pointillist-network"):
        read_network(tmp_path / "a")
