"""Test that random parameters and files never send a motion beyond its limits.

Only the message is judged, interpolated like a controller does: torques by Pinocchio, heights by a closed form.
"""

import math

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from helpers.excitation_bench import Bench
from helpers.waiting import wait
from scipy.interpolate import BPoly

from dynid_ros.trajectories import Trajectory
from dynid_ros.trajectories.trajectory import move

VELOCITY = 3.0
ACCELERATION = 12.0
JERK = 150.0
TORQUE = (8.0, 24.0, 6.0)
FLOOR = 0.1
LIMITS = {
    "acceleration_limits": [ACCELERATION],
    "jerk_limits": [JERK],
    "torque_limits": list(TORQUE),
    "floor_height": FLOOR,
    "controller_joints": ["joint_3", "joint_1", "joint_2"],
    "workers": 1,
}
ROUNDING = 1.0 + 1e-3
"""Tolerance of the limits: times in a message are rounded to nanoseconds."""
EXAMPLES = 8


pytestmark = pytest.mark.usefixtures("ros")


def draw_parameters(rng: np.random.Generator) -> dict:
    """Return random parameters of a random motion, one of them often invalid."""
    kind = rng.choice(["static_rotation", "fourier", "joint_by_joint", "payload", "poses"])
    values = {
        "motion": str(kind),
        "repeats": int(rng.integers(1, 3)),
        "speed_fraction": rng.uniform(0.1, 1.0),
        "travel_speed_fraction": rng.uniform(0.1, 1.0),
        "torque_fraction": rng.uniform(0.7, 1.0),
        "position_margin": [rng.uniform(0.0, 0.3)],
        "steps": int(rng.integers(3, 6)),
        "dwell": rng.uniform(0.05, 0.3),
        "sweep": rng.uniform(0.5, 6.0),
        "approach": [rng.uniform(0.01, 0.3)],
        "base_frequency": rng.uniform(0.2, 0.6),
        "harmonics": int(rng.integers(2, 6)),
        "periods": int(rng.integers(1, 3)),
        "design_time": rng.uniform(0.0, 1.0),
        "seed": int(rng.integers(0, 1000)),
        "frequencies": rng.uniform(0.3, 4.0, 2).tolist(),
        "cycles": int(rng.integers(1, 3)),
        "amplitude": rng.uniform(0.1, 1.0),
        "reach": rng.uniform(0.2, 2.0),
        "turns": int(rng.integers(1, 3)),
        "count": int(rng.integers(3, 8)),
        "pose": rng.uniform(-1.0, 1.0, 3).tolist() if rng.random() < 0.3 else [math.nan],
    }
    if rng.random() < 0.3:
        name = str(rng.choice([name for name, value in values.items() if isinstance(value, (float, list))]))
        wrong = float(rng.choice([-1.0, 0.0, 50.0, math.nan, math.inf]))
        values[name] = wrong if isinstance(values[name], float) else [wrong]
    return values


def draw_motion_file(rng: np.random.Generator, path) -> dict:
    """Write a random motion to a goal and back, which mostly breaks a limit; return its parameters."""
    joints = rng.permutation(planar_arm.JOINTS).tolist()
    start = rng.uniform(-0.9, 0.3, 3)
    goal = start + rng.uniform(-1.0, 1.0, 3) * rng.uniform(0.2, 2.0)
    duration = rng.uniform(0.6, 3.0)
    motion = Trajectory.join([move(joints, start, goal, duration), move(joints, goal, start, duration)]).sample(20.0)
    if rng.random() < 0.2:
        motion.position[rng.integers(motion.n_samples), rng.integers(3)] += rng.choice([0.01, 1.0, math.nan])
    if rng.random() < 0.2:
        motion.velocity[rng.choice([0, -1, 3])] = rng.uniform(-2.0, 2.0)
    motion.save(path)
    return {"motion": "file", "motion_file": str(path), "repeats": int(rng.integers(1, 3)), "torque_fraction": 1.0}


def check_message(message) -> None:
    """Assert the limits of position, velocity, acceleration, jerk, torque and height in a message."""
    order = [message.joint_names.index(name) for name in planar_arm.JOINTS]
    times = np.array([point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points])
    points = np.array([[p.positions, p.velocities, p.accelerations] for p in message.points])[:, :, order]
    assert np.isfinite(points).all()
    assert np.all(np.diff(times) > 0)
    assert not np.any(points[[0, -1], 1:].round(6))  # at rest
    spline = BPoly.from_derivatives(times, points)
    dense = np.arange(times[0], times[-1], 0.001)
    q, qd, qdd, jerk = (spline.derivative(k)(dense) if k else spline(dense) for k in range(4))
    assert np.abs(q).max() <= 2.5 * ROUNDING
    assert np.abs(qd).max() <= VELOCITY * ROUNDING
    assert np.abs(qdd).max() <= ACCELERATION * ROUNDING
    assert np.abs(jerk).max() <= JERK * ROUNDING
    assert (0.3 - planar_arm.LENGTH * np.sin(q[:, 1])).min() >= FLOOR - 1e-6
    model = pin.buildModelFromXML(planar_arm.urdf())
    data = model.createData()
    torque = np.array([pin.rnea(model, data, *sample) for sample in zip(q[::5], qd[::5], qdd[::5], strict=True)])
    assert np.all(np.abs(torque) <= np.multiply(TORQUE, ROUNDING))


def test_only_motions_within_limits_are_sent(tmp_path):
    rng = np.random.default_rng(0)
    bench = Bench(**LIMITS)
    robot = bench.robot
    sent = []
    try:
        wait(lambda: bench.node.arm._has_controller() and robot.publisher.get_subscription_count())
        for number in range(EXAMPLES):
            is_file = number % 2
            values = draw_motion_file(rng, tmp_path / f"{number}.yaml") if is_file else draw_parameters(rng)
            bench.set(**values)
            before = len(robot.commands)
            designed = bench.call("design")
            if not designed.success:
                assert designed.message
                bench.node._designed = None
                assert not bench.call("start").success
                assert len(robot.commands) == before, values
                continue
            answer = bench.call("start")
            if answer.success:
                wait(lambda count=before: len(robot.commands) > count)
                check_message(robot.commands[before])
                sent.append(values["motion"])
                bench.call("stop")  # before the arm moves
                wait(lambda: not bench.node.arm.moving)
            else:
                assert len(robot.commands) == before, values
    finally:
        bench.close()
    assert 2 <= sent.count("file") < EXAMPLES // 2, sent
    assert len(sent) - sent.count("file") >= EXAMPLES // 4, sent
