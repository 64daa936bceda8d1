"""Test the verdict on torque sensors: passed for the true ones, failed for others or without estimate."""

import copy
from dataclasses import replace

import numpy as np
import pytest

from dynid_ros.demo.sensor_acts import judge_torque_sensors
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, demo_arm_urdf, measure, simulate, truth_table
from dynid_ros.trajectories import MotionLimits


@pytest.fixture(name="demonstration", scope="module")
def fixture_demonstration(tmp_path_factory):
    """Return robot, truth and folder of the file; the motion is that of the demo."""
    robot = RobotModel.from_urdf(demo_arm_urdf())
    rng = np.random.default_rng(0)
    sensors = Sensors.draw(
        robot.limits.effort, rng, torque_offset=0.05, torque_gain_error=0.1, torque_noise=0.005, position_noise=2e-5
    )
    arm = SimulatedArm(robot, drives=Drives(None, None, [0.8, 0.8, 0.4, 0.04, 0.04, 0.02]), sensors=sensors)
    poses = PoseSet(
        robot, MotionLimits.of(robot, 6.0), count=6, dwell=0.8, approach=0.03, travel_speed_fraction=1.0
    ).plan()
    recording = measure(simulate(arm, poses.trajectory), sensors, rng)
    result = TorqueSensorCalibration(robot, gravity=KnownGravity.of_urdf(robot)).fit(recording)
    folder = tmp_path_factory.mktemp("torque_sensors")
    # The demo adds the sensors to the file of the arm.
    replace(result, arm={"robot": result.document()["robot"]}).save(folder / "identified.yaml")
    return robot, truth_table(arm), folder


@pytest.mark.slow
def test_calibrated_sensors_pass(demonstration):
    act = judge_torque_sensors(*demonstration)
    assert act.passed, act.sentences
    assert len(act.comparisons) == 5 + 6  # gravity does not load joint 1
    assert "error of the gain" in "".join(act.pictures.values())


@pytest.mark.parametrize(("key", "increment"), [("torque_gain_error", 0.03), ("torque_offset", 5.0)])
def test_other_sensors_fail(demonstration, key, increment):
    robot, truth, folder = demonstration
    other = copy.deepcopy(truth)
    other["joints"]["joint_2"][key] += increment
    act = judge_torque_sensors(robot, other, folder)
    assert not act.passed
    assert not all(comparison.is_covered for comparison in act.comparisons)


def test_undetermined_gain_fails(demonstration, tmp_path):
    robot, truth, folder = demonstration
    lines = (folder / "identified.yaml").read_text().splitlines()
    row = lines.index("  joint_3:")
    assert lines[row + 1].startswith("    gain:")
    lines[row + 1] = "    gain: null"
    (tmp_path / "identified.yaml").write_text("\n".join(lines))
    act = judge_torque_sensors(robot, truth, tmp_path)
    assert act.checks[0].value == np.inf
    assert not act.comparisons[1].is_determined
