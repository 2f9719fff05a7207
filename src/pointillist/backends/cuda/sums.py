"""The dictionary's statistics on a device: sums over codes in float64, and the sweep over the filters.

`DeviceSums` knows arrays only; which codes and which constraints is the caller's business. The order of atomic additions
is not fixed, so the last bits of the sums may differ from run to run.
"""

from __future__ import annotations

from math import prod

import numpy as np

from pointillist.backends.cuda.plan import make_plan

_WARPS = 4


class DeviceSums:
    """B and C in block-Toeplitz form on a device.

    Parameters
    ----------
    device : Device
    n_filters, channels : int
    size : (rows, columns) of the filters
    """

    def __init__(self, device, n_filters, channels, size):
        self.device, self.n_filters, self.channels, self.size = device, n_filters, channels, size
        self.span = tuple(2 * s - 1 for s in size)
        cupy = device.cupy
        with device.use():
            self.linear = cupy.zeros((n_filters, channels * prod(size)), np.float64)
            self.pairs = cupy.zeros((n_filters * (n_filters + 1) // 2, prod(self.span)), np.float64)
            k = np.arange(n_filters, dtype=np.int64)
            self.own = cupy.asarray(k * n_filters - k * (k - 1) // 2)
            self._waves = cupy.asarray(waves(self.span))

    def add(self, grid, filters, indices, values, residuals, offset, weights, scales):
        """Add signals of one shape, coded with `filters`.

        `indices` and `values` are lists of the signals' codes, `residuals` (n, channels, rows, columns) what they leave,
        `weights` (n,) how much a signal counts and `scales` (n,) what its residual is multiplied with. Returns
        Σ weights · ½‖x̃‖² of the imputed signals x̃.
        """
        cupy = self.device.cupy
        with self.device.use():
            codes = _Codes(self, grid, indices, values)
            weight = cupy.asarray(np.asarray(weights, np.float64))
            imputed = codes.synthesise(filters)
            factor = cupy.asarray(np.asarray(scales, np.float32).reshape(-1, 1, 1, 1))
            imputed[inside(offset, residuals)] += factor * cupy.asarray(residuals.astype(np.float32, copy=False))
            codes.launch("add_boxes", weight, imputed, self.linear)
            codes.launch("add_pairs", weight, codes.rows(), self.pairs)
            return float(0.5 * cupy.sum(weight * cupy.sum(imputed**2, axis=(1, 2, 3))))

    def losses(self, grid, filters, indices, values, signals, offset, weights):
        """½ Σ w (x − Dz)² of signals (n, channels, rows, columns) of one shape, in float64; `weights` None is all ones."""
        cupy = self.device.cupy
        with self.device.use():
            fits = _Codes(self, grid, indices, values).synthesise(filters)
            squares = (cupy.asarray(signals).astype(np.float64) - fits[inside(offset, signals)]) ** 2
            if weights is not None:
                squares *= cupy.asarray(weights)
            return 0.5 * cupy.sum(squares, axis=(1, 2, 3)).get()

    def lipschitz(self):
        """For each filter the largest eigenvalue of the circulant matrix that its block of C is a part of."""
        with self.device.use():
            return (self.pairs[self.own] @ self._waves).max(axis=1)

    def energies(self):
        """Σ z² for each filter, on the host."""
        with self.device.use():
            return self.pairs[self.own, prod(self.span) // 2].get()

    def sweep(self, filters, support, zero_mean, nonnegative):
        """One pass of projected block coordinate descent over filters (n_filters, taps), float64, on the device."""
        cupy = self.device.cupy
        kernel = self.device.kernel("step_filter", (self.channels, *self.size), (False, False, False))
        with self.device.use():
            flat = cupy.asarray(np.ascontiguousarray(filters, np.float64))
            allowed = cupy.asarray(np.ascontiguousarray(support, np.uint8))
            bounds = self.lipschitz()
            partial, done = cupy.empty_like(flat), cupy.zeros(1, np.int32)
            threads = min(1024, -(-flat.shape[1] // 32) * 32)
            last = (allowed, np.int32(zero_mean), np.int32(nonnegative), flat, partial, done)
            for k in range(self.n_filters):
                arguments = (np.int32(self.n_filters), np.int32(k), self.pairs, self.linear, bounds, *last)
                kernel((self.n_filters,), (threads,), arguments)
            return flat.get()


def waves(span):
    """cos(2π ⟨frequency, shift⟩) as (shifts, frequencies): the spectrum of symmetric sequences by one product."""
    rows, columns = (np.arange(s) - s // 2 for s in span)
    down = np.multiply.outer(rows, np.arange(span[0])) / span[0]
    across = np.multiply.outer(columns, np.arange(span[1])) / span[1]
    phase = down[:, None, :, None] + across[None, :, None, :]
    return np.cos(2 * np.pi * phase).reshape(prod(span), prod(span))


def inside(offset, arrays):
    """Where signals (n, channels, rows, columns) lie in padded ones."""
    return (slice(None), slice(None), *(slice(o, o + s) for o, s in zip(offset, arrays.shape[2:], strict=True)))


class _Codes:
    """Sparse codes of signals of one shape on a device, sorted by signal and position."""

    def __init__(self, sums, grid, indices, values):
        self.sums, self.n = sums, len(indices)
        self.plan = make_plan(grid, sums.size, sums.channels, sums.n_filters)
        cupy, positions = sums.device.cupy, self.plan.n_positions
        signal = cupy.asarray(np.repeat(np.arange(self.n, dtype=np.int64), [len(index) for index in indices]))
        index = cupy.asarray(np.concatenate([np.empty(0, np.int64), *indices]))
        value = cupy.asarray(np.concatenate([np.empty(0, np.float32), *values]).astype(np.float32))
        position = index % positions
        key = signal * positions + position
        order = cupy.argsort(key)
        self.key, self.value = key[order], value[order]
        self.codes = [array[order].astype(np.int32) for array in (signal, index // positions, position)]
        self.integers = cupy.asarray(self.plan.integers())

    def launch(self, name, *more):
        """Run a kernel with a warp for each code."""
        count, sums = len(self.value), self.sums
        if count:
            kernel = sums.device.kernel(name, (sums.channels, *sums.size), (False, False, False))
            arguments = (self.integers, np.int32(count), *self.codes, self.value, *more)
            kernel((-(-count // _WARPS),), (32 * _WARPS,), arguments)

    def rows(self):
        """Where the codes of each row of each signal begin, and the end of the last."""
        cupy, (height, width) = self.sums.device.cupy, self.plan.grid
        starts = cupy.arange(self.n * height + 1, dtype=np.int64) * width
        return cupy.searchsorted(self.key, starts).astype(np.int32)

    def synthesise(self, filters):
        """D z on the padded grids, float64."""
        cupy, sums = self.sums.device.cupy, self.sums
        out = cupy.zeros((self.n, sums.channels, *self.plan.padded), np.float64)
        self.launch("synthesise", cupy.asarray(np.ascontiguousarray(filters, np.float32)), out)
        return out
