"""Notes in a sound.

A melody of plucked strings with noise, made here. The learner knows nothing of music; it is told how long a note is
and how many there may be. Non-negative codes then say which note sounds when: the score, found again.
"""

import matplotlib.pyplot as plt
import numpy as np

import pointillist as pt

RATE, SECONDS, LENGTH = 4000, 12, 600
PITCHES = 220 * 2 ** (np.array([0, 3, 7, 10, 12]) / 12)
rng = np.random.default_rng(2)


def pluck(pitch):
    """A string of that pitch: harmonics, each damped faster than the one below."""
    t = np.arange(LENGTH) / RATE
    return sum(np.sin(2 * np.pi * h * pitch * t) * np.exp(-14 * h * t) / h for h in (1, 2, 3))


onsets = np.cumsum(rng.integers(350, 800, 70))
onsets = onsets[onsets < RATE * SECONDS - LENGTH]
notes = rng.integers(len(PITCHES), size=len(onsets))
sound = 0.05 * rng.standard_normal(RATE * SECONDS)
for onset, note in zip(onsets, notes):
    sound[onset : onset + LENGTH] += pluck(PITCHES[note])

model = pt.BatchCSC(
    n_filters=5, filter_size=LENGTH, penalty=2.0, boundary="valid", nonnegative=True, learning=0.1,
    update=pt.FilterUpdate(init="patches"), max_iter=40, random_state=0,
).fit(sound[None])  # fmt: skip
codes = model.transform(sound[None]).to_dense()[0]

spectra = np.abs(np.fft.rfft(model.filters_, 8 * LENGTH))
heard = spectra.argmax(axis=1) * RATE / (8 * LENGTH)
start = np.argmax(np.abs(model.filters_) > 0.3 * np.abs(model.filters_).max(axis=1, keepdims=True), axis=1)
print("pitches played:", ", ".join(f"{pitch:.0f}" for pitch in PITCHES), "Hz")
print("pitches found: ", ", ".join(f"{pitch:.0f}" for pitch in np.sort(heard)), "Hz")

figure, (above, below) = plt.subplots(
    2, 1, figsize=(12, 5.2), layout="constrained", sharex=True, height_ratios=[1, 1.4]
)
above.plot(np.arange(len(sound)) / RATE, sound, color="#2f5d8a", linewidth=0.4)
above.set_title("The sound", loc="left")
above.set_yticks([])
below.hlines(PITCHES, 0, SECONDS, color="#e6e4df", linewidth=1)
below.plot(onsets / RATE, PITCHES[notes], "o", markersize=13, fillstyle="none", color="#8c8c8c", label="played")
which, when = np.nonzero(codes > 0.3)
below.scatter(
    (when + start[which]) / RATE, heard[which], s=30 * codes[which, when], color="#d9772b", label="found", zorder=3
)
below.set(xlabel="seconds", ylabel="pitch in Hz", yticks=PITCHES.round())
below.set_title("The score", loc="left")
below.legend(loc="upper right", ncols=2, frameon=False, bbox_to_anchor=(1, 1.14))
for axes in (above, below):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("audio.png", dpi=110)
