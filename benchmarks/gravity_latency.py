"""Latency of the gravity torque of one sample, array in and array out, beside Pinocchio's from Python.

And from list to list, as the control loop has it: on a base that stands, and on one that tilts.

    python benchmarks/gravity_latency.py [--urdf panda.urdf --tip panda_hand] [--rounds 200] [--calls 500]

Rounds of the two alternate, so that both meet the same load of the machine; medians over the rounds are compared.
Without a URDF it takes the Panda of package example-robot-data. Needs `pip install pin pytest example-robot-data`.
"""

import argparse
import functools
import site
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dynid_ros.model import GravityModel, RobotModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from pinocchio_arm import PinocchioArm

PANDA = "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
TARGET, EQUAL = 1.5, 1e-10


def pinocchio_gravity(robot: RobotModel) -> Callable[[np.ndarray], np.ndarray]:
    """The same arm in Pinocchio: other joints are held at zero, and the last link carries what they move."""
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    if arm.model.nq != arm.model.nv:
        raise SystemExit("This arm has a continuous joint, which is two numbers in Pinocchio; choose another")
    return functools.partial(arm.pinocchio.computeGeneralizedGravity, arm.model, arm.data)


def seconds_per_call(function: Callable[..., object], samples: Sequence[object]) -> float:
    """Mean time of one call over the samples."""
    start = time.perf_counter()
    for sample in samples:
        function(sample)
    return (time.perf_counter() - start) / len(samples)


def main() -> None:
    """Print both latencies and their ratio."""
    panda = next((path for path in (Path(folder) / PANDA for folder in site.getsitepackages()) if path.exists()), None)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urdf", default=panda, required=panda is None)
    parser.add_argument("--tip", default="panda_hand")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--calls", type=int, default=500)
    arguments = parser.parse_args()

    robot = RobotModel.from_urdf(arguments.urdf, tip=arguments.tip)
    gravity = GravityModel(robot)
    ours, theirs = gravity.compile(gravity.project(robot.parameters)), pinocchio_gravity(robot)
    samples = list(np.random.default_rng(0).uniform(-2.0, 2.0, (arguments.calls, robot.n_joints)))
    difference = max(np.abs(ours(q) - theirs(q)).max() for q in samples)
    if difference > EQUAL:
        raise SystemExit(f"{robot.name}: torques differ by {difference:.1e} N m; these are not the same arm")

    moments, down, lists = (
        gravity.project(robot.parameters),
        tuple(robot.gravity.tolist()),
        [q.tolist() for q in samples],
    )
    functions = [
        (ours, samples),
        (theirs, samples),
        (gravity.bind(moments), lists),
        (gravity.bind(moments, lambda: down), lists),
    ]
    times = np.array([[seconds_per_call(*each) for each in functions] for _ in range(arguments.rounds)])
    our_time, their_time, standing, tilting = np.median(times, axis=0)
    ratio = np.median(times[:, 0] / times[:, 1])
    print(f"{robot.name}, {robot.n_joints} joints, largest difference {difference:.1e} N m")
    print(f"dynid_ros  compiled gravity torque     {our_time * 1e6:6.2f} us")
    print(f"pinocchio  computeGeneralizedGravity   {their_time * 1e6:6.2f} us")
    print(f"dynid_ros  lists, a base that stands   {standing * 1e6:6.2f} us")
    print(f"dynid_ros  lists, a base that tilts    {tilting * 1e6:6.2f} us")
    print(f"ratio {ratio:.2f} (at most {TARGET:g}): {'met' if ratio <= TARGET else 'NOT MET'}")


if __name__ == "__main__":
    main()
