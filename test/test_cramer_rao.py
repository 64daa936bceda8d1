"""Test sensitivities and values of the Cramér-Rao bound."""

from dataclasses import replace

import flexible_experiments as experiments
import flexible_motion
import numpy as np
import pa10
import pytest
from cramer_rao import SMOOTHING, sensitivities, single_joint_bound

WELL = ("Iyy1", "coulomb 1", "viscous 1", "stiffness 1", "motor_inertia 1", "motor_viscous 1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "field"),
    [("Iyy1", "inertia"), ("mcz1", "gravity_x"), ("coulomb 1", "coulomb"), ("stiffness 1", "stiffness")],
)
def test_sensitivities_are_differences_of_the_motion(name, field):
    joint = 5
    step = 1e-4
    row = pa10.table_one(joint)
    motor, _ = experiments.single_joint_motion(joint)

    def settled(row):
        links = flexible_motion.link_motion(row, motor, SMOOTHING)
        return links, links.at(step * np.arange(10001), True)[:, 0]

    links, _ = settled(row)
    springs = flexible_motion.Springs.of([row])
    result = sensitivities(
        pa10.single_joint_urdf(joint), springs, motor, links, SMOOTHING, columns=[1, 3, 7], step=step
    )
    change = 0.01 * getattr(row, field)
    low, high = (settled(replace(row, **{field: getattr(row, field) + sign * change}))[1] for sign in (-1, 1))
    per_unit = pa10.G if field.startswith("gravity") else 1.0
    expected = per_unit * (high - low) / (2 * change)
    np.testing.assert_allclose(
        result.link[:, 0, result.names.index(name)], expected, atol=0.02 * np.abs(expected).max(), rtol=0
    )


@pytest.mark.parametrize("joint", [1, 6, *(pytest.param(joint, marks=pytest.mark.slow) for joint in (2, 3))])
def test_bound_allows_three_quarters_of_a_percent(joint):
    known = single_joint_bound(joint, link_offset=False, clock=False, step=2e-4)
    unknown = single_joint_bound(joint, step=2e-4)
    assert max(unknown.percent(name) for name in WELL) < 0.76
    # An unknown offset and clock increase the bound only slightly.
    assert (unknown.deviations >= known.deviations * (1 - 1e-9)).all()
    assert (unknown.deviations < 1.1 * known.deviations).all()
    assert 1e-5 < unknown.clock < 3e-5
