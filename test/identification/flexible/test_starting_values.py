"""Starting values of the search: near the truth without noise, and with a wrong link model."""

import flexible_experiments as experiments
import numpy as np
import pa10
import pytest
import urdf_parts
from flexible_experiments import shorten
from spring_experiments import spring_experiment

from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout
from dynid_ros.identification.flexible.runs import runs
from dynid_ros.identification.flexible.starting_values import LinearSteps
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import LinearSpring
from dynid_ros.recording import Recording

TERMS = ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous")


def starting_values(experiment, robot=None, terms=MOTOR_TERMS[:2]):
    """Return the starting values by parameter name, from link encoders."""
    recording = experiment.recording_with_encoders
    robot = robot or experiment.robot
    prepared = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()] * robot.n_joints, terms)
    return dict(zip(layout.names, LinearSteps(layout, prepared).solve(), strict=True))


@pytest.mark.parametrize("joint", range(1, 7))
def test_starting_values_without_noise_are_near_the_truth(joint):
    """The friction of the lightest link is less accurate, because the link reverses within few samples."""
    truth = pa10.table_one(joint)
    start = starting_values(shorten(experiments.single_joint(joint, noise=0.0), 6.0))
    limits = {"stiffness": 0.03, "motor_inertia": 0.03, "motor_viscous": 0.05, "coulomb": 0.1, "viscous": 0.1}
    lightest = joint == 4
    for term, limit in limits.items():
        wider = 5 if lightest and limit > 0.03 else 1
        assert start[f"{term} joint_{joint}"] == pytest.approx(getattr(truth, term), rel=wider * limit), term
    assert start["Iyy1"] == pytest.approx(truth.inertia, rel=0.3 if lightest else 0.03)


def test_motor_parameters_are_independent_of_the_link_model():
    """The equation of a motor contains no link parameters: a model with ten times the mass changes nothing."""
    experiment = shorten(experiments.single_joint(3), 6.0)
    heavy = RobotModel.from_urdf(pa10.single_joint_urdf(3, 10.0))
    usual = starting_values(experiment)
    other = starting_values(experiment, heavy)
    for term in TERMS[:3]:
        assert usual[f"{term} joint_3"] == pytest.approx(other[f"{term} joint_3"], rel=1e-9)


@pytest.mark.parametrize("joint", range(1, 7))
def test_starting_values_with_noise_are_plausible(joint):
    truth = pa10.table_one(joint)
    start = starting_values(shorten(experiments.single_joint(joint), 6.0), terms=MOTOR_TERMS)
    assert 0.2 < start[f"stiffness joint_{joint}"] / truth.stiffness < 2.0
    assert 0.2 < start["Iyy1"] / truth.inertia < 5.0
    assert all(start[f"{term} joint_{joint}"] > 0 for term in (*TERMS, "motor_coulomb"))
    assert np.isfinite(list(start.values())).all()


@pytest.mark.slow
def test_starting_values_of_six_joints_without_noise():
    experiment = shorten(experiments.six_joints(noise=0.0), 5.0)
    start = starting_values(experiment)
    springs = experiments.arm_springs()
    stiffness = [start[f"stiffness joint_{i}"] for i in range(1, 7)]
    np.testing.assert_allclose(stiffness, springs.stiffness, rtol=0.02)
    motors = [start[f"motor_inertia joint_{i}"] for i in range(1, 7)]
    np.testing.assert_allclose(motors, springs.motor_inertia, rtol=0.02)


def test_noise_of_the_deflection_does_not_soften_a_stiff_spring():
    """A regression of torque on noise would yield a few thousand N m/rad."""
    experiment = spring_experiment(2, stiffer=100.0, seconds=6.0)
    recording = experiment.recording
    prepared = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(experiment.robot, experiment.robot.base_parameters(), [LinearSpring()], MOTOR_TERMS[:2])
    values = dict(zip(layout.names, LinearSteps(layout, prepared).solve(), strict=True))
    assert values["stiffness joint_2"] > 0.1 * experiment.truth.stiffness
    total = experiment.truth.inertia + experiment.truth.motor_inertia
    assert values["Iyy1"] + values["motor_inertia joint_2"] == pytest.approx(total, rel=0.05)


@pytest.mark.parametrize(("light", "taken"), [(0.08, True), (0.02, False)])
def test_nearly_singular_inertia_is_regularized_to_the_nominal_one(light, taken):
    """Two links on one axis have `light` and 1 - `light` kg m²; joint 1 moves both, joint 2 the second.

    The scaled inertia matrix, with ones on its diagonal, has the smallest eigenvalue 1 - sqrt(1 - `light`).
    """
    inertia = np.array([[1.0, 1.0 - light], [1.0 - light, 1.0 - light]])
    stiffness = 4000.0
    motor_inertia = 0.5
    motor_viscous = 2.0
    time = np.arange(1500) / 250.0
    pulses = 2 * np.pi * np.array([0.5, 1.0, 1.5, 2.5])
    phases = np.array([[0.0, 2.0], [1.0, 5.0], [2.0, 8.0], [3.0, 11.0]])

    def derivative(order):
        """Return a derivative (N, 2) of the link motion."""
        turned = np.multiply.outer(time, pulses)[:, :, None] + phases + order * np.pi / 2
        return np.einsum("nki,k->ni", np.sin(turned), 0.5 * pulses ** (order - 1))

    motor, velocity, acceleration = (
        derivative(order) + derivative(order + 2) @ inertia / stiffness for order in range(3)
    )
    torque = derivative(2) @ inertia + motor_inertia * acceleration + motor_viscous * velocity
    recording = Recording(
        ("a", "b"), time, motor, np.full_like(motor, np.nan), torque, link_position=derivative(0), source="one axis"
    )
    robot = RobotModel.from_urdf(one_axis(0.5))
    prepared = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()] * 2, MOTOR_TERMS[:2])
    values = LinearSteps(layout, prepared).solve()[: layout.n_links]
    matrix = layout.base.reduce(layout.inertia_regressor(np.zeros((1, 2))))[0] @ values
    assert np.allclose(matrix, inertia, rtol=0.01) == taken
    scaled = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    assert np.linalg.eigvalsh(scaled).min() > 0.02


def one_axis(inertia):
    """Return the URDF of two links that rotate about the same axis, with the same inertia, kg m²."""
    body = f'<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = urdf_parts.link("base", ""), urdf_parts.link("A", body), urdf_parts.link("B", body)
    return urdf_parts.robot(*links, urdf_parts.joint("a", "base", "A"), urdf_parts.joint("b", "A", "B"))
