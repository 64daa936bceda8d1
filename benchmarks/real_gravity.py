"""Gravity parameters of two real robots, validated on held-out motion. Needs the recordings in DYNID_DATA.

python benchmarks/real_gravity.py
"""

import os
import sys
from pathlib import Path

import numpy as np

from dynid_ros.identification import GravityIdentification, GravityResult
from dynid_ros.identification.static_samples import SampleRules, Samples
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.recording.effort import EffortConvention

UR10E_GAINS = (11.976, 11.976, 9.839, 10.763, 10.763, 10.763)
"""Torque per current, N m/A, from the README of the data; the last one is assumed there."""


def main() -> None:
    """Print the RMS error per joint of both robots."""
    if "DYNID_DATA" not in os.environ:
        sys.exit("DYNID_DATA is not set: set it to the folder with the real recordings")
    data = Path(os.environ["DYNID_DATA"])
    ur10e(data / "ur10e")
    kuka_lwr4(data / "kuka_lwr4")


def ur10e(folder: Path) -> None:
    """Fit four static poses and the rotation of joint 1; validate on a fifth pose and on slow motion of joint 3."""
    robot = RobotModel.from_urdf(folder / "ur10e.urdf", base="base_link", tip="wrist_3_link")
    convention = EffortConvention("motor_current", UR10E_GAINS)

    def read(name: str) -> Recording:
        path = folder / "develop" / f"{name}.npz"
        return Recording.read(path, joint_names=robot.joint_names, effort_convention=convention)

    fitted = [read(f"20_01_17-p{i}") for i in (1, 2, 3, 4)] + [read("20_01_22-joint_1")]
    for offset in (True, False):
        rules = SampleRules(slow_velocity=1.0)
        identification = GravityIdentification(robot, samples="both", torque_offset=offset, rules=rules)
        result = identification.fit(*fitted)
        print(f"\nUR10e, motor current, torque offsets {'estimated' if offset else 'assumed to be zero'}")
        print(result.summary())
        for name in ("20_01_17-p5", "20_01_22-joint_3"):
            report(name, result, identification.extract(read(name)), robot)


def kuka_lwr4(folder: Path) -> None:
    """Fit the slow segments of one run with joint torque sensors; validate on those of the other run."""
    robot = RobotModel.from_urdf(folder / "kuka_lwr4.urdf", base="lwr_base_link", tip="lwr_7_link")

    def read(run: int) -> Recording:
        return Recording.read(folder / "develop" / f"measurements_{run}.npz", joint_names=robot.joint_names)

    rules = SampleRules(slow_velocity=1.0, slow_acceleration=1.0)
    identification = GravityIdentification(robot, samples="slow", rules=rules)
    result = identification.fit(read(1))
    print("\nKUKA LWR4+, joint torque sensors, run 1")
    print(result.summary())
    report("run 2", result, identification.extract(read(2)), robot)


def report(name: str, result: GravityResult, samples: Samples, robot: RobotModel) -> None:
    """Print the RMS error per joint, of the identified model and of the URDF."""
    rms = result.validate_samples(samples, name).rms
    nominal = np.sqrt(np.mean((samples.torque - robot.gravity_torque(samples.position)) ** 2, axis=0))
    span = np.sqrt(np.mean(samples.torque**2, axis=0))
    print(f"  {name}: {len(samples)} samples, RMS [N m] per joint")
    print("    identified  " + " ".join(f"{v:8.3f}" for v in rms))
    print("    URDF        " + " ".join(f"{v:8.3f}" for v in nominal))
    print("    torque      " + " ".join(f"{v:8.3f}" for v in span))


if __name__ == "__main__":
    main()
