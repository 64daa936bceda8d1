"""Test the table of true parameters and the arm created from it."""

import carried_loads
import numpy as np
import pytest
import yaml

from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, Sensors, SimulatedArm, Springs, WrenchSensor, tabled_arm, truth_table


def test_table_holds_the_settings_of_the_arm(demo_robot):
    sensors = Sensors.draw(demo_robot.limits.effort, np.random.default_rng(0), torque_gain_error=0.01)
    arm = SimulatedArm(demo_robot, drives=Drives(coulomb=[1, 2, 3, 4, 5, 6]), sensors=sensors)
    table = yaml.safe_load(yaml.safe_dump(truth_table(arm), sort_keys=False))
    assert table["robot"] == "demo_arm"
    assert list(table["joints"]) == list(demo_robot.joint_names)
    assert list(table["links"]) == list(demo_robot.link_names)
    joint = table["joints"]["joint_3"]
    link = table["links"]["link_3"]
    assert (joint["coulomb"], joint["viscous"], joint["rotor_inertia"]) == (3.0, 1.5, 0.0)
    assert abs(joint["torque_gain_error"]) == 0.01
    assert joint["torque_offset"] == sensors.torque_offset[2]
    assert joint["gravity_moment"] == arm.truth.gravity_moments()[2].tolist()
    assert link["mass"] == 4.5
    assert np.allclose(link["mass_moment"], 4.5 * np.array([0.002, -0.094, -0.006]), atol=1e-12)
    assert len(link["inertia"]) == 6
    assert table["load"] is None


def test_table_restores_model_and_sensors(demo_robot):
    robot = RobotModel.from_urdf(demo_robot.urdf, tip="link_6", gravity=(0.0, 3.0, -9.0))
    sensors = Sensors.draw(robot.limits.effort, np.random.default_rng(0), torque_gain_error=0.01)
    arm = SimulatedArm(robot, drives=Drives(rotor_inertia=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), sensors=sensors)
    table = truth_table(arm)
    restored = tabled_arm(yaml.safe_load(yaml.safe_dump(table, sort_keys=False)))
    assert truth_table(restored) == table
    pose = np.array([[0.3, 0.4, -0.5, 0.6, 0.7, -0.8]])
    np.testing.assert_array_equal(restored.truth.gravity_torque(pose), arm.truth.gravity_torque(pose))


def test_table_restores_payload_and_wrench_sensor(demo_robot):
    sensor = WrenchSensor.draw(np.random.default_rng(1))
    arm = SimulatedArm(demo_robot, wrench_sensor=sensor)
    arm.attach_load(carried_loads.parameters())
    table = yaml.safe_load(yaml.safe_dump(truth_table(arm), sort_keys=False))
    load = table["load"]
    assert (load["frame"], load["mass"]) == ("tool", pytest.approx(carried_loads.MASS))
    assert load["center"] == pytest.approx(carried_loads.CENTER)
    assert load["inertia"] == pytest.approx(carried_loads.INERTIA[np.triu_indices(3)])
    restored = tabled_arm(table)
    assert restored.truth.load == pytest.approx(arm.truth.load)
    assert np.array_equal(restored.wrench_sensor.bias, sensor.bias)
    assert np.array_equal(restored.wrench_sensor.range, np.full(6, np.inf))
    assert np.array_equal(restored.truth.parameters, arm.truth.parameters)


def test_table_restores_springs(demo_robot):
    springs = Springs([5980, 11900, 4600, 709, 772, 478], dead_zone=1e-3, motor_viscous=2.0)
    arm = SimulatedArm(demo_robot, drives=Drives(rotor_inertia=1.0), springs=springs)
    table = yaml.safe_load(yaml.safe_dump(truth_table(arm), sort_keys=False))
    assert (table["joints"]["joint_2"]["stiffness"], table["joints"]["joint_2"]["motor_viscous"]) == (11900.0, 2.0)
    restored = tabled_arm(table)
    assert truth_table(restored) == table
    assert np.array_equal(restored.link_position, arm.link_position)
    assert not np.array_equal(restored.link_position, restored.position)
    assert "stiffness" not in truth_table(SimulatedArm(demo_robot))["joints"]["joint_2"]
