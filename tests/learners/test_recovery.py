"""Planted dictionaries come back, up to shift, sign and order, from both learners."""

import numpy as np
import pytest

import pointillist as pt

CASES = {"1-D": ((9,), (200,), 20, 0.01, 13), "2-D": ((5, 5), (40, 40), 10, 0.004, 7)}
LEARNERS = {
    "batch": lambda **settings: pt.BatchCSC(max_iter=40, **settings),
    "online": lambda **settings: pt.OnlineCSC(batch_size=2, n_epochs=10, **settings),
}
UPDATES = {"batch": pt.FilterUpdate(init="patches"), "online": pt.FilterUpdate(init="patches", forgetting=2.0)}


def planted(reference, seed, size, shape, n_signals, density):
    """Three filters that fade towards their ends, and noisy signals of sparse codes for them."""
    rng = np.random.default_rng(seed)
    window = np.ones(())
    for s in size:
        window = np.multiply.outer(window, np.hanning(s + 2)[1:-1])
    filters = reference.filters(rng, 3, 1, size) * window
    filters /= np.sqrt(np.sum(filters**2, axis=tuple(range(1, filters.ndim)), keepdims=True))
    signals = []
    for _ in range(n_signals):
        spikes = rng.choice([-1, 1], (3, *shape)) * (1 + rng.random((3, *shape)))
        codes = np.where(rng.random((3, *shape)) < density, spikes, 0)
        signals.append(reference.synthesise(codes, filters, "same")[0])
    return filters[:, 0], np.array(signals) + 0.01 * rng.standard_normal((n_signals, *shape))


@pytest.mark.parametrize(("learner", "sampling"), [("batch", 1.0), ("batch", 0.3), ("online", 1.0)])
@pytest.mark.parametrize("case", CASES)
def test_planted_filters_are_found(learner, sampling, case, reference):
    *plan, filter_size = CASES[case]
    truth, signals = planted(reference, 2, *plan)
    model = LEARNERS[learner](
        n_filters=12, filter_size=filter_size, penalty=0.1, sampling=sampling, update=UPDATES[learner],
        random_state=2, n_jobs=1,
    ).fit(signals)  # fmt: skip
    matched = reference.matched(model.filters_, truth)
    least = 0.95 if sampling == 1 else 0.9  # whatever is drawn, the least of three scatters by some hundredths
    assert np.all(matched >= least), matched
