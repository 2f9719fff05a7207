"""Kernels of coordinate descent on correlations, for signals of one dimension.

The correlations of the residual with all filters are kept up to date: a code that moves changes those around it by inner
products of filters, which a table has. Violators, sweeps and the gap need nothing else, so that a signal is scanned once.

Filters are divided by their penalties here and codes multiplied by them, so that all penalties are one. A code is
``position · n_filters + filter``: all that it changes lies side by side. Signals, weights and residuals are padded, the
weights with zeros. A position is clean where filters meet weights of one only.
"""

from typing import NamedTuple

import numpy as np

from pointillist.kernels.compiling import relaxed, relaxed_routine, routine

_STEP = 64
"""Positions that are searched for violators together."""
_HISTORY = 5
"""Moves of all codes that are combined into one extrapolated step."""
_PROJECTIONS = 4
"""Sweeps of a projected dual point; 3 and 6 are as good."""
_NEGLIGIBLE = 0.07
"""Share of its penalty below which a code is dropped at the end of a solve with a ridge."""
_MANY = 1000
"""Codes up to which none are too many."""
_EPSILON = float(np.finfo(np.float64).eps)


class Bank(NamedTuple):
    """Filters divided by their penalties, and what their correlations are made of, in float64."""

    filters: np.ndarray  # (n_filters, channels, taps)
    turned: (
        np.ndarray
    )  # (channels, (taps + 6) · n_filters): all filters side by side, the last tap first, between zeros
    table: np.ndarray  # (n_filters, (2 taps − 1) · n_filters): inner products with all filters, shifted by 1 − taps on
    penalties: np.ndarray  # (n_filters,)
    lost: float  # norm that filters may have lost before they were correlated with a signal


class Rules(NamedTuple):
    """Limits of rounds: settings of the solver, and what `Tuning` says."""

    tol: float
    max_iter: int
    min_iter: int
    max_sweeps: int
    extra: int
    ridge: float
    nonnegative: bool
    cells: np.ndarray  # sides of the cells that take one new code each, round by round; the last serves all later ones
    share: float
    hopeful: float
    part: int
    neighbours: int


@relaxed
def correlate(bank, signals, out):
    """Correlations of signals (n, channels, samples) with all filters: out (n, samples + taps − 1, n_filters).

    Those at position p lie in row p + taps − 1.
    """
    for i in range(len(signals)):
        _correlate(bank, signals[i], out[i].reshape(-1))


@relaxed
def correlate_products(shapes, mixed, out):
    """Correlations with filters that are a pattern over channels times a shape, for signals that were mixed by the patterns.

    `shapes` (taps, 64 · n_filters) has each row of all shapes 64 times, `mixed` (n, samples + 2 taps − 2, n_filters) zeros
    around the signals; `out` is that of `correlate`.
    """
    n_filters = out.shape[2]
    for i in range(len(out)):
        seen, found = mixed[i].reshape(-1), out[i].reshape(-1)
        for begin in range(0, len(found), shapes.shape[1]):  # a piece that stays in the cache
            around = found[begin : begin + shapes.shape[1]]
            around[:] = 0
            for t in range(len(shapes)):
                samples, shape = seen[begin + t * n_filters :], shapes[t]
                for n in range(len(around)):
                    around[n] += samples[n] * shape[n]


@relaxed_routine
def _correlate(bank, signal, out):
    n_filters, n_channels, n_taps = bank.filters.shape
    width, length = (n_taps + 3) * n_filters, signal.shape[1]
    out[:] = 0
    for c in range(n_channels):
        samples, turned = signal[c], bank.turned[c]
        once, twice, thrice = turned[n_filters:], turned[2 * n_filters :], turned[3 * n_filters :]
        for t in range(0, length, 4):  # four samples at a time, so that sums are loaded and stored less often
            around = out[t * n_filters : t * n_filters + width]
            a, b = samples[t], samples[t + 1] if t + 1 < length else 0.0
            d, e = samples[t + 2] if t + 2 < length else 0.0, samples[t + 3] if t + 3 < length else 0.0
            for n in range(len(around)):  # over slices the loop becomes vectors
                around[n] += (a * thrice[n] + b * twice[n]) + (d * once[n] + e * turned[n])


@relaxed
def solve(bank, rules, signals, weights, clean, correlations, bounds, codes, values, residuals, outcomes):
    """Descend on the codes of signals (n, channels, samples), from those given.

    `weights` (n or 1, channels or 1, samples) and `clean` (n or 1, positions) may be shared; `correlations` are those of
    weights times signals. The ascending codes of signal i lie between bounds[i] and bounds[i + 1]. `residuals` takes
    w (x − D z), `outcomes` (n, 4) objective, relative gap, rounds, and whether codes were too many to go on; before,
    the first has what the objective has besides.
    Returns bounds, codes and their values.
    """
    ends, count = np.zeros(len(signals) + 1, np.int64), 0
    found, kept = np.empty(64, np.int64), np.empty(64, values.dtype)
    for i in range(len(signals)):
        some = slice(bounds[i], bounds[i + 1])
        own, seen = clean[min(i, len(clean) - 1)], weights[min(i, len(weights) - 1)]
        rows = correlations[i].reshape(-1)
        fresh, left = _rounds(
            bank, rules, signals[i], seen, own, rows, codes[some], values[some], residuals[i], outcomes[i]
        )
        if count + len(fresh) > len(found):
            found = np.append(found, np.empty(count + len(fresh), np.int64))
            kept = np.append(kept, np.empty(count + len(fresh), values.dtype))
        _copy(fresh, found[count:])
        _copy(left, kept[count:])
        count += len(fresh)
        ends[i + 1] = count
    return ends, found[:count], kept[:count]


@routine
def _copy(source, target):
    """Copy numbers: an assignment of slices would bring its message along, which takes long to be compiled."""
    for n in range(len(source)):
        target[n] = source[n]


@relaxed_routine
def _rounds(bank, rules, signal, weights, clean, correlations, codes, values, residual, outcome):
    """Rounds on one signal: take the best violators in, sweep over all codes, drop those that end at zero."""
    n_filters, n_channels, n_taps = bank.filters.shape
    precision, square, energy, rounds = np.finfo(values.dtype).eps, 0.0, 0.0, 0
    for k in range(n_filters):
        square = max(square, bank.table[k, (n_taps - 1) * n_filters + k])
    for c in range(n_channels):
        for sample in signal[c]:
            energy += sample * sample
    # A correlation is off by an ε for each of its terms, beside the norms of what it is made of.
    own = _EPSILON * (n_taps * n_channels + 16) * np.sqrt(square * energy)
    margin, missing, point = (n_taps - 1) * n_filters, np.zeros(residual.shape), np.empty(residual.shape)
    grid = correlations[margin : margin + len(clean) * n_filters]
    lowest, tightest, tried, stalled, crowded = np.inf, np.inf, np.inf, 0, False
    changes = np.empty(len(codes))
    for i in range(len(codes)):
        changes[i] = values[i] * bank.penalties[codes[i] % n_filters]
    constant = outcome[0]
    off = own + bank.lost * np.sqrt(energy) + _move(bank, weights, clean, correlations, missing, codes, changes)
    loss, energy = _leave(bank, signal, weights, codes, values, residual)
    while True:
        cell = rules.cells[min(rounds, len(rules.cells) - 1)]
        fresh, ratio = _violators(grid, n_filters, rules.nonnegative, cell, 1 + 4 * precision)
        objective = loss + constant
        for i in range(len(codes)):
            objective += abs(values[i]) * bank.penalties[codes[i] % n_filters]
        gap = _gap(objective, constant, loss, energy, ratio + off)
        if gap > rules.tol >= _gap(objective, constant, loss, energy, ratio + own) and off > own:
            _correlate(bank, residual, correlations)
            off = own
            continue
        if rules.ridge == 0:
            if rules.tol < gap < min(rules.hopeful * rules.tol, 0.5 * tried):
                tried = gap
                other = _projected(
                    bank, rules, signal, weights, clean, correlations, missing, codes, values, point, ratio, off, objective,
                    constant,
                )  # fmt: skip
                gap = min(gap, other)
            stalled = 0 if objective < lowest * (1 - 1e-10) or gap < 0.9 * tightest else stalled + 1
            lowest, tightest = min(lowest, objective), min(tightest, gap)
            if stalled > 5 or (gap <= rules.tol and rounds >= rules.min_iter):
                break
        if rounds == rules.max_iter or crowded:
            break
        rounds += 1
        codes, values = _with_fresh(codes, values, fresh)
        target = max(rules.share * min(ratio - 1, 1.0), 2 * precision)
        crowded, changes = _descend(bank, rules, weights, clean, correlations, codes, values, target, False)
        if rules.ridge > 0 and rounds == rules.max_iter:
            for i in range(len(codes)):
                penalty = bank.penalties[codes[i] % n_filters]
                if abs(values[i]) < _NEGLIGIBLE * penalty:
                    changes[i] -= values[i] * penalty
                    values[i] = 0
        loss, energy = _leave(bank, signal, weights, codes, values, residual)
        off += _move(bank, weights, clean, correlations, missing, codes, changes)
        kept = values != 0
        codes, values = codes[kept], values[kept]
    outcome[0], outcome[1], outcome[2], outcome[3] = objective, gap, rounds, crowded and gap > rules.tol
    return codes, values


@routine
def _gap(objective, constant, loss, energy, ratio):
    """The relative gap of an objective, from a dual point of this loss and energy, and with this largest ratio.

    The `constant` is what both objectives have besides.
    """
    scale = min(max(energy, 0.0) / max(2 * loss, 1e-300), 1 / ratio)
    gap = max(objective - constant - (scale * energy - scale * scale * loss), 0.0)
    return gap / objective if objective > 0 else 0.0


@relaxed_routine
def _leave(bank, signal, weights, codes, values, residual):
    """Compute the residual w (x − D z); returns ½ Σ w (x − D z)² and Σ w (x − D z) x."""
    n_filters, n_channels, n_taps = bank.filters.shape
    for c in range(n_channels):
        _copy(signal[c], residual[c])
    for i in range(len(codes)):
        p = codes[i] // n_filters
        k = codes[i] - p * n_filters
        value = values[i] * bank.penalties[k]
        for c in range(n_channels):
            left, taps = residual[c, p : p + n_taps], bank.filters[k, c]
            for t in range(n_taps):
                left[t] -= value * taps[t]
    loss, energy = 0.0, 0.0
    for c in range(n_channels):
        left, given, seen = residual[c], signal[c], weights[min(c, len(weights) - 1)]
        for t in range(len(left)):
            rest = seen[t] * left[t]
            loss += rest * left[t]
            energy += rest * given[t]
            left[t] = rest
    return 0.5 * loss, energy


@relaxed_routine
def _move(bank, weights, clean, correlations, missing, codes, changes):
    """Bring the correlations of all positions up to date after changes of codes; returns a bound of what rounding adds.

    `missing` (channels, samples) is room, zero before and after.
    """
    n_filters, n_channels, n_taps = bank.filters.shape
    begin, end, moved, largest = missing.shape[1], 0, 0.0, 0.0
    for i in range(len(codes)):
        change = changes[i]
        if change == 0:
            continue
        p = codes[i] // n_filters
        k = codes[i] - p * n_filters
        around, inner = correlations[p * n_filters : (p + 2 * n_taps - 1) * n_filters], bank.table[k]
        for n in range(len(inner)):  # over slices the loop becomes vectors
            around[n] -= change * inner[n]
        largest = max(largest, inner[(n_taps - 1) * n_filters + k])
        moved += abs(change)
        if not clean[p]:
            begin, end = min(begin, p), max(end, p + n_taps)
            for c in range(n_channels):
                unseen, taps = missing[c, p : p + n_taps], bank.filters[k, c]
                for t in range(n_taps):
                    unseen[t] += change * taps[t]
    # The table takes all weights for one: where they are not, that was too much.
    for c in range(n_channels):
        seen = weights[min(c, len(weights) - 1)]
        for t in range(begin, end):
            value = (1 - seen[t]) * missing[c, t]
            missing[c, t] = 0
            if value != 0:
                around = correlations[t * n_filters : (t + n_taps) * n_filters]
                turned = bank.turned[c, 3 * n_filters :]
                for n in range(len(around)):
                    around[n] += value * turned[n]
    return 16 * _EPSILON * largest * moved


@relaxed_routine
def _violators(grid, n_filters, nonnegative, cell, floor):
    """The best code of every cell of positions whose |correlation| exceeds `floor`, and the largest of all, or `floor`."""
    chosen, count = np.empty(-(-len(grid) // (n_filters * cell)), np.int64), 0
    largest, step, current, best, code = floor, _STEP * n_filters, -1, floor, -1
    for begin in range(0, len(grid), step):
        part, above = grid[begin : begin + step], 0
        if nonnegative:
            for n in range(len(part)):
                above += part[n] > floor
        else:
            for n in range(len(part)):
                above += abs(part[n]) > floor
        if above == 0:  # so it is nearly everywhere
            continue
        for n in range(len(part)):
            size = part[n] if nonnegative else abs(part[n])
            if size > floor:
                here = (begin + n) // (n_filters * cell)
                if here != current:
                    if code >= 0:
                        chosen[count] = code
                        count += 1
                    current, best = here, floor
                if size > best:
                    best, code = size, begin + n
                    largest = max(largest, size)
    if code >= 0:
        chosen[count] = code
        count += 1
    return chosen[:count], largest


@routine
def _with_fresh(codes, values, fresh):
    """Ascending codes with fresh ones of value zero put in between; known ones stay."""
    merged, carried = np.empty(len(codes) + len(fresh), np.int64), np.empty(len(codes) + len(fresh), values.dtype)
    i, n = 0, 0
    for code in fresh:
        while i < len(codes) and codes[i] < code:
            merged[n], carried[n] = codes[i], values[i]
            i, n = i + 1, n + 1
        if i == len(codes) or codes[i] > code:
            merged[n], carried[n] = code, 0
            n += 1
    rest = len(codes) - i
    _copy(codes[i:], merged[n:])
    _copy(values[i:], carried[n:])
    return merged[: n + rest], carried[: n + rest]


@relaxed_routine
def _projected(
    bank, rules, signal, weights, clean, correlations, missing, codes, values, point, ratio, off, objective, constant
):
    """The gap by a dual point that is moved, by multiples of filters, to where hardly any code violates |Dᵀθ| ≤ λ.

    Sweeps project onto the conditions of the codes that violate or nearly do, one after the other. What that takes of the
    bound follows the mean violation, where shrinking the residual follows the largest. The point is the residual of
    other codes: `point` takes it.
    """
    n_filters, n_taps = len(bank.filters), bank.filters.shape[2]
    margin, before = (n_taps - 1) * n_filters, correlations.copy()
    grid = correlations[margin : margin + len(clean) * n_filters]
    floor = 1 - 0.3 * (ratio - 1)
    near = np.flatnonzero((grid if rules.nonnegative else np.abs(grid)) > floor)
    taken = np.zeros(len(near), values.dtype)
    _, changes = _descend(bank, rules, weights, clean, correlations, near, taken, 0.0, True)
    off += _move(bank, weights, clean, correlations, missing, near, changes)
    _, ratio = _violators(grid, n_filters, rules.nonnegative, 1, 1.0)
    loss, energy = _leave(bank, signal, weights, np.append(codes, near), np.append(values, taken), point)
    _copy(before, correlations)
    return _gap(objective, constant, loss, energy, ratio + off)


@relaxed_routine
def _descend(bank, rules, weights, clean, correlations, codes, values, target, projecting):
    """Sweep over codes, on their inner products alone; tells whether these are too many, and how codes changed.

    Parts of the codes are swept over one after the other, as long as a ratio of one moves by more than `target`.
    """
    n_filters, n_taps = len(bank.filters), bank.filters.shape[2]
    margin, count = (n_taps - 1) * n_filters, len(codes)
    changes, scaled, slopes = np.zeros(count), np.empty(count), np.empty(count)
    curvatures, ridges = np.empty(count), np.empty(count)
    first, last, offsets = _neighbours(codes, n_filters, n_taps)
    if count > _MANY and offsets[-1] > rules.neighbours * count:
        return True, changes
    products = _products(bank, weights, clean, codes, first, last, offsets)
    for i in range(count):
        k = codes[i] % n_filters
        scaled[i], ridges[i] = values[i] * bank.penalties[k], rules.ridge / bank.penalties[k] ** 2
        slopes[i], curvatures[i] = correlations[margin + codes[i]], products[offsets[i] + i - first[i]]
    sweep = Sweep(first, last, offsets, products, curvatures, ridges, rules.nonnegative, projecting)
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and first[end] < end and offsets[end] - offsets[begin] < rules.part:
            end += 1
        if projecting:
            for _ in range(_PROJECTIONS):
                _pass(sweep, scaled, slopes, begin, end, False, 0.0)
        else:
            _sweeps(rules, sweep, scaled, slopes, begin, end, target)
        begin = end
    for i in range(count):
        before, penalty = np.float64(values[i]), bank.penalties[codes[i] % n_filters]
        values[i] = scaled[i] / penalty
        changes[i] = (values[i] - before) * penalty
    return False, changes


class Sweep(NamedTuple):
    """Properties of codes that sweeps need."""

    first: np.ndarray  # of the codes that overlap with each
    last: np.ndarray  # the one after the last of them
    offsets: np.ndarray  # where the inner products with them begin
    products: np.ndarray
    curvatures: np.ndarray
    ridges: np.ndarray
    nonnegative: bool
    projecting: bool  # takes what exceeds a penalty, again and again, instead of minimising


@routine
def _neighbours(codes, n_filters, n_taps):
    first, last, offsets = np.empty_like(codes), np.empty_like(codes), np.zeros(len(codes) + 1, np.int64)
    low, high = 0, 0
    for i in range(len(codes)):
        here = codes[i] // n_filters
        while codes[low] // n_filters <= here - n_taps:
            low += 1
        while high < len(codes) and codes[high] // n_filters < here + n_taps:
            high += 1
        first[i], last[i], offsets[i + 1] = low, high, offsets[i] + high - low
    return first, last, offsets


@relaxed_routine
def _products(bank, weights, clean, codes, first, last, offsets):
    """Inner products of overlapping codes: those of whole filters, unless both meet weights other than one."""
    n_filters, n_channels, n_taps = bank.filters.shape
    out = np.empty(offsets[-1])
    for i in range(len(codes)):
        p = codes[i] // n_filters
        k = codes[i] - p * n_filters
        row, shift, place = bank.table[k], (n_taps - 1 - p) * n_filters, offsets[i] - first[i]
        for j in range(first[i], last[i]):
            out[place + j] = row[codes[j] + shift]
        if clean[p]:
            continue
        for j in range(first[i], last[i]):
            q = codes[j] // n_filters
            if clean[q]:
                continue
            total, begin, end = 0.0, max(p, q), min(p, q) + n_taps
            for c in range(n_channels):
                seen, one = weights[min(c, len(weights) - 1), begin:end], bank.filters[k, c, begin - p : end - p]
                other = bank.filters[codes[j] - q * n_filters, c, begin - q : end - q]
                for t in range(len(seen)):
                    total += seen[t] * one[t] * other[t]
            out[place + j] = total
    return out


@relaxed_routine
def _sweeps(rules, sweep, values, slopes, begin, end, target):
    """Sweep over some codes until no ratio moves by more than `target`, up to `extra` times over the non-zeros between."""
    if _pass(sweep, values, slopes, begin, end, False, target) < target:
        return
    low, high, filled = sweep.first[begin], sweep.last[end - 1], 0
    past, steep = np.empty((_HISTORY + 1, end - begin)), np.empty((_HISTORY + 1, high - low))
    origin = np.empty(0)  # slopes where these codes are zero
    for _ in range(rules.max_sweeps - 1):
        for _ in range(rules.extra):
            if _pass(sweep, values, slopes, begin, end, True, target) < 0.5 * target:
                break
            _copy(values[begin:end], past[filled])
            _copy(slopes[low:high], steep[filled])
            filled += 1
            if filled > _HISTORY:
                if len(origin) == 0:
                    origin = _slopes_at_zero(sweep, values, slopes, begin, end)
                _extrapolate(sweep, past, steep, origin, values[begin:end], slopes[low:high], begin, begin - low)
                filled = 0
        if _pass(sweep, values, slopes, begin, end, False, target) < target:
            break


@relaxed_routine
def _pass(sweep, values, slopes, begin, end, alive, target):
    """One pass over some codes, or over those that are not zero; returns the largest move of a ratio.

    Moves that are small beside the target are left for later, but for those to zero.
    """
    largest, first, last, offsets, products = 0.0, sweep.first, sweep.last, sweep.offsets, sweep.products
    curvatures, ridges, projecting, nonnegative = sweep.curvatures, sweep.ridges, sweep.projecting, sweep.nonnegative
    for i in range(begin, end):
        old = 0.0 if projecting else values[i]
        if alive and old == 0:
            continue
        curvature = curvatures[i]
        goal = old * curvature + slopes[i]
        if goal > 1:
            new = (goal - 1) / (curvature + ridges[i])
        elif goal < -1 and not nonnegative:
            new = (goal + 1) / (curvature + ridges[i])
        else:
            new = 0.0
        change = new - old
        moved = abs(change) * curvature
        if change == 0 or (moved < 0.2 * target and new != 0):
            continue
        values[i] = values[i] + change if projecting else new
        inner, touched = products[offsets[i] : offsets[i + 1]], slopes[first[i] : last[i]]
        for n in range(len(inner)):  # over slices the loop becomes vectors
            touched[n] -= inner[n] * change
        largest = max(largest, moved)
    return largest


@relaxed_routine
def _slopes_at_zero(sweep, values, slopes, begin, end):
    out = slopes[begin:end].copy()
    for i in range(begin, end):
        low, high = max(sweep.first[i], begin), min(sweep.last[i], end)
        start = sweep.offsets[i] - sweep.first[i]
        inner, around = sweep.products[start + low : start + high], out[low - begin : high - begin]
        for n in range(len(inner)):
            around[n] += values[i] * inner[n]
    return out


@relaxed_routine
def _extrapolate(sweep, past, steep, origin, values, slopes, begin, shift):
    """Move codes to Anderson's combination of their last values, `past`, where the objective is smaller there.

    The codes begin at `begin` of all; `steep` has the slopes at these values, of `shift` codes before them too, and of those
    behind.
    """
    gram, mix, whole, trace = np.empty((_HISTORY, _HISTORY)), np.ones(_HISTORY), 0.0, 0.0
    for a in range(_HISTORY):
        for b in range(a + 1):
            total = 0.0
            for i in range(len(values)):
                total += (past[a + 1, i] - past[a, i]) * (past[b + 1, i] - past[b, i])
            gram[a, b] = gram[b, a] = total
        trace += gram[a, a]
    for a in range(_HISTORY):
        gram[a, a] += 1e-10 * trace
    for a in range(_HISTORY):  # elimination; LAPACK would take seconds to be bound
        for b in range(_HISTORY):
            factor = gram[b, a] / gram[a, a] if b != a else 0.0
            for n in range(_HISTORY):
                gram[b, n] -= factor * gram[a, n]
            mix[b] -= factor * mix[a]
    for a in range(_HISTORY):
        mix[a] /= gram[a, a]
        whole += mix[a]
    there, slopes_there, gain = np.zeros(len(values)), np.zeros(len(slopes)), 0.0
    for a in range(_HISTORY):
        for i in range(len(values)):
            there[i] += mix[a] / whole * past[a + 1, i]
        for i in range(len(slopes)):
            slopes_there[i] += mix[a] / whole * steep[a + 1, i]
    for i in range(len(values)):
        old, new = values[i], there[i]
        if sweep.nonnegative and new < 0:
            return
        # Slopes are linear in the codes: without a ridge the objective is |z| − z (slope + slope at zero) / 2.
        gain += 0.5 * sweep.ridges[begin + i] * (old * old - new * new)
        gain += abs(old) - 0.5 * old * (origin[i] + slopes[shift + i])
        gain -= abs(new) - 0.5 * new * (origin[i] + slopes_there[shift + i])
    if gain > 0:
        _copy(there, values)
        _copy(slopes_there, slopes)
