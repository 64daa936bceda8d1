"""Processor time of one sample of on-line identification, beside Pinocchio's regressor and numpy's QR decomposition.

    python -m benchmarks.online_latency [--samples 4000] [--rounds 5] [--rate 250]

The Panda of package example-robot-data. Ours: derivatives of position, regressor, low-pass of all columns and
recursive least squares with forgetting, for the load with what may change in the joints, and for all base parameters
with friction; where the load is looked for, changes of it are watched for as well. Theirs is the least that does the
same: `computeJointTorqueRegressor` for given motion, its base columns, and `numpy.linalg.qr` of R and the new rows, at
each sample. The smallest time over the rounds counts for each sample; then median, 99th percentile and mean are taken.
Ours does most of the work on the samples with which an equation is due, every 41 ms, so the mean is what to compare.
Needs `pip install pin example-robot-data pytest`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.identification import OnlineIdentification
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording.uniform_motion import LinkSignals

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from pinocchio_arm import PinocchioArm, example_urdf  # noqa: E402

TARGET = 100.0
MICRO = 1e6


def times(start: Callable[[], Callable[[int], object]], samples: int, rounds: int) -> np.ndarray:
    """(samples,) smallest processor time of each over the rounds, s; `start` makes a new function of the sample."""
    best = np.full(samples, np.inf)
    for _ in range(rounds):
        function = start()
        for k in range(samples):
            before = time.process_time_ns()
            function(k)
            best[k] = min(best[k], (time.process_time_ns() - before) * 1e-9)
    return best


def motion(robot: RobotModel, samples: int, rate: float) -> tuple[np.ndarray, ...]:
    """Time (N,), positions, velocities and accelerations (N, n) of sinusoids."""
    rng = np.random.default_rng(0)
    t = np.arange(samples) / rate
    speed = 2 * np.pi * rng.uniform(0.1, 0.5, robot.n_joints)
    phase = rng.uniform(-np.pi, np.pi, robot.n_joints)
    angle = t[:, None] * speed + phase
    middle = (robot.limits.lower + robot.limits.upper) / 2
    return t, middle + 0.6 * np.sin(angle), 0.6 * speed * np.cos(angle), -0.6 * speed**2 * np.sin(angle)


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=250.0, help="Hz")
    arguments = parser.parse_args()
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    friction = FrictionModel(JointFriction())
    coefficients = np.ones(2 * robot.n_joints)
    arm = LinkModel(robot, robot.parameters, friction, coefficients, LinkSignals(10.0, 10.0, ""))
    t, q, qd, qdd = motion(robot, arguments.samples, arguments.rate)
    torque = arm.predict(q, qd, qdd) + np.random.default_rng(1).normal(size=q.shape) * 0.1
    base = robot.base_parameters()
    peer = PinocchioArm(robot.urdf or "", robot.joint_names, robot.gravity)

    def load() -> Callable[[int], object]:
        online = OnlineIdentification(robot, arm=arm, forgetting=10.0)
        return lambda k: online.sample(t[k], q[k], torque[k])

    def links() -> Callable[[int], object]:
        online = OnlineIdentification(robot, "links", forgetting=10.0)
        return lambda k: online.sample(t[k], q[k], torque[k])

    def pinocchio() -> Callable[[int], object]:
        model, data, compute = peer.model, peer.data, peer.pinocchio.computeJointTorqueRegressor
        factor = [np.zeros((base.rank + 1, base.rank + 1))]

        def sample(k: int) -> None:
            rows = np.column_stack([compute(model, data, q[k], qd[k], qdd[k])[:, base.columns], torque[k]])
            factor[0] = np.linalg.qr(np.vstack([factor[0], rows]), mode="r")

        return sample

    found = {
        "load, 10 + 21 columns": times(load, arguments.samples, arguments.rounds),
        f"links, {len(OnlineIdentification(robot, 'links').names)} columns": times(
            links, arguments.samples, arguments.rounds
        ),
        f"pinocchio + numpy QR, {base.rank} columns": times(pinocchio, arguments.samples, arguments.rounds),
    }
    reference = found[list(found)[-1]].mean()
    for name, seconds in found.items():
        median, slow = np.percentile(seconds, [50, 99])
        print(
            f"{name:38} median {median * MICRO:6.1f} us, 99 % {slow * MICRO:6.1f} us, mean "
            f"{seconds.mean() * MICRO:6.1f} us, ratio of means {seconds.mean() / reference:.2f}"
        )
    for name in list(found)[:-1]:
        largest = max(np.median(found[name]), found[name].mean()) * MICRO
        print(f"{name}: median and mean at most {TARGET:g} us: {'met' if largest <= TARGET else 'NOT MET'}")


if __name__ == "__main__":
    main()
