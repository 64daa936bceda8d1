"""Test that a search on a dask cluster finds the motion of a local search, even if a worker is killed."""

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


def search_locally(workers, **settings):
    """Return the Fourier coefficients of a motion of the demo arm."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    plan = FourierExcitation(robot, MotionLimits.of(robot, 5.0), workers=workers, **SETTINGS, **settings).plan()
    return np.concatenate([plan.series.sine, plan.series.cosine])


def search_on_cluster(address):
    with cluster(address) as connected:
        return search_locally(2, executor=connected.executor)


@pytest.fixture(name="expected", scope="module")
def fixture_expected():
    return search_locally(1)


def test_cluster_search_survives_a_killed_worker(expected, tmp_path):
    with dask_cluster(tmp_path, workers=2) as dask:
        start = time.monotonic()
        np.testing.assert_array_equal(search_on_cluster(dask.address), expected)
        threading.Timer(0.3 * (time.monotonic() - start), dask.workers[0].kill).start()
        coefficients = search_on_cluster(dask.address)
        assert dask.workers[0].poll() is not None
    np.testing.assert_array_equal(coefficients, expected)


def test_local_cluster_finds_the_same_motion(expected):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        np.testing.assert_array_equal(search_on_cluster(local.scheduler_address), expected)
