"""A search on a dask cluster makes the motion that it makes here, also where a worker is killed in the middle."""

import numpy as np
import pytest
from dask_cluster import dask_cluster

from benchmarks import cluster as benchmark

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SETTINGS = {"starts": 3, "candidates": 3, "harmonics": 3, "base_frequency": 0.1}


@pytest.fixture(name="here", scope="module")
def fixture_here():
    return benchmark.searched(1, **SETTINGS).coefficients


def test_separate_workers_of_which_one_is_killed(here, tmp_path):
    with dask_cluster(tmp_path, workers=2) as dask:
        whole = benchmark.design(dask.address, 2, **SETTINGS)
        np.testing.assert_array_equal(whole.coefficients, here)
        benchmark.kill_later(dask, 0.3 * whole.seconds)
        found = benchmark.design(dask.address, 2, **SETTINGS)
        assert dask.workers[0].poll() is not None
    np.testing.assert_array_equal(found.coefficients, here)


def test_a_local_cluster(here):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        found = benchmark.design(local.scheduler_address, 2, **SETTINGS)
    np.testing.assert_array_equal(found.coefficients, here)
