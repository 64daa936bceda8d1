"""Latency of the gravity torque of one sample, from array to array, compared with Pinocchio from Python.

The latency from list to list, as in the control loop, is measured on a fixed and on a tilting base.

    python benchmarks/gravity_latency.py [--urdf panda.urdf --tip panda_hand] [--rounds 200] [--calls 500]

The two alternate in rounds, so that both see the same load of the machine; medians over the rounds are compared. The
default URDF is the Panda of package example-robot-data. Needs `pip install pin pytest example-robot-data`.
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
MAX_RATIO = 1.5
MAX_DIFFERENCE_NM = 1e-10


def pinocchio_gravity(robot: RobotModel) -> Callable[[np.ndarray], np.ndarray]:
    """Return Pinocchio's gravity torque of the arm; other joints are locked at zero."""
    arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
    if arm.model.nq != arm.model.nv:
        raise SystemExit("This arm has a continuous joint, which is two numbers in Pinocchio; choose another")
    return functools.partial(arm.pinocchio.computeGeneralizedGravity, arm.model, arm.data)


def seconds_per_call(function: Callable[..., object], samples: Sequence[object]) -> float:
    """Return the mean time of one call over the samples, s."""
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
    ours = gravity.compile(gravity.project(robot.parameters))
    theirs = pinocchio_gravity(robot)
    samples = list(np.random.default_rng(0).uniform(-2.0, 2.0, (arguments.calls, robot.n_joints)))
    difference = max(np.abs(ours(q) - theirs(q)).max() for q in samples)
    if difference > MAX_DIFFERENCE_NM:
        raise SystemExit(f"{robot.name}: torques differ by {difference:.1e} N m; these are not the same arm")

    moments = gravity.project(robot.parameters)
    down = tuple(robot.gravity.tolist())
    lists = [q.tolist() for q in samples]
    functions = [
        (ours, samples),
        (theirs, samples),
        (gravity.bind(moments), lists),
        (gravity.bind(moments, lambda: down), lists),
    ]
    times = np.array([[seconds_per_call(*call) for call in functions] for _ in range(arguments.rounds)])
    our_time, their_time, fixed, tilting = np.median(times, axis=0)
    ratio = np.median(times[:, 0] / times[:, 1])
    print(f"{robot.name}, {robot.n_joints} joints, largest difference {difference:.1e} N m")
    print(f"dynid_ros  compiled gravity torque     {our_time * 1e6:6.2f} us")
    print(f"pinocchio  computeGeneralizedGravity   {their_time * 1e6:6.2f} us")
    print(f"dynid_ros  lists, fixed base           {fixed * 1e6:6.2f} us")
    print(f"dynid_ros  lists, tilting base         {tilting * 1e6:6.2f} us")
    print(f"ratio {ratio:.2f} (at most {MAX_RATIO:g}): {'met' if ratio <= MAX_RATIO else 'NOT MET'}")


if __name__ == "__main__":
    main()
