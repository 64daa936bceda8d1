"""Provide recordings of flexible joints like those of users: short, with encoders or markers, of one joint."""

from dataclasses import replace
from functools import lru_cache

import flexible_experiments as fe
import numpy as np
import pa10
import pytest
from flexible_motion import link_motion, motor_series
from pa10 import FlexibleJoint

from dynid_ros.recording import Recording
from dynid_ros.recording.series import PoseSeries

SHORT = slice(0, 1000)
PLACES = np.array([[0.25, 0.0, 0.0], [0.0, 0.25, 0.0], [-0.2, 0.1, 0.1], [0.1, -0.2, 0.05]])
"""Positions of markers on the link in m."""
MARKER_NOISE = 3e-4
HELD = np.array([0.3, 0.0, 1.2, 0.3, 0.9, 0.2])
"""Pose of the arm in which joint 2 moves."""


@lru_cache
def with_encoders(repeat: int = 0) -> Recording:
    """Return 4 s of joint 2 alone."""
    recording = fe.single_joint(2, repeat).recording_with_encoders
    return replace(recording.slice(SHORT), source=f"run_{repeat}")


def markers(every: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return times (M,) of the camera's clock and marker positions (M, 4, 3) of joint 2's link by its true angle."""
    e = fe.single_joint(2)
    rng = np.random.default_rng(0)
    poses = e.robot.forward_kinematics(e.exact[3])[:, 0]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    positions = (poses[:, None, :3, :3] @ PLACES[..., None])[..., 0] + poses[:, None, :3, 3]
    positions = (positions @ turn.T + np.array([1.0, 2.0, 3.0]))[SHORT][::every]
    return e.link_time[SHORT][::every], positions + MARKER_NOISE * rng.standard_normal(positions.shape)


def record_markers() -> Recording:
    """Return 4 s of joint 2 alone before a camera."""
    time, seen = markers()
    nothing = np.full((len(time), 4), np.nan)
    poses = {f"/markers[{p}]": PoseSeries(time, seen[:, p], nothing) for p in range(seen.shape[1])}
    return replace(fe.single_joint(2).recording, source="filmed", poses=poses).slice(SHORT)


def held_arm() -> tuple[Recording, FlexibleJoint]:
    """Return 4 s of the arm with only joint 2 moving, inertia and gravity by Pinocchio, and the true joint."""
    pin = pytest.importorskip("pinocchio")
    model = pa10.pinocchio_model(pa10.arm_urdf(alone=2, pose=tuple(HELD)))
    data = model.createData()
    zero = np.zeros(1)
    gravity = [pin.computeGeneralizedGravity(model, data, np.array([q])).item() for q in (0.0, np.pi / 2)]
    inertia = (pin.rnea(model, data, zero, zero, np.ones(1)) - pin.rnea(model, data, zero, zero, zero)).item()
    row = replace(pa10.table_one(2), inertia=inertia, gravity_x=-gravity[1], gravity_y=gravity[0])
    series = motor_series(("joint_2",), np.array([fe.SPEED]), 1.0, 8, 3, np.array([0.3]))
    time = np.arange(1000) / fe.RATE
    motor, velocity, acceleration = series.at(time)
    link = link_motion(row, series).at(time, True)
    torque = row.stiffness * (motor - link) + row.motor_inertia * acceleration + row.motor_viscous * velocity
    rng = np.random.default_rng(1)
    positions = np.tile(HELD, (len(time), 1))
    torques = 5.0 * np.ones((len(time), 6))
    positions[:, 1] = motor[:, 0]
    torques[:, 1] = torque[:, 0]
    links = positions.copy()
    links[:, 1] = link[:, 0]
    noise = [1e-4 * rng.standard_normal(positions.shape) for _ in range(3)]
    names = tuple(f"joint_{number}" for number in range(1, 7))
    return (
        Recording(
            names,
            time,
            positions + noise[0],
            np.full_like(positions, np.nan),
            torques + 5e3 * noise[1],
            link_position=links + 5 * noise[2],
            source="held",
        ),
        row,
    )
