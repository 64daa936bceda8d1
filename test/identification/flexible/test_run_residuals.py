"""Where residuals take the links' motion from, and how they depend on the parameters."""

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
def test_interpolation_is_exact_from_the_first_sample_to_the_last(n_samples):
    """Six nodes carry a polynomial of degree 5; at the ends they are the six outermost."""
    start, step = -0.4, 0.25
    at = start + step * np.linspace(0.0, n_samples - 1.0, 101)
    first, weights = interpolation(start, step, n_samples, at)
    assert first[0] == 0
    assert first[-1] == n_samples - INTERPOLATION_NODES
    samples = QUINTIC(start + step * np.arange(n_samples))
    found = np.sum(weights * samples[first[:, None] + np.arange(INTERPOLATION_NODES)], axis=1)
    np.testing.assert_allclose(found, QUINTIC(at), atol=1e-12 * np.abs(samples).max())


def test_interpolation_takes_the_samples_around():
    first, _ = interpolation(0.0, 1.0, 20, np.array([9.0, 9.5, 9.99]))
    assert first.tolist() == [7, 7, 7]


# Derivatives beside differences: small steps where no link turns, larger ones across turns and rests.


ACROSS, WITHIN, STUCK = 0.07, 2e-3, 0.4
"""Errors of a column, in parts of it: where friction's turns move, whose times the march knows to parts of its step,
where nothing turns, and of the start and of how joints stick, which are forgotten or shorter than its steps."""


def residuals_of(joint, seconds, coulomb):
    """Residuals of a short experiment, camera with a drifting clock, and the true parameters."""
    experiment = experiments.shortened(experiments.single_joint(joint), seconds)
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


def spectra(residuals, values, own):
    """(B, 2) in units of the noise of links and torques."""
    found = residuals.channels(values, own)
    bins = residuals.run.compared.bins
    return np.stack([channel.residual[bins] for channel in found], axis=1) / [experiments.LINK_NOISE, 0.5]


STICKS, SOFT = (1e-3, 2e-5, 2e-4), (2e-2, 5e-4, 5e-3)
"""Creep, bend and lead: next to none, and much."""


@pytest.mark.parametrize(
    ("joint", "coulomb", "stiction"),
    [
        *((2, 0.0, STICKS), (4, 1.0, STICKS), (2, 1.0, SOFT)),
        *(pytest.param(joint, 1.0, STICKS, marks=pytest.mark.slow) for joint in (1, 2, 5)),
        pytest.param(4, 1.0, SOFT, marks=pytest.mark.slow),
    ],
)
def test_columns_are_those_of_the_residuals(joint, coulomb, stiction):
    residuals, values = residuals_of(joint, 2.0, coulomb)
    own = residuals.start()
    own[2:N_RUN_VALUES] = stiction
    own[0], own[1] = residuals.motion(values, own).position[20, 0], -0.02
    channels = residuals.channels(values, own)
    columns = np.stack([channel.columns for channel in channels], axis=1) / np.array([[experiments.LINK_NOISE], [0.5]])
    residuals.keep()
    named = ["position", "velocity", *STICTION, *residuals.terms.names(1)]
    names = [*residuals.layout.names, *named, *(f"tone {k}" for k in range(residuals.size - len(named)))]
    changes = np.concatenate([2e-3 * np.maximum(np.abs(values), 0.1), np.full(residuals.size, 1e-5)])
    changes[[names.index("velocity"), names.index("clock_offset")]] = 1e-3, 1e-4
    changes[[names.index(term) for term in STICTION]] = 0.05 * np.array(stiction) * (coulomb > 0)
    assert columns.shape[2] == len(names)
    if not coulomb:
        changes[names.index(f"coulomb joint_{joint}")] = 0.0  # at its end: no friction is the least
    wrong = {}
    for k in np.flatnonzero(changes):
        step = changes[k] * np.eye(len(names))[k]
        ends = [
            spectra(residuals, values + sign * step[: len(values)], own + sign * step[len(values) :])
            for sign in (-1, 1)
        ]
        expected = (ends[0] - ends[1]) / (2 * changes[k])
        wrong[names[k]] = np.linalg.norm(columns[:, :, k] - expected) / np.linalg.norm(expected)
    limits = dict.fromkeys(wrong, ACROSS if coulomb else WITHIN) | dict.fromkeys(
        (*STICTION, *named[:2]) * (coulomb > 0), STUCK
    )
    assert {name: error for name, error in wrong.items() if not error < limits[name]} == {}
