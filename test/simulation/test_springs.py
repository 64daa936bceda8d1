import numpy as np
import pytest

from dynid_ros.simulation import Springs


def test_torque_of_each_term():
    springs = Springs(100.0, np.array([0.0, 1e6, 0.0]), np.array([0.0, 0.0, 0.01]), damping=2.0).of(3)
    torque = springs.torque(np.array([0.02, -0.02, -0.03]), np.array([0.0, 0.5, 0.0]))
    assert torque == pytest.approx([2.0, -2.0 - 8.0 + 1.0, -2.0])


def test_within_the_play_there_is_no_torque():
    springs = Springs(100.0, dead_zone=0.01).of(2)
    assert springs.torque(np.array([0.009, -0.009]), np.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("springs", [Springs(100.0), Springs(100.0, 1e8), Springs(100.0, 1e5, 0.004)])
def test_deflection_is_the_inverse_of_the_torque(springs):
    springs = springs.of(4)
    torque = np.array([-30.0, -0.1, 0.2, 500.0])
    assert springs.torque(springs.deflection(torque), np.zeros(4)) == pytest.approx(torque, rel=1e-9)
    assert springs.deflection(np.zeros(4)).tolist() == [0.0] * 4
