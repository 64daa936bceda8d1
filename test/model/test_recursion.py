"""Generated code of inverse dynamics and momentum, against the regressor and Pinocchio."""

import numpy as np
import pytest
from gripper_arms import gripper_arm
from pinocchio_arm import PinocchioArm
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.generated_code import Lines, compiled, constants, function_text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.recursion import body_terms, inverse_dynamics_lines, momentum_lines


def test_generated_torque_of_loaded_chains_equals_the_regressor():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 7))), tip=TIP, gravity=rng.normal(size=3) * 8)
        links = robot.parameters.reshape(-1, PARAMETERS_PER_LINK)
        load = rng.normal(size=PARAMETERS_PER_LINK)
        terms = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
        lines = Lines()
        n = robot.n_joints
        bodies = body_terms(lines, robot.chain, links, terms)
        torques = inverse_dynamics_lines(lines, robot.chain, constants(robot.gravity), bodies)
        arguments = {"q": "q", "v": "qd", "a": "qdd"}
        source = function_text("torque", arguments, lines, torques, n, given="")
        unpacked = f"{', '.join(f'l{k}' for k in range(PARAMETERS_PER_LINK))} = {tuple(load.tolist())}"
        torque = compiled(source.replace("\n    ", f"\n    {unpacked}\n    ", 1), "torque")
        loaded = links.copy()
        loaded[-1] += transformed(load, robot.tip_offset)
        for motion in rng.normal(size=(4, 3, n)):
            expected = robot.torque_regressor(*motion) @ loaded.ravel()
            np.testing.assert_allclose(torque(*motion), expected, rtol=0, atol=1e-10 * max(np.abs(expected).max(), 1.0))


def compile_momentum(robot: RobotModel):
    """Return a function of q and qd: the momentum M q̇, followed by Cᵀ q̇."""
    lines = Lines()
    bodies = body_terms(lines, robot.chain, robot.parameters.reshape(-1, PARAMETERS_PER_LINK))
    terms = momentum_lines(lines, robot.chain, bodies)
    source = function_text("momentum", {"q": "q", "v": "qd"}, lines, terms[0] + terms[1], robot.n_joints, given="")
    return compiled(source, "momentum")


def test_momentum_agrees_with_pinocchio():
    pinocchio = pytest.importorskip("pinocchio")
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 8))), tip=TIP)
        arm = PinocchioArm(robot.urdf, robot.joint_names, robot.gravity)
        momentum = compile_momentum(robot)
        for q, qd in rng.normal(size=(4, 2, robot.n_joints)):
            configuration = arm.configuration(q)
            coriolis = pinocchio.computeCoriolisMatrix(arm.model, arm.data, configuration, qd)
            upper = np.triu(pinocchio.crba(arm.model, arm.data, configuration))
            expected = np.concatenate([(upper + np.triu(upper, 1).T) @ qd, coriolis.T @ qd])
            np.testing.assert_allclose(momentum(q, qd), expected, rtol=0, atol=1e-10 * max(np.abs(expected).max(), 1.0))


def test_momentum_of_mimic_trees_is_the_gradient_of_the_energy():
    # Differences of ½ q̇ᵀ M q̇: M q̇ is the gradient over velocities, Cᵀ q̇ that over positions.
    robot = gripper_arm("gripper in the middle")
    tree = RobotModel.from_urdf(robot.urdf, tip="all")
    rng = np.random.default_rng(1)
    momentum = compile_momentum(tree)
    n = tree.n_joints
    step = 1e-6
    q, qd = rng.normal(size=(2, n))
    masses = [tree.inverse_dynamics(np.tile(p, (n, 1)), np.zeros((n, n)), np.eye(n)) for p in (q + step * np.eye(n))]
    still = tree.gravity_torque(q + step * np.eye(n))
    energy = np.array([0.5 * qd @ (mass - gravity) @ qd for mass, gravity in zip(masses, still, strict=True)])
    mass = tree.inverse_dynamics(np.tile(q, (n, 1)), np.zeros((n, n)), np.eye(n)) - tree.gravity_torque(q[None])
    values = momentum(q, qd)
    np.testing.assert_allclose(values[:n], mass @ qd, rtol=0, atol=1e-10 * np.abs(mass).max())
    np.testing.assert_allclose(values[n:], (energy - 0.5 * qd @ mass @ qd) / step, rtol=1e-4, atol=1e-4)
