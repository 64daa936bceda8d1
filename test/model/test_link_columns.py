"""Columns of links and friction, against Pinocchio's torques and the friction model."""

import numpy as np
import pytest
from link_problems import Fourier, chain, rigid_torque, ur10
from pinocchio_arm import PinocchioArm

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.links.friction_choice import FrictionMenu
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.gravity import turn_axes, turned
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.simulation.descriptions import demo_arm_urdf

PLAIN = JointFriction(offset=True, smoothing=0.02)
EVERYTHING = (
    PLAIN,
    JointFriction(offset=True, rotor_inertia=True, asymmetric=True, smoothing=0.05),
    JointFriction(stribeck_velocity=0.2, smoothing=0.02, offset=True),
    JointFriction(dead_zone=0.1, viscous=False),
    JointFriction(sliding_length=0.01, load=True, spring=True, saturation_velocity=2.0, stribeck_velocity=0.1),
    JointFriction(sliding_length=0.03, harmonics=(1.0, 3.0)),
    JointFriction.none(),
)


def motion(robot, seed=0, size=1.0):
    return Fourier(robot.n_joints, seed, base=0.5, size=size)(np.linspace(0, 7, 40))


def torque_of(columns: LinkColumns, x: np.ndarray, chosen: np.ndarray, samples) -> np.ndarray:
    """Return the torque (N, n) of the chosen columns with values x."""
    value = np.full(columns.size, np.nan)
    value[chosen] = x
    value[np.isnan(value)] = 0.0
    rows = columns.rows(*samples)
    return np.stack([matrix @ value[indices] for matrix, indices in zip(rows, columns.of_joint, strict=True)], axis=1)


@pytest.mark.parametrize("arm", [chain, ur10])
def test_base_columns_yield_pinocchios_torque(arm):
    robot = arm()
    columns = LinkColumns(robot, [(JointFriction.none(),)] * robot.n_joints)
    assert columns.size == columns.n_inertial == robot.base_parameters().rank
    samples = motion(robot)
    torque = torque_of(columns, columns.base.project(robot.parameters), np.arange(columns.size), samples)
    np.testing.assert_allclose(torque, rigid_torque(robot, *samples), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("coupled", [(), ((4, 5),), ((5, 4), (0, 2))])
def test_every_choice_equals_regressor_and_friction_model(coupled):
    robot = ur10()
    columns = LinkColumns(robot, [EVERYTHING] * 6, coupled)
    samples = motion(robot)
    rng = np.random.default_rng(0)
    for _ in range(12):
        choice = tuple(EVERYTHING[i] for i in rng.integers(0, len(EVERYTHING), 6))
        friction = columns.friction(choice)
        assert friction.joints == choice
        names = friction.names(robot)
        chosen = columns.chosen(choice)
        assert len(chosen) == len(set(chosen)) == columns.n_inertial + len(names)
        links = rng.normal(size=60)
        coefficients = rng.normal(size=len(names))
        expected = robot.torque_regressor(*samples) @ links + friction.of_motion(robot, *samples) @ coefficients
        x = np.concatenate([columns.base.project(links), coefficients])
        np.testing.assert_allclose(torque_of(columns, x, chosen, samples), expected, rtol=1e-8, atol=1e-8)


def test_direction_of_a_pair_has_the_smoothing_of_its_first_joint():
    robot = chain()
    sharp = JointFriction(smoothing=0.01)
    soft = JointFriction(smoothing=0.5)
    columns = LinkColumns(robot, [(sharp, soft)] * 3, [(1, 2)])
    samples = motion(robot)
    for choice in ((sharp, sharp, soft), (sharp, soft, sharp)):
        x = np.zeros(len(columns.chosen(choice)))
        x[-1] = 1.0  # coupling_coulomb
        expected = np.tanh((samples[1][:, 1] + samples[1][:, 2]) / choice[1].smoothing)
        torque = torque_of(columns, x, columns.chosen(choice), samples)
        np.testing.assert_allclose(torque, expected[:, None] * [0, 1, 1], atol=1e-12)


def test_candidates_share_columns_of_equal_terms():
    robot = chain()
    columns = LinkColumns(robot, [EVERYTHING] * 3)
    # coulomb 0.02; viscous; offset; 4 asymmetric; rotor; stribeck; coulomb with a dead zone; coulomb, stribeck, load,
    # spring, viscous that saturates; coulomb, four harmonics
    assert columns.size - columns.n_inertial == 3 * 20
    grid = LinkColumns(robot, [FrictionMenu.for_joint(1.0).candidates] * 3)
    # two viscous, offset, rotor, spring; for each of seven directions coulomb, three Stribeck, load
    assert grid.size - grid.n_inertial == 3 * (5 + 9 * 5)


def test_windows_continue_the_memory_of_a_run():
    robot = chain()
    columns = LinkColumns(robot, [EVERYTHING] * 3, [(1, 2)])
    samples = motion(robot, size=0.02)
    whole = columns.rows(*samples)
    memory = columns.memory(samples[0])
    assert len(memory) == 3 * 2 + 2
    for window in (slice(0, 11), slice(11, 40)):
        before = {key: direction[window] for key, direction in memory.items()}
        for joint, part in zip(whole, columns.rows(*(x[window] for x in samples), before), strict=True):
            np.testing.assert_allclose(part, joint[window], rtol=1e-12, atol=1e-15)


def test_load_term_uses_the_configured_links():
    robot = chain()
    friction = FrictionModel(JointFriction(load=True), load_parameters=2.0 * robot.parameters)
    columns = LinkColumns.of(robot, friction)
    samples = motion(robot)
    torque = torque_of(columns, np.eye(columns.size)[columns.n_inertial + 2], np.arange(columns.size), samples)
    expected = 2.0 * np.abs(rigid_torque(robot, *samples)[:, 0]) * np.sign(samples[1][:, 0])
    np.testing.assert_allclose(torque[:, 0], expected, rtol=1e-9)
    assert columns.friction(columns.first).load_parameters == pytest.approx(2.0 * robot.parameters)


def test_joints_have_no_columns_of_proximal_links():
    robot = ur10()
    columns = LinkColumns(robot, [(PLAIN,)] * 6)
    rows = robot.torque_regressor(*motion(robot))[..., columns.base.columns]
    for j, indices in enumerate(columns.of_joint):
        inertial = indices[indices < columns.n_inertial]
        left_out = np.setdiff1d(np.arange(columns.n_inertial), inertial)
        assert np.abs(rows[:, j, left_out]).max(initial=0) < 1e-9
        assert np.array_equal(indices[len(inertial) :], columns.n_inertial + 3 * j + np.arange(3))
    assert len(columns.of_joint[5]) < 15 < 30 < len(columns.of_joint[0])


def test_mask_of_nonnegative_coefficients():
    robot = chain()
    candidates = [EVERYTHING[1:3], EVERYTHING[:1], EVERYTHING[-1:]]
    columns = LinkColumns(robot, candidates, [(0, 1)])
    choice = (EVERYTHING[2], *columns.first[1:])
    names = columns.friction(choice).names(robot)
    expected = [name.startswith(("coulomb ", "viscous ", "stribeck ")) for name in names]
    assert sum(expected) == 5
    assert list(columns.nonnegative(choice)) == [False] * columns.n_inertial + expected
    asymmetric = columns.nonnegative(columns.first)[columns.n_inertial :]
    assert list(asymmetric[:6]) == [True] * 4 + [False, True]  # an offset may be negative, a rotor may not


@pytest.mark.parametrize("coupled", [(), ((1, 2),)])
def test_rows_of_a_regressor_equal_those_of_a_motion(coupled):
    robot = chain()
    columns = LinkColumns(robot, [(EVERYTHING[1],), (EVERYTHING[2],), (EVERYTHING[3],)], coupled)
    samples = motion(robot)
    friction = FrictionModel([EVERYTHING[1], EVERYTHING[2], EVERYTHING[3]], coupled)
    whole = np.concatenate([robot.torque_regressor(*samples), friction.of_motion(robot, *samples)], axis=-1)
    for rows, expected in zip(columns.rows_of(whole), columns.rows(*samples), strict=True):
        np.testing.assert_allclose(rows, expected, atol=1e-12)
    several = LinkColumns(robot, [EVERYTHING] * 3)
    with pytest.raises(IdentificationError, match="friction that is given, not 'auto'"):
        several.rows_of(whole)


def test_gravity_rotation_columns_equal_finite_differences():
    robot = RobotModel.from_urdf(demo_arm_urdf())
    q = np.random.default_rng(0).uniform(-2, 2, (5, robot.n_joints))
    columns = LinkColumns(robot, [(JointFriction(),)] * robot.n_joints, turned=robot.parameters)
    step = 1e-5
    rows = columns.rows(q, 0 * q, 0 * q)
    for column, axis in zip(columns.turns, turn_axes(robot.gravity), strict=True):
        sides = [
            PinocchioArm(robot.urdf, robot.joint_names, turned(robot.gravity, sign * step * axis)) for sign in (1, -1)
        ]
        torques = [np.array([arm.gravity_torque(pose) for pose in q]) for arm in sides]
        for j, indices in enumerate(columns.of_joint):
            expected = (torques[0] - torques[1])[:, j] / (2 * step)
            np.testing.assert_allclose(rows[j][:, np.flatnonzero(indices == column)[0]], expected, atol=1e-6)


def test_lever_at_the_base_keeps_its_columns():
    """The joint is at the origin of the base, so the only length of the arm is that of its center of mass."""
    robot = RobotModel.from_urdf(
        '<robot name="r"><link name="b"/><link name="l"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>'
        '<inertia ixx="1e-3" iyy="1e-2" izz="1e-2" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
        'type="continuous"><parent link="b"/><child link="l"/><axis xyz="0 1 0"/></joint></robot>'
    )
    columns = LinkColumns.of(robot, FrictionModel(JointFriction()))
    assert columns.above(np.array([1e-3])).base.rank == columns.base.rank == 3
