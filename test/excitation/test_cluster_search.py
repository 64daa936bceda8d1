"""A search on a dask cluster finds the motion of a local search, also if a worker is killed during the search."""

import threading
import time

import numpy as np
import pytest
from dask_cluster import dask_cluster

from dynid_ros.excitation import FourierExcitation
from dynid_ros.executors import cluster
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.trajectories import MotionLimits

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SETTINGS = {"starts": 3, "candidates": 3, "harmonics": 3, "base_frequency": 0.1, "design_time": 3600.0}


def local_search(workers, **settings):
    """Coefficients of a motion of the demo arm."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    plan = FourierExcitation(robot, MotionLimits.of(robot, 5.0), workers=workers, **SETTINGS, **settings).plan()
    return np.concatenate([plan.series.sine, plan.series.cosine])


def cluster_search(address):
    with cluster(address) as connected:
        return local_search(2, executor=connected.executor)


@pytest.fixture(name="here", scope="module")
def fixture_here():
    return local_search(1)


def test_separate_workers_of_which_one_is_killed(here, tmp_path):
    with dask_cluster(tmp_path, workers=2) as dask:
        begun = time.monotonic()
        np.testing.assert_array_equal(cluster_search(dask.address), here)
        threading.Timer(0.3 * (time.monotonic() - begun), dask.workers[0].kill).start()
        found = cluster_search(dask.address)
        assert dask.workers[0].poll() is not None
    np.testing.assert_array_equal(found, here)


def test_a_local_cluster(here):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        np.testing.assert_array_equal(cluster_search(local.scheduler_address), here)
