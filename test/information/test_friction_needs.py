"""Test which friction terms a motion excites; each motion lacks what one term needs."""

import numpy as np
import pytest
from helpers.judged_motions import load_planar, load_ur10, make_motion

from dynid_ros.information.friction_needs import describe_unseen_terms, own_gravity, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction

RATE_HZ = 100.0
ALL_TERMS = JointFriction(
    load=True, spring=True, sliding_length=1e-3, stribeck_velocity=0.1, saturation_velocity=0.8, harmonics=(1,)
)


def find_unseen(friction, samples, robot=None, segments=1):
    """Return (joint, term) of each friction term that a motion in several segments does not excite."""
    robot = robot or load_planar()
    parts = list(zip(*(np.array_split(array, segments) for array in samples), strict=True))
    terms = unseen_terms(robot, FrictionModel(friction, (), robot.parameters), parts)
    return [(term.joint, term.term) for term in terms]


def move_second_joint(position):
    """Return positions, velocities and accelerations (N, 3); only the second joint moves, as `position` (N,)."""
    q = np.column_stack([np.zeros_like(position), position, np.zeros_like(position)])
    qd = np.gradient(q, 1 / RATE_HZ, axis=0)
    return q, qd, np.gradient(qd, 1 / RATE_HZ, axis=0)


def create_time(duration=20.0):
    return np.arange(0.0, duration, 1 / RATE_HZ)


def create_friction(**terms):
    """Return friction with offset and the given terms."""
    return JointFriction(offset=True, **terms)


@pytest.mark.parametrize("segments", [1, 3])
def test_rich_motion_excites_all_terms_except_incomplete_harmonics(segments):
    robot = load_ur10()
    samples = make_motion(robot, width=1.5)
    assert np.all(np.abs(samples[1]).max(axis=0) > 1.0)
    scale = np.where([1, 0, 0, 0, 0, 1], 7.0 / np.ptp(samples[0], axis=0), 1.0)
    samples = [scale * array for array in samples]
    incomplete = np.ptp(samples[0], axis=0) < 0.95 * 2 * np.pi
    assert 0 < incomplete.sum() < 6
    expected = [(name, "harmonics") for name, short in zip(robot.joint_names, incomplete, strict=True) if short]
    assert find_unseen(ALL_TERMS, samples, robot, segments) == expected


def test_harmonics_need_a_whole_period():
    quarter = move_second_joint(0.8 * np.sin(create_time()))
    assert find_unseen(create_friction(harmonics=(4,)), quarter) == [("joint_1", "harmonics"), ("joint_3", "harmonics")]
    assert ("joint_2", "harmonics") in find_unseen(create_friction(harmonics=(3, 4)), quarter)


def test_sliding_length_needs_reversals():
    steady = move_second_joint(0.3 * create_time() + 0.1 * np.sin(create_time()))
    assert find_unseen(create_friction(sliding_length=1e-3), steady) == [("joint_2", "sliding_length")]
    # Fast and wide reversals: the sliding length is passed within one sample.
    fast = move_second_joint(0.5 * np.sin(2 * np.pi * 5.01 * create_time() + 0.1))
    assert find_unseen(create_friction(sliding_length=1e-6), fast) == [("joint_2", "sliding_length")]
    slow = move_second_joint(0.5 * np.sin(2 * np.pi * 0.1 * create_time()))
    assert find_unseen(create_friction(sliding_length=1e-3), slow) == []
    ramp = np.minimum(create_time(), 10.0) * 0.1
    stops = np.where((create_time() > 5) & (create_time() < 8), ramp[500], ramp)
    assert find_unseen(create_friction(sliding_length=1e-3), move_second_joint(stops)) == [
        ("joint_2", "sliding_length")
    ]


def test_viscous_friction_needs_several_speeds():
    triangle = move_second_joint(np.abs((0.2 * create_time() + 1.0) % 2.0 - 1.0))
    triangle[1][:] = 0.2 * np.sign(triangle[1])
    assert find_unseen(JointFriction(), triangle) == [("joint_2", "viscous")]
    assert find_unseen(JointFriction(), move_second_joint(0.5 * np.sin(create_time()))) == []


def test_velocity_scales_need_velocities_below_and_above():
    swing = move_second_joint(0.5 * np.sin(create_time()))
    assert find_unseen(create_friction(stribeck_velocity=0.1, saturation_velocity=0.3), swing) == []
    assert find_unseen(create_friction(stribeck_velocity=20.0), swing) == [("joint_2", "stribeck_velocity")]
    assert find_unseen(create_friction(saturation_velocity=5.0), swing) == [("joint_2", "saturation_velocity")]


def test_load_needs_different_gravity_torques():
    """Joint 2 carries its links about a horizontal axis: only a wide swing varies its gravity torque."""
    for width, lacking in ((0.3, [("joint_2", "load")]), (2.0, [])):
        swing = move_second_joint(width * np.sin(0.3 * create_time(30.0)))
        assert find_unseen(create_friction(load=True), swing) == lacking


def test_springs_need_a_range_of_positions():
    assert find_unseen(create_friction(spring=True), move_second_joint(0.2 * np.sin(create_time()))) == [
        ("joint_2", "spring")
    ]
    assert find_unseen(create_friction(spring=True), move_second_joint(1.2 * np.sin(create_time()))) == []
    # About a horizontal axis a spring resembles the weight of the joint's own link, about a vertical axis it does not.
    narrow = move_second_joint(0.5 * np.sin(create_time()))
    assert own_gravity(load_planar()).tolist() == [False, True, False]
    assert find_unseen(create_friction(spring=True), narrow) == [("joint_2", "spring")]
    assert find_unseen(create_friction(spring=True), [array[:, [1, 0, 2]] for array in narrow]) == []


def test_omits_joints_at_rest_and_groups_joints_by_term():
    friction = FrictionModel(create_friction(sliding_length=1e-3, harmonics=(2,)), (), load_planar().parameters)
    steady = [np.repeat(array[:, 1:2], 3, axis=1) * [1.0, 1.0, 0.0] for array in move_second_joint(0.1 * create_time())]
    terms = unseen_terms(load_planar(), friction, [steady])
    assert {term.joint for term in terms if term.term == "sliding_length"} == {"joint_1", "joint_2"}
    assert any(
        line.startswith("friction of joint_1, joint_2: a sliding length") for line in describe_unseen_terms(terms)
    )
    assert describe_unseen_terms([]) == []
