"""Test that a modified Denavit-Hartenberg table used as a standard one is reported."""

import numpy as np

from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check

GRAVITY_M_S2 = (0.0, 0.0, -9.81)
UPPER_ARM = [4.0, -1.0, 0, 0, 0.05, 0, 0, 0.4, 0, 0.4]
FOREARM = [2.0, -0.4, 0, 0.1, 0.02, 0, 0, 0.15, 0, 0.15]
BODIES = [5.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1, *UPPER_ARM, *FOREARM]


def create_table(lengths, alphas):
    offsets = (0.3, 0.0, 0.0)
    return [
        {"a": a, "alpha": alpha, "d": d, "theta": 0.0, "type": "revolute"}
        for a, alpha, d in zip(lengths, alphas, offsets, strict=True)
    ]


def test_reports_modified_tables_used_as_standard_ones():
    """Columns a and alpha are shifted down by a row in a modified table."""
    right = RobotModel.from_dh(create_table((0.0, 0.5, 0.4), (np.pi / 2, 0.0, 0.0)), GRAVITY_M_S2, BODIES)
    time = np.arange(0, 20, 0.01)
    rates = np.array([[0.7, 0.9, 1.3], [1.9, 2.3, 2.9]])
    phases = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
    q = 0.5 * np.sin(time[:, None, None] * rates + phases).sum(axis=1)
    qd = np.gradient(q, time, axis=0)
    noise = np.random.default_rng(0).normal(0, 0.05, q.shape)
    torque = right.inverse_dynamics(q, qd, np.gradient(qd, time, axis=0)) + 0.5 * np.tanh(qd / 0.02) + noise
    recording = Recording(right.joint_names, time, q, qd, torque)
    assert check(recording, right, motion=True) == []
    modified = RobotModel.from_dh(create_table((0.0, 0.0, 0.5), (0.0, np.pi / 2, 0.0)), GRAVITY_M_S2)
    (finding,) = check(recording, modified)
    assert finding.kind == "swapped joints"
    assert "modified (Craig) DH table" in finding.fix
