"""Simulate recorded experiments on flexible joints with the links' motion of `flexible_motion`.

The torque is the second row of eq. 2 of Lightcap and Banks 2007.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pa10
from flexible_motion import LinkMotion, Springs, arm_motion, link_motion, motor_series
from numpy.typing import NDArray
from pa10 import table_one

from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.trajectories.fourier import FourierSeries

RATE = 250.0
DURATION = 20.0
REPEATS = 10
MOTOR_NOISE, LINK_NOISE, TORQUE_NOISE = np.deg2rad(0.011), np.deg2rad(0.05), 0.005
"""Standard deviations in rad, in rad, and relative to the RMS of each joint's torque."""
CLOCK_OFFSET = 0.005
"""robot_time = camera_time + CLOCK_OFFSET, in s."""
SPEED, ARM_SPEEDS = 1.5, np.array([1.5, 1.0, 1.0, 1.5, 1.5, 1.5])
"""Largest motor speeds in rad/s, of one joint and of all."""
MOTIONS = {1: (8, 11), 2: (5, 3), 3: (5, 3), 4: (8, 7), 5: (8, 15), 6: (8, 11)}
"""Harmonics and seed of each joint's motion; those of joints 2 and 3 avoid their resonances at 7 Hz."""
ARM_POSE = np.array([0.3, 0.4, 1.2, 0.3, 0.9, 0.2])


@dataclass(frozen=True)
class Experiment:
    """Measurements with true values.

    Attributes:
        robot: model of the arm with masses and inertias a fifth too small.
        truth: true springs, friction and motors, (n,) each.
        motor_series: motion of the motors.
        time: (N,) in s on the robot's clock.
        motor: (N, n) measured in rad.
        torque: (N, n) measured in N m.
        link_encoder: (N, n) measured link angles at `time` in rad.
        link_time: (M,) in s on the camera's clock; robot_time = camera_time + clock_offset.
        link: (M, n) measured link angles at `link_time` in rad.
        exact: motor, torque, link_encoder and link without noise.
        clock_offset: offset of the clocks in s.
    """

    robot: RobotModel
    truth: Springs
    motor_series: FourierSeries
    time: NDArray
    motor: NDArray
    torque: NDArray
    link_encoder: NDArray
    link_time: NDArray
    link: NDArray
    exact: tuple[NDArray, NDArray, NDArray, NDArray]
    clock_offset: float

    @property
    def links(self) -> LinkAngles:
        """Return the link angles by cameras, on their clock."""
        errors = np.full_like(self.link, LINK_NOISE)
        n = self.link.shape[1]
        return LinkAngles(self.link_time, self.link, errors, np.zeros(0), np.nan, (), (), np.zeros(n))

    @property
    def recording(self) -> Recording:
        """Return motor angles and torques, without link angles."""
        unknown = np.full_like(self.motor, np.nan)
        return Recording(self.robot.joint_names, self.time, self.motor, unknown, self.torque, source="experiment")

    @property
    def recording_with_encoders(self) -> Recording:
        """Return motor angles and torques with the angles of link encoders."""
        unknown = np.full_like(self.motor, np.nan)
        return Recording(
            self.robot.joint_names,
            self.time,
            self.motor,
            unknown,
            self.torque,
            link_position=self.link_encoder,
            source="experiment",
        )


def single_joint_motion(
    joint: int, base_frequency: float = 1.0, harmonics: int | None = None, motion: int | None = None
) -> tuple[FourierSeries, LinkMotion]:
    """Return the motion of motor and link; see `single_joint`."""
    usual = MOTIONS[joint]
    return _single_joint_motion(
        joint, base_frequency, usual[0] if harmonics is None else harmonics, usual[1] if motion is None else motion
    )


@lru_cache(maxsize=32)
def _single_joint_motion(
    joint: int, base_frequency: float, harmonics: int, motion: int
) -> tuple[FourierSeries, LinkMotion]:
    series = motor_series((f"joint_{joint}",), np.array([SPEED]), base_frequency, harmonics, motion, np.array([0.3]))
    return series, link_motion(table_one(joint), series)


def six_joint_motion(
    base_frequency: float = 1.0, harmonics: int = 8, motion: int = 0
) -> tuple[FourierSeries, LinkMotion]:
    """Return the motion of motors and links; see `six_joints`."""
    return _six_joint_motion(base_frequency, harmonics, motion)


@lru_cache(maxsize=8)
def _six_joint_motion(base_frequency: float, harmonics: int, motion: int) -> tuple[FourierSeries, LinkMotion]:
    names = tuple(f"joint_{joint}" for joint in range(1, 7))
    series = motor_series(names, ARM_SPEEDS, base_frequency, harmonics, motion, ARM_POSE)
    return series, arm_motion(pa10.arm_urdf(), arm_springs(), series)


def arm_springs() -> Springs:
    """Return the springs of table I for the six-joint arm."""
    return Springs.of([table_one(joint) for joint in range(1, 7)])


def single_joint(
    joint: int,
    repeat: int = 0,
    *,
    base_frequency: float = 1.0,
    harmonics: int | None = None,
    motion: int | None = None,
    noise: float = 1.0,
    clock_offset: float = CLOCK_OFFSET,
) -> Experiment:
    """Simulate an experiment on one joint of table I, with the others held.

    Args:
        joint: 1 to 6.
        repeat: seed of the noise.
        base_frequency: base frequency of the motors' motion in Hz.
        harmonics: number of harmonics; None: typical of the joint.
        motion: seed of the motors' motion; None: typical of the joint.
        noise: factor of the noise.
        clock_offset: in s.
    """
    series, links = single_joint_motion(joint, base_frequency, harmonics, motion)
    springs = Springs.of([table_one(joint)])
    rng = np.random.default_rng([joint, repeat])
    return _recorded(pa10.single_joint_robot(joint), springs, series, links, noise, clock_offset, rng)


def six_joints(
    repeat: int = 0,
    *,
    base_frequency: float = 1.0,
    harmonics: int = 8,
    motion: int = 0,
    noise: float = 1.0,
    clock_offset: float = CLOCK_OFFSET,
) -> Experiment:
    """Simulate an experiment on all joints of the arm at once; see `single_joint`."""
    series, links = six_joint_motion(base_frequency, harmonics, motion)
    rng = np.random.default_rng([6, repeat])
    return _recorded(pa10.arm_robot(), arm_springs(), series, links, noise, clock_offset, rng)


def shorten(experiment: Experiment, seconds: float) -> Experiment:
    """Return the first seconds of an experiment."""
    rows = slice(round(seconds * RATE))
    names = ("time", "motor", "torque", "link_encoder", "link_time", "link")
    exact = tuple(values[rows] for values in experiment.exact)
    return replace(experiment, exact=exact, **{name: getattr(experiment, name)[rows] for name in names})


def _recorded(
    robot: RobotModel,
    springs: Springs,
    series: FourierSeries,
    links: LinkMotion,
    noise: float,
    clock_offset: float,
    rng: np.random.Generator,
) -> Experiment:
    time = np.arange(round(DURATION * RATE)) / RATE
    motor, motor_velocity, motor_acceleration = series.at(time)
    encoder = links.at(time, settled=True)
    link = links.at(time + clock_offset, settled=True)
    torque = springs.stiffness * (motor - encoder)
    torque += springs.motor_inertia * motor_acceleration + springs.motor_viscous * motor_velocity
    torque_noise = TORQUE_NOISE * np.sqrt(np.mean(torque**2, axis=0))
    exact = (motor, torque, encoder, link)
    scales = (MOTOR_NOISE, torque_noise, LINK_NOISE, LINK_NOISE)
    measured = [
        values + noise * scale * rng.standard_normal(values.shape) for values, scale in zip(exact, scales, strict=True)
    ]
    # stamps of the camera's clock, which is slow
    return Experiment(robot, springs, series, time, *measured[:3], time, measured[3], exact, clock_offset)
