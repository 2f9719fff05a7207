"""How large filters may get: encoding with filters from 5×5 to 71×71, ours beside SPORCO's transforms.

An update of a code costs as many operations as a filter has samples; a Fourier transform does not know their size. The
filters are learned for each size, a little, so that their codes are sparse as those of real ones are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from paper.rivals import choose_threads

import pointillist as pt
from benchmarks import peers
from benchmarks.context import Context
from benchmarks.encode import EXCESS, race, rival_of
from benchmarks.inputs import PENALTY
from benchmarks.measure import threads
from benchmarks.tables import Findings, Table

SIDES = (5, 11, 21, 31, 51, 71)
N_FILTERS, IMAGE, N_PATCHES, BATCH_SIZE = 32, 200, 40, 4


def run(context: Context) -> Findings:
    image = context.inputs.large(context.pick(IMAGE, 64))
    sides = [side for side in SIDES if 2 * side < len(image)]
    table = Table(
        f"{N_FILTERS} filters of several sizes, one {len(image)}×{len(image)} image, to {EXCESS:.1%} above the optimum, ms, "
        f"at most {threads()} threads",
        ["filters", "ours", "SPORCO", "ratio", "our tol", "our excess", "SPORCO setting", "ours to gap 1e-3"],
        note="A ratio below one: the frequency domain is faster. Learned from few patches for each size.",
    )
    codings = [coding for coding in peers.CODINGS if coding.options.get("rho") in (5.0, 10.0, 20.0, 50.0)]
    for side in sides:
        context.say(f"{side}×{side}")
        filters = _learned(context, side)
        choose_threads(image[None], filters)
        rival = rival_of(image[None], filters, codings[1:2] if context.quick else codings)
        race(table, f"{side}×{side}", [image], filters, rival, repeats=3)
    return Findings([table], settings={"filters": N_FILTERS, "patches": N_PATCHES, "batch": BATCH_SIZE})


def _learned(context: Context, side: int) -> NDArray:
    patches = context.inputs.patches("train", context.pick(N_PATCHES, 4))
    model = pt.OnlineCSC(N_FILTERS, side, PENALTY, batch_size=BATCH_SIZE, tol=0.05, random_state=0)
    return np.asarray(model.fit(patches).filters_)
