"""Test the simulated robot of a rehearsal: its truth differs from the URDF as stated, and it records files."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import planar_arm
import pytest
from random_chains import TIP, random_urdf

from dynid_ros.errors import DynidError, ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import with_payload
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.rehearsal_settings import TruthSettings
from dynid_ros.rehearsal.simulated_robot import SimulatedRobot
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.trajectory import move

ROBOT = RobotModel.from_urdf(planar_arm.urdf(), tip="link_3")
LIMITS = MotionLimits.of(ROBOT, 2.0)
EXACT = TruthSettings(
    link_error=0.0,
    friction_level=0.0,
    torque_gain_error=0.0,
    torque_noise=0.0,
    position_noise=0.0,
    stamp_jitter=0.0,
    dropped=0.0,
    load_mass=0.5,
)
REST_POSE = np.array([0.0, -1.0, 0.5])


def make_rest(seconds=1.0):
    return move(ROBOT.joint_names, REST_POSE, REST_POSE + 1e-3, seconds)


def test_links_differ_by_the_stated_error():
    simulated = SimulatedRobot(ROBOT, LIMITS, TruthSettings(link_error=0.3))
    masses = simulated.arm.truth.parameters[::10] / ROBOT.parameters[::10]
    assert np.all(np.abs(np.log(masses)) <= 0.3)
    assert np.abs(np.log(masses)).max() > 0.02
    np.testing.assert_allclose(SimulatedRobot(ROBOT, LIMITS, EXACT).arm.truth.parameters, ROBOT.parameters, atol=1e-9)


def test_seed_determines_the_truth():
    first, same, other = (SimulatedRobot(ROBOT, LIMITS, TruthSettings(), seed=seed).truth_table() for seed in (1, 1, 2))
    assert first == same
    assert first["links"] != other["links"]
    assert first["friction"] != other["friction"]


def test_recording_of_an_exact_robot_contains_its_weight(tmp_path):
    simulated = SimulatedRobot(ROBOT, LIMITS, replace(EXACT, friction_level=1e-9))
    recording = Recording.read(simulated.record(make_rest(), tmp_path / "rest.npz"))
    offset = simulated.arm.sensors.torque_offset
    weight = recording.torque[-1] - offset
    np.testing.assert_allclose(weight, planar_arm.gravity_torque(REST_POSE.tolist()), atol=0.1)
    loaded = Recording.read(simulated.record(make_rest(), tmp_path / "loaded.npz", loaded=True))
    load_torque = simulated.load_torque(REST_POSE[None])[0]
    np.testing.assert_allclose(loaded.torque[-1] - offset - weight, load_torque, atol=0.05)
    assert np.abs(load_torque[1]) > 0.5


def test_stamps_jitter_and_joint_states_are_lost(tmp_path):
    settings = replace(EXACT, stamp_jitter=1e-3, dropped=0.2, rate=125.0)
    recording = Recording.read(SimulatedRobot(ROBOT, LIMITS, settings).record(make_rest(4.0), tmp_path / "run.npz"))
    assert 0.7 < len(recording.time) / 501 < 0.9
    steps = np.diff(recording.time)
    assert np.all(steps > 0)
    single = steps[steps < 1.5 / 125]
    assert 0.5e-3 < single.std() < 2.5e-3


def test_friction_comes_from_the_urdf():
    root = ET.fromstring(planar_arm.urdf())
    for joint in root.iter("joint"):
        ET.SubElement(joint, "dynamics", friction="0.7", damping="0.3")
    robot = RobotModel.from_urdf(ET.tostring(root, encoding="unicode"), tip="link_3")
    friction = SimulatedRobot(robot, LIMITS, TruthSettings()).truth_table()["friction"]["coefficients"]
    for joint in robot.joint_names:
        assert friction[f"coulomb {joint}"] == 0.7
        assert friction[f"viscous {joint}"] == 0.3


def test_held_joints_keep_their_position():
    urdf = random_urdf(np.random.default_rng(3), 4)
    robot = RobotModel.from_urdf(urdf, tip=TIP, held={"joint_2": 0.6})
    simulated = SimulatedRobot(robot, MotionLimits.of(robot, 2.0, velocity_limits=2.0), EXACT)
    poses = np.random.default_rng(0).uniform(-1, 1, (20, robot.n_joints))
    simulated.arm.detach_load()
    np.testing.assert_allclose(simulated.arm.truth.gravity_torque(poses), robot.gravity_torque(poses), atol=1e-6)


def test_payload_is_part_of_the_truth():
    robot = with_payload(ROBOT, (2.0, 0.1, 0.0, 0.05))
    simulated = SimulatedRobot(robot, LIMITS, EXACT)
    poses = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    np.testing.assert_allclose(simulated.arm.truth.gravity_torque(poses), robot.gravity_torque(poses), atol=0.05)
    assert simulated.arm.truth.parameters[20] == pytest.approx(planar_arm.MASS[2] + 2.0)


def test_default_load_suits_weak_joints():
    weak = MotionLimits.of(ROBOT, 2.0, torque_limits=[50.0, 50.0, 1.0])
    strong_load, weak_load = (SimulatedRobot(ROBOT, limits, TruthSettings()).load[0] for limits in (LIMITS, weak))
    assert strong_load == pytest.approx(1.0, rel=0.4)
    assert 0.0 < weak_load < 0.6 * strong_load
    assert not SimulatedRobot(ROBOT, LIMITS, replace(EXACT, load_mass=0.0)).load.any()


@pytest.mark.parametrize(
    ("name", "value"), [("link_error", 0.9), ("dropped", 0.8), ("rate", 4000.0), ("torque_noise", -1.0)]
)
def test_invalid_settings_are_refused(name, value):
    with pytest.raises(DynidError, match=name):
        TruthSettings(**{name: value})


def test_trees_tables_and_massless_arms_are_refused():
    fork = random_urdf(np.random.default_rng(3), 4).replace("</robot>", "")
    fork += '<link name="other"/><joint name="side" type="continuous"><parent link="link_2"/><child link="other"/>'
    fork += '<axis xyz="0 0 1"/></joint></robot>'
    tree = RobotModel.from_urdf(fork, tip="all")
    with pytest.raises(ModelError, match="one tip"):
        SimulatedRobot(tree, MotionLimits.of(tree, 2.0, velocity_limits=2.0), EXACT)
    table = RobotModel.from_dh([{"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    limits = MotionLimits.of(table, 2.0, velocity_limits=2.0, position_lower=-1.0, position_upper=1.0)
    with pytest.raises(ModelError, match="DH table"):
        SimulatedRobot(table, limits, EXACT)
    text = ET.fromstring(planar_arm.urdf())
    for link in text.iter("link"):
        for inertial in link.findall("inertial"):
            link.remove(inertial)
    massless = RobotModel.from_urdf(ET.tostring(text, encoding="unicode"), tip="link_3")
    with pytest.raises(ModelError, match="no masses"):
        SimulatedRobot(massless, LIMITS, EXACT)
