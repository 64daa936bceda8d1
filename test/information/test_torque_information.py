"""Compare the torque regressor with Pinocchio's and its gradients with finite differences."""

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


def draw_motion(seed=0, samples=6):
    """Return random positions, velocities, accelerations and jerks of `samples` samples."""
    return MotionWithJerk(*np.random.default_rng(seed).uniform(-1.0, 1.0, (4, samples, 4)))


@pytest.mark.parametrize("target", FRICTION)
def test_torque_gradient_matches_finite_differences(robot, target):
    source = TorqueInformation(robot, SPEEDS, target=target, noise=NOISE)
    sample_motion = draw_motion()
    rows = source.rows(sample_motion)
    rng = np.random.default_rng(1)
    weights = Rows(rng.standard_normal(rows.regressor.shape), rng.standard_normal(rows.torque.shape))
    gradient = source.gradient(weights)

    def value(*arrays):
        rows = source.rows(MotionWithJerk(*arrays))
        return float(np.sum(rows.regressor * weights.regressor) + np.sum(rows.torque * weights.torque))

    for k in range(4):
        expected = numerical_gradient(
            lambda array, k=k: value(*sample_motion[:k], array, *sample_motion[k + 1 :]), sample_motion[k], 1e-5
        )
        np.testing.assert_allclose(gradient[k], expected, atol=1e-6 * max(np.abs(expected).max(), 1.0))


def test_regressor_and_torque_match_pinocchio(robot, text):
    source = TorqueInformation(robot, SPEEDS, noise=NOISE)
    sample_motion = draw_motion(samples=20)
    truth = PinocchioArm(text, robot.joint_names, robot.gravity)
    names = source.base.names
    rows = source.rows(sample_motion)
    for sample in range(20):
        q, qd, qdd = (array[sample] for array in sample_motion[:3])
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
            index = robot.joint_names.index(joint[0]) if joint else None
            expected = links[:, names.index(name)] if index is None else np.eye(4)[index] * drives[term]
            np.testing.assert_allclose(row, expected / NOISE, atol=1e-9)


def test_targets_select_parameters(robot):
    links = TorqueInformation(robot, SPEEDS)
    assert sum(name.startswith("offset ") for name in links.names) == 4
    gravity = TorqueInformation(robot, SPEEDS, target="gravity")
    assert not any(name.startswith(("I", "rotor")) for name in gravity.names)
    load = TorqueInformation(robot, SPEEDS, target="load")
    assert all(name.endswith("4") for name in load.names)
    bare = TorqueInformation(robot, SPEEDS, drive=JointFriction.none())
    assert len(bare.names) == robot.base_parameters().rank


def test_information_does_not_depend_on_the_choice_of_base(robot):
    """Another base may change the condition number, but changes the log determinant by a constant only."""
    default = TorqueInformation(robot, SPEEDS, drive=JointFriction.none())
    size = robot.parameters.size
    reversed_ = BaseParameters(
        robot.torque_regressor(*random_motion(robot))[..., ::-1], [f"p{i}" for i in range(size)]
    ).columns
    alternative = TorqueInformation(robot, SPEEDS, drive=JointFriction.none(), columns=size - 1 - reversed_)
    assert set(alternative.names) != set(default.names)
    differences = [
        np.subtract(
            *(
                np.linalg.slogdet(information_matrix(s.rows(draw_motion(seed, 40)))).logabsdet
                for s in (default, alternative)
            )
        )
        for seed in range(3)
    ]
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)
    wrong = np.arange(len(default.names))
    with pytest.raises(TrajectoryError, match=r"expected \d+ parameters of links that are a base"):
        TorqueInformation(robot, SPEEDS, drive=JointFriction.none(), columns=wrong)
    with pytest.raises(TrajectoryError, match="and no friction"):
        TorqueInformation(robot, SPEEDS, columns=size - 1 - reversed_)


def test_information_over_time_is_mean_times_duration(robot):
    source = TorqueInformation(robot, SPEEDS, noise=NOISE)
    sample_motion = draw_motion(samples=5000)  # more than one block
    time = np.linspace(0.0, 8.0, 5000)
    total = source.over_time(time, *sample_motion[:3])
    np.testing.assert_allclose(
        total, 8.0 * information_matrix(source.rows(sample_motion)), rtol=2e-3, atol=1e-2 * np.abs(total).max()
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
def test_refuses_invalid_information_settings(robot, settings, message):
    with pytest.raises(TrajectoryError, match=message):
        TorqueInformation(robot, SPEEDS, **settings)
