"""Inverse dynamics as generated code against those of many samples."""

import numpy as np
from random_chains import TIP, random_urdf

from dynid_ros.model import RobotModel
from dynid_ros.model.generated_code import Lines, compiled, function_text, variable
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample_dynamics import inverse_dynamics_lines


def test_random_chains_with_loads():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, int(rng.integers(1, 7))), tip=TIP, gravity=rng.normal(size=3) * 8)
        links, load = robot.parameters.reshape(-1, PARAMETERS_PER_LINK), rng.normal(size=PARAMETERS_PER_LINK)
        terms = [variable(f"l{k}") for k in range(PARAMETERS_PER_LINK)]
        lines, n = Lines(), robot.n_joints
        torques = inverse_dynamics_lines(lines, robot.chain, robot.gravity, links, terms)
        arguments = {"q": "q", "v": "qd", "a": "qdd"}
        source = function_text("torque", arguments, lines, torques, n, given="")
        unpacked = f"{', '.join(f'l{k}' for k in range(PARAMETERS_PER_LINK))} = {tuple(load.tolist())}"
        torque = compiled(source.replace("\n    ", f"\n    {unpacked}\n    ", 1), "torque")
        loaded = links.copy()
        loaded[-1] += transformed(load, robot.tip_offset)
        for motion in rng.normal(size=(4, 3, n)):
            wanted = robot.inverse_dynamics(*motion[:, None], loaded.ravel())[0]
            np.testing.assert_allclose(torque(*motion), wanted, rtol=0, atol=1e-10 * max(np.abs(wanted).max(), 1.0))
