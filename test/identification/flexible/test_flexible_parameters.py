"""Sums of link and motor parameters, against the base parameters of the same arm without springs."""

from types import SimpleNamespace

import numpy as np
import pytest
from link_problems import chain

from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout, rigid_sums
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.spring import LinearSpring

INFORMATION = 4.0


def sums_and_truth(motor_terms):
    """Return the sums of a flexible arm, the base parameters of the rigid arm, and the layout."""
    robot = chain()
    layout = Layout(robot, robot.base_parameters(), [LinearSpring()] * robot.n_joints, motor_terms)
    values = np.random.default_rng(0).uniform(1.0, 2.0, len(layout.names))
    values[: layout.n_links] = layout.base.combinations @ robot.parameters
    rotor = "motor_inertia" in motor_terms
    offset = "torque_offset" in motor_terms
    rigid = robot.base_parameters(FrictionModel(JointFriction(offset=offset, rotor_inertia=rotor)))
    by_term = layout.unpack(values)
    friction = {"coulomb": by_term.coulomb, "viscous": by_term.viscous}
    sources = {
        "rotor_inertia": "motor_inertia",
        "viscous": "motor_viscous",
        "coulomb": "motor_coulomb",
        "offset": "torque_offset",
    }
    parameters = list(robot.parameters)
    for name in rigid.names[robot.parameters.size :]:
        term, joint = name.split(" ", 1)
        j = robot.joint_names.index(joint)
        motor = by_term.motors.get(sources[term], np.zeros(robot.n_joints))
        parameters.append(friction.get(term, np.zeros(robot.n_joints))[j] + motor[j])
    solution = SimpleNamespace(values=values, information=INFORMATION * np.eye(len(values)))
    return rigid_sums(layout, solution), rigid.combinations @ parameters, layout


@pytest.mark.parametrize("motor_terms", [MOTOR_TERMS, ("motor_viscous",), ("motor_inertia", "motor_coulomb")])
def test_sums_equal_base_parameters_of_the_rigid_arm(motor_terms):
    sums, truth, layout = sums_and_truth(motor_terms)
    assert len(sums) >= layout.robot.n_joints
    for entry in sums:
        assert np.isclose(truth, entry.value, rtol=1e-9).any(), entry.expression
        assert any(f"{term} " in entry.expression for term in motor_terms)
        assert " + " in entry.expression or " - " in entry.expression


def test_variances_of_independent_parameters_add():
    sums, *_ = sums_and_truth(("motor_viscous",))
    for entry in sums:
        assert entry.standard_error == pytest.approx(np.sqrt(2 / INFORMATION))
