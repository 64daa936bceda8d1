"""Test the verdict on identified links: passed for the true arm, failed for another one."""

import copy
from dataclasses import replace

import numpy as np
import planar_arm
import pytest

from dynid_ros.demo.motion_acts import judge_links
from dynid_ros.excitation import FourierExcitation
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.rehearsal.truth_comparison import true_base_parameters
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, misjudged_urdf, record, tabled_arm, truth_table
from dynid_ros.trajectories import MotionLimits

pytestmark = pytest.mark.slow

DRIVES = Drives(coulomb=[0.5, 0.8, 0.3], viscous=[0.2, 0.3, 0.1], rotor_inertia=[0.1, 0.2, 0.05])
MOTION = {"base_frequency": 0.1, "harmonics": 5, "periods": 2, "criterion": "determinant"}
SEARCH = {"starts": 1, "workers": 1, "candidates": 3}


@pytest.fixture(name="demonstration", scope="module")
def fixture_demonstration(tmp_path_factory):
    """Return robot by its wrong URDF, truth, folder of the file, fitted and held-out recording."""
    true = RobotModel.from_urdf(planar_arm.urdf())
    rng = np.random.default_rng(1)
    sensors = Sensors.draw(true.limits.effort, rng, torque_noise=0.002, position_noise=2e-5, velocity_noise=1e-3)
    arm = SimulatedArm(true, drives=DRIVES, sensors=sensors)
    limits = MotionLimits.of(true, 10.0)
    fitted, held_out = (
        replace(
            record(arm, FourierExcitation(true, limits, seed=seed, **MOTION, **SEARCH).plan().trajectory), source=name
        )
        for seed, name in ((2, "fitted"), (3, "held_out"))
    )
    robot = RobotModel.from_urdf(misjudged_urdf(true, 0.3, rng))
    folder = tmp_path_factory.mktemp("links")
    LinkIdentification(robot).fit(fitted).save(folder / "identified.yaml")
    return robot, truth_table(arm), folder, fitted, held_out


def test_identified_links_pass(demonstration):
    robot, truth, folder, _, held_out = demonstration
    act = judge_links(robot, truth, folder, held_out)
    assert act.passed, act.sentences
    entries = load_identified(folder / "identified.yaml")["base_parameters"]
    assert [comparison.value for comparison in act.comparisons] == [entry["value"] for entry in entries]
    assert all(comparison.unit for comparison in act.comparisons)


def test_links_of_another_arm_fail(demonstration):
    robot, truth, folder, _, held_out = demonstration
    other = copy.deepcopy(truth)
    other["urdf"] = truth["urdf"].replace(f'<mass value="{planar_arm.MASS[2]}"/>', '<mass value="2.2"/>')
    assert other["urdf"] != truth["urdf"]
    act = judge_links(robot, other, folder, held_out)
    assert act.checks[0].value > 2.0
    assert not all(comparison.is_covered for comparison in act.comparisons)


def test_true_base_parameters_give_the_torque_of_mujoco(demonstration):
    robot, truth, _, fitted, _ = demonstration
    arm = tabled_arm(truth)
    friction = JointFriction(offset=True, rotor_inertia=True, smoothing=0.01, stribeck_velocity=0.1)
    result = LinkIdentification(robot, friction=friction, prior_weight=1.0).fit(fitted)
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 40, 3))
    matrix = np.concatenate([robot.torque_regressor(q, qd, qdd), result.friction.regressor(qd, qdd)], axis=-1)
    torque = result.base.reduce(matrix) @ true_base_parameters(result.known_arm, arm)
    friction_torque = arm.drives.coulomb * np.sign(qd) + arm.drives.viscous * qd
    expected = arm.truth.drive_torque(q, qd, qdd) + friction_torque + arm.sensors.torque_offset
    moving = np.abs(qd) > 0.2  # beyond the smoothed reversal
    np.testing.assert_allclose(torque[moving], expected[moving], atol=1e-6)
