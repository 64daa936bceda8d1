"""One design on 1, 2 and 4 workers of a dask cluster, separate processes, and with one that is killed in the middle.

python -m benchmarks.cluster [--starts 8] [--workers 1,2,4]

A motion of given starts is the same wherever its slices are made; more workers than cores make none faster. A worker
that is killed costs the slice it was at.
"""

import argparse
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # the cluster and the arm are those of the tests

from dask_cluster import Cluster, dask_cluster

from dynid_ros.excitation import FourierExcitation
from dynid_ros.executors import cluster
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf
from dynid_ros.trajectories import MotionLimits


class Design(NamedTuple):
    """What came of a search, and how long it took, s."""

    coefficients: np.ndarray
    value: float
    seconds: float


def design(address: str, workers: int, **settings: Any) -> Design:
    """Search on the workers of a scheduler."""
    with cluster(address) as found:
        return searched(workers, executor=found.executor, **settings)


def searched(workers: int, **settings: Any) -> Design:
    """Search for a motion of the demo arm, for as long as its starts take."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    limits = MotionLimits.of(robot, 5.0)
    begun = time.monotonic()
    plan = FourierExcitation(robot, limits, workers=workers, design_time=3600.0, **settings).plan()
    return Design(np.concatenate([plan.series.sine, plan.series.cosine]), plan.value, time.monotonic() - begun)


def kill_later(dask: Cluster, seconds: float) -> None:
    """Kill a worker in the middle of its work, and start none in its place."""
    threading.Timer(seconds, dask.workers[0].kill).start()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--workers", default="1,2,4", type=lambda text: [int(part) for part in text.split(",")])
    options = parser.parse_args()
    settings = {"starts": options.starts, "candidates": options.starts, "harmonics": 5, "base_frequency": 0.1}
    first: Design | None = None
    print("| workers | time | motion |")
    print("|---|---|---|")
    for workers, killed in [*((count, False) for count in options.workers), (2, True)]:
        with ExitStack() as entered:
            folder = Path(entered.enter_context(TemporaryDirectory()))
            dask = entered.enter_context(dask_cluster(folder, workers))
            if killed and first is not None:
                kill_later(dask, 0.25 * first.seconds)
            found = design(dask.address, workers, **settings)
        first = first or found
        same = "the same" if np.array_equal(found.coefficients, first.coefficients) else "another"
        print(
            f"| {workers}{', one killed' if killed else ''} | {found.seconds:.1f} s | {same}, {found.value:.6g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
