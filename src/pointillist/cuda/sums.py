"""The dictionary's statistics on a device: sums over codes in float64, and the sweep over the filters.

`CodeLists` lays sparse codes of signals of one shape out on the device, `DeviceSums` adds them up; both know arrays only,
of the host or of the device. The order of atomic additions is not fixed, so the last bits may differ from run to run.
"""

from math import prod

import numpy as np

from pointillist.arrays import joined, scattered
from pointillist.cuda.engine import WARPS, continue_around, extend, fold, owners
from pointillist.cuda.plan import as_volume, make_plan

_PLAIN = (False, False, False, False)
_ONE_PRODUCT = 1024  # shifts of two filters up to which their spectra are one product


class CodeLists:
    """Sparse codes of signals of one shape on a device, sorted by signal and position.

    Parameters
    ----------
    device : Device
    grid, size : (layers, rows, columns) of the code positions and of the filters
    channels, n_filters : int
    indices, values : sequences of flat arrays, one for each signal
    around : bool
        Whether the grid is circular.
    """

    def __init__(self, device, grid, size, channels, n_filters, indices, values, *, around=False):
        self.device, self.n = device, len(indices)
        self.plan = make_plan(grid, size, channels, n_filters, device.shared_limit, around=around)
        cupy, positions = device.cupy, self.plan.n_positions
        signal = owners(cupy, [len(index) for index in indices])
        index, value = cupy.asarray(joined(indices)), cupy.asarray(joined(values), np.float32)
        position = index % positions
        key = signal * positions + position
        order = cupy.argsort(key)
        self.key, self.value = key[order], value[order]
        self.codes = [array[order].astype(np.int32) for array in (signal, index // positions, position)]
        self.integers = cupy.asarray(self.plan.integers())

    def launch(self, name, *more):
        """Run a kernel with a warp for each code."""
        count, plan = len(self.value), self.plan
        if count:
            kernel = self.device.kernel(name, (plan.channels, *plan.filter), (False, False, False, plan.around))
            arguments = (self.integers, np.int32(count), *self.codes, self.value, *more)
            kernel((-(-count // WARPS),), (32 * WARPS,), arguments)

    def rows(self):
        """First code of each row of each signal, and the end of the last."""
        cupy, (layers, rows, columns) = self.device.cupy, self.plan.grid
        starts = cupy.arange(self.n * layers * rows + 1, dtype=np.int64) * columns
        return cupy.searchsorted(self.key, starts).astype(np.int32)

    def synthesise(self, filters):
        """D z on the padded grids, (n, channels, *padded) float64; continued around where they are circular."""
        cupy, plan = self.device.cupy, self.plan
        out = cupy.zeros((self.n, plan.channels, *plan.padded), np.float64)
        self.launch("synthesise", cupy.asarray(np.ascontiguousarray(filters, np.float32)), out)
        if plan.around:
            fold(out, plan.grid)
            extend(out, plan.grid)
        return out

    def penalty_sums(self, penalty):
        """Σ λ|z| of each signal, for λ (n_filters, 1) or (n_filters, n_positions) on the host."""
        cupy, (signal, filter_, position) = self.device.cupy, self.codes
        if np.all(penalty == penalty[0, 0]):
            price = float(penalty[0, 0])
        else:
            price = cupy.asarray(penalty)[filter_, position if penalty.shape[1] > 1 else 0]
        return scattered(signal, price * cupy.abs(self.value).astype(np.float64), self.n)


class DeviceSums:
    """B and C in block-Toeplitz form on a device.

    Parameters
    ----------
    device : Device
    n_filters, channels : int
    size : (layers, rows, columns) of the filters
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
            if prod(self.span) <= _ONE_PRODUCT:
                self._cosines = cupy.asarray(cosines(self.span))
            else:
                self._cosines, self._waves = None, [cupy.asarray(waves(side)) for side in self.span]

    def lay_out(self, grid, indices, values, *, around=False):
        """The codes of signals on one grid, circular or not, as `CodeLists`."""
        with self.device.use():
            shape = (self.size, self.channels, self.n_filters)
            return CodeLists(self.device, grid, *shape, indices, values, around=around)

    def add(self, codes, filters, residuals, offset, counts, weights):
        """Add signals of one shape, coded with `filters`.

        `codes` are `CodeLists`, `residuals` n arrays (channels, *space) that they leave, `counts` (n,) how
        much a signal counts and `weights` None or n arrays like `residuals`. `ToeplitzStatistics` says what is imputed.
        """
        cupy = self.device.cupy
        with self.device.use():
            weight = cupy.asarray(np.asarray(counts, np.float64))
            imputed = codes.synthesise(filters)
            left = self._volumes(residuals)
            if weights is not None:
                largest = cupy.maximum(self._volumes(weights).max(axis=(1, 2, 3, 4)), 1)
                left = left / largest.reshape(-1, 1, 1, 1, 1)
                weight *= largest
            own = inside(offset, left)
            imputed[own] += left
            if codes.plan.around:
                continue_around(imputed, codes.plan.grid, offset)
            codes.launch("add_boxes", weight, imputed, self.linear)
            codes.launch("add_pairs", weight, codes.rows(), self.pairs)

    def losses(self, codes, filters, signals, offset, weights):
        """½ Σ w (x − Dz)² of n signals (channels, *space) in float64, on the device; no weights are ones."""
        cupy = self.device.cupy
        with self.device.use():
            given = self._volumes(signals)
            squares = (given - codes.synthesise(filters)[inside(offset, given)]) ** 2
            if weights is not None:
                squares *= self._volumes(weights)
            return 0.5 * cupy.sum(squares, axis=(1, 2, 3, 4))

    def _volumes(self, arrays):
        """Arrays (channels, *space) of the host or the device as one (n, channels, layers, rows, columns)."""
        return self.device.upload(arrays).reshape(len(arrays), self.channels, *as_volume(arrays[0].shape[1:]))

    def lipschitz(self):
        """Upper bound, for each filter, of the eigenvalues of its block of C: those of a circulant matrix that holds it."""
        cupy = self.device.cupy
        with self.device.use():
            if self._cosines is not None:
                return cupy.max(self.pairs[self.own] @ self._cosines, axis=1)
            spectrum = self.pairs[self.own].reshape(self.n_filters, *self.span).astype(np.complex128)
            for wave in self._waves:  # each product takes the first axis away and puts its frequencies last
                spectrum = cupy.tensordot(spectrum, wave, axes=(1, 0))
            return spectrum.real.reshape(self.n_filters, -1).max(axis=1)

    def energies(self):
        """Σ z² for each filter."""
        with self.device.use():
            return self.pairs[self.own, prod(self.span) // 2]

    def sweep(self, filters, chosen, relaxation, support, zero_mean, nonnegative):
        """One pass of projected block coordinate descent over the `chosen` of filters (n_filters, taps), float64.

        Steps are `relaxation` times as long as the bounds of the curvatures say.
        """
        cupy = self.device.cupy
        taps = self.channels * prod(self.size)
        shared = 8 * (prod(self.span) + taps)
        kernel = self.device.kernel("step_filter", (self.channels, *self.size), _PLAIN, shared)
        with self.device.use():
            flat = cupy.asarray(np.ascontiguousarray(filters, np.float64))
            allowed = cupy.asarray(np.ascontiguousarray(support, np.uint8))
            bounds = self.lipschitz() / relaxation
            partial, done = cupy.empty_like(flat), cupy.zeros(1, np.int32)
            threads = min(1024, -(-taps // 32) * 32)
            last = (allowed, np.int32(zero_mean), np.int32(nonnegative), flat, partial, done)
            for k in chosen:
                arguments = (np.int32(self.n_filters), np.int32(k), self.pairs, self.linear, bounds, *last)
                kernel((self.n_filters,), (threads,), arguments, shared_mem=shared)
            return flat


def waves(side):
    """exp(−2πi · frequency · shift / side) as (shifts around zero, frequencies): the spectrum along an axis by a product."""
    shifts = np.arange(side) - side // 2
    return np.exp(-2j * np.pi * np.multiply.outer(shifts, np.arange(side)) / side)


def cosines(span):
    """The real parts of the spectra of blocks (span) as one product: (shifts, frequencies), both flat."""
    spectra = np.ones((1, 1))
    for side in span:
        spectra = np.kron(spectra, waves(side))
    return np.ascontiguousarray(spectra.real)


def inside(offset, arrays):
    """Index of signals (n, channels, layers, rows, columns) in padded ones."""
    return (slice(None), slice(None), *(slice(o, o + s) for o, s in zip(offset, arrays.shape[2:], strict=True)))
