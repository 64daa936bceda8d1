"""Test that the brakes keep a delayed loop stable with the promised margin."""

import numpy as np
import planar_arm
import pytest

from dynid_ros.control import JointBrake
from dynid_ros.control.joint_brake import mass_matrices, random_poses
from dynid_ros.model import RobotModel

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = [50.0] * 3


def is_unstable(damping, inertia, delay, step=2e-4):
    """Return whether M v' = -B v(t - delay) grows from all joints at 1 rad/s."""
    n_delay = round(delay / step)
    velocities = [np.ones(len(inertia))] * (n_delay + 1)
    solve = np.linalg.inv(inertia)
    for _ in range(round(20.0 * delay / step)):
        velocities.append(velocities[-1] - step * solve @ (damping * velocities[-1 - n_delay]))
    return np.abs(velocities[-1]).max() > 1.0


@pytest.mark.parametrize("delay", [0.005, 0.03])
def test_damping_is_stable_by_a_factor_of_three(delay):
    brake = JointBrake.from_robot(ROBOT, LIMITS)
    inertias = mass_matrices(ROBOT, random_poses(ROBOT, 20))
    damping = np.array(brake.damping(delay))
    assert (damping > 0.0).all()
    assert not any(is_unstable(3.0 * damping, inertia, delay) for inertia in inertias)
    assert any(is_unstable(7.0 * damping, inertia, delay) for inertia in inertias), "the damping is not far too small"


def test_rotors_allow_more_damping():
    bare = JointBrake.from_robot(ROBOT, LIMITS)
    geared = JointBrake.from_robot(ROBOT, LIMITS, rotor_inertia=[0.5] * 3)
    assert all(a > b for a, b in zip(geared.damping_delay, bare.damping_delay, strict=True))


def test_robot_without_masses_has_no_brake_torque():
    text = planar_arm.urdf()
    for mass in planar_arm.MASS:
        text = text.replace(f'<mass value="{mass}"/>', '<mass value="0"/>').replace('"0.01"', '"0"')
    brake = JointBrake.from_robot(RobotModel.from_urdf(text), LIMITS)
    assert brake.torque([1.0] * 3, [0.0] * 3, brake.damping(0.01)) == pytest.approx([0.0] * 3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_brake_acts_above_the_allowed_speed_up_to_its_limit(sign):
    brake = JointBrake((0.1, 0.1), (5.0, 5.0), (5.0, 5.0))
    damping = brake.damping(0.01)
    assert brake.torque([sign * 0.2, sign * 0.5], [0.3, 0.3], damping) == pytest.approx([0.0, -sign * 2.0])
    assert brake.torque([sign * 9.0, 0.0], [0.3, 0.3], damping) == pytest.approx([-sign * 5.0, 0.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_spring_is_limited_to_half_of_the_gravity_torque(sign):
    brake = JointBrake((0.01,), (8.0,), (8.0,))
    assert brake.spring([sign * 0.001], 0.01)[0] == pytest.approx(sign * 0.05)
    assert brake.spring([sign * 1.0], 0.01) == pytest.approx([sign * 4.0])
    assert brake.hold_limit == [4.0]


def test_mass_matrices_are_symmetric_and_positive():
    matrices = mass_matrices(ROBOT, random_poses(ROBOT, 5))
    assert matrices == pytest.approx(np.swapaxes(matrices, 1, 2))
    assert (np.linalg.eigvalsh(matrices) > 0.0).all()
