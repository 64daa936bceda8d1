"""Simulation of the closed loop, against SciPy's integration of the same equation, and dry friction at standstill."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynid_ros.identification import ServoIdentification
from dynid_ros.identification.servo.closed_loop import ClosedLoops, JointLayout, Normal, output_error
from dynid_ros.identification.servo.servo_identification import MIN_INERTIA_S2
from dynid_ros.identification.servo.servo_result import ServoJoint
from dynid_ros.identification.servo.servo_runs import JointColumns, ServoRun
from dynid_ros.recording.series import CommandPath
from dynid_ros.signals import Motion

INERTIA = 2e-3
VISCOUS = 0.03
DELAY_S = 0.0137
GRID = np.arange(0.0, 3.0, 0.01)


def make_run(position, linear=False, load=0.0):
    time = np.arange(0.0, 3.0, 0.02)
    one = np.ones((len(GRID), 1))
    zero = np.zeros((len(GRID), 1))
    columns = JointColumns(np.hstack([zero, one]), np.hstack([one, zero]), np.zeros((len(GRID), 2)))
    still = Motion(*np.zeros((3, len(GRID), 1)))
    sampled = np.arange(0.5, 2.9, 0.0111)
    command = CommandPath(time, position(time), linear)
    return ServoRun("run", False, sampled, np.zeros((len(sampled), 1)), GRID, still, (command,), (columns,))


def make_loops(run, derivative=False, step=0.001):
    return ClosedLoops([run], [JointLayout(("offset", "inertia"), derivative)], step)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("derivative", [0.0, 0.01])
def test_motion_without_dry_friction_agrees_with_integration(linear, derivative):
    run = make_run(lambda t: 0.3 * np.sin(2 * np.pi * 1.3 * t) + 0.1 * np.sin(20 * t), linear)
    command = run.commands[0]
    if derivative and not linear:
        pytest.skip("steps have no derivative to integrate")

    def equation(t, state):
        rate = (command.at(np.array([t + 1e-6]) - DELAY_S) - command.at(np.array([t - 1e-6]) - DELAY_S))[0] / 2e-6
        error = command.at(np.array([t - DELAY_S]))[0] - state[0] - 0.02 + derivative * rate
        return [state[1], (error - VISCOUS * state[1]) / INERTIA]

    exact = solve_ivp(equation, (0, 3), [0.0, 0.0], t_eval=run.time, max_step=2e-3, rtol=1e-7, atol=1e-9).y[0]
    values = np.array([DELAY_S, VISCOUS, 0.0, *([derivative] if derivative else []), 0.02, INERTIA])
    predicted = make_loops(run, bool(derivative)).predict([values])[0][:, 0]
    assert np.abs(predicted - exact).max() < 2e-4


def test_dry_friction_holds_up_to_its_limit():
    run = make_run(lambda t: np.where(t > 0.2, 0.05, 0.0))
    for coulomb, moves in ((0.0501, False), (0.04, True)):
        position = make_loops(run).predict([np.array([0.0, VISCOUS, coulomb, 0.0, INERTIA])])[0][:, 0]
        assert (np.ptp(position) > 0 or abs(position[-1]) > 1e-3) == moves
        assert 0.0 <= position[-1] <= 0.05


def test_simulation_starts_at_measured_position_and_velocity():
    level = np.ones((len(GRID), 1))
    early = np.array([0.0, 0.001, 0.002, 0.0035])
    run = replace(make_run(np.zeros_like), time=early, motion=Motion(0.2 * level, -level, 0.0 * level))

    def equation(_, state):
        return [state[1], (-state[0] - VISCOUS * state[1]) / INERTIA]

    exact = solve_ivp(equation, (0, 0.004), [0.2, -1.0], t_eval=early, rtol=1e-9, atol=1e-12).y[0]
    position = make_loops(run).predict([np.array([0.0, VISCOUS, 0.0, 0.0, INERTIA])])[0][:, 0]
    np.testing.assert_allclose(position, exact, atol=5e-5)


def test_prediction_with_negative_inertia_is_nan():
    run = make_run(np.sin)
    assert np.isnan(make_loops(run).predict([np.array([0.0, VISCOUS, 0.0, 0.0, -INERTIA])])[0]).all()


def test_normal_equations_use_derivatives_of_the_prediction():
    run = make_run(lambda t: 0.3 * np.sin(8 * t))
    loops = make_loops(run)
    values = np.array([DELAY_S, VISCOUS, 1e-3, 0.01, INERTIA])
    step = np.array([1e-4, 1e-4, 1e-5, 1e-4, 1e-5])
    normal = loops.normals([values], [step])[0]
    columns = [
        (loops.predict([values + change])[0] - loops.predict([values])[0])[:, 0] / change[k]
        for k, change in enumerate(np.diag(step))
    ]
    np.testing.assert_allclose(normal.matrices.sum(axis=0), np.array(columns) @ np.array(columns).T, rtol=1e-6)
    assert normal.counts.sum() == len(run.time)


class LinearLoops:
    """Joints whose positions are linear in their parameters.

    Args:
        columns: derivatives (N, p) of the positions, for each joint.
        positions: positions (N,) of each joint.
    """

    def __init__(self, columns, positions):
        self.columns = columns
        self.positions = positions

    def normals(self, values, steps):
        normals = []
        for A, y, x in zip(self.columns, self.positions, values, strict=True):
            if x is None:
                normals.append(None)
                continue
            residual = y - A @ x
            squares = np.array([residual @ residual])
            normals.append(Normal((A.T @ A)[None], (A.T @ residual)[None], squares, np.array([len(y)])))
        return normals


def test_separates_nearly_parallel_columns_up_to_the_noise():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 5))
    A[:, 4] = A[:, 3] + 4e-3 * A[:, 4]
    truth = np.array([1.0, 2.0, 0.5, 30.0, -20.0])
    noise = 1e-3 * rng.standard_normal(400)
    columns = [A, A[:, :4]]
    loops = LinearLoops(columns, [A @ truth + noise, A[:, :4] @ truth[:4] + noise])
    values, _ = output_error(loops, [np.zeros(5), np.zeros(4)], [np.zeros(5), np.zeros(4)])
    for A, solution, position in zip(columns, values, loops.positions, strict=True):
        exact = np.linalg.lstsq(A, position, rcond=None)[0]
        errors = 1e-3 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
        assert (np.abs(solution - exact) < 0.05 * errors).all()


@pytest.mark.parametrize(("constant", "level"), [(0.3, 0.6), (-0.5, 10 * MIN_INERTIA_S2)])
def test_starts_with_a_positive_inertia(constant, level):
    """Columns: inertia that all poses share, inertia that depends on the pose, and a parameter without inertia."""
    inertia = np.column_stack([np.full(100, 2.0), np.sin(np.linspace(0.0, 6.0, 100)) + 0.1, np.zeros(100)])
    run = SimpleNamespace(columns=[SimpleNamespace(inertia=inertia)])
    layout = JointLayout(("link", "pose", "gravity"), False)
    values = np.array([0.01, 0.2, 0.3, constant, 0.0, 5.0])
    result = ServoIdentification._with_inertia([run], layout, values, 0)
    np.testing.assert_allclose(result, [0.01, 0.2, 0.3, level / 2.0, 0.0, 5.0])


def test_undetermined_rows_have_no_value():
    """Only the sum of two parameters shows."""
    rows = np.random.default_rng(0).normal(size=(20, 30, 4))
    augmented = np.concatenate([rows, rows[:, :, 3:]], axis=2)
    residual = 0.1 * np.random.default_rng(1).normal(size=(20, 30))
    normal = Normal(
        np.einsum("bni,bnj->bij", augmented, augmented),
        np.einsum("bni,bn->bi", augmented, residual),
        np.sum(residual**2, axis=1),
        np.full(20, 30),
    )
    combinations = {"one": np.eye(5)[3], "sum": np.eye(5)[3] + np.eye(5)[4], "viscous": np.eye(5)[1]}
    names = ("lift", JointLayout(("first", "second"), False))
    joint = ServoJoint.of(names, np.ones(5), normal, combinations, 1e-3)
    assert set(joint.rows) == {"sum", "viscous"}
