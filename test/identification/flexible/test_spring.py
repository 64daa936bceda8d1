"""Spring laws: known torques, and derivatives against finite differences."""

import numpy as np
import pytest

from dynid_ros.model.spring import SPRINGS

VALUES = {"linear": [8e3], "cubic": [8e3, 5e8], "dead_zone": [8e3, 4e-4]}
DEFLECTION = np.array([-3e-3, -1.1e-3, -2e-4, 0.0, 1e-4, 9e-4, 2e-3])


@pytest.mark.parametrize(
    ("law", "torque"), [("linear", 16.0), ("cubic", 16.0 + 5e8 * 8e-9), ("dead_zone", 8e3 * (2e-3 - 4e-4))]
)
def test_torque_of_a_known_spring_is_odd(law, torque):
    spring = SPRINGS[law]()
    deflection = np.array([2e-3, -2e-3, 0.0])
    torque_at = spring.torque(deflection, np.array(VALUES[law]))
    np.testing.assert_allclose(torque_at, [torque, -torque, 0.0], rtol=1e-12)
    assert len(spring.names) == len(VALUES[law])


def test_dead_zone_has_no_torque_inside():
    spring = SPRINGS["dead_zone"]()
    np.testing.assert_array_equal(spring.torque(np.array([-3e-4, 3.9e-4]), np.array([8e3, 4e-4])), 0)


@pytest.mark.parametrize("law", SPRINGS)
def test_derivatives_agree_with_differences(law):
    spring = SPRINGS[law]()
    values = np.array(VALUES[law])
    step = 1e-8
    tangent = (spring.torque(DEFLECTION + step, values) - spring.torque(DEFLECTION - step, values)) / (2 * step)
    np.testing.assert_allclose(spring.tangent(DEFLECTION, values), tangent, rtol=1e-6)
    columns = spring.columns(DEFLECTION, values)
    assert columns.shape == (len(DEFLECTION), len(values))
    for i, value in enumerate(values):
        change = np.zeros(len(values))
        change[i] = 1e-6 * value
        up, down = (spring.torque(DEFLECTION, values + sign * change) for sign in (1, -1))
        np.testing.assert_allclose(columns[:, i], (up - down) / (2 * change[i]), rtol=1e-6, atol=1e-9)
