"""Inputs of the golden records: a planar arm, and recordings of it that every identification can be run on.

Torques are those of the model with a little noise: keys of files are recorded, not numbers. The arm's first joint turns
about the vertical, the others about a horizontal axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, WrenchSeries

JOINTS = ("shoulder", "elbow", "wrist")
LINKS = ("pedestal", "upper", "lower", "last")
RATE = 100.0
ASLANT = (4.0, 3.0, -8.4)
"""Gravity that loads all joints, m/s^2."""
UPRIGHT = (0.0, 0.0, -9.80665)
FRICTION = ((1.0, 0.8, 0.5), (0.6, 0.5, 0.3))
"""Coulomb, N m, and viscous, N m s/rad."""
LOAD = 2.0
"""Mass, kg."""


def arm_urdf(last: float = 1.5) -> str:
    """Return the URDF of the arm; the mass of its last link, kg, may hold a load."""
    origins = ('<origin xyz="0 0 0.3"/>', f'<origin rpy="{-math.pi / 2} 0 0"/>', '<origin xyz="0.4 0 0"/>')
    parts = [f'<link name="{LINKS[0]}"/>']
    for i, mass in enumerate((5.0, 3.0, last)):
        parts.append(
            f'<joint name="{JOINTS[i]}" type="revolute"><parent link="{LINKS[i]}"/><child link="{LINKS[i + 1]}"/>'
            f'{origins[i]}<axis xyz="0 0 1"/><limit lower="-2.5" upper="2.5" velocity="3.0" effort="60"/></joint>'
            f'<link name="{LINKS[i + 1]}"><inertial><origin xyz="0.15 0.02 0.01"/><mass value="{mass}"/>'
            '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
    return f'<robot name="planar">{"".join(parts)}</robot>'


def write_motion(
    path: Path,
    seconds: float = 10.0,
    *,
    seed: int = 0,
    last: float = 1.5,
    gain: float = 1.0,
    names: Sequence[str] = JOINTS,
) -> Path:
    """Write a recording of all joints in motion, with friction; `gain` is torque per unit of what is recorded."""
    robot, rng = RobotModel.from_urdf(arm_urdf(last)), np.random.default_rng(seed)
    time = np.arange(0, seconds, 1 / RATE)
    rates = 2 * np.pi * np.array([0.2, 0.5, 0.9])
    phases, sizes = rng.uniform(0, 2 * np.pi, (3, 3)), np.array([0.7, 0.3, 0.15])
    angle = rates * time[:, None, None] + phases
    q, qd, qdd = (
        (sizes * rates**order * np.sin(angle + order * np.pi / 2)).sum(axis=-1) for order in range(3)
    )  # (N, n)
    coulomb, viscous = FRICTION
    torque = robot.inverse_dynamics(q, qd, qdd) + coulomb * np.sign(qd) + viscous * qd
    position = q + 1e-5 * rng.standard_normal(q.shape)
    return _write(path, time, names, position=position, velocity=qd, torque=_noisy(torque / gain, rng))


def write_weighed(path: Path) -> Path:
    """Write a recording of dwells with a load on a force/torque sensor behind the last joint."""
    rests, rng = Recording.read(write_rests(path)), np.random.default_rng(3)
    rotation = RobotModel.from_urdf(arm_urdf()).forward_kinematics(rests.position)[:, -1, :3, :3]
    force = LOAD * np.einsum("nij,i->nj", rotation, np.array(UPRIGHT))
    torque = np.cross(np.array([0.02, 0.01, 0.08]), force)
    noise = 0.01 * rng.standard_normal((2, *force.shape))
    wrench = WrenchSeries(rests.time, force + [1.0, -2.0, 3.0] + noise[0], torque + 0.1 * noise[1], LINKS[-1])
    replace(rests, wrenches={"/wrench": wrench}).write_npz(path)
    return path


def write_rests(path: Path, *, last: float = 1.5, gravity: Sequence[float] = UPRIGHT, gain: float = 1.0) -> Path:
    """Write a recording of dwells, each pose approached from both sides; `gain` is that of the torque sensors."""
    robot, rng = RobotModel.from_urdf(arm_urdf(last), gravity=tuple(gravity)), np.random.default_rng(1)
    poses, coulomb = rng.uniform(-1.5, 1.5, (16, 3)), np.array(FRICTION[0])
    move = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0, 1, 20))[:, None]
    positions, torques, last = [], [], poses[0]
    for pose in poses:
        for side in (1.0, -1.0):
            before = pose - 0.05 * side
            positions += [last + move * (before - last), before + move * (pose - before), np.tile(pose, (50, 1))]
            torques.append(np.tile(robot.gravity_torque(pose[None])[0] + coulomb * side, (90, 1)))
            last = pose
    q, torque = np.vstack(positions), _noisy(np.vstack(torques) / gain + (0.5 if gain != 1.0 else 0.0), rng)
    return _write(path, np.arange(len(q)) / RATE, JOINTS, position=q, velocity=np.full_like(q, np.nan), torque=torque)


def write_spring(path: Path, *, seed: int = 0) -> Path:
    """Write a recording of the wrist alone behind a spring, with an encoder on its link."""
    rng = np.random.default_rng(seed)
    time = np.arange(0, 10, 1 / 250)
    rates, sizes = 2 * np.pi * np.array([0.15, 0.4, 0.65, 0.9, 2.3]), np.array([0.8, 0.4, 0.2, 0.12, 0.03])
    phases = rng.uniform(0, 2 * np.pi, 5)
    stiffness, inertia, rotor, moment, viscous = 2e4, 40.0, 15.0, 300.0, 30.0

    def link(order: int) -> NDArray[np.float64]:
        return (sizes * rates**order * np.sin(np.multiply.outer(time, rates) + phases + order * np.pi / 2)).sum(-1)

    angle = link(0)
    sine, cosine = np.sin(angle), np.cos(angle)
    slope, dry = 20.0 / 0.05, np.tanh(link(1) / 0.05)  # of dry friction, 20 N m
    steep = slope * (1 - dry**2)
    spring = inertia * link(2) + moment * sine + viscous * link(1) + 20.0 * dry
    spring_d = inertia * link(3) + moment * cosine * link(1) + (viscous + steep) * link(2)
    spring_dd = inertia * link(4) + moment * (cosine * link(2) - sine * link(1) ** 2) + (viscous + steep) * link(3)
    spring_dd -= 2 * dry * steep / 0.05 * link(2) ** 2
    motor, motor_d, motor_dd = (
        angle + spring / stiffness,
        link(1) + spring_d / stiffness,
        link(2) + spring_dd / stiffness,
    )
    torque = spring + rotor * motor_dd + 10.0 * motor_d
    columns = {
        "position": motor,
        "velocity": motor_d,
        "torque": torque + 0.5 * rng.standard_normal(len(time)),
        "link_position": angle + 2e-6 * rng.standard_normal(len(time)),
    }
    return _write(path, time, ("hinge",), **{name: column[:, None] for name, column in columns.items()})


def spring_urdf() -> str:
    """Return the URDF of that joint: axis horizontal, centre of mass below it at zero."""
    return (
        '<robot name="spring"><link name="pedestal"/><joint name="hinge" type="revolute"><parent link="pedestal"/>'
        f'<child link="bar"/><origin rpy="{math.pi / 2} 0 0"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="3" velocity="10" effort="5000"/></joint><link name="bar"><inertial>'
        '<origin xyz="0 -0.6 0"/><mass value="51"/>'
        '<inertia ixx="20" iyy="20" izz="20" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )


def _noisy(torque: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return torque + 0.02 * rng.standard_normal(torque.shape)


def _write(path: Path, time: NDArray[np.float64], names: Sequence[str], **columns: NDArray[np.float64]) -> Path:
    """Write the NPZ of docs/files.md."""
    np.savez(path, time=time, joint_names=list(names), **columns)
    return path
