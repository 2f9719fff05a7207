"""Learning on a Dask cluster: workers read and encode their own part of a batch, the client adds and updates.

The codes of a signal do not depend on where they are solved for, nor on the signals beside it, and the client adds what
comes back in the order of the signals: the filters are those of one process, to the bit, for any number of workers and
whatever happens to them. Tasks are pure functions of small inputs, so that Dask does those of a lost worker again. Dask is
imported only where a cluster is used.
"""

from pointillist.learners.cluster.connecting import connect, local_cluster
from pointillist.learners.cluster.steps import coded_steps

__all__ = ["coded_steps", "connect", "local_cluster"]
