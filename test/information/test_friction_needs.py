"""What a motion must have to show a friction term: each term on a motion that lacks just that."""

import numpy as np
import pytest
from helpers.judged_motions import motion, planar, ur10

from dynid_ros.information.friction_needs import describe_unseen_terms, own_gravity, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction

RATE = 100.0
EVERY = JointFriction(
    load=True, spring=True, sliding_length=1e-3, stribeck_velocity=0.1, saturation_velocity=0.8, harmonics=(1,)
)


def unseen(friction, samples, robot=None, stretches=1):
    """Joint and term of what is not shown, of a motion in so many stretches."""
    robot = robot or planar()
    parts = list(zip(*(np.array_split(each, stretches) for each in samples), strict=True))
    found = unseen_terms(robot, FrictionModel(friction, (), robot.parameters), parts)
    return [(each.joint, each.term) for each in found]


def of_joint(position):
    """Positions, velocities and accelerations (N, 3) of which the second joint moves as `position` (N,)."""
    q = np.column_stack([np.zeros_like(position), position, np.zeros_like(position)])
    qd = np.gradient(q, 1 / RATE, axis=0)
    return q, qd, np.gradient(qd, 1 / RATE, axis=0)


def time(duration=20.0):
    return np.arange(0.0, duration, 1 / RATE)


def alone(**terms):
    return JointFriction(offset=True, **terms)


@pytest.mark.parametrize("stretches", [1, 3])
def test_a_rich_motion_shows_all_but_harmonics_of_less_than_a_turn(stretches):
    robot = ur10()
    samples = motion(robot, width=1.5)
    assert np.all(np.abs(samples[1]).max(axis=0) > 1.0)
    size = np.where([1, 0, 0, 0, 0, 1], 7.0 / np.ptp(samples[0], axis=0), 1.0)
    samples = [size * each for each in samples]
    found = unseen(EVERY, samples, robot, stretches)
    short = np.ptp(samples[0], axis=0) < 0.95 * 2 * np.pi
    assert 0 < short.sum() < 6
    assert found == [(name, "harmonics") for name, less in zip(robot.joint_names, short, strict=True) if less]


def test_a_harmonic_needs_a_whole_wave():
    quarter = of_joint(0.8 * np.sin(time()))
    assert unseen(alone(harmonics=(4,)), quarter) == [("joint_1", "harmonics"), ("joint_3", "harmonics")]
    assert ("joint_2", "harmonics") in unseen(alone(harmonics=(3, 4)), quarter)


def test_memory_needs_reversals():
    steady = of_joint(0.3 * time() + 0.1 * np.sin(time()))
    assert unseen(alone(sliding_length=1e-3), steady) == [("joint_2", "sliding_length")]
    # Reversals of a fast and wide swing: the way of the memory is over before a sample.
    fast = of_joint(0.5 * np.sin(2 * np.pi * 5.01 * time() + 0.1))
    assert unseen(alone(sliding_length=1e-6), fast) == [("joint_2", "sliding_length")]
    slow = of_joint(0.5 * np.sin(2 * np.pi * 0.1 * time()))
    assert unseen(alone(sliding_length=1e-3), slow) == []
    way = np.minimum(time(), 10.0) * 0.1
    rest = np.where((time() > 5) & (time() < 8), way[500], way)
    assert unseen(alone(sliding_length=1e-3), of_joint(rest)) == [("joint_2", "sliding_length")]


def test_viscous_friction_needs_several_speeds():
    there_and_back = np.abs((0.2 * time() + 1.0) % 2.0 - 1.0)
    there_and_back = of_joint(there_and_back)
    there_and_back[1][:] = 0.2 * np.sign(there_and_back[1])
    assert unseen(JointFriction(), there_and_back) == [("joint_2", "viscous")]
    assert unseen(JointFriction(), of_joint(0.5 * np.sin(time()))) == []


def test_shapes_of_velocity_need_velocities_on_both_sides_of_theirs():
    swing = of_joint(0.5 * np.sin(time()))
    assert unseen(alone(stribeck_velocity=0.1, saturation_velocity=0.3), swing) == []
    assert unseen(alone(stribeck_velocity=20.0), swing) == [("joint_2", "stribeck_velocity")]
    assert unseen(alone(saturation_velocity=5.0), swing) == [("joint_2", "saturation_velocity")]


def test_load_needs_different_gravity_torques():
    """Joint 2 turns its links' weight about a level axis: a narrow swing loads it equally, a wide one does not."""
    for width, lacking in ((0.3, [("joint_2", "load")]), (2.0, [])):
        assert unseen(alone(load=True), of_joint(width * np.sin(0.3 * time(30.0)))) == lacking


def test_a_spring_needs_a_range():
    assert unseen(alone(spring=True), of_joint(0.2 * np.sin(time()))) == [("joint_2", "spring")]
    assert unseen(alone(spring=True), of_joint(1.2 * np.sin(time()))) == []
    # About a level axis it looks like the weight of the joint's own link, about an upright one it does not.
    narrow = of_joint(0.5 * np.sin(time()))
    assert own_gravity(planar()).tolist() == [False, True, False]
    assert unseen(alone(spring=True), narrow) == [("joint_2", "spring")]
    assert unseen(alone(spring=True), [each[:, [1, 0, 2]] for each in narrow]) == []


def test_joints_that_stand_are_not_judged_and_sentences_gather_joints():
    friction = FrictionModel(alone(sliding_length=1e-3, harmonics=(2,)), (), planar().parameters)
    steady = [np.repeat(each[:, 1:2], 3, axis=1) * [1.0, 1.0, 0.0] for each in of_joint(0.1 * time())]
    found = unseen_terms(planar(), friction, [steady])
    assert {each.joint for each in found if each.term == "sliding_length"} == {"joint_1", "joint_2"}
    assert any(
        line == "friction of joint_1, joint_2: a sliding length shows where the joint reverses, and it never does; "
        "record slow reversals of it, with rests, or leave sliding_length out"
        for line in describe_unseen_terms(found)
    )
    assert describe_unseen_terms([]) == []
