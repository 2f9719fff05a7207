"""Odd values for every argument of everything public: an answer, or an error that names the argument.

The calls are those of `attack.calls`, which derives them from the signatures, so that a new function is attacked as soon as
it is public.
"""

import numpy as np
import pytest
from attack.told import told

import pointillist as pt
from attack import calls, odd, usual

SIGNALS, FILTERS, IMAGE, MASK = usual.SIGNALS, usual.FILTERS, usual.IMAGE, usual.MASK
PICTURES = {"filters": usual.BANK, "penalty": 0.05}


def _found(seeds, tmp_path):
    attack = calls.Calls()
    return [f"{one.seed} {one.kind}: {one.title}" for seed in seeds for one in attack.attempt(seed, tmp_path)]


def test_odd_values_are_taken_or_refused_by_name(tmp_path):
    found = _found(range(200), tmp_path)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 14_000, 500))
def test_many_odd_values_are_taken_or_refused_by_name(first, tmp_path):
    found = _found(range(first, first + 500), tmp_path)
    assert not found, "\n".join(found)


ARRAYS = [
    (target, word)
    for target, word in calls.pairs()
    if isinstance(usual.usual(target).get(word), np.ndarray) and target.name not in calls.HOLDS_WHAT_IT_GETS
]


@pytest.mark.parametrize(("target", "word"), ARRAYS, ids=lambda one: getattr(one, "name", one))
def test_the_layout_of_an_array_changes_nothing(target, word, tmp_path):
    array = usual.usual(target)[word]
    for name, other in [*odd.layouts(array), ("list", array.tolist())]:
        if not (name == "list" and word in calls.NO_LISTS):
            given = usual.usual(target)
            assert not list(calls.compared(0, tmp_path, target, name, given, {**usual.usual(target), word: other}))


CODES = pt.SparseCodes.from_dense(np.eye(3, 8)[None])
PHOTO = pt.Photograph(np.zeros((4, 5), np.uint8))
SOURCE = pt.sources.ArraySource(IMAGE[None])
MODEL = pt.BatchCSC(3, 5, 0.5, max_iter=1, n_jobs=1, random_state=0)


@pytest.mark.parametrize(
    ("word", "call"),
    [
        ("dense", lambda: pt.SparseCodes.from_dense(None)),
        ("dense", lambda: pt.SparseCodes.from_dense([1.0])),
        ("dense", lambda: pt.SparseCodes.from_dense([["a"]])),
        ("parts", lambda: pt.SparseCodes.concatenate(3)),
        ("parts", lambda: pt.SparseCodes.concatenate([3])),
        ("threshold", lambda: CODES.count("odd")),
        ("indices", lambda: pt.SparseCodes([np.ones(2)], [np.ones(2)], [(3,)], 1)),
        ("values", lambda: pt.SparseCodes([np.arange(2)], [np.array(["a", "b"])], [(3,)], 1)),
        ("pixels", lambda: pt.Photograph([[1, 2]])),
        ("alpha", lambda: pt.Photograph(PHOTO.pixels, alpha=3)),
        ("metadata", lambda: pt.Photograph(PHOTO.pixels, metadata={})),
        ("notes", lambda: pt.Photograph(PHOTO.pixels, notes="odd")),
        ("pixels", lambda: PHOTO.with_pixels(None)),
        ("pixels", lambda: PHOTO.with_pixels(np.ma.masked_array(PHOTO.pixels, True))),
        ("top", lambda: PHOTO.cropped(0.5, 0, 2, 2)),
        ("height", lambda: PHOTO.cropped(0, 0, 9, 2)),
        ("photograph", lambda: pt.write_photograph(None, "a.png")),
        ("path", lambda: pt.write_photograph(PHOTO, 1)),
        ("path", lambda: pt.load_image(1)),
        ("path", lambda: pt.read_photograph("a\0b.png")),
        ("path", lambda: pt.load(None)),
        ("path", lambda: pt.load_codes(b"odd")),
        ("path", lambda: pt.sources.NpySource(3)),
        ("path", lambda: pt.Checkpoints(3)),
        ("record", lambda: pt.Checkpoints("a", record=3)),
        ("paths", lambda: pt.load_images(3)),
        ("paths", lambda: pt.open_source([3])),
        ("recursive", lambda: pt.open_source("a", recursive="odd")),
        ("grey", lambda: pt.load_image("a.png", grey="odd")),
        ("files", lambda: pt.sources.ImageSource([3])),
        ("index", lambda: SOURCE.read("odd")),
        ("index", lambda: SOURCE.window(1.5, (0, 0), (2, 2))),
        ("corner", lambda: SOURCE.window(0, "odd", (2, 2))),
        ("size", lambda: SOURCE.window(0, (0, 0), 3)),
        ("name", lambda: pt.sources.ArraySource(IMAGE[None], name=3)),
        ("source", lambda: pt.sources.CropSource(None, 2, (3, 3))),
        ("source", lambda: pt.sources.NormalisedSource(None)),
        ("sources", lambda: pt.sources.JoinedSource([3])),
        ("seed", lambda: pt.sources.CropSource(SOURCE, 2, (3, 3), seed="odd")),
        ("iterable", lambda: pt.sources.IteratorSource(3)),
        ("batched", lambda: pt.sources.IteratorSource([], batched="odd")),
        ("callbacks", lambda: MODEL.fit(SIGNALS, callbacks=3)),
        ("min_change", lambda: MODEL.fit(SIGNALS, min_change="odd")),
        ("n_epochs", lambda: pt.OnlineCSC(3, 5, n_epochs="odd").fit(SIGNALS)),
        ("prefetch", lambda: pt.OnlineCSC(3, 5).fit(SIGNALS, prefetch=0.5)),
        ("shuffle", lambda: pt.OnlineCSC(3, 5).fit(SIGNALS, shuffle="odd")),
        ("checkpoint", lambda: pt.OnlineCSC(3, 5).fit(SIGNALS, checkpoint="odd")),
        ("validation_every", lambda: pt.OnlineCSC(3, 5).fit(SIGNALS, validation=SIGNALS, validation_every=0)),
        ("progress", lambda: pt.encode(SIGNALS, FILTERS, progress=3)),
        ("progress", lambda: pt.inpaint(IMAGE, MASK, progress=3, **PICTURES)),
        ("codes", lambda: pt.save_codes(None, "a")),
        ("metadata", lambda: pt.save_codes(CODES, "a", metadata=3)),
        ("preprocessing", lambda: pt.save(usual.model(), "a", preprocessing=3)),
        ("extra", lambda: pt.save(usual.model(), "a", extra=3)),
        ("name", lambda: pt.load_filters(True)),
        ("dataset", lambda: pt.sources.Hdf5Source("a.h5", 3)),
        ("array", lambda: pt.sources.ZarrSource("a.zarr", 3)),
        ("on_error", lambda: pt.load_images("a", on_error=np.ones(2))),
        ("validation", lambda: MODEL.fit(SIGNALS, validation=np.ones((2, 30)))),
        ("filter_size", lambda: pt.OnlineCSC(3, (2.5, 3)).fit(SIGNALS)),
        ("channels", lambda: pt.max_penalty(SIGNALS, FILTERS, channels=np.True_)),
        ("signals", lambda: pt.encode(np.ma.masked_array(np.zeros((2, 30), "M8[s]"), True), FILTERS)),
        ("regions", lambda: CODES.pool(regions=10**30)),
        ("texture", lambda: pt.inpaint(IMAGE, MASK, texture=np.timedelta64(3, "s"))),
        ("index", lambda: SOURCE.read(np.timedelta64(0, "s"))),
        ("filters", lambda: pt.decode(CODES, np.ones((3, 1, 5)))),
        ("filters", lambda: pt.demosaic(IMAGE, filters=1e159 * np.ones((3, 3, 5, 5)))),
        ("penalty", lambda: pt.denoise(IMAGE, penalty=10**400)),
        ("channel_axis", lambda: pt.as_signals(np.ones((2, 3, 3)), channel_axis=3)),
        ("X", lambda: pt.OnlineCSC(3, 5).fit(iter([1.0, 2.0]))),
        ("every", lambda: pt.Checkpoints("a", every=np.timedelta64(3, "s"))),
        ("weights", lambda: pt.encode(SIGNALS, FILTERS, weights=np.full(SIGNALS.shape, 1e38))),
    ],
)  # fmt: skip
def test_what_no_value_can_be_is_refused_by_name(word, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match=rf"\b{word}\b"):
        call()


def test_numbers_of_signals_end_where_the_signals_do():
    joined = pt.sources.JoinedSource([SOURCE, SOURCE])
    np.testing.assert_array_equal(joined.read(-1), SOURCE.read(0))
    for source in (SOURCE, joined):
        with pytest.raises(IndexError, match="index must be less than"):
            source.read(len(source))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_of_small_types_are_numbers():
    pt.FilterUpdate(n_sweeps=None, forgetting=np.float32(2))
    CODES.count(np.float16(0.5))
    pt.gaussian_kernel(np.int8(100))
    image = np.stack([IMAGE] * 3, -1)
    assert told(pt.find_marks(image, "red", tolerance=np.int8(0))) == told(pt.find_marks(image, "red", tolerance=0.0))
    pt.find_marks(image.astype(np.float16), "red")
    assert told(pt.find_damage(IMAGE, grow=np.uint64(2))) == told(pt.find_damage(IMAGE, grow=2))


@pytest.mark.parametrize("word", ["signals", "weights", "filters"])
def test_masked_samples_are_not_taken_for_seen(word):
    given = {"signals": SIGNALS, "filters": FILTERS, "weights": np.ones(SIGNALS.shape), "penalty": 0.5, "n_jobs": 1}
    hidden = np.zeros(given[word].shape, bool)
    unmasked = pt.encode(**{**given, word: np.ma.masked_array(given[word], hidden)})
    assert told(unmasked) == told(pt.encode(**given))
    hidden[0, 3] = True
    with pytest.raises(ValueError, match=word):
        pt.encode(**{**given, word: np.ma.masked_array(given[word], hidden)})


def test_masked_samples_count_as_missing_where_samples_may_be_missing():
    hidden = np.zeros(SIGNALS.shape, bool)
    hidden[0, 3:6] = True
    missing = np.where(hidden, np.nan, SIGNALS)
    masked = np.ma.masked_array(SIGNALS, hidden)
    assert told(MODEL.fit(masked).filters_) == told(MODEL.fit(missing).filters_)
    assert told(MODEL.transform(masked)) == told(MODEL.transform(missing))
    weights = 1.0 - hidden
    one, other = (pt.encode(signals, FILTERS, 0.5, weights=weights) for signals in (masked, SIGNALS))
    assert told(one) == told(other)
    for picture in (IMAGE, (255 * IMAGE).astype(np.uint8)):
        masked = np.ma.masked_array(picture, MASK)
        assert told(pt.inpaint(masked, **PICTURES)) == told(pt.inpaint(picture, MASK, **PICTURES))
