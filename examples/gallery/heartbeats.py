"""Heartbeats.

Five minutes of a simulated electrocardiogram: a baseline that wanders, beats that come early and look different, and a
loose electrode. The learner is told about how long a beat is, and that there are two kinds. Its filters are the shapes of
beats, its codes say when each occurs. What comes too early, or fits none of the shapes, is an anomaly.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.transforms import blended_transform_factory

import pointillist as pt

RATE, SECONDS, BEAT, FILTER = 125, 300, 100, 120
BLUE, ORANGE, GREY, INK = "#2f5d8a", "#d9772b", "#8c8c8c", "#2b2b2b"
rng = np.random.default_rng(5)
time = np.arange(RATE * SECONDS) / RATE


def bumps(*waves):
    """0.8 seconds with a bump at each moment, of some width and height."""
    t = np.arange(BEAT) / RATE
    return sum(height * np.exp(-0.5 * ((t - moment) / width) ** 2) for moment, width, height in waves)


usual = bumps((0.14, 0.024, 0.14), (0.27, 0.011, -0.15), (0.30, 0.012, 1.3), (0.33, 0.012, -0.32), (0.54, 0.045, 0.32))
premature = bumps((0.29, 0.042, 1.05), (0.38, 0.03, -0.3), (0.52, 0.06, -0.5))

ecg = 0.25 * np.sin(0.42 * time) + 0.12 * np.sin(1.7 * time) + 0.025 * rng.standard_normal(len(time))
onsets, early, now = [], [], 40
while now < len(ecg) - 3 * BEAT:
    onsets.append(now)
    ecg[now : now + BEAT] += (1 + 0.05 * rng.standard_normal()) * usual
    interval = round(BEAT * (1 + 0.08 * np.sin(0.25 * now / RATE) + 0.015 * rng.standard_normal()))
    if rng.random() < 0.08:  # a beat too early, and the pause after it
        early.append(now + round(rng.uniform(0.5, 0.78) * interval))
        ecg[early[-1] : early[-1] + BEAT] += premature
        interval *= 2
    now += interval
loose = slice(round(149.4 * RATE), round(150.9 * RATE))
ecg[loose] += np.cumsum(0.35 * rng.standard_normal(loose.stop - loose.start)) * np.hanning(loose.stop - loose.start)

signals = pt.remove_baseline(ecg[None], BEAT)
model = pt.OnlineCSC(
    n_filters=2, filter_size=FILTER, penalty=0.8, nonnegative=True, learning=0.1, batch_size=10,
    n_epochs=6, robust=pt.Robust(), update=pt.FilterUpdate(init="patches"), random_state=0,
).fit(pt.sources.CropSource(pt.sources.ArraySource(np.stack(signals)), 150, (6 * BEAT,)))  # fmt: skip
result = model.encode(signals)
events = result.codes.events(sampling_rate=RATE)
peaks = np.abs(model.filters_).argmax(axis=1) - (FILTER - 1) // 2  # from the middle of each filter to its peak
events["time"] += peaks[events["filter"]] / RATE
near = np.abs(events["time"] - events["time"][:, None]) < 0.2  # of neighbouring codes of a filter, the largest one
near &= events["filter"] == events["filter"][:, None]
events = events[(events["amplitude"] > 1) & (events["amplitude"] == (near * events["amplitude"]).max(axis=1))]
events.sort(order="time")
found = pt.anomaly_score(signals, pt.learn_windows(signals, BEAT, random_state=0))
strange = found.events()

score, details = pt.recovery_score(model.filters_, np.stack([usual, premature]), return_details=True)
counts = np.bincount(events["filter"], minlength=2)[details.assignment]
print(f"usual beats: {len(onsets)}, found {counts[0]}; premature beats: {len(early)}, found {counts[1]}")
print(f"cosines of the shapes with the true ones: {', '.join(f'{one:.3f}' for one in details.similarities)}")
print(f"certificate: at most {100 * result.gap[0]:.2f} % above the best codes")
print(
    f"{len(strange)} anomalies, the strangest {strange['peak'][strange['score'].argmax()] / RATE:.1f} s from the start"
)

kinds = np.argsort(details.assignment)  # 0 where a filter stands for the usual beat, 1 for the premature one
names, colours = ("usual", "premature"), (BLUE, ORANGE)
figure = plt.figure(figsize=(12, 7.6), layout="constrained")
panels = figure.subplot_mosaic([["ecg"] * 4, ["score"] * 4, ["usual", "premature", "rhythm", "rhythm"]],
                               height_ratios=[1.35, 0.8, 1])  # fmt: skip
first, last = 142, 160
shown = slice(first * RATE, last * RATE)

above = panels["ecg"]
above.plot(time[shown], ecg[shown], color=INK, linewidth=0.9)
level = blended_transform_factory(above.transData, above.transAxes)
for kind, colour in enumerate(colours):
    these = events[(kinds[events["filter"]] == kind) & (events["time"] > first) & (events["time"] < last)]
    above.scatter(these["time"], np.full(len(these), 0.96), s=55 * these["amplitude"] / 2, color=colour,
                  transform=level, label=f"a {names[kind]} beat", clip_on=False)  # fmt: skip
above.set_title("Eighteen seconds of the recording, and the events in it", loc="left")
above.set(yticks=[], xlim=(first, last), ylim=(None, ecg[shown].max() + 0.5))
above.legend(loc="lower right", ncols=2, frameon=False, bbox_to_anchor=(1, 1))

below = panels["score"]
below.fill_between(time[shown], found.scores[0][shown], color=GREY, alpha=0.35, linewidth=0)
below.fill_between(time[shown], found.threshold, np.maximum(found.scores[0][shown], found.threshold),
                   color=ORANGE, linewidth=0)  # fmt: skip
below.axhline(found.threshold, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
for event in strange[(strange["peak"] > shown.start) & (strange["peak"] < shown.stop)]:
    below.text(event["peak"] / RATE, event["score"], f" {event['cause']}", color=INK, fontsize=9, va="bottom")
below.set_title("How strange each sample is, and the threshold", loc="left")
below.set(xlim=(first, last), ylim=(0, 1.25 * found.scores[0][shown].max()), ylabel="nats", xlabel="seconds")

for kind, name in enumerate(names):
    panel, number = panels[name], details.assignment[kind]
    panel.axhline(0, color="#e6e4df", linewidth=1)
    panel.plot(np.arange(FILTER) / RATE, model.filters_[number], color=colours[kind], linewidth=2)
    panel.set_title(f"A filter: the {name} beat", loc="left")
    panel.set(yticks=[], xlabel="seconds")

rhythm = panels["rhythm"]
moments, kind = events["time"], kinds[events["filter"]]
rhythm.scatter(moments[1:], np.diff(moments), s=9, c=np.array(colours)[kind[1:]])
rhythm.axvspan(time[loose.start], time[loose.stop], color=GREY, alpha=0.4, linewidth=0)
rhythm.set_title("Seconds since the beat before, in all five minutes", loc="left")
rhythm.set(xlabel="seconds", xlim=(0, SECONDS), ylim=(0.3, 1.7))
for panel in panels.values():
    panel.spines[["top", "right"]].set_visible(False)
for name in ("ecg", "usual", "premature"):
    panels[name].spines["left"].set_visible(False)
figure.savefig("heartbeats.png", dpi=110)
