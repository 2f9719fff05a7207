"""The Gram matrix A Aᵀ of sampled filters, in the banded storage that LAPACK factorises."""

import numpy as np

from pointillist.kernels.compiling import allocating_kernel
from pointillist.kernels.convolution import base_of
from pointillist.kernels.vectors import add_runs


@allocating_kernel
def add_gram(layout, codes, places, roots, image_offsets, bandwidth, band):
    """band += Σ over codes of (box)(box)ᵀ, lower triangle: entry (i, j), i ≥ j, at band[j · (bandwidth + 1) + i − j].

    `places` maps padded samples to signal samples, −1 outside; `roots` holds √w on the padded signal;
    `image_offsets` are the run offsets in the signal's own strides. `band` has spare room for one run at its end.
    """
    n_positions = len(layout.row_bases) * layout.row_length
    width = 1 << len(layout.run_lanes)
    n_runs = len(layout.run_offsets)
    step = n_runs * width
    box = np.zeros(step, band.dtype)
    for c in range(len(codes)):
        k = codes[c] // n_positions
        base = base_of(layout, codes[c] - k * n_positions)
        for i in range(n_runs):
            for j in range(width):
                sample = layout.runs[k * step + i * width + j]
                place = base + layout.run_offsets[i] + j
                box[i * width + j] = sample * roots[place] if sample != 0 and places[place] >= 0 else 0
        for i in range(n_runs):
            for j in range(width):
                value = box[i * width + j]
                if value == 0:
                    continue
                column = places[base + layout.run_offsets[i] + j] * (bandwidth + 1)
                for other in range(j, width):
                    band[column + other - j] += value * box[i * width + other]
                start = column - image_offsets[i] - j
                add_runs(layout.run_lanes, band, start, box, (i + 1) * width, image_offsets[i + 1 :], value)
