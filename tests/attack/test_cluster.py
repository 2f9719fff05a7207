"""Workers of a cluster in trouble change no bit of what is learned."""

import pytest
from attack.cluster import WAYS, Cluster


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(Cluster().missing), reason="no Dask here")
def test_workers_in_trouble_change_nothing(tmp_path):
    cluster = Cluster()
    for seed in range(len(WAYS)):
        assert cluster.attempt(seed, tmp_path) == []
    assert cluster.disturbances >= len(WAYS)
    cluster.close()
