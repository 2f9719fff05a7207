"""Learning from images of which half was seen: nearly as good as from whole ones."""

import numpy as np
import pytest

import pointillist as pt

SETTINGS = {"n_filters": 25, "filter_size": 7, "penalty": 0.7, "batch_size": 4, "random_state": 0}


def _crops(split, count, side, seed):
    rng = np.random.default_rng(seed)
    pictures = list(pt.photographs(split).values())
    crops = []
    while len(crops) < count:
        picture = pictures[len(crops) % len(pictures)]
        top, left = (int(rng.integers(0, length - side + 1)) for length in picture.shape)
        crops.append(picture[top : top + side, left : left + side])
    return pt.contrast_normalise(crops)


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["weights", "nan"])
def test_half_of_the_pixels_teach_nearly_as_much(mark):
    """Held-out objective within 5% after as many steps, each of which takes less time than one from whole images."""
    images, held_out = _crops("train", 80, 64, 0), _crops("test", 12, 64, 1)
    seen = [np.random.default_rng([2, i]).random(image.shape) < 0.5 for i, image in enumerate(images)]
    whole = pt.OnlineCSC(**SETTINGS).fit(images)
    if mark == "nan":
        half = pt.OnlineCSC(**SETTINGS).fit([np.where(s, x, np.nan) for s, x in zip(seen, images, strict=True)])
    else:
        half = pt.OnlineCSC(**SETTINGS).fit(images, weights=[s.astype(np.float32) for s in seen])
    assert len(half.history_) == len(whole.history_)
    first, second = (
        float(np.sum(pt.encode(held_out, model.filters_, SETTINGS["penalty"]).objective)) for model in (whole, half)
    )
    random = np.random.default_rng(3).standard_normal(whole.filters_.shape)
    random /= np.linalg.norm(random, axis=(1, 2), keepdims=True)
    untaught = float(np.sum(pt.encode(held_out, random.astype(np.float32), SETTINGS["penalty"]).objective))
    assert second <= 1.05 * first
    assert first < 0.8 * untaught
