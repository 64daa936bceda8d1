"""Motion of links behind springs: against LSODA and Pinocchio; its derivatives against finite differences."""

import math

import flexible_experiments as experiments
import flexible_motion
import numpy as np
import pa10
import pytest
from flexible_link import eq_10

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import Layout
from dynid_ros.identification.flexible.friction_directions import STICTION
from dynid_ros.identification.flexible.link_response import Differences, LinkResponse
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import SPRINGS, LinearSpring
from dynid_ros.signals.low_pass import central_differences


def test_derivatives_of_sixth_degree_polynomials_are_exact():
    time = 0.05 * np.arange(30)
    polynomial = np.polynomial.Polynomial([1.0, -2.0, 0.5, 3.0, -1.0, 0.4, 0.2])
    differences = Differences(len(time), 0.05)
    for order in (1, 2):
        np.testing.assert_allclose(
            differences.derivative(polynomial(time), order), polynomial.deriv(order)(time), atol=1e-9
        )


def test_derivatives_equal_central_differences_of_many_columns():
    values = np.random.default_rng(0).standard_normal((40, 2, 3))
    differences = Differences(40, 0.1)
    for order, expected in enumerate(central_differences(values, 0.1), start=1):
        np.testing.assert_allclose(differences.derivative(values, order), expected, atol=1e-9)


STEP = 0.004


def layout_of(robot, springs=None):
    return Layout(robot, robot.base_parameters(), springs or [LinearSpring()] * robot.n_joints, ())


def response_of(layout, motor, tones=None):
    tones = np.zeros((len(motor), 0)) if tones is None else tones
    return LinkResponse(layout.robot, layout.base, motor, STEP, tones)


def true_values(layout, springs):
    """Return the parameters (p,) of linear springs without motors."""
    links = layout.base.project(layout.robot.parameters)
    return np.concatenate([links, springs.coulomb, springs.viscous, springs.stiffness])


def exact(joint_or_arm, seconds):
    """Return layout, true values, motors and exact links at 250 Hz, and the initial state of the links."""
    time = STEP * np.arange(round(seconds / STEP))
    if joint_or_arm == "arm":
        series, links = experiments.six_joint_motion()
        robot, springs = RobotModel.from_urdf(pa10.arm_urdf()), experiments.arm_springs()
    else:
        series, links = experiments.single_joint_motion(joint_or_arm)
        robot = RobotModel.from_urdf(pa10.single_joint_urdf(joint_or_arm))
        springs = flexible_motion.Springs.of([pa10.table_one(joint_or_arm)])
    layout = layout_of(robot)
    start = np.stack([links.at(time[:1], True)[0], links.velocity_at(time[:1], True)[0]])
    return layout, true_values(layout, springs), series.at(time)[0], links.at(time, True), start


@pytest.mark.parametrize("joint", [1, 2, 5])
def test_motion_of_one_joint_agrees_with_integration(joint):
    layout, values, motor, links, start = exact(joint, 3.0)
    response = response_of(layout, motor)
    solution = response.solve(layout.unpack(values), start, motor)
    assert np.sqrt(np.mean((solution.position - links) ** 2)) < 0.1 * experiments.LINK_NOISE
    assert np.abs(solution.position - links).max() < 0.3 * experiments.LINK_NOISE
    assert np.abs(motor - links).max() > 8 * experiments.LINK_NOISE


CURVED_SPRINGS = {
    "cubic": ([9e3, 3e7], lambda d: 9e3 * d + 3e7 * d**3),
    "dead_zone": ([1.19e4, 2e-3], lambda d: 1.19e4 * (d - min(max(d, -2e-3), 2e-3))),
}


@pytest.mark.parametrize("law", CURVED_SPRINGS)
def test_motion_with_nonlinear_spring_agrees_with_integration(law):
    """The stiffness of the spring varies by a factor of ten while friction reverses."""
    values, torque = CURVED_SPRINGS[law]
    row = pa10.table_one(2)
    step = STEP / 2
    series, _ = experiments.single_joint_motion(2)
    derivative = eq_10(row, series, flexible_motion.SMOOTHING, torque)
    begin = [float(series.at([0.0])[0][0, 0]), 0.0]
    links = flexible_motion.integrate(derivative, begin, series.period, math.ceil(series.period / 2.5e-4))
    time = step * np.arange(round(2.0 / step))
    position = links.at(time, True)
    velocity = links.velocity_at(time[:1], True)
    layout = layout_of(RobotModel.from_urdf(pa10.single_joint_urdf(2)), [SPRINGS[law]()])
    true = [*layout.base.project(layout.robot.parameters), row.coulomb, row.viscous, *values]
    response = LinkResponse(layout.robot, layout.base, series.at(time)[0], step, np.zeros((len(time), 0)))
    solution = response.solve(layout.unpack(np.array(true)), np.stack([position[0], velocity[0]]), position)
    assert np.abs(solution.position - position).max() < 2e-5


@pytest.mark.slow
def test_motion_of_six_joints_agrees_with_pinocchio():
    layout, values, motor, links, start = exact("arm", 1.0)
    response = response_of(layout, motor)
    solution = response.solve(layout.unpack(values), start, links)
    assert (np.sqrt(np.mean((solution.position - links) ** 2, axis=0)) < 0.2 * experiments.LINK_NOISE).all()


@pytest.mark.parametrize("law", SPRINGS)
def test_derivatives_equal_finite_differences(law):
    """Motion without Coulomb friction is smooth, except at the limits of a dead zone."""
    layout, _, motor, _, start = exact(2, 1.0)
    layout = layout_of(layout.robot, [SPRINGS[law]()])
    row = pa10.table_one(2)
    springs = {"linear": [], "cubic": [3e7], "dead_zone": [2e-3]}[law]
    values = np.array([*layout.base.project(layout.robot.parameters), 0.0, row.viscous, row.stiffness, *springs])
    response = response_of(layout, motor)
    solution = response.solve(layout.unpack(values), start, motor)
    assert solution.by_parameters.shape == (len(motor), 1, len(values) + 2 + len(STICTION))

    def moved(k, change):
        changed_values = values.copy()
        changed_start = start.copy()
        if k < len(values):
            changed_values[k] += change
        else:
            changed_start[k - len(values), 0] += change
        return response.solve(layout.unpack(changed_values), changed_start, solution.position).position[:, 0]

    coulomb = layout.n_links
    for k in (k for k in range(len(values) + 2) if k != coulomb):
        change = 1e-4 * values[k] if k < len(values) else 1e-5
        expected = (moved(k, change) - moved(k, -change)) / (2 * change)
        error = np.abs(solution.by_parameters[:, 0, k] - expected).max()
        tolerance = 0.03 if law == "dead_zone" else 2e-3
        assert error < tolerance * np.abs(expected).max(), f"column {k}"


def test_derivative_with_respect_to_coulomb_friction():
    """Reversals depend on friction, so the motion is not smooth in it: the finite difference has a large step."""
    layout, values, motor, links, start = exact(2, 2.0)
    response = response_of(layout, motor)
    k = layout.n_links
    change = 0.2 * values[k]
    by = response.solve(layout.unpack(values), start, links).by_parameters[:, 0, k]
    step = change * np.eye(len(values))[k]
    more, less = (response.solve(layout.unpack(values + sign * step), start, links).position[:, 0] for sign in (1, -1))
    expected = (more - less) / (2 * change)
    assert np.sqrt(np.mean((by - expected) ** 2)) < 0.15 * np.sqrt(np.mean(expected**2))


def test_correction_of_the_motor_equals_a_changed_motor():
    """The columns of the correction follow those of the initial state; the motion is smooth."""
    layout, values, motor, links, start = exact(2, 1.0)
    values[layout.n_links] = 0.0
    time = STEP * np.arange(len(motor))
    tones = np.column_stack([np.sin(9 * time), np.cos(9 * time)])
    size = np.array([[2e-4], [-1e-4]])
    parameters = layout.unpack(values)
    response = response_of(layout, motor, tones)
    plain = response.solve(parameters, start, links)
    corrected = response.solve(parameters, start, links, size).position
    moved = response_of(layout, motor + tones @ size).solve(parameters, start, links).position
    np.testing.assert_allclose(corrected, moved, atol=1e-7)
    change = np.abs(moved - plain.position).max()
    assert change > 1e-5
    predicted = plain.position + plain.by_parameters[:, :, -2:] @ size[:, 0]
    np.testing.assert_allclose(predicted, moved, atol=0.02 * change)


def test_stiff_spring_moves_the_link_with_the_motor():
    layout, values, motor, _, _ = exact(5, 1.0)
    stiff = values.copy()
    stiff[-1] *= 30.0
    response = response_of(layout, motor)
    solution = response.solve(layout.unpack(stiff), np.stack([motor[0], (motor[1] - motor[0]) / STEP]), motor)
    np.testing.assert_allclose(solution.position, motor, atol=5e-4)


def test_refuses_springs_too_stiff_for_the_sample_rate():
    """A link that oscillates more than once in two samples cannot be represented."""
    layout, values, motor, _, start = exact(5, 1.0)
    for stiffer in (100.0, 1e4):
        stiff = values.copy()
        stiff[-1] *= stiffer
        response = response_of(layout, motor)
        with pytest.raises(IdentificationError, match="joint_5"):
            response.solve(layout.unpack(stiff), start, motor)
