"""Two workers, processes of their own that share a cache of their own, and a scheduler."""

import pytest


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    distributed = pytest.importorskip("distributed", reason=".ci/frameworks has Dask")
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        env={"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("caches"))},
    )
    with cluster, distributed.Client(cluster) as client:
        yield client
