"""Simulate arms of hobby servos in MuJoCo: position actuators, delay, encoders, jitter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from pinocchio_arm import example_urdf

from dynid_ros.identification.servo.servo_result import ServoResult
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import ball
from dynid_ros.model.inertia import from_log_cholesky, log_cholesky, possible_prior, transformed
from dynid_ros.model.urdf_export import urdf_with_inertias
from dynid_ros.recording import CommandSeries, Recording
from dynid_ros.simulation.mujoco_model import strip

TIMESTEP = 2.5e-4
"""Time step in s; MuJoCo's first-order integration has an error of half a step of velocity."""
COUNT = 2 * np.pi / 4096
"""Encoder step in rad, 12 bits per turn."""
SPEED_NOISE = 5e-3
"""Noise in rad/s of velocities that a drive in MIT mode reports."""
WRONG = 0.3
"""Largest relative error of the URDF's inertias."""


@dataclass(frozen=True)
class Servos:
    """Servos of an arm, (n,) or one number for all, in SI units at the joint."""

    stiffness: object
    damping: object
    armature: object
    friction: object
    viscous: object
    delay: object
    force: float = np.inf


@dataclass(frozen=True)
class ServoArm:
    """Arm with true parameters and a model with wrong inertias."""

    robot: RobotModel
    urdf: str
    parameters: np.ndarray
    servos: Servos
    rng: np.random.Generator = field(repr=False, default_factory=np.random.default_rng)

    def per_joint(self, name: str) -> np.ndarray:
        return np.broadcast_to(np.asarray(getattr(self.servos, name), float), self.robot.n_joints)


SO101 = Servos(17.8, 0.0, 0.028, 0.052, 0.60, 0.03)
"""STS3215 with parameters of the manufacturer's SO-101 simulation."""


def so101(seed: int = 0, **changes: object) -> ServoArm:
    """Return SO-101 of example-robot-data up to its gripper, with servo parameters varied by 20 % per joint."""
    robot = RobotModel.from_urdf(example_urdf("so_arm_description/urdf/so101.urdf"), tip="gripper_link", held={})
    return draw_arm(robot, SO101, seed, **changes)


VIPER = """<robot name="viper"><link name="base"/>{links}</robot>"""
_VIPER = (  # joint, parent frame xyz, axis, mass, centre, reach of the link for its inertia
    ("waist", "0 0 0.079", "0 0 1", 0.97, "0 -0.005 0.03", 0.10),
    ("shoulder", "0 0 0.048", "0 1 0", 0.78, "0.02 0 0.21", 0.30),
    ("elbow", "0.06 0 0.30", "0 1 0", 0.33, "0.11 0.02 0", 0.20),
    ("forearm_roll", "0.20 0 0", "1 0 0", 0.32, "0.06 0.01 0", 0.10),
    ("wrist_angle", "0.10 0 0", "0 1 0", 0.17, "0.04 0.02 0.005", 0.07),
    ("wrist_rotate", "0.07 0 0", "1 0 0", 0.35, "0.06 0.004 0.006", 0.10),
)
DYNAMIXEL = Servos(
    [35.0, 60.0, 45.0, 20.0, 20.0, 12.0],
    [2.0, 4.0, 3.0, 0.8, 0.8, 0.5],
    [0.10, 0.20, 0.12, 0.06, 0.06, 0.03],
    [0.4, 0.6, 0.4, 0.2, 0.2, 0.12],
    [0.5, 1.0, 0.7, 0.3, 0.3, 0.2],
    0.018,
)


def viper(seed: int = 0, **changes: object) -> ServoArm:
    """Return six Dynamixels in the proportions of a ViperX 300."""
    links = ""
    before = "base"
    for name, xyz, axis, mass, center, reach in _VIPER:
        long = mass * reach**2 / 12
        thin = mass * 0.04**2 / 6
        inertia = [thin + long, thin + long, thin + long]
        inertia[["1", "0", "0"].index("1") if axis == "1 0 0" else 2] = thin + long / 4
        links += f"""<link name="{name}_link"><inertial><mass value="{mass}"/><origin xyz="{center}"/><inertia ixx="{
            inertia[0]
        }" iyy="{inertia[1]}" izz="{inertia[2]}" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="{name}" type="revolute"><parent link="{before}"/><child link="{name}_link"/><origin xyz="{xyz}"/>
        <axis xyz="{axis}"/><limit lower="-1.8" upper="1.8" velocity="3.1" effort="20"/></joint>"""
        before = f"{name}_link"
    return draw_arm(RobotModel.from_urdf(VIPER.format(links=links)), DYNAMIXEL, seed, **changes)


ONE = """<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="0.4"/><origin xyz="0.12 0.01 0"/>
<inertia ixx="1e-4" iyy="2e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="lift" type="revolute">
<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" velocity="6" effort="9"/>
</joint></robot>"""


def one(seed: int = 0, **changes: object) -> ServoArm:
    """Return a lever on one servo of an SO-101."""
    return draw_arm(RobotModel.from_urdf(ONE), SO101, seed, **changes)


def slide(seed: int = 0, **changes: object) -> ServoArm:
    """Return a vertical slide."""
    urdf = ONE.replace('type="revolute"', 'type="prismatic"').replace('axis xyz="0 1 0"', 'axis xyz="0 0 1"')
    return draw_arm(RobotModel.from_urdf(urdf), Servos(400.0, 0.0, 0.03, 1.0, 12.0, 0.03), seed, **changes)


def draw_arm(robot: RobotModel, servos: Servos, seed: int, **changes: object) -> ServoArm:
    """Return an arm with random deviations of servos by up to 20 % and links by up to 30 %."""
    rng = np.random.default_rng(seed)
    prior, _ = possible_prior(robot.parameters, robot.link_names)
    coordinates = log_cholesky(prior.reshape(-1, 10))
    coordinates[:, :4] += 0.5 * np.log(rng.uniform(1 - WRONG, 1 + WRONG, (len(coordinates), 4)))
    parameters = from_log_cholesky(coordinates).ravel()
    n = robot.n_joints
    own = {
        name: np.asarray(value, float) * rng.uniform(0.8, 1.2, n) if name != "force" else value
        for name, value in vars(servos).items()
    }
    own |= changes
    return ServoArm(robot, urdf_with_inertias(robot, parameters), parameters, Servos(**own), rng)


def motion(arm: ServoArm, duration: float, rate: float, start: np.ndarray | None = None) -> CommandSeries:
    """Return commands (K, n): sums of sines up to the bandwidth of servos of a few hertz, starting at rest."""
    rng = arm.rng
    n = arm.robot.n_joints
    limits = arm.robot.limits
    time = np.arange(0.0, duration, 1 / rate)
    slow = np.arange(1, 7) * 0.07 + 0.02 * rng.uniform(size=(n, 6))
    fast = rng.uniform(0.7, 3.0, (n, 5))
    reach = 0.30 * np.minimum(limits.upper - limits.lower, 3.0)
    position = np.zeros((len(time), n))
    for j in range(n):
        for frequencies, amplitude in ((slow[j], reach[j]), (fast[j], 0.16)):
            phase = rng.uniform(0, 2 * np.pi, len(frequencies))
            waves = np.sin(2 * np.pi * frequencies * time[:, None] + phase) / np.sqrt(len(frequencies) / 2)
            position[:, j] += amplitude / (1.7 if amplitude > 0.2 else 1.0) * waves.sum(axis=1) / 1.5
    begin = np.clip(time / 2, 0, 1)
    position *= (begin**3 * (10 - 15 * begin + 6 * begin**2))[:, None]
    room = np.minimum(1.2, (limits.upper - limits.lower) / 2)
    position += np.clip(0.0, limits.lower + room, limits.upper - room)
    return CommandSeries(time, np.clip(position, limits.lower + 0.05, limits.upper - 0.05))


def record(
    arm: ServoArm,
    command: CommandSeries,
    *,
    rate: float = 100.0,
    count: float = COUNT,
    jitter: float = 1e-3,
    mass: float = 0.0,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Recording:
    """Simulate a recording by encoders of a motion by commands; stamps have jitter in s."""
    mujoco = pytest.importorskip("mujoco")
    model = compiled(arm, mass=mass, center=center)
    data = mujoco.MjData(model)
    names = arm.robot.joint_names
    joints = np.array([model.joint(name).qposadr[0] for name in names])
    order = np.array([model.actuator(name).id for name in names])
    aimed = command.position
    if command.effort is not None:  # a position actuator applies the torque of a drive in MIT mode
        aimed = aimed + (arm.per_joint("damping") * command.velocity + command.effort) / arm.per_joint("stiffness")
    stamps = command.time + jitter * arm.rng.uniform(-0.5, 0.5, len(command.time)) * (command.time > 0)
    duration = float(command.time[-1])
    sampled = np.arange(0.0, duration, 1 / rate)[1:]
    sampled = sampled + jitter * arm.rng.uniform(-0.5, 0.5, len(sampled))
    data.qpos[joints] = command.position[0]
    delays = arm.per_joint("delay")
    steps = int(duration / TIMESTEP)
    place, speed = np.zeros((2, steps + 1, len(names)))
    times = TIMESTEP * np.arange(steps)
    control = np.column_stack(
        [
            aimed[np.clip(np.searchsorted(stamps, times - delay, side="right") - 1, 0, None), j]
            for j, delay in enumerate(delays)
        ]
    )
    for k in range(steps):
        place[k] = data.qpos[joints]
        speed[k] = data.qvel[joints]
        data.ctrl[order] = control[k]
        mujoco.mj_step(model, data)
    place[steps] = data.qpos[joints]
    speed[steps] = data.qvel[joints]
    sampled = sampled[sampled < TIMESTEP * steps]
    # MuJoCo's velocities belong to the middle of the previous step.
    times = TIMESTEP * np.arange(steps + 1)
    read = np.column_stack([np.interp(sampled, times, column) for column in place.T])
    velocity = np.column_stack([np.interp(sampled, times - TIMESTEP / 2, column) for column in speed.T])
    position = np.round(read / count) * count if count else read
    unknown = np.full(position.shape, np.nan)
    noisy = velocity + SPEED_NOISE * arm.rng.standard_normal(velocity.shape)
    velocity = unknown if command.effort is None else noisy
    return Recording(
        names, sampled, position, velocity, unknown, source="simulated", command=replace(command, time=stamps)
    )


def compiled(arm: ServoArm, *, mass: float = 0.0, center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> object:
    """Return MuJoCo's model of an arm with a mass in its hand."""
    mujoco = pytest.importorskip("mujoco")
    parameters = arm.parameters.copy()
    if mass:
        parameters[arm.robot.tip_columns] += transformed(ball(mass, np.array(center)), arm.robot.tip_offset)
    root = ET.fromstring(urdf_with_inertias(arm.robot, parameters))
    strip(root)
    for joint in root.findall("joint"):
        if joint.get("name") not in arm.robot.joint_names:
            joint.set("type", "fixed")
    spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    spec.option.timestep = TIMESTEP
    spec.option.gravity = arm.robot.gravity
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    true_values = {name: arm.per_joint(name) for name in ("stiffness", "damping", "armature", "friction", "viscous")}
    for j, name in enumerate(arm.robot.joint_names):
        joint = spec.joint(name)
        joint.limited = joint.actfrclimited = False  # limits of the URDF
        joint.armature = true_values["armature"][j]
        joint.frictionloss = true_values["friction"][j]
        if np.ndim(joint.damping):
            joint.damping[0] = true_values["viscous"][j]
        else:
            joint.damping = true_values["viscous"][j]
        joint.solref_friction = [2 * TIMESTEP, 1.0]  # dry friction without creep
        joint.solimp_friction = [0.999, 0.999, 0.001, 0.5, 2.0]
        servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=true_values["stiffness"][j], kv=true_values["damping"][j])
        if np.isfinite(arm.servos.force):
            servo.forcelimited = True
            servo.forcerange = [-arm.servos.force, arm.servos.force]
    return spec.compile()


def compared_poses(result: ServoResult) -> np.ndarray:
    """Return the poses (N, n) over which a result averages inertia, without the initial rest."""
    return np.concatenate([run.motion.position for run in result.loops.runs if not run.loaded])


def truth(arm: ServoArm, poses: np.ndarray) -> dict[str, np.ndarray]:
    """Return the true values (n,) by label, in N m; inertia is the mean over poses (N, n).

    MuJoCo's implicit damping acts like additional inertia of half a step times the damping.
    """
    robot = arm.robot
    q = poses
    viscous = arm.per_joint("viscous") + arm.per_joint("damping")
    armature = arm.per_joint("armature") + viscous * TIMESTEP / 2
    weightless = RobotModel(robot.chain, gravity=np.zeros(3))
    inertia = [
        weightless.inverse_dynamics(q, 0 * q, np.tile(np.eye(robot.n_joints)[j], (len(q), 1)), arm.parameters)[
            :, j
        ].mean()
        for j in range(robot.n_joints)
    ]
    return {
        "gain": arm.per_joint("stiffness"),
        "inertia": np.array(inertia) + armature,
        "armature": armature,
        "viscous": viscous,
        "coulomb": arm.per_joint("friction"),
        "offset": np.zeros(robot.n_joints),
        "delay": arm.per_joint("delay"),
    }
