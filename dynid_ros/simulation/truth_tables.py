"""Tables of the true parameters of a simulated arm, to verify identifications; identifications must not read them."""

from dataclasses import asdict
from typing import Any

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix
from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.drives import Drives, KnownFriction, Springs
from dynid_ros.simulation.sensors import Sensors, WrenchSensor


def truth_table(arm: SimulatedArm) -> dict[str, Any]:
    """Return plain mappings of SI numbers and text, to be written as YAML.

    Returns:
        `robot`, `urdf`, `base`, `tip` and `gravity`: origin of the model. `friction`: None, or the friction terms of
        each joint and their coefficients. `joints`: for each joint friction and rotor inertia of the drive,
        the spring if joints are flexible (friction then acts on the link), sensor errors, the minimal gravity moment in
        the link frame (for an axis along z its first two numbers are n_x and n_y) and the carried mass. `links`: for
        each link mass, first moment (x, y, z) and inertia (xx, xy, xz, yy, yz, zz) about the link frame. `load`: None,
        or mass, centre of mass, and inertia about the centre of mass in the axes of the tip link. `wrench_sensor`:
        errors for each axis of force and torque.
    """
    robot = arm.robot
    per_joint = {
        "coulomb": arm.drives.coulomb,
        "viscous": arm.drives.viscous,
        "rotor_inertia": arm.drives.rotor_inertia,
        **({} if arm.springs is None else vars(arm.springs)),
        **{field: getattr(arm.sensors, field) for field in arm.sensors.__dataclass_fields__},
        "gravity_moment": arm.truth.gravity_moments(),
        "carried_mass": arm.truth.carried_masses,
    }
    links = arm.truth.parameters.reshape(robot.n_joints, -1).tolist()
    return {
        "robot": robot.name,
        "urdf": robot.urdf,
        "base": robot.base,
        "tip": robot.tip,
        "gravity": robot.gravity.tolist(),
        "joints": {
            name: {key: values[i].tolist() for key, values in per_joint.items()}
            for i, name in enumerate(robot.joint_names)
        },
        "links": {
            name: {"mass": values[0], "mass_moment": values[1:4], "inertia": values[4:]}
            for name, values in zip(robot.link_names, links, strict=True)
        },
        "friction": _friction(arm),
        "load": _load(arm),
        "wrench_sensor": {field: values.tolist() for field, values in vars(arm.wrench_sensor).items()},
    }


def _friction(arm: SimulatedArm) -> dict[str, Any] | None:
    if arm.friction is None:
        return None
    robot = arm.robot
    model = arm.friction.model
    joints = [asdict(joint) | {"harmonics": list(joint.harmonics)} for joint in model.per_joint(robot.n_joints)]
    values = np.asarray(arm.friction.coefficients, dtype=float).tolist()
    return {"joints": joints, "coefficients": dict(zip(model.names(robot), values, strict=True))}


def _load(arm: SimulatedArm) -> dict[str, Any] | None:
    mass, *moment = arm.truth.load[:4]
    if not mass:
        return None
    center = np.array(moment) / mass
    inertia = inertia_matrix(arm.truth.load) - inertia_matrix(from_center_of_mass(mass, center, np.zeros((3, 3))))
    return {
        "frame": arm.robot.tip,
        "mass": float(mass),
        "center": center.tolist(),
        "inertia": inertia[np.triu_indices(3)].tolist(),
    }


def tabled_arm(table: dict[str, Any]) -> SimulatedArm:
    """Return the arm that a table of `truth_table` describes, at rest at position zero."""
    robot = RobotModel.from_urdf(table["urdf"], table["tip"], table["base"], table["gravity"])

    def column(key: str) -> np.ndarray:
        return np.array([table["joints"][name][key] for name in robot.joint_names])

    flexible = all("stiffness" in joint for joint in table["joints"].values())
    friction = None
    rotors = column("rotor_inertia")
    if entry := table.get("friction"):
        model = FrictionModel([JointFriction(**joint) for joint in entry["joints"]])
        friction = KnownFriction(model, np.array(list(entry["coefficients"].values())))
        rotors = rotors - friction.of_term(robot, "rotor_inertia")
    arm = SimulatedArm(
        robot,
        drives=Drives(column("coulomb"), column("viscous"), rotors),
        friction=friction,
        springs=Springs(**{field: column(field) for field in Springs.__dataclass_fields__}) if flexible else None,
        sensors=Sensors(**{field: column(field) for field in Sensors.__dataclass_fields__}),
        wrench_sensor=WrenchSensor(**{field: np.array(values) for field, values in table["wrench_sensor"].items()}),
    )
    if load := table["load"]:
        tensor = inertia_matrix(np.array([0.0] * 4 + load["inertia"]))
        arm.attach_load(from_center_of_mass(load["mass"], np.array(load["center"]), tensor))
    return arm
