"""Simulated robot of a rehearsal: an arm that its URDF describes wrongly, its drives, sensors, clock and load."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import from_center_of_mass, possible_prior
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.rehearsal_settings import MAX_TIMESTEP_S, TruthSettings
from dynid_ros.simulation import (
    Drives,
    KnownFriction,
    Sensors,
    SimulatedArm,
    measure,
    misjudged_urdf,
    simulate,
    truth_table,
)
from dynid_ros.simulation.replay import hold_others
from dynid_ros.trajectories import MotionLimits, Trajectory

N_SCALE_POSES = 256
"""Number of poses over the limits for the estimate of each joint's torque, a power of two."""
MIN_TORQUE_FRACTION = 0.02
"""Smallest torque scale of a joint, relative to the largest of all joints."""
ROTOR_FRACTIONS = (0.1, 0.4)
"""Rotor inertia relative to an inertia of the joint: the mean of its links, or the inertia by `DRIVE_ACCELERATION`."""
DRIVE_ACCELERATION = 20.0
"""Acceleration of a joint's whole inertia by its largest torque, rad/s². The ratio of the two is an inertia: rotors of
light wrists outweigh the last link."""
FRICTION_SPREAD = (0.5, 1.5)
"""Coulomb friction of a joint relative to the given level."""
VISCOUS_OF_COULOMB = (0.2, 0.8)
"""Viscous torque at 1 rad/s, relative to Coulomb friction."""
SLIDING_LENGTH_RAD = (2e-4, 3e-3)
TERM_SHARE = 0.3
"""Share of the joints with each further friction term."""
OFFSET_FRACTION = 0.02
"""Largest torque-sensor offset, relative to the joint's torque scale."""
LOAD_OF_ARM = 0.1
MAX_LOAD_KG = 3.0
LOAD_TORQUE_FRACTION = 0.1
"""Fraction of the torque limit that gravity of the default load may take."""
LOAD_CENTER_M = (0.02, -0.015, 0.05)
LOAD_DENSITY = 2000.0
"""Density of the load, a cube, kg/m³."""
MAX_JITTER_OF_PERIOD = 0.4


class SimulatedRobot:
    """Arm in MuJoCo whose truth differs from its URDF; its user sees recordings only.

    Args:
        robot: the arm as its user describes it; joints outside the arm are fixed.
        limits: limits of the joints, which also limit the drives.
        friction: friction of the joints; None: drawn, see `TruthSettings.friction_level`.
        seed: seed of the truth and of all noise.

    Attributes:
        load: (10,) parameters of the load about the tip's frame; zero without a load.
        replaced_links: sentences on links of the URDF with impossible inertias, and their replacements.
        tracking_error: largest distance (n,) from the planned motions so far, rad or m.

    Raises:
        ModelError: the arm has several tips or joints that mimic others, or MuJoCo refuses it.
        DynidError: the timestep is too long for the springs of the friction.
    """

    def __init__(
        self,
        robot: RobotModel,
        limits: MotionLimits,
        settings: TruthSettings,
        friction: KnownFriction | None = None,
        seed: int = 0,
    ) -> None:
        if len(robot.chain.tips) > 1 or robot.chain.has_mimics:
            raise ModelError(
                f"{robot.name}: a rehearsal needs one tip and no joint that mimics another; choose the tip of one arm "
                "before its gripper (--tip)"
            )
        self._settings = settings
        self._robot = robot
        self._rng = np.random.default_rng([seed, 1])
        rng = np.random.default_rng([seed, 0])
        true, self.replaced_links = _true_robot(robot, limits, settings.link_error, rng)
        bare = SimulatedArm(true)
        n = robot.n_joints
        poses = limits.poses(N_SCALE_POSES)
        still = np.zeros((n, n))
        gravity = bare.truth.gravity_torque(poses)
        inertia = np.mean(
            [
                np.diag(bare.truth.drive_torque(pose + still, still, np.eye(n)) - bare.truth.gravity_torque(pose))
                for pose in poses[:: N_SCALE_POSES // 8]
            ],
            axis=0,
        )
        size = np.maximum(np.abs(gravity).max(axis=0), inertia * limits.acceleration)
        size = np.maximum(size, MIN_TORQUE_FRACTION * size.max())
        drawn = _draw_friction(robot, bare.drives, settings.friction_level * size, rng)
        rotors = np.maximum(inertia, size / DRIVE_ACCELERATION) * rng.uniform(*ROTOR_FRACTIONS, n)
        if friction is not None and friction.of_term(robot, "rotor_inertia").any():
            rotors = np.zeros(n)
        self.arm = SimulatedArm(
            true,
            drives=Drives(0.0, 0.0, rotors),
            friction=friction or drawn,
            sensors=Sensors(
                torque_offset=size * rng.uniform(-OFFSET_FRACTION, OFFSET_FRACTION, n),
                torque_gain_error=settings.torque_gain_error * rng.standard_normal(n),
                torque_noise=settings.torque_noise * size,
                position_noise=np.full(n, settings.position_noise),
                velocity_noise=np.full(n, settings.position_noise * settings.rate),
            ),
            timestep=_timestep(settings.rate),
        )
        self.load = np.zeros(10)
        mass = _default_load(bare, limits, poses, gravity) if settings.load_mass is None else settings.load_mass
        if mass:
            self.load = _cube(mass)
        self.tracking_error = np.zeros(n)

    def record(self, trajectory: Trajectory, path: Path, *, loaded: bool = False) -> Path:
        """Make a motion, with the load if requested, and write the readings of the sensors as NPZ.

        Raises:
            DynidError: the simulation diverged.
        """
        settings = self._settings
        if loaded:
            self.arm.attach_load(self.load)
        else:
            self.arm.detach_load()
        true = simulate(self.arm, trajectory, settings.rate)
        planned, _, _ = trajectory.select(true.joint_names).at(true.time)
        self.tracking_error = np.maximum(self.tracking_error, np.abs(true.position - planned).max(axis=0))
        read = measure(true, self.arm.sensors, self._rng)
        jitter = settings.stamp_jitter * self._rng.standard_normal(len(true.time))
        time = true.time + np.clip(jitter, -MAX_JITTER_OF_PERIOD / settings.rate, MAX_JITTER_OF_PERIOD / settings.rate)
        kept = self._rng.random(len(time)) >= settings.dropped
        Recording(true.joint_names, time[kept], read.position[kept], read.velocity[kept], read.torque[kept]).write_npz(
            path
        )
        return path

    def truth_table(self) -> dict[str, Any]:
        """Return the truth as plain data, the load included; see `simulation.truth_table`."""
        if self.load.any():
            self.arm.attach_load(self.load)
        return truth_table(self.arm)

    def load_torque(self, positions: NDArray) -> NDArray:
        """Return the gravity torque (N, n) of the load at positions (N, n), N m or N."""
        truth = self.arm.truth
        self.arm.detach_load()
        alone = truth.gravity_torque(positions)
        self.arm.attach_load(self.load)
        return truth.gravity_torque(positions) - alone


def _true_robot(
    robot: RobotModel, limits: MotionLimits, error: float, rng: np.random.Generator
) -> tuple[RobotModel, list[str]]:
    """Return the arm with wrong links, fixed joints outside the arm and the experiment's limits; and replaced links."""
    if robot.urdf is None:
        raise ModelError(f"robot '{robot.name}' comes from a DH table; a rehearsal needs a URDF with inertias (--urdf)")
    arguments = (robot.tip, robot.base, robot.gravity)
    text = _with_limits(hold_others(robot.urdf, robot.joint_names, robot.posture), limits)
    alone = RobotModel.from_urdf(text, *arguments)
    if not robot.parameters[::10].any():
        raise ModelError(f"URDF of '{robot.name}': its links have no masses; a rehearsal needs a URDF with inertias")
    # The arm has a payload that its URDF may lack.
    possible, replaced = possible_prior(robot.parameters, robot.link_names)
    alone = RobotModel.from_urdf(urdf_with_inertias(alone, possible), *arguments)
    return RobotModel.from_urdf(misjudged_urdf(alone, error, rng), *arguments), replaced


def _with_limits(urdf: str, limits: MotionLimits) -> str:
    """Return the text of a URDF whose joints have the given limits; an unlimited torque has no limit."""
    root = ET.fromstring(urdf)
    index = {name: i for i, name in enumerate(limits.joint_names)}
    for joint in root.findall("joint"):
        i = index.get(joint.get("name", ""))
        if i is None:
            continue
        for element in joint.findall("limit"):
            joint.remove(element)
        values = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.torque}
        ET.SubElement(joint, "limit", {name: repr(float(min(each[i], 1e9))) for name, each in values.items()})
    return ET.tostring(root, encoding="unicode")


def _draw_friction(robot: RobotModel, described: Drives, level: NDArray, rng: np.random.Generator) -> KnownFriction:
    """Draw friction with a memory; some joints stick, saturate, or have friction that grows with their load."""
    joints = []
    coefficients: list[float] = []
    urdf = zip(np.asarray(described.coulomb), np.asarray(described.viscous), strict=True)
    for size, (coulomb, viscous) in zip(level, urdf, strict=True):
        has = rng.random(3) < TERM_SHARE
        joint = JointFriction(
            sliding_length=float(np.exp(rng.uniform(*np.log(SLIDING_LENGTH_RAD)))),
            load=bool(has[0]),
            stribeck_velocity=float(rng.uniform(0.03, 0.2)) if has[1] else None,
            saturation_velocity=float(rng.uniform(0.5, 1.5)) if has[2] else None,
        )
        drawn = coulomb or size * rng.uniform(*FRICTION_SPREAD)
        values = {
            "coulomb": drawn,
            "viscous": viscous or drawn * rng.uniform(*VISCOUS_OF_COULOMB),
            "stribeck": drawn * rng.uniform(0.1, 0.4),
            "load": rng.uniform(0.01, 0.05),
        }
        joints.append(joint)
        coefficients += [float(values[term]) for term in joint.terms]
    return KnownFriction(FrictionModel(joints, (), robot.parameters), np.array(coefficients))


def _timestep(rate: float) -> float:
    """Return the longest timestep, s, that divides the period of the joint states."""
    period = 1.0 / rate
    return period / np.ceil(period / MAX_TIMESTEP_S - 1e-9)


def _cube(mass: float) -> NDArray:
    """Return the parameters (10,) of the load."""
    edge = (mass / LOAD_DENSITY) ** (1 / 3)
    return from_center_of_mass(mass, np.array(LOAD_CENTER_M), mass * edge**2 / 6 * np.eye(3))


def _default_load(bare: SimulatedArm, limits: MotionLimits, poses: NDArray, gravity: NDArray) -> float:
    """Return the mass, kg, of a load that the joints can carry."""
    bare.attach_load(_cube(1.0))
    of_one = np.abs(bare.truth.gravity_torque(poses) - gravity).max(axis=0)
    with np.errstate(divide="ignore"):
        strong = np.min(np.where(of_one > 0.0, LOAD_TORQUE_FRACTION * limits.torque / of_one, np.inf))
    mass = min(LOAD_OF_ARM * bare.truth.parameters[::10].sum(), MAX_LOAD_KG, float(strong))
    return float(f"{mass:.2g}")
