"""One fit of all flexible joints beside a composite for each, on a motion of all joints that neither has seen.

    python -m benchmarks.flexible_chain [--seed 0] [--duration 10] [--same-data]

An arm like the PA10 in MuJoCo, motors and links apart, with table I's springs and friction of Lightcap and Banks
(2007) and motors unlike their links. As the paper has it, each joint moves alone while the servo holds the motors of
the others, whose springs give way; one joint with composite inertia is identified from its own signals. The chain is
fitted to a motion of all joints, as long as one of them, and where asked for to the same recordings too. Noise is that
of `benchmarks.flexible_joints`; links have encoders.

Errors are those on a motion of all joints, RMS: of the motors' torques in parts of the torques' RMS, of the links'
angles in parts of the deflections' RMS; both predicted by Pinocchio from the motors' motion alone. "times" is the
composite's error over the chain's.

Needs `pip install mujoco pin pytest`.
"""

import argparse
import os
import sys
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

TIMESTEP, RATE = 5e-4, 250.0
FITTED, UNSEEN = 0, 7
"""Seeds of the motions of all joints."""


@dataclass(frozen=True)
class Found:
    """What was identified: base parameters of the links, and the rest of each joint."""

    links: np.ndarray
    springs: JointTerms


class Chain:
    """The arm and its recordings."""

    def __init__(self, seed: int, duration: float) -> None:
        true, springs = RobotModel.from_urdf(pa10.arm_urdf()), arm_springs()
        self.robot = pa10.arm_robot()
        self.periods = round(duration)
        self.rng = np.random.default_rng(seed)
        self.arm = SimulatedArm(
            true,
            drives=Drives(springs.coulomb, springs.viscous, springs.motor_inertia),
            springs=Springs(springs.stiffness, motor_viscous=springs.motor_viscous),
            timestep=TIMESTEP,
            start=ARM_POSE,
        )

    def alone(self, joint: int) -> Recording:
        """Joint 1 to 6 moves, the motors of the others are held."""
        harmonics, seed = MOTIONS[joint]
        own = motor_series((f"joint_{joint}",), np.array([SPEED]), 1.0, harmonics, seed, ARM_POSE[joint - 1 : joint])
        sine, cosine = np.zeros((2, 6, harmonics))
        sine[joint - 1], cosine[joint - 1] = own.sine[0], own.cosine[0]
        motion = replace(own, joint_names=self.robot.joint_names, offset=ARM_POSE, sine=sine, cosine=cosine)
        return self.measured(self.moved(motion))

    def together(self, seed: int) -> Recording:
        """All joints move, without noise."""
        return self.moved(motor_series(self.robot.joint_names, ARM_SPEEDS, 1.0, 8, seed, ARM_POSE))

    def moved(self, motion: FourierSeries) -> Recording:
        """Without noise."""
        return simulate(self.arm, motion.trajectory(self.periods), RATE, link_encoders=True)

    def measured(self, true: Recording) -> Recording:
        """With noise."""
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


def identify(robot: RobotModel, recordings: Sequence[Recording]) -> Found:
    """By the package, from motors, torques and link encoders."""
    result = FlexibleJointIdentification(robot).fit(*recordings)
    base = robot.base_parameters()

    def values(names: Sequence[str]) -> np.ndarray:
        return result.parameters[[result.names.index(name) for name in names]]

    terms = {term: values([f"{term} {joint}" for joint in robot.joint_names]) for term in TERMS}
    return Found(values([base.names[column] for column in base.columns]), JointTerms(**terms))


def predicted(
    robot: RobotModel, found: Found, unseen: Recording, joints: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Torques and link angles (N, m) of these joints from the motors' motion, by Pinocchio with what was identified."""
    model = pa10.pinocchio_model(str(robot.urdf))
    nominal, base = robot.parameters, robot.base_parameters()
    # Of all links with these base parameters those nearest to the nominal ones, whose masses are positive.
    links = nominal + np.linalg.pinv(base.combinations) @ (found.links - base.project(nominal))
    for i, body in enumerate(links.reshape(-1, 10)):
        model.inertias[i + 1] = pin.Inertia.FromDynamicParameters(body[REGRESSOR_ORDER])
    assert unseen.link_position is not None
    motors, links_at_first = unseen.position[:, joints], unseen.link_position[0, joints]
    spline = CubicSpline(unseen.time, motors)
    steps = round(unseen.duration / ARM_STEP)
    followed = spline(ARM_STEP / (2 * ARM_PARTS) * np.arange(2 * ARM_PARTS * steps + 1))
    position, _ = march(model, found.springs, followed, ARM_STEP, links_at_first, np.zeros(len(joints)))
    each = round(1 / (RATE * ARM_STEP))
    link = np.concatenate([links_at_first[None], position[each - 1 :: each]])
    springs = found.springs
    torque = springs.stiffness * (motors - link)
    torque += springs.motor_inertia * spline(unseen.time, 2) + springs.motor_viscous * spline(unseen.time, 1)
    return torque, link


def errors(robot: RobotModel, found: Found, unseen: Recording, joints: Sequence[int]) -> np.ndarray:
    """Relative RMS (2, m) of torques and link angles."""
    assert unseen.link_position is not None
    truth = unseen.torque[:, joints], unseen.link_position[:, joints]
    size = truth[0], unseen.position[:, joints] - truth[1]
    found_here = predicted(robot, found, unseen, joints)
    return np.array(
        [
            np.sqrt(np.mean((one - other) ** 2, axis=0) / np.mean(whole**2, axis=0))
            for one, other, whole in zip(found_here, truth, size, strict=True)
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--duration", type=float, default=10.0, help="of each motion, whole seconds")
    parser.add_argument(
        "--same-data", action="store_true", help="fit the chain to the motions of single joints too: slow"
    )
    options = parser.parse_args(arguments)
    chain = Chain(options.seed, options.duration)
    names = chain.robot.joint_names
    unseen = chain.together(UNSEEN)
    alone = [chain.alone(joint) for joint in range(1, 7)]
    composite = []
    for joint, recording in enumerate(alone, start=1):
        one = RobotModel.from_urdf(pa10.arm_urdf(pa10.LIGHTER, joint, ARM_POSE))
        found = identify(one, [recording.select(one.joint_names)])
        composite.append(errors(one, found, unseen, [joint - 1]))
    kinds = {"composites": np.hstack(composite)}
    every = range(len(names))
    data = {"chain, all move": [chain.measured(chain.together(FITTED))]}
    if options.same_data:
        data["chain, the same data"] = alone
    for name, recordings in data.items():
        kinds[name] = errors(chain.robot, identify(chain.robot, recordings), unseen, every)
    for quantity, what in enumerate(("motor torque", "link angle")):
        print(f"{what:<24}" + "".join(f"{name:>10}" for name in names))
        for name, found in kinds.items():
            print(f"{name:<24}" + "".join(f"{value:>10.2%}" for value in found[quantity]))
            if name != "composites":
                print(
                    f"{'times':<24}" + "".join(f"{x:>10.0f}" for x in kinds["composites"][quantity] / found[quantity])
                )


if __name__ == "__main__":
    main()
