"""Simulate random arms with elastic joints that hold a load in dwells, with Pinocchio's wrenches on a wrist sensor."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pinocchio
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import from_center_of_mass
from dynid_ros.recording import Recording, WrenchSeries

TOPIC = "/wrench"
RATE = 50.0
DWELL_S = 1.5
MOVE_S = 1.5
NOISE = np.repeat([0.1, 0.004], 3)
BIAS = np.repeat([10.0, 0.5], 3)
LINK = """<link name="l{k}"><inertial><origin xyz="{center}"/><mass value="{mass}"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="j{k}" type="revolute"><parent link="l{parent}"/><child link="l{k}"/><axis xyz="{axis}"/>
<origin xyz="{place}" rpy="{turn}"/><limit lower="-3" upper="3" effort="200" velocity="2"/></joint>"""


@dataclass(frozen=True)
class HeldLoad:
    """Arm with a load at rest in several poses.

    Attributes:
        robot: the arm.
        load: (10,) true parameters about the tip.
        position: (M, n) motor positions.
        wrench: (M, 6) wrench of the load on the sensor, in its axes.
    """

    robot: RobotModel
    load: np.ndarray
    position: np.ndarray
    wrench: np.ndarray

    def readings(self, rng: np.random.Generator, gain_error: float = 0.005) -> np.ndarray:
        """Return mean readings (M, 6) of a sensor with gain errors and bias, without noise."""
        return self.wrench * (1 + gain_error * rng.standard_normal(6)) + BIAS * rng.uniform(-1, 1, 6)

    def record(self, readings: np.ndarray, rng: np.random.Generator) -> Recording:
        """Return a recording of dwells in which the sensor reads `readings` (M, 6) with noise."""
        stay = round(DWELL_S * RATE)
        move = round(MOVE_S * RATE)
        blend = 0.5 - 0.5 * np.cos(np.pi * np.arange(1, move + 1) / (move + 1))[:, None]
        q = []
        w = []
        for k in range(len(self.position)):
            for parts, values in ((q, self.position), (w, readings)):
                parts.append(np.repeat(values[k : k + 1], stay, axis=0))
                if k + 1 < len(self.position):
                    parts.append(values[k] + blend * (values[k + 1] - values[k]))
        position = np.concatenate(q)
        wrench = np.concatenate(w)
        position = position + 1e-5 * rng.standard_normal(position.shape)
        wrench = wrench + NOISE * rng.standard_normal(wrench.shape)
        time = np.arange(len(position)) / RATE
        unknown = np.full_like(position, np.nan)
        series = WrenchSeries(time, wrench[:, :3], wrench[:, 3:], self.robot.tip)
        return Recording(
            self.robot.joint_names, time, position, unknown, unknown, wrenches={TOPIC: series}, source="run"
        )


def random_arm(rng: np.random.Generator) -> RobotModel:
    """Return an arm of five to seven revolute joints with links of random sizes."""
    n = int(rng.integers(5, 8))
    parts = ['<robot name="arm"><link name="l0"/>']
    for k in range(1, n + 1):
        heavy = 6.0 * (1 - k / (n + 2)) * rng.uniform(0.5, 1.5)
        center = " ".join(f"{x:.4f}" for x in rng.uniform([-0.05, -0.05, 0.05], [0.05, 0.05, 0.15]))
        parts.append(LINK.format(k=k, center=center, mass=f"{heavy:.3f}"))
        axis = ("0 0 1", "0 1 0", "1 0 0")[int(rng.integers(3))] if k > 1 else "0 0 1"
        place = " ".join(f"{x:.4f}" for x in rng.uniform([-0.05, -0.05, 0.05], [0.05, 0.05, 0.35]))
        turn = " ".join(f"{x:.4f}" for x in rng.choice([0.0, np.pi / 2, -np.pi / 2], 3))
        parts.append(JOINT.format(k=k, parent=k - 1, axis=axis, place=place, turn=turn))
    return RobotModel.from_urdf("".join(parts) + "</robot>")


@cache
def held_load(seed: int, poses: int = 30, deflection: float = 0.0) -> HeldLoad:
    """Return a random load on a random arm.

    Args:
        seed: seed of the random numbers.
        poses: number of poses.
        deflection: standard deviation over the joints of the largest deflection by gravity in rad.
    """
    rng = np.random.default_rng([41, seed])
    robot = random_arm(rng)
    n = robot.n_joints
    mass = rng.uniform(0.5, 4.0)
    center = np.array([*rng.uniform(-0.06, 0.06, 2), rng.uniform(0.03, 0.15)])
    load = from_center_of_mass(mass, center, 0.01 * np.eye(3))
    position = rng.uniform(-2.5, 2.5, (poses, n))
    model = pinocchio.buildModelFromXML(robot.urdf)
    joint = model.getJointId(robot.joint_names[-1])
    model.appendBodyToJoint(joint, pinocchio.Inertia(mass, center, 0.01 * np.eye(3)), pinocchio.SE3.Identity())
    data = model.createData()
    gravity = np.array([pinocchio.computeGeneralizedGravity(model, data, q) for q in position])
    compliance = deflection * rng.standard_normal(n) / np.maximum(np.abs(gravity).max(axis=0), 1e-6)
    compliance = np.abs(compliance)
    wrench = []
    for q in position:
        link = q
        for _ in range(5):
            link = q - compliance * pinocchio.computeGeneralizedGravity(model, data, link)
        pinocchio.forwardKinematics(model, data, link)
        force = mass * data.oMi[joint].rotation.T @ np.array([0, 0, -9.80665])
        wrench.append([*force, *np.cross(center, force)])
    return HeldLoad(robot, load, position, np.array(wrench))


def add_fault(held: HeldLoad, fault: str, rng: np.random.Generator) -> tuple[HeldLoad, np.ndarray]:
    """Return the experiment and readings (M, 6) of a sensor with a fault of FAULTS."""
    size = len(held.position)
    middle = int(rng.integers(len(held.position) // 4, 3 * len(held.position) // 4))
    axis = int(rng.integers(3))
    wrench = held.wrench.copy()
    if fault == "reversed":
        wrench[:, [axis, axis + 3]] *= -1
    elif fault == "force reversed":
        wrench[:, axis] *= -1
    elif fault == "exchanged":
        wrench = wrench[:, [1, 0, 2, 4, 3, 5]]
    elif fault == "torque exchanged":
        wrench = wrench[:, [0, 1, 2, 4, 3, 5]]
    elif fault == "N mm":
        wrench[:, 3:] *= 1000
    elif fault == "gain":
        wrench[:, axis] *= 0.85
    readings = replace(held, wrench=wrench).readings(rng)
    if fault == "zeroed":
        readings[middle:] -= readings[middle]
    elif fault == "drift":
        readings[:, axis] += 6.0 * (1 - np.exp(-3 * np.arange(size) / size))
    return replace(held, wrench=wrench), readings


FAULTS = {
    "reversed": "other sign",
    "force reversed": "other sign",
    "exchanged": "exchanged|other sign",
    "torque exchanged": "exchanged|other sign",
    "N mm": "N mm",
    "gain": "reads 0.8",
    "zeroed": "bias changed",
    "drift": "bias drifts",
}
"""Pattern of the message for each fault."""

__all__ = ["FAULTS", "HeldLoad", "Rotation", "add_fault", "held_load", "random_arm"]
