"""Draw random single flexible joints for tests of confidence intervals, with model friction or MuJoCo's friction."""

from dataclasses import dataclass, replace

import numpy as np
import pa10
import pytest
from flexible_experiments import CLOCK_OFFSET, LINK_NOISE, MOTOR_NOISE, RATE, TORQUE_NOISE
from flexible_motion import link_motion, motor_series
from pa10 import FlexibleJoint
from scipy.interpolate import CubicSpline

from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.trajectories.fourier import FourierSeries

SECONDS, STEP = 10.0, 1e-4
"""Duration of a recording and time step of MuJoCo in s."""
FRICTIONS = {"coulomb": None, "mujoco": (0.02, 0.9), "mujoco, stiff": (2 * STEP, 0.9999)}
"""Time constant in s and impedance of MuJoCo's friction: default, and as stiff as possible; None: a sign."""
CAMERA_NOISES_DEG = (0.02, 0.07, 0.14)
"""Standard deviations of link angles by a camera."""
RIPPLES_PER_TURN = 100
"""Periods of the motor's torque ripple in one turn of the link: one per turn of the motor behind a gear of 100."""
ASIDE = 1.0
"""Time in s before the recording, while the motion from rest settles."""


@dataclass(frozen=True)
class MotorTorques:
    """Motor torques beyond inertia and viscous friction, relative to the largest torque.

    Attributes:
        coulomb: dry friction.
        ripple: amplitude of a torque ripple over the motor's position.
    """

    coulomb: float = 0.0
    ripple: float = 0.0


NO_MOTOR_TORQUES = MotorTorques()


@dataclass(frozen=True)
class Draw:
    """Experiment on a random joint.

    Attributes:
        robot: model of the joint with masses and inertias a fifth too small.
        recording: motor and torque, and the link's encoder if `links` is None.
        links: link angles by a camera.
        truth: true values by name of the parameter.
    """

    robot: RobotModel
    recording: Recording
    links: LinkAngles | None
    truth: dict[str, float]


def draw(
    seed: int,
    friction: str,
    *,
    camera: bool | None = None,
    link_noise: float = LINK_NOISE,
    motor: MotorTorques = NO_MOTOR_TORQUES,
) -> Draw:
    """Draw a joint like one of table I, moved by random harmonics, with a link encoder or a camera delayed by 5 ms.

    Args:
        seed: seed of the random numbers.
        friction: one of `FRICTIONS`.
        camera: whether a camera measures the link; None: random.
        link_noise: standard deviation of the link angles in rad.
        motor: motor torques that the model lacks.
    """
    rng = np.random.default_rng([19, seed])
    joint = 1 + seed % 6
    own = pa10.table_one(joint)
    stiffness, inertia, coulomb, viscous, rotor, braking = np.exp(rng.uniform(-0.4, 0.4, 6)).tolist()
    row = replace(
        own,
        stiffness=own.stiffness * stiffness,
        inertia=own.inertia * inertia,
        coulomb=own.coulomb * coulomb,
        viscous=own.viscous * viscous,
        motor_inertia=own.motor_inertia * rotor,
        motor_viscous=own.motor_viscous * braking,
    )
    name = f"joint_{joint}"
    frequency = rng.uniform(0.7, 1.3)
    harmonics = int(rng.integers(6, 10))
    speed = np.array([rng.uniform(1.0, 1.8)])
    pose = rng.uniform(-0.5, 0.5, 1)
    motor_motion = motor_series((name,), speed, frequency, harmonics, int(rng.integers(2**31)), pose)
    time = ASIDE + np.arange(round(SECONDS * RATE)) / RATE
    chance = bool(rng.random() < 0.5)
    camera = chance if camera is None else camera
    link_time = time + CLOCK_OFFSET if camera else time
    if FRICTIONS[friction] is None:
        moved = link_motion(row, motor_motion)
        exact = moved.at(time, False)
        link = moved.at(link_time, False)
    else:
        spline = by_mujoco(row, motor_motion, *FRICTIONS[friction])
        exact = spline(time)[:, None]
        link = spline(link_time)[:, None]
    position, velocity, acceleration = motor_motion.at(time)
    torque = row.stiffness * (position - exact) + row.motor_inertia * acceleration + row.motor_viscous * velocity
    largest = float(np.max(np.abs(torque)))
    torque += largest * motor.coulomb * np.sign(velocity)
    torque += largest * motor.ripple * np.sin(RIPPLES_PER_TURN * position)
    torque_noise = TORQUE_NOISE * np.sqrt(np.mean(torque**2))
    position, torque, link = (
        values + sigma * rng.standard_normal(values.shape)
        for values, sigma in ((position, MOTOR_NOISE), (torque, torque_noise), (link, link_noise))
    )
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(joint, pa10.LIGHTER, row))
    recording = Recording((name,), time, position, np.full_like(position, np.nan), torque, source=f"draw {seed}")
    links = None
    if camera:
        links = LinkAngles(time, link, np.full_like(link, link_noise), np.zeros(0), np.nan, (), (), np.zeros(1))
    else:
        recording = replace(recording, link_position=link)
    terms = ("stiffness", "motor_inertia", "motor_viscous", "viscous", "coulomb")
    truth = {f"{term} {name}": getattr(row, term) for term in terms}
    truth["Iyy1"] = row.inertia
    if motor.coulomb:
        truth[f"motor_coulomb {name}"] = largest * motor.coulomb
    return Draw(robot, recording, links, truth)


def by_mujoco(row: FlexibleJoint, motor: FourierSeries, constant: float, impedance: float) -> CubicSpline:
    """Return the position over time of a link with MuJoCo's friction, whose motor follows a series."""
    mujoco = pytest.importorskip("mujoco")
    moment = np.array([row.gravity_y, 0.0, row.gravity_x]) / pa10.G
    mass = float(2.0 * moment @ moment / row.inertia + 1.0)
    about = float(row.inertia - moment @ moment / mass)
    place = " ".join(repr(x) for x in (moment / mass).tolist())
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{STEP}" gravity="0 0 {-pa10.G!r}" tolerance="1e-14"/><worldbody><body>'
        f'<joint axis="0 -1 0" frictionloss="{row.coulomb!r}" damping="{row.viscous!r}" '
        f'solreffriction="{constant} 1" solimpfriction="{impedance} {max(impedance, 0.95)} 0.001 0.5 2"/>'
        f'<inertial pos="{place}" mass="{mass!r}" diaginertia="{about!r} {about!r} {about!r}"/>'
        "</body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    steps = round((ASIDE + SECONDS + 0.1) / STEP)
    followed = motor.at(STEP * np.arange(steps))[0][:, 0].tolist()
    data.qpos[0] = followed[0]
    positions = np.empty(steps)
    position = data.qpos
    applied = data.qfrc_applied
    step = mujoco.mj_step
    for k, target in enumerate(followed):
        positions[k] = q = position[0]
        applied[0] = row.stiffness * (target - q)
        step(model, data)
    return CubicSpline(STEP * np.arange(0, steps, 10), positions[::10])
