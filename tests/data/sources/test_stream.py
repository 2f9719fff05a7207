"""Tests of streams: their order, their place, what they leave out, and how far they read ahead."""

import logging
import pickle
import threading

import numpy as np
import pytest

from pointillist.data.sources import ArraySource, IteratorSource, Stream, as_source, read_batch
from pointillist.errors import UnreadableFileError
from pointillist.sampling import generator

SIGNALS = np.random.default_rng(0).standard_normal((13, 6, 5))


class Moody:
    """A source whose items are their own numbers; some are damaged. It knows what is being read and what is out."""

    def __init__(self, count, damaged=()):
        self.count, self.damaged = count, set(damaged)
        self.read_so_far = []
        self._lock = threading.Lock()

    def __len__(self):
        return self.count

    def read(self, index, epoch=0):
        with self._lock:
            self.read_so_far.append((epoch, index))
        if index in self.damaged:
            raise UnreadableFileError(f"cannot read {self.name(index)}: damaged")
        return np.array([index, index + 1.0])

    def name(self, index, epoch=0):
        return f"item {index}"

    def describe(self):
        return {}


def numbers(batches):
    return [[int(signal[0]) for signal in batch] for batch in batches]


@pytest.mark.parametrize("prefetch", [0, 1, 5])
@pytest.mark.parametrize("shuffle", [True, False])
def test_every_pass_has_all_items_in_the_keyed_order(prefetch, shuffle):
    stream = Stream(Moody(13), batch_size=4, n_epochs=3, shuffle=shuffle, seed=9, prefetch=prefetch)
    found = numbers(stream)
    expected = []
    for epoch in range(3):
        order = generator(9, epoch, 2).permutation(13).tolist() if shuffle else list(range(13))
        expected += [order[i : i + 4] for i in range(0, 13, 4)]
    assert found == expected
    assert len(found) == 12


@pytest.mark.parametrize("taken", range(9))
def test_a_restored_stream_goes_on_where_the_other_was(taken):
    def make():
        return Stream(Moody(10, damaged=(3, 4)), batch_size=3, n_epochs=2, seed=1, on_error="skip")

    whole = numbers(make())
    first = make()
    batches = iter(first)
    before = numbers(next(batches) for _ in range(min(taken, len(whole))))
    state = pickle.loads(pickle.dumps(first.place()))
    batches.close()
    second = make()
    second.go_to(state)
    assert before + numbers(second) == whole
    assert second.skipped == {"cannot read item 3: damaged": 2, "cannot read item 4: damaged": 2}


def test_what_was_only_read_ahead_is_not_yet_counted():
    source = Moody(6, damaged=(2,))
    stream = Stream(source, batch_size=1, shuffle=False, prefetch=4, on_error="skip")
    batches = iter(stream)
    next(batches)
    next(batches)
    assert stream.place() == {"epoch": 0, "offset": 2, "skipped": {}}
    next(batches)
    assert stream.place() == {"epoch": 0, "offset": 4, "skipped": {"cannot read item 2: damaged": 1}}


@pytest.mark.parametrize("prefetch", [0, 2, 7])
def test_reads_no_further_ahead_than_it_may(prefetch):
    source = Moody(200)
    for done, _ in enumerate(Stream(source, batch_size=4, prefetch=prefetch), start=1):
        assert len(source.read_so_far) <= 4 * (done + prefetch)
        if done == 20:
            break


def test_an_abandoned_stream_leaves_no_threads():
    before = threading.active_count()
    batches = iter(Stream(Moody(500), batch_size=2, prefetch=3, threads=3))
    next(batches)
    assert threading.active_count() > before
    batches.close()
    assert threading.active_count() == before


def test_damaged_items_stop_or_are_left_out_with_one_warning(caplog):
    with pytest.raises(UnreadableFileError, match="item 5"):
        list(Stream(Moody(8, damaged=(5,)), batch_size=3))
    with caplog.at_level(logging.WARNING):
        stream = Stream(Moody(8, damaged=(5, 6)), batch_size=1, n_epochs=3, shuffle=False, on_error="skip")
        assert numbers(stream) == [[i] for i in [0, 1, 2, 3, 4, 7]] * 3
    assert caplog.text.count("skipped: cannot read item 5") == 1


@pytest.mark.parametrize(
    ("signal", "reason"),
    [
        (np.ones((8, 8)), "is constant"),
        (np.full((8, 8), np.nan), "is NaN everywhere"),
        (SIGNALS[0, :, :4], "is 6×4, smaller than the filters, 5×5"),
        (np.where(SIGNALS[0] == SIGNALS[0].max(), np.inf, SIGNALS[0]), "holds infinite samples"),
    ],
)
def test_useless_signals_are_refused_by_name(signal, reason):
    with pytest.raises(UnreadableFileError, match=rf"X\[1\] {reason}"):
        list(Stream(ArraySource([np.where(SIGNALS[0] > 1, np.nan, SIGNALS[0]), signal]), least=lambda signal: (5, 5)))


def test_batches_are_read_elsewhere_and_handed_out_here():
    source = Moody(7, damaged=(1,))
    whole = Stream(source, batch_size=3, n_epochs=2, seed=2, on_error="skip")
    driver = Stream(source, batch_size=3, n_epochs=2, seed=2, on_error="skip")
    remote = []
    for unread in driver.unread():
        read = read_batch(source, pickle.loads(pickle.dumps(unread)), None, "skip")
        remote.append(read.signals)
        driver.hand_out(unread, read.skipped)
    assert numbers(batch for batch in remote if batch) == numbers(whole)
    assert driver.place() == whole.place()
    with pytest.raises(UnreadableFileError):
        read_batch(source, unread) if 1 in unread.indices else source.read(1)


def test_settings_are_checked():
    for source in (ArraySource(SIGNALS), IteratorSource([SIGNALS[0]])):
        with pytest.raises(ValueError, match='on_error must be one of "raise", "skip"'):
            Stream(source, on_error="ignore")
    with pytest.raises(ValueError, match="empty"):
        Stream(ArraySource([]))
    with pytest.raises(ValueError, match="n_epochs must be 1"):
        Stream(as_source(iter(SIGNALS)), n_epochs=2)


class Loader:
    """What a PyTorch DataLoader is to us: batches of pairs of tensors, again and again."""

    batch_size = 4

    class Tensor:
        def __init__(self, array):
            self.array = array
            self.ndim = array.ndim

        def detach(self):
            return self

        def cpu(self):
            return self.array

    def __iter__(self):
        for first in range(0, len(SIGNALS), self.batch_size):
            chosen = SIGNALS[first : first + self.batch_size]
            yield [self.Tensor(chosen), np.zeros(len(chosen))]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_iterators_and_loaders_come_in_our_batches(prefetch):
    once = Stream(as_source(signal for signal in SIGNALS), batch_size=5, prefetch=prefetch)
    np.testing.assert_array_equal(np.concatenate(list(once)), SIGNALS)
    loader = Stream(as_source(Loader()), batch_size=6, n_epochs=2, prefetch=prefetch)
    batches = list(loader)
    assert [len(batch) for batch in batches] == [6, 6, 1, 6, 6, 1]
    np.testing.assert_array_equal(np.concatenate(batches[3:]), SIGNALS)


def test_iterators_resume_by_counting_and_say_so(caplog):
    first = Stream(as_source(Loader()), batch_size=3)
    batches = iter(first)
    next(batches)
    next(batches)
    second = Stream(as_source(Loader()), batch_size=3)
    with caplog.at_level(logging.WARNING):
        second.go_to(first.place())
    assert "cannot be resumed exactly" in caplog.text
    np.testing.assert_array_equal(np.concatenate(list(second)), SIGNALS[6:])


def test_useless_signals_of_an_iterator_are_left_out():
    stream = Stream(as_source(iter([SIGNALS[0], np.ones((6, 5)), SIGNALS[1]])), on_error="skip")
    assert len(list(stream)) == 2
    assert sum(stream.skipped.values()) == 1
