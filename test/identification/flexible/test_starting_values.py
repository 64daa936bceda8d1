"""Where a search starts: without noise near the truth, with a wrong link model too."""

import flexible_experiments as experiments
import numpy as np
import pa10
import pytest
import urdf_parts
from flexible_experiments import shortened
from spring_experiments import spring_experiment

from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout
from dynid_ros.identification.flexible.runs import runs
from dynid_ros.identification.flexible.starting_values import LinearSteps
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import LinearSpring
from dynid_ros.recording import Recording

TERMS = ("stiffness", "motor_inertia", "motor_viscous", "coulomb", "viscous")


def solved(experiment, robot=None, terms=MOTOR_TERMS[:2]):
    """Start of a search by parameter name, from encoders of the links."""
    recording = experiment.recording_with_encoders
    robot = robot or experiment.robot
    found = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()] * robot.n_joints, terms)
    return dict(zip(layout.names, LinearSteps(layout, found).solve(), strict=True))


@pytest.mark.parametrize("joint", range(1, 7))
def test_truth_without_noise(joint):
    """Springs and motors within a few per cent; friction is smeared where a light link reverses in few samples."""
    truth = pa10.table_one(joint)
    found = solved(shortened(experiments.single_joint(joint, noise=0.0), 6.0))
    limits = {"stiffness": 0.03, "motor_inertia": 0.03, "motor_viscous": 0.05, "coulomb": 0.1, "viscous": 0.1}
    lightest = joint == 4
    for term, limit in limits.items():
        wider = 5 if lightest and limit > 0.03 else 1
        assert found[f"{term} joint_{joint}"] == pytest.approx(getattr(truth, term), rel=wider * limit), term
    assert found["Iyy1"] == pytest.approx(truth.inertia, rel=0.3 if lightest else 0.03)


def test_motors_do_not_depend_on_what_the_links_are_thought_to_be():
    """Their equation holds no links: a model that is ten times as heavy changes nothing."""
    experiment = shortened(experiments.single_joint(3), 6.0)
    heavy = RobotModel.from_urdf(pa10.single_joint_urdf(3, 10.0))
    usual, other = solved(experiment), solved(experiment, heavy)
    for term in TERMS[:3]:
        assert usual[f"{term} joint_3"] == pytest.approx(other[f"{term} joint_3"], rel=1e-9)


@pytest.mark.parametrize("joint", range(1, 7))
def test_what_can_be_with_noise(joint):
    """Positive inertias, frictions and stiffnesses that a search can start from."""
    truth = pa10.table_one(joint)
    found = solved(shortened(experiments.single_joint(joint), 6.0), terms=MOTOR_TERMS)
    assert 0.2 < found[f"stiffness joint_{joint}"] / truth.stiffness < 2.0
    assert 0.2 < found["Iyy1"] / truth.inertia < 5.0
    assert all(found[f"{term} joint_{joint}"] > 0 for term in (*TERMS, "motor_coulomb"))
    assert np.isfinite(list(found.values())).all()


@pytest.mark.slow
def test_six_joints_without_noise():
    experiment = shortened(experiments.six_joints(noise=0.0), 5.0)
    found, springs = solved(experiment), experiments.arm_springs()
    stiffness = [found[f"stiffness joint_{i}"] for i in range(1, 7)]
    np.testing.assert_allclose(stiffness, springs.stiffness, rtol=0.02)
    motors = [found[f"motor_inertia joint_{i}"] for i in range(1, 7)]
    np.testing.assert_allclose(motors, springs.motor_inertia, rtol=0.02)


def test_noise_of_the_deflection_does_not_make_a_stiff_spring_soft():
    """Torque regressed on noise gives a few thousand N m/rad here."""
    experiment = spring_experiment(2, stiffer=100.0, seconds=6.0)
    recording = experiment.recording
    found = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(experiment.robot, experiment.robot.base_parameters(), [LinearSpring()], MOTOR_TERMS[:2])
    values = dict(zip(layout.names, LinearSteps(layout, found).solve(), strict=True))
    assert values["stiffness joint_2"] > 0.1 * experiment.truth.stiffness
    total = experiment.truth.inertia + experiment.truth.motor_inertia
    assert values["Iyy1"] + values["motor_inertia joint_2"] == pytest.approx(total, rel=0.05)


@pytest.mark.parametrize(("light", "taken"), [(0.08, True), (0.02, False)])
def test_links_that_hardly_have_inertia_are_drawn_to_the_nominal_ones(light, taken):
    """Two links on one axis, of `light` and 1 - `light` kg m²: joint 1 moves both, joint 2 the second.

    The inertia matrix scaled to ones on its diagonal has the least eigenvalue 1 - sqrt(1 - `light`): 0.041 and 0.010.
    """
    inertia = np.array([[1.0, 1.0 - light], [1.0 - light, 1.0 - light]])
    stiffness, motor_inertia, motor_viscous = 4000.0, 0.5, 2.0
    time, pulses = np.arange(1500) / 250.0, 2 * np.pi * np.array([0.5, 1.0, 1.5, 2.5])
    phases = np.array([[0.0, 2.0], [1.0, 5.0], [2.0, 8.0], [3.0, 11.0]])

    def derivative(order):
        """(N, 2), of the links' motion."""
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
    found = runs(recording, recording.time, recording.link_position, same_clock=True)
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()] * 2, MOTOR_TERMS[:2])
    values = LinearSteps(layout, found).solve()[: layout.n_links]
    matrix = layout.base.reduce(layout.inertia_regressor(np.zeros((1, 2))))[0] @ values
    assert np.allclose(matrix, inertia, rtol=0.01) == taken
    scaled = matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))
    assert np.linalg.eigvalsh(scaled).min() > 0.02


def one_axis(inertia):
    """Two links that turn about the same axis, kg m² each."""
    body = f'<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = urdf_parts.link("base", ""), urdf_parts.link("A", body), urdf_parts.link("B", body)
    return urdf_parts.robot(*links, urdf_parts.joint("a", "base", "A"), urdf_parts.joint("b", "A", "B"))
