"""Residuals of a recording: interpolation of the link motion, and derivatives with respect to the parameters."""

import flexible_experiments as experiments
import numpy as np
import pa10
import pytest

from dynid_ros.identification.flexible.flexible_parameters import Layout
from dynid_ros.identification.flexible.friction_directions import STICTION
from dynid_ros.identification.flexible.run_residuals import (
    INTERPOLATION_NODES,
    N_RUN_VALUES,
    RunResiduals,
    RunTerms,
    interpolation,
)
from dynid_ros.identification.flexible.runs import runs
from dynid_ros.model import RobotModel
from dynid_ros.model.spring import LinearSpring

QUINTIC = np.polynomial.Polynomial([0.3, -1.0, 0.7, 0.2, -0.5, 0.1])


@pytest.mark.parametrize("n_samples", [INTERPOLATION_NODES, 20])
def test_interpolation_is_exact_up_to_the_ends(n_samples):
    """Six nodes represent a polynomial of degree 5; at the ends they are the six outermost."""
    start = -0.4
    step = 0.25
    times = start + step * np.linspace(0.0, n_samples - 1.0, 101)
    first, weights = interpolation(start, step, n_samples, times)
    assert first[0] == 0
    assert first[-1] == n_samples - INTERPOLATION_NODES
    samples = QUINTIC(start + step * np.arange(n_samples))
    values = np.sum(weights * samples[first[:, None] + np.arange(INTERPOLATION_NODES)], axis=1)
    np.testing.assert_allclose(values, QUINTIC(times), atol=1e-12 * np.abs(samples).max())


def test_interpolation_uses_the_surrounding_samples():
    first, _ = interpolation(0.0, 1.0, 20, np.array([9.0, 9.5, 9.99]))
    assert first.tolist() == [7, 7, 7]


MAX_ERROR_WITH_FRICTION = 0.07
"""Relative error of a column where friction reverses: the march resolves reversal times to a fraction of its step."""
MAX_SMOOTH_ERROR = 2e-3
"""Relative error of a column without friction."""
MAX_STICTION_ERROR = 0.4
"""Relative error of the columns of the initial state and of stiction, whose effects are shorter than a step."""


def residuals_of(joint, seconds, coulomb):
    """Return the residuals of a short experiment with a drifting camera clock, and the true parameters."""
    experiment = experiments.shorten(experiments.single_joint(joint), seconds)
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(joint))
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()])
    links = experiment.links
    (run,) = runs(experiment.recording, links.time, links.position, same_clock=False, offset=experiments.CLOCK_OFFSET)
    residuals = RunResiduals(layout, run, RunTerms(zero=True, clock=True, drift=True))
    residuals.refine()
    row = pa10.table_one(joint)
    values = np.concatenate([layout.base.project(robot.parameters), np.zeros(len(layout.names) - layout.n_links)])
    truth = {name: getattr(row, name) for name in ("coulomb", "viscous", "stiffness", "motor_inertia", "motor_viscous")}
    for name, value in (truth | {"coulomb": coulomb * row.coulomb, "motor_coulomb": 3.0, "torque_offset": 1.0}).items():
        values[layout.index(name)] = value
    return residuals, values


def spectra(residuals, values, run_values):
    """Return the residual spectra (B, 2) in units of the noise of links and torques."""
    channels = residuals.channels(values, run_values)
    bins = residuals.run.compared.bins
    return np.stack([channel.residual[bins] for channel in channels], axis=1) / [experiments.LINK_NOISE, 0.5]


STIFF_CONTACT = (1e-3, 2e-5, 2e-4)
"""Creep, bend and lead of almost ideal stiction."""
SOFT_CONTACT = (2e-2, 5e-4, 5e-3)


@pytest.mark.parametrize(
    ("joint", "coulomb", "stiction"),
    [
        *((2, 0.0, STIFF_CONTACT), (2, 1.0, SOFT_CONTACT)),
        *(pytest.param(joint, 1.0, STIFF_CONTACT, marks=pytest.mark.slow) for joint in (1, 2, 4, 5)),
        pytest.param(4, 1.0, SOFT_CONTACT, marks=pytest.mark.slow),
    ],
)
def test_columns_equal_finite_differences_of_the_residuals(joint, coulomb, stiction):
    residuals, values = residuals_of(joint, 1.2, coulomb)
    run_values = residuals.start()
    run_values[2:N_RUN_VALUES] = stiction
    run_values[0] = residuals.motion(values, run_values).position[20, 0]
    run_values[1] = -0.02
    channels = residuals.channels(values, run_values)
    columns = np.stack([channel.columns for channel in channels], axis=1) / np.array([[experiments.LINK_NOISE], [0.5]])
    residuals.keep()
    named = ["position", "velocity", *STICTION, *residuals.terms.names(1)]
    names = [*residuals.layout.names, *named, *(f"tone {k}" for k in range(residuals.size - len(named)))]
    changes = np.concatenate([2e-3 * np.maximum(np.abs(values), 0.1), np.full(residuals.size, 1e-5)])
    changes[names.index("velocity")] = 1e-3
    changes[names.index("clock_offset")] = 1e-4
    changes[[names.index(term) for term in STICTION]] = 0.05 * np.array(stiction) * (coulomb > 0)
    assert columns.shape[2] == len(names)
    if not coulomb:
        changes[names.index(f"coulomb joint_{joint}")] = 0.0  # zero is the lower limit of friction
    wrong = {}
    for k in np.flatnonzero(changes):
        step = changes[k] * np.eye(len(names))[k]
        first, last = (
            spectra(residuals, values + sign * step[: len(values)], run_values + sign * step[len(values) :])
            for sign in (-1, 1)
        )
        expected = (first - last) / (2 * changes[k])
        wrong[names[k]] = np.linalg.norm(columns[:, :, k] - expected) / np.linalg.norm(expected)
    limits = dict.fromkeys(wrong, MAX_ERROR_WITH_FRICTION if coulomb else MAX_SMOOTH_ERROR)
    if coulomb:
        limits.update(dict.fromkeys((*STICTION, "position", "velocity"), MAX_STICTION_ERROR))
    assert {name: error for name, error in wrong.items() if not error < limits[name]} == {}
