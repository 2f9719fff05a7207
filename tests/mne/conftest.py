"""A simulated electroencephalogram: two waveforms with known topographies and times on a real montage, in noise."""

from types import SimpleNamespace

import numpy as np
import pytest

from pointillist.mne import CSC

RATE = 100.0
NAMES = [
    "Fp1", "Fp2", "F7", "F3", "Fz", "F4", "F8", "T7", "C3", "Cz", "C4", "T8", "P7", "P3", "Pz", "P4", "P8", "O1", "Oz", "O2",
]  # fmt: skip
N_TIMES = 40
EPOCHS = {
    "tmin": 0.0, "tmax": 1.99, "baseline": None, "preload": True, "reject_by_annotation": False, "verbose": "error",
}  # fmt: skip


def _hat(at, width):
    """A wave of zero mean, which a high-pass filter leaves alone."""
    t = (np.arange(N_TIMES) / RATE - at) / width
    return (1 - t**2) * np.exp(-(t**2) / 2)


def _topography(info, *centres):
    places = np.array([channel["loc"][:3] for channel in info["chs"]])
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    bumps = [np.exp(-2 * np.sum((places - places[info["ch_names"].index(c)]) ** 2, axis=1)) for c in centres]
    return sum(bumps) / np.max(sum(bumps))


def simulate(mne, seed=0, seconds=40, noise=2e-6):
    """Raw, planted topographies, shapes, amplitudes, peaks (in samples), and each waveform's part of the data."""
    rng = np.random.default_rng(seed)
    info = mne.create_info(NAMES, RATE, "eeg")
    info.set_montage(mne.channels.make_standard_montage("biosemi64"))
    patterns = [_topography(info, "Fp1", "Fp2"), _topography(info, "C3")]
    shapes = [_hat(0.2, 0.05), _hat(0.12, 0.02) - 0.6 * _hat(0.25, 0.035)]
    data = noise * rng.standard_normal((len(NAMES), int(seconds * RATE)))
    parts, peaks = [], []
    for pattern, shape, size, gap in zip(patterns, shapes, (60e-6, 30e-6), (1.4, 0.9), strict=True):
        onsets = np.cumsum(gap * rng.uniform(0.7, 1.3, int(2 * seconds / gap)))
        onsets = (onsets[onsets < seconds - 1] * RATE).astype(int)
        part = np.zeros_like(data)
        for onset in onsets:
            part[:, onset : onset + N_TIMES] += size * rng.uniform(0.8, 1.2) * np.outer(pattern, shape)
        parts.append(part)
        peaks.append(onsets + int(np.argmax(np.abs(shape))))
    raw = mne.io.RawArray(data + sum(parts), info, verbose="error").filter(0.5, None, verbose="error")
    return SimpleNamespace(raw=raw, patterns=patterns, shapes=shapes, parts=parts, peaks=peaks)


def cosine(a, b):
    return abs(float(a @ b)) / np.linalg.norm(a) / np.linalg.norm(b)


def shape_cosine(a, b):
    """The largest cosine over all shifts."""
    return float(np.abs(np.correlate(a, b, "full")).max()) / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.fixture(scope="session")
def mne():
    return pytest.importorskip("mne", reason="MNE is not installed: pip install -e '.[mne]'")


@pytest.fixture(scope="session")
def planted(mne):
    return simulate(mne)


@pytest.fixture(scope="session")
def fitted(planted):
    """A model of the simulated recording, and which of its filters is which planted waveform."""
    csc = CSC(n_filters=2, duration=0.4, n_passes=4, n_jobs=1, random_state=0).fit(planted.raw)
    return csc, matched(csc, planted)


def matched(csc, planted):
    """For each planted waveform the number of the filter whose pattern and shape are most like it."""
    found = []
    for pattern, shape in zip(planted.patterns, planted.shapes, strict=True):
        alike = [
            cosine(one, pattern) * shape_cosine(course, shape)
            for one, course in zip(csc.get_components().T, csc.get_shapes(), strict=True)
        ]
        found.append(int(np.argmax(alike)))
    return found


@pytest.fixture(scope="session")
def epoched(mne, planted):
    """The same recording in epochs of two seconds."""
    events = mne.make_fixed_length_events(planted.raw, duration=2.0)
    return mne.Epochs(planted.raw, events, **EPOCHS)


@pytest.fixture
def cosines():
    return SimpleNamespace(pattern=cosine, shape=shape_cosine, matched=matched)


@pytest.fixture
def bad_epochs(mne, planted):
    """A function that makes epochs of two seconds of a recording whose annotation calls a part bad."""

    def make(onset, duration):
        raw = planted.raw.copy().set_annotations(mne.Annotations([onset], [duration], ["bad"]))
        return mne.Epochs(raw, mne.make_fixed_length_events(raw, duration=2.0), **EPOCHS)

    return make
