"""Simulate arms with drives in MIT mode (Unitree G1, Kinova, two levers) and with servos (TIAGo Pro, Alex)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pinocchio_arm import example_urdf
from servo_arms import ServoArm, Servos, draw_arm, motion, record

from dynid_ros.model import RobotModel
from dynid_ros.recording import CommandSeries, Recording

TWO = """<robot name="two"><link name="base"/>
<link name="upper"><inertial><mass value="0.9"/><origin xyz="0.14 0.01 0"/>
<inertia ixx="1e-3" iyy="6e-3" izz="6e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="fore"><inertial><mass value="0.5"/><origin xyz="0.12 0 0.01"/>
<inertia ixx="1e-3" iyy="3e-3" izz="3e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lift" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-1.5" upper="1.5" velocity="6" effort="20"/></joint>
<joint name="bend" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.3 0 0"/>
<axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" velocity="6" effort="9"/></joint></robot>"""
TWO_DRIVES = Servos([40.0, 25.0], [1.5, 1.0], [0.02, 0.012], [0.15, 0.1], [0.2, 0.15], 0.007)
G1 = Servos([60.0, 60.0, 50.0, 40.0, 25.0, 25.0, 25.0], 1.5, 0.012, 0.35, 0.12, 0.006)
KINOVA = Servos([80.0, 90.0, 70.0, 30.0, 25.0, 20.0], [2.5, 3.0, 2.0, 0.8, 0.6, 0.5], 0.02, 0.5, 0.4, 0.009)
TIAGO = Servos([250.0, 250.0, 150.0, 150.0, 60.0, 50.0, 50.0], 8.0, 0.08, 0.6, 1.0, 0.02)
ALEX = Servos([180.0, 180.0, 120.0, 120.0, 60.0, 60.0, 30.0], 5.0, 0.06, 0.4, 0.8, 0.025)
FEED_FORWARD = 0.7
"""Fraction of the URDF's gravity torque that the controller feeds forward."""


def two(seed: int = 0, **changes: object) -> ServoArm:
    """Return two levers in series."""
    return _same_delay(draw_arm(RobotModel.from_urdf(TWO), TWO_DRIVES, seed, **changes))


def g1(seed: int = 0, **changes: object) -> ServoArm:
    """Return the left arm of a G1."""
    robot = RobotModel.from_urdf(
        example_urdf("g1_description/urdf/g1_29dof_rev_1_0.urdf"), base="torso_link", tip="left_wrist_yaw_link"
    )
    return _same_delay(draw_arm(robot, G1, seed, **changes))


def kinova(seed: int = 0, **changes: object) -> ServoArm:
    """Return an arm with kinematics and links of six joints of a Kinova."""
    robot = RobotModel.from_urdf(example_urdf("kinova_description/robots/kinova.urdf"), tip="j2s6s200_link_6")
    return _same_delay(draw_arm(robot, KINOVA, seed, **changes))


def tiago(seed: int = 0, **changes: object) -> ServoArm:
    """Return the left arm of a TIAGo Pro with position servos."""
    urdf = example_urdf("tiago_pro_description/robots/tiago_pro.urdf")
    robot = RobotModel.from_urdf(urdf, base="torso_lift_link", tip="arm_left_7_link")
    return draw_arm(robot, TIAGO, seed, **changes)


def alex(seed: int = 0, **changes: object) -> ServoArm:
    """Return the left arm of an Alex with position servos."""
    urdf = example_urdf("alex_description/urdf/alex_nub_hands.urdf")
    robot = RobotModel.from_urdf(urdf, base="Torso", tip="LeftGripperYawLink")
    return draw_arm(robot, ALEX, seed, **changes)


def _same_delay(arm: ServoArm) -> ServoArm:
    """Return the arm with equal delays of all drives, as on one bus."""
    return replace(arm, servos=replace(arm.servos, delay=float(arm.per_joint("delay")[0])))


def plan_commands(arm: ServoArm, duration: float = 12.0, rate: float = 200.0) -> CommandSeries:
    """Return commands of a controller that interpolates and feeds forward a part of the gravity torque."""
    command = motion(arm, duration, rate)
    velocity = np.gradient(command.position, command.time, axis=0)
    effort = FEED_FORWARD * arm.robot.gravity_torque(command.position)
    return CommandSeries(command.time, command.position, velocity, effort)


def record_drives(arm: ServoArm, duration: float = 12.0, rate: float = 200.0, **options: object) -> Recording:
    """Return the recording that the drives report."""
    return record(arm, plan_commands(arm, duration, rate), rate=rate, count=2 * np.pi / 2**16, **options)
