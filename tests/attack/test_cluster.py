"""Other bits are found, and a cluster in trouble gives the same."""

import numpy as np
import pytest
from attack.cluster import WAYS, Cluster, differences

import pointillist as pt


def test_other_filters_and_histories_are_found():
    signals = np.random.default_rng(0).standard_normal((3, 40))
    one, other = (pt.OnlineCSC(2, 5, 0.3, random_state=0, n_jobs=1).fit(signals) for _ in range(2))
    assert differences(one, other) == []
    other.filters_ = other.filters_.copy()
    other.filters_[0, 0] = np.nextafter(other.filters_[0, 0], 1)
    other.history_ = [*other.history_[:-1], {**other.history_[-1], "nnz": -1}]
    assert differences(one, other) == ["filters_", "history_"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(Cluster().missing), reason="no Dask here")
def test_workers_in_trouble_change_nothing(tmp_path):
    cluster = Cluster()
    for seed in range(len(WAYS)):
        assert cluster.attempt(seed, tmp_path) == []
    assert cluster.disturbances >= len(WAYS)
    cluster.close()
