"""Processor time of one sample of online identification, compared with Pinocchio's regressor and numpy's QR.

    python -m benchmarks.online_latency [--samples 4000] [--rounds 5] [--rate 250]

The arm is the Panda of package example-robot-data. Ours computes derivatives of the position, the regressor, a low-pass
of all columns and recursive least squares with forgetting, once for the load with the joint parameters that may change
(including the detection of load changes), and once for all base parameters with friction. The reference is the minimum
that solves the same task: `computeJointTorqueRegressor` for a known motion, its base columns, and `numpy.linalg.qr` of
R and the new rows, at each sample. Each sample counts with its smallest time over the rounds; then median, 99th
percentile and mean are taken. Ours does most of its work on the samples that complete an equation, every 41 ms, so the
mean is the figure to compare.
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

MAX_TIME_US = 100.0
US_PER_S = 1e6


def times(start: Callable[[], Callable[[int], object]], samples: int, rounds: int) -> np.ndarray:
    """Return the smallest processor time (samples,) of each sample, s; `start` returns a new function of the sample."""
    best = np.full(samples, np.inf)
    for _ in range(rounds):
        function = start()
        for k in range(samples):
            before = time.process_time_ns()
            function(k)
            best[k] = min(best[k], (time.process_time_ns() - before) * 1e-9)
    return best


def motion(robot: RobotModel, samples: int, rate: float) -> tuple[np.ndarray, ...]:
    """Return times (N,), and positions, velocities and accelerations (N, n) of sinusoids."""
    rng = np.random.default_rng(0)
    t = np.arange(samples) / rate
    speed = 2 * np.pi * rng.uniform(0.1, 0.5, robot.n_joints)
    phase = rng.uniform(-np.pi, np.pi, robot.n_joints)
    angle = t[:, None] * speed + phase
    middle = (robot.limits.lower + robot.limits.upper) / 2
    return t, middle + 0.6 * np.sin(angle), 0.6 * speed * np.cos(angle), -0.6 * speed**2 * np.sin(angle)


def main() -> None:
    """Print the processor times."""
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

    times_by_method = {
        "load, 10 + 21 columns": times(load, arguments.samples, arguments.rounds),
        f"links, {len(OnlineIdentification(robot, 'links').names)} columns": times(
            links, arguments.samples, arguments.rounds
        ),
        f"pinocchio + numpy QR, {base.rank} columns": times(pinocchio, arguments.samples, arguments.rounds),
    }
    reference = times_by_method[list(times_by_method)[-1]].mean()
    for name, seconds in times_by_method.items():
        median, slow = np.percentile(seconds, [50, 99])
        print(
            f"{name:38} median {median * US_PER_S:6.1f} us, 99 % {slow * US_PER_S:6.1f} us, mean "
            f"{seconds.mean() * US_PER_S:6.1f} us, ratio of means {seconds.mean() / reference:.2f}"
        )
    for name in list(times_by_method)[:-1]:
        largest = max(np.median(times_by_method[name]), times_by_method[name].mean()) * US_PER_S
        print(f"{name}: median and mean at most {MAX_TIME_US:g} us: {'met' if largest <= MAX_TIME_US else 'NOT MET'}")


if __name__ == "__main__":
    main()
