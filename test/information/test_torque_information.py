"""What torques tell, against Pinocchio's regressor; gradients against differences."""

import numpy as np
import pytest
from numerical_gradient import numerical_gradient
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.torque_information import (
    FRICTION,
    SMOOTHING_FRACTION,
    MotionWithJerk,
    Rows,
    TorqueInformation,
    information_matrix,
)
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters, random_motion
from dynid_ros.model.friction import JointFriction

SPEEDS = np.full(4, 3.0)
NOISE = np.array([1.0, 0.5, 2.0, 0.1])


@pytest.fixture(scope="module")
def text():
    return random_urdf(np.random.default_rng(3), 4, prismatic_share=0.25)


@pytest.fixture(scope="module")
def robot(text):
    return RobotModel.from_urdf(text, tip=TIP)


def motion(seed=0, samples=6):
    return MotionWithJerk(*np.random.default_rng(seed).uniform(-1.0, 1.0, (4, samples, 4)))


@pytest.mark.parametrize("target", FRICTION)
def test_gradient(robot, target):
    source = TorqueInformation(robot, SPEEDS, target=target, noise=NOISE)
    at = motion()
    rows = source.rows(at)
    rng = np.random.default_rng(1)
    weights = Rows(rng.standard_normal(rows.regressor.shape), rng.standard_normal(rows.torque.shape))
    found = source.gradient(weights)

    def value(*arrays):
        rows = source.rows(MotionWithJerk(*arrays))
        return float(np.sum(rows.regressor * weights.regressor) + np.sum(rows.torque * weights.torque))

    for k in range(4):
        expected = numerical_gradient(lambda array, k=k: value(*at[:k], array, *at[k + 1 :]), at[k], 1e-5)
        np.testing.assert_allclose(found[k], expected, atol=1e-6 * max(np.abs(expected).max(), 1.0))


def test_rows_and_torque_are_pinocchios(robot, text):
    source = TorqueInformation(robot, SPEEDS, noise=NOISE)
    at = motion(samples=20)
    truth = PinocchioArm(text, robot.joint_names, robot.gravity)
    names = source.base.names
    rows = source.rows(at)
    for sample in range(20):
        q, qd, qdd = (array[sample] for array in at[:3])
        links = truth.torque_regressor(q, qd, qdd)
        np.testing.assert_allclose(rows.torque[sample], links @ robot.parameters, atol=1e-9)
        drives = {
            "coulomb": np.tanh(qd / (SMOOTHING_FRACTION * SPEEDS)),
            "viscous": qd,
            "offset": np.ones(4),
            "rotor_inertia": qdd,
        }
        for name, row in zip(source.names, rows.regressor[..., sample], strict=True):
            term, *joint = name.split()
            own = robot.joint_names.index(joint[0]) if joint else None
            expected = links[:, names.index(name)] if own is None else np.eye(4)[own] * drives[term]
            np.testing.assert_allclose(row, expected / NOISE, atol=1e-9)


def test_targets(robot):
    links = TorqueInformation(robot, SPEEDS)
    assert sum(name.startswith("offset ") for name in links.names) == 4
    gravity = TorqueInformation(robot, SPEEDS, target="gravity")
    assert not any(name.startswith(("I", "rotor")) for name in gravity.names)
    load = TorqueInformation(robot, SPEEDS, target="load")
    assert all(name.endswith("4") for name in load.names)
    bare = TorqueInformation(robot, SPEEDS, drive=JointFriction.none())
    assert len(bare.names) == robot.base_parameters().rank


def test_another_choice_of_base_tells_the_same(robot):
    """Its condition number may differ, its determinant by a constant only; what is no base is refused."""
    own = TorqueInformation(robot, SPEEDS, drive=JointFriction.none())
    size = robot.parameters.size
    reversed_ = BaseParameters(
        robot.torque_regressor(*random_motion(robot))[..., ::-1], [f"p{i}" for i in range(size)]
    ).columns
    other = TorqueInformation(robot, SPEEDS, drive=JointFriction.none(), columns=size - 1 - reversed_)
    assert set(other.names) != set(own.names)
    differences = [
        np.subtract(*(np.linalg.slogdet(information_matrix(s.rows(motion(seed, 40)))).logabsdet for s in (own, other)))
        for seed in range(3)
    ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)
    wrong = np.arange(len(own.names))
    with pytest.raises(TrajectoryError, match=r"expected \d+ parameters of links that are a base"):
        TorqueInformation(robot, SPEEDS, drive=JointFriction.none(), columns=wrong)
    with pytest.raises(TrajectoryError, match="and no friction"):
        TorqueInformation(robot, SPEEDS, columns=size - 1 - reversed_)


def test_information_over_time_is_the_mean_times_the_duration(robot):
    source = TorqueInformation(robot, SPEEDS, noise=NOISE)
    at = motion(samples=5000)  # more than a block
    time = np.linspace(0.0, 8.0, 5000)
    total = source.over_time(time, *at[:3])
    np.testing.assert_allclose(
        total, 8.0 * information_matrix(source.rows(at)), rtol=2e-3, atol=1e-2 * np.abs(total).max()
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "loads"}, "target is 'loads'; expected links, gravity, load"),
        ({"noise": 0.0}, r"the noise of \S+ is 0; it must be positive and finite"),
        ({"noise": [1.0, 2.0]}, "noise: 2 values; give one for all joints or one for each"),
        ({"drive": JointFriction(stribeck_velocity=0.1)}, "no motion can be designed for the friction terms stribeck"),
    ],
)
def test_senseless_settings(robot, settings, message):
    with pytest.raises(TrajectoryError, match=message):
        TorqueInformation(robot, SPEEDS, **settings)
