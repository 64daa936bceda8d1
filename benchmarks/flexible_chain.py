"""All flexible joints in one fit, compared with one composite body per joint, on an unseen motion of all joints.

    python -m benchmarks.flexible_chain [--seed 0] [--fitted 0] [--duration 10] [--same-data]

The arm resembles the PA10, in MuJoCo with separate motors and links, with the springs and friction of table I of
Lightcap and Banks (2007) and motors unlike their links. As in the paper, each joint moves alone while the servo holds
the motors of the others, whose springs deform; one joint with composite inertia is identified from its own signals. The
chain is fitted to a motion of all joints, as long as one of the single motions, and with `--same-data` also to the
recordings of the single joints. Noise is that of `benchmarks.flexible_joints`; links have encoders.

Errors are RMS errors on a motion of all joints: motor torques relative to the RMS torque, link angles relative to the
RMS deflection. Pinocchio predicts both from the motor motion alone. "times" is the composite's error over the chain's.

Needs `pip install mujoco pin pytest`.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
import pa10
from cramer_rao import TERMS
from flexible_experiments import (
    ARM_POSE,
    ARM_SPEEDS,
    LINK_NOISE,
    MOTIONS,
    MOTOR_NOISE,
    SPEED,
    TORQUE_NOISE,
    arm_springs,
)
from flexible_motion import ARM_PARTS, ARM_STEP, Springs as JointTerms, march, motor_series
from pinocchio_arm import REGRESSOR_ORDER

from dynid_ros.identification import FlexibleJointIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm, Springs, simulate
from dynid_ros.trajectories.fourier import FourierSeries

TIMESTEP_S = 5e-4
RATE_HZ = 250.0
FITTED_SEED = 0
HELD_OUT_SEED = 7


@dataclass(frozen=True)
class ChainEstimate:
    """Estimated base parameters of the links, and spring, motor and friction parameters of each joint."""

    links: np.ndarray
    springs: JointTerms


class Chain:
    """The simulated arm and its recordings."""

    def __init__(self, seed: int, duration: float) -> None:
        true = RobotModel.from_urdf(pa10.arm_urdf())
        springs = arm_springs()
        self.robot = pa10.arm_robot()
        self.periods = round(duration)
        self.rng = np.random.default_rng(seed)
        self.arm = SimulatedArm(
            true,
            drives=Drives(springs.coulomb, springs.viscous, springs.motor_inertia),
            springs=Springs(springs.stiffness, motor_viscous=springs.motor_viscous),
            timestep=TIMESTEP_S,
            start=ARM_POSE,
        )

    def alone(self, joint: int) -> Recording:
        """Return a noisy recording of one joint in motion (1 to 6); the motors of the others are held."""
        harmonics, seed = MOTIONS[joint]
        series = motor_series((f"joint_{joint}",), np.array([SPEED]), 1.0, harmonics, seed, ARM_POSE[joint - 1 : joint])
        sine, cosine = np.zeros((2, 6, harmonics))
        sine[joint - 1] = series.sine[0]
        cosine[joint - 1] = series.cosine[0]
        motion = replace(series, joint_names=self.robot.joint_names, offset=ARM_POSE, sine=sine, cosine=cosine)
        return self.measured(self.moved(motion))

    def together(self, seed: int) -> Recording:
        """Return a noise-free recording of all joints in motion."""
        return self.moved(motor_series(self.robot.joint_names, ARM_SPEEDS, 1.0, 8, seed, ARM_POSE))

    def moved(self, motion: FourierSeries) -> Recording:
        """Return the noise-free recording of a motion."""
        return simulate(self.arm, motion.trajectory(self.periods), RATE_HZ, link_encoders=True)

    def measured(self, true: Recording) -> Recording:
        """Return the recording with noise."""
        assert true.link_position is not None
        draw = self.rng.standard_normal
        size = TORQUE_NOISE * np.sqrt(np.mean(true.torque**2, axis=0))
        return replace(
            true,
            position=true.position + MOTOR_NOISE * draw(true.position.shape),
            velocity=np.full_like(true.velocity, np.nan),
            torque=true.torque + size * draw(true.torque.shape),
            link_position=true.link_position + LINK_NOISE * draw(true.position.shape),
        )


def identify(robot: RobotModel, recordings: Sequence[Recording]) -> ChainEstimate:
    """Return the estimate from motors, torques and link encoders."""
    result = FlexibleJointIdentification(robot).fit(*recordings)
    base = robot.base_parameters()

    def values(names: Sequence[str]) -> np.ndarray:
        return result.parameters[[result.names.index(name) for name in names]]

    terms = {term: values([f"{term} {joint}" for joint in robot.joint_names]) for term in TERMS}
    return ChainEstimate(values([base.names[column] for column in base.columns]), JointTerms(**terms))


def predicted(
    robot: RobotModel, estimate: ChainEstimate, held_out: Recording, joints: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Predict torques and link angles (N, m) of these joints from the motor motion, by Pinocchio with an estimate."""
    model = pa10.pinocchio_model(str(robot.urdf))
    nominal = robot.parameters
    base = robot.base_parameters()
    # Among all link parameters with these base parameters, the ones nearest to the nominal have positive masses.
    links = nominal + np.linalg.pinv(base.combinations) @ (estimate.links - base.project(nominal))
    for i, body in enumerate(links.reshape(-1, 10)):
        model.inertias[i + 1] = pin.Inertia.FromDynamicParameters(body[REGRESSOR_ORDER])
    assert held_out.link_position is not None
    motors = held_out.position[:, joints]
    initial_links = held_out.link_position[0, joints]
    spline = CubicSpline(held_out.time, motors)
    steps = round(held_out.duration / ARM_STEP)
    motor_path = spline(ARM_STEP / (2 * ARM_PARTS) * np.arange(2 * ARM_PARTS * steps + 1))
    position, _ = march(model, estimate.springs, motor_path, ARM_STEP, initial_links, np.zeros(len(joints)))
    stride = round(1 / (RATE_HZ * ARM_STEP))
    link = np.concatenate([initial_links[None], position[stride - 1 :: stride]])
    springs = estimate.springs
    torque = springs.stiffness * (motors - link)
    torque += springs.motor_inertia * spline(held_out.time, 2) + springs.motor_viscous * spline(held_out.time, 1)
    return torque, link


def errors(robot: RobotModel, estimate: ChainEstimate, held_out: Recording, joints: Sequence[int]) -> np.ndarray:
    """Return the relative RMS errors (2, m) of torques and link angles."""
    assert held_out.link_position is not None
    torque, link = predicted(robot, estimate, held_out, joints)
    true_torque = held_out.torque[:, joints]
    true_link = held_out.link_position[:, joints]
    deflection = held_out.position[:, joints] - true_link
    return np.array(
        [
            np.sqrt(np.mean((torque - true_torque) ** 2, axis=0) / np.mean(true_torque**2, axis=0)),
            np.sqrt(np.mean((link - true_link) ** 2, axis=0) / np.mean(deflection**2, axis=0)),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise")
    parser.add_argument("--fitted", type=int, default=FITTED_SEED, help="seed of the motion that is fitted")
    parser.add_argument("--duration", type=float, default=10.0, help="duration of each motion, whole seconds")
    parser.add_argument(
        "--same-data", action="store_true", help="fit the chain to the motions of single joints too (slow)"
    )
    options = parser.parse_args(arguments)
    chain = Chain(options.seed, options.duration)
    names = chain.robot.joint_names
    held_out = chain.together(HELD_OUT_SEED)
    alone = [chain.alone(joint) for joint in range(1, 7)]
    composite = []
    for joint, recording in enumerate(alone, start=1):
        composite_robot = RobotModel.from_urdf(pa10.arm_urdf(pa10.LIGHTER, joint, ARM_POSE))
        estimate = identify(composite_robot, [recording.select(composite_robot.joint_names)])
        composite.append(errors(composite_robot, estimate, held_out, [joint - 1]))
    kinds = {"composites": np.hstack(composite)}
    joints = range(len(names))
    data = {"chain, all move": [chain.measured(chain.together(options.fitted))]}
    if options.same_data:
        data["chain, the same data"] = alone
    for name, recordings in data.items():
        begin = time.process_time()
        estimate = identify(chain.robot, recordings)
        print(f"{name}: processor time of the fit {time.process_time() - begin:.0f} s")
        kinds[name] = errors(chain.robot, estimate, held_out, joints)
    for quantity, label in enumerate(("motor torque", "link angle")):
        print(f"{label:<24}" + "".join(f"{name:>10}" for name in names))
        for name, relative_errors in kinds.items():
            print(f"{name:<24}" + "".join(f"{value:>10.2%}" for value in relative_errors[quantity]))
            if name != "composites":
                print(
                    f"{'times':<24}"
                    + "".join(f"{x:>10.0f}" for x in kinds["composites"][quantity] / relative_errors[quantity])
                )


if __name__ == "__main__":
    main()
