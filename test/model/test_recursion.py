"""Inverse dynamics and momentum as generated code, against the batch, the regressor and Pinocchio."""

import numpy as np
import pytest
from gripper_arms import gripper_arm
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.generated_code import Lines, compiled, constants, function_text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.recursion import body_terms, inverse_dynamics_lines, momentum_lines


def test_random_chains_with_loads():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 7))), tip=TIP, gravity=rng.normal(size=3) * 8)
        links, load = robot.parameters.reshape(-1, PARAMETERS_PER_LINK), rng.normal(size=PARAMETERS_PER_LINK)
        terms = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
        lines, n = Lines(), robot.n_joints
        bodies = body_terms(lines, robot.chain, links, terms)
        torques = inverse_dynamics_lines(lines, robot.chain, constants(robot.gravity), bodies)
        arguments = {"q": "q", "v": "qd", "a": "qdd"}
        source = function_text("torque", arguments, lines, torques, n, given="")
        unpacked = f"{', '.join(f'l{k}' for k in range(PARAMETERS_PER_LINK))} = {tuple(load.tolist())}"
        torque = compiled(source.replace("\n    ", f"\n    {unpacked}\n    ", 1), "torque")
        loaded = links.copy()
        loaded[-1] += transformed(load, robot.tip_offset)
        for motion in rng.normal(size=(4, 3, n)):
            wanted = robot.torque_regressor(*motion) @ loaded.ravel()
            np.testing.assert_allclose(torque(*motion), wanted, rtol=0, atol=1e-10 * max(np.abs(wanted).max(), 1.0))


def momentum(robot: RobotModel):
    lines = Lines()
    bodies = body_terms(lines, robot.chain, robot.parameters.reshape(-1, PARAMETERS_PER_LINK))
    terms = momentum_lines(lines, robot.chain, bodies)
    source = function_text("momentum", {"q": "q", "v": "qd"}, lines, terms[0] + terms[1], robot.n_joints, given="")
    return compiled(source, "momentum")


def test_momentum_and_its_change_are_pinocchios():
    pinocchio = pytest.importorskip("pinocchio")
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP)
        arm, of = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity), momentum(robot)
        for q, qd in rng.normal(size=(4, 2, robot.n_joints)):
            place = arm.configuration(q)
            coriolis = pinocchio.computeCoriolisMatrix(arm.model, arm.data, place, qd)
            upper = np.triu(pinocchio.crba(arm.model, arm.data, place))
            wanted = np.concatenate([(upper + np.triu(upper, 1).T) @ qd, coriolis.T @ qd])
            np.testing.assert_allclose(of(q, qd), wanted, rtol=0, atol=1e-10 * max(np.abs(wanted).max(), 1.0))


def test_momentum_of_trees_with_mimics_is_that_of_their_energy():
    # ½ q̇ᵀ M q̇ by differences: M q̇ is its gradient over velocities, Cᵀ q̇ over positions.
    robot = gripper_arm("gripper in the middle")
    tree = RobotModel.from_urdf(robot.urdf, tip="all")
    rng, of, n, step = np.random.default_rng(1), momentum(tree), tree.n_joints, 1e-6
    q, qd = rng.normal(size=(2, n))
    masses = [tree.inverse_dynamics(np.tile(p, (n, 1)), np.zeros((n, n)), np.eye(n)) for p in (q + step * np.eye(n))]
    still = tree.gravity_torque(q + step * np.eye(n))
    energy = np.array([0.5 * qd @ (mass - gravity) @ qd for mass, gravity in zip(masses, still, strict=True)])
    mass = tree.inverse_dynamics(np.tile(q, (n, 1)), np.zeros((n, n)), np.eye(n)) - tree.gravity_torque(q[None])
    found = of(q, qd)
    np.testing.assert_allclose(found[:n], mass @ qd, rtol=0, atol=1e-10 * np.abs(mass).max())
    np.testing.assert_allclose(found[n:], (energy - 0.5 * qd @ mass @ qd) / step, rtol=1e-4, atol=1e-4)
