"""Test gravity feed-forward: loads, their frames, files, and torques against Pinocchio and MuJoCo."""

import math

import carried_loads
import numpy as np
import planar_arm
import pytest
from carried_loads import LoadedArm
from pinocchio_arm import example_urdf

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, Timing, load_gravity_torque
from dynid_ros.control.gravity_feedforward import LoadFrames
from dynid_ros.errors import ControlError, IdentifiedFileError, ModelError
from dynid_ros.files.bounded import share_path
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

CENTER = (0.1, 0.0, 0.02)
FIXED_LINKS = """<link name="flange"/>
    <joint name="flange_joint" type="fixed"><parent link="link_3"/><child link="flange"/>
    <origin xyz="0.3 0 0" rpy="0 0 1.5707963267948966"/></joint><link name="cup"/><joint name="cup_joint" type="fixed">
    <parent link="flange"/><child link="cup"/><origin xyz="0.05 0 0"/></joint></robot>"""


@pytest.fixture
def frames():
    return LoadFrames(RobotModel.from_urdf(planar_arm.urdf().replace("</robot>", FIXED_LINKS), tip="flange"))


@pytest.mark.parametrize("mass", [-0.1, math.nan, math.inf])
def test_invalid_mass_is_refused(mass):
    with pytest.raises(ControlError, match=rf"mass is {mass} kg; expected a finite number of at least 0"):
        CarriedLoad(mass, CENTER, "link_3")


@pytest.mark.parametrize("center", [(50.0, 0.0, 0.0), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0)])
def test_center_out_of_reach_is_refused(center):
    """A center of 50 may be in millimetres."""
    with pytest.raises(ControlError, match=r"centre of mass is \[.*\] m from link 'link_3'"):
        CarriedLoad(1.0, center, "link_3")


def test_zero_mass_needs_no_center(frames):
    load = CarriedLoad(0.0, (math.nan, 0.0, 0.0), "link_3")
    assert frames.parameters(load).tolist() == [0.0] * 30
    assert str(load) == "none"


def test_load_frames_are_transformed_to_the_last_link(frames):
    """The flange is rotated by 90° about z and 0.3 m along x; the cup is 0.05 m along the flange's x axis."""
    for frame, center, in_link in (
        ("link_3", CENTER, CENTER),
        ("flange", CENTER, (0.3, 0.1, 0.02)),
        ("cup", CENTER, (0.3, 0.15, 0.02)),
    ):
        parameters = frames.parameters(CarriedLoad(2.0, center, frame)).reshape(3, 10)
        assert not parameters[:2].any()
        assert parameters[2, :4] == pytest.approx([2.0, *(2.0 * np.array(in_link))])


@pytest.mark.parametrize("frame", ["link_2", "base_link", "hand", ""])
def test_other_frame_is_refused_with_the_expected_ones(frames, frame):
    with pytest.raises(
        ControlError, match=f"'{frame}' is not fixed to the last link; expected link_3 or flange or cup"
    ):
        frames.parameters(CarriedLoad(1.0, CENTER, frame))


def test_load_is_read_from_its_section():
    section = {"frame": "tool", "loaded": True, "mass": 2, "center": [0, 0.01, 0.1], "inertia": [None] * 6}
    assert CarriedLoad.from_section(section) == CarriedLoad(2.0, (0.0, 0.01, 0.1), "tool", is_tool=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mass": None}, "mass is None kg"),
        ({"mass": "2"}, "mass is '2' kg"),
        ({"mass": True}, "mass is True kg"),
        ({"frame": None}, "in frame None"),
        ({"center": [None, 0.0, 0.0]}, r"center is \[None, 0.0, 0.0\]; expected three numbers"),
        ({"center": [0.0, 0.0]}, "center is"),
        ({"center": 0.1}, "center is 0.1"),
        ({"mass": -1.0}, "mass is -1.0 kg"),
    ],
)
def test_malformed_section_is_refused(change, message):
    with pytest.raises(ControlError, match=message):
        CarriedLoad.from_section({"frame": "tool", "mass": 2.0, "center": [0.0, 0.0, 0.1]} | change)


START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
PERIOD_S = 0.004
LOAD_SAMPLE = 25


def make_load(frame):
    return CarriedLoad(carried_loads.MASS, tuple(carried_loads.CENTER.tolist()), frame)


def make_gravity(robot, **settings):
    model = GravityModel(robot)
    return LoadedGravity(model, model.project(robot.parameters), **settings)


@pytest.fixture(scope="module")
def demo_robot():
    return RobotModel.from_urdf(share_path("config/demo_arm.urdf"))


@pytest.mark.parametrize(
    ("path", "tip"),
    [("", "tool"), ("ur_description/urdf/ur10_robot.urdf", "tool0"), ("xarm_description/urdf/xarm7.urdf", "link7")],
)
def test_torque_of_arm_and_load_agrees_with_pinocchio(path, tip):
    robot = RobotModel.from_urdf(example_urdf(path) if path else share_path("config/demo_arm.urdf"), tip=tip)
    reference = LoadedArm(robot.urdf, tip, robot.gravity)
    gravity = make_gravity(robot).carrying(make_load(tip))
    for q in np.random.default_rng(3).uniform(-3.0, 3.0, (50, robot.n_joints)):
        np.testing.assert_allclose(gravity(q.tolist()), reference.gravity_torque(q), rtol=0, atol=1e-10)


def test_carrying_a_load_returns_a_new_model(demo_robot):
    gravity = make_gravity(demo_robot)
    q = START.tolist()
    unloaded = gravity(q)
    loaded = gravity.carrying(make_load("tool"))
    assert gravity(q) == unloaded
    assert loaded.load == make_load("tool")
    assert np.abs(np.subtract(loaded(q), unloaded)).max() > 10.0
    assert loaded.carrying(CarriedLoad(0.0, (0.0, 0.0, 0.0), "tool"))(q) == pytest.approx(unloaded, abs=1e-12)
    assert loaded.carrying(None)(q) == unloaded


def test_load_tilt_and_angle_torque_combine(demo_robot):
    down = [-3.0, 0.0, -9.0]
    combined = (
        make_gravity(demo_robot, own_angles=lambda q: [2.0] * len(q)).carrying(make_load("tool")).tilting(lambda: down)
    )
    tilted = RobotModel.from_urdf(demo_robot.urdf, gravity=down)
    q = START.tolist()
    last = demo_robot.tip_columns
    parameters = demo_robot.parameters.copy()
    parameters[last] += LoadFrames(demo_robot).parameters(make_load("tool"))[last]
    expected = tilted.gravity_torque(START, parameters) + 2.0
    assert combined(q) == pytest.approx(expected, abs=1e-9)
    assert combined.carrying(make_load("tool"))(q) == pytest.approx(expected, abs=1e-9)
    assert combined.carrying(None)(q) == pytest.approx(tilted.gravity_torque(START) + 2.0, abs=1e-9)
    assert combined.tilting(lambda: down).load == make_load("tool")


def test_too_heavy_load_is_refused(demo_robot):
    gravity = make_gravity(demo_robot, largest_load=3.0)
    with pytest.raises(ControlError, match=r"mass is 3.2 kg; at most 3 kg are believed \(parameter largest_load\)"):
        gravity.carrying(make_load("tool"))
    light = gravity.carrying(CarriedLoad(3.0, (0.0, 0.0, 0.1), "tool"))
    with pytest.raises(ControlError, match="at most 3 kg"):
        light.carrying(make_load("tool"))
    with pytest.raises(ControlError, match="frame 'link_5' is not fixed"):
        gravity.carrying(CarriedLoad(1.0, (0.0, 0.0, 0.1), "link_5"))


def hold_load(demo_robot, is_announced):
    """Simulate an arm for 3 s after it has picked up a load, which is announced after 0.1 s or not.

    Returns:
        Arm, commands (N, n), and largest rate (n,).
    """
    simulation = pytest.importorskip("dynid_ros.simulation")
    arm = simulation.SimulatedArm(demo_robot, start=START)
    joints = JointSettings.from_robot(demo_robot, fault_ramp_time=0.5)
    gravity = make_gravity(demo_robot)
    compensator = GravityCompensator(gravity, joints, Timing(ramp_time=0.01))
    compensator.update(0.0, START.tolist())
    compensator.enable(0.0)
    while compensator.torque != tuple(gravity(START.tolist())):
        arm.step(PERIOD_S)
        compensator.update(arm.time, START.tolist())
    arm.release()
    arm.attach_load(carried_loads.parameters())
    commands = []
    for sample in range(round(3.0 / PERIOD_S)):
        commands.append(compensator.update(arm.time, arm.position.tolist()))
        arm.command_effort(commands[-1])
        arm.step(PERIOD_S)
        if is_announced and sample == LOAD_SAMPLE:
            compensator.replace(gravity.carrying(make_load("tool")), joints)
    return arm, np.array(commands), np.array(joints.rate)


def test_announced_load_stops_the_fall_without_a_torque_step(demo_robot):
    """Friction cannot hold a load of 3.2 kg, so the shoulder falls to its stop without announcement."""
    falling, _, _ = hold_load(demo_robot, is_announced=False)
    held, commands, rate = hold_load(demo_robot, is_announced=True)
    assert falling.position[1] == pytest.approx(demo_robot.limits.upper[1], abs=0.02)
    assert held.position[1] == pytest.approx(START[1], abs=0.02)
    assert np.abs(held.velocity).max() < 1e-3
    change = np.abs(np.diff(commands, axis=0))
    assert np.all(change <= rate * PERIOD_S * (1.0 + 1e-6))
    assert (change[LOAD_SAMPLE] / (rate * PERIOD_S)).max() == pytest.approx(1.0)


@pytest.fixture
def model_file(tmp_path):
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())


def test_torque_agrees_with_the_potential_energy(model_file):
    robot, gravity = load_gravity_torque(model_file, planar_arm.urdf())
    assert tuple(robot.joint_names) == planar_arm.JOINTS
    for q in np.random.default_rng(1).uniform(-2.5, 2.5, (50, 3)).tolist():
        assert gravity(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)


def test_base_and_tip_come_from_the_file(model_file):
    branch = (
        '<link name="finger"/><joint name="finger_joint" type="prismatic"><parent link="link_3"/><child link="finger"/>'
        '<axis xyz="0 1 0"/><limit lower="0" upper="0.05" velocity="1" effort="5"/></joint></robot>'
    )
    robot, gravity = load_gravity_torque(model_file, planar_arm.urdf().replace("</robot>", branch))
    assert robot.n_joints == 3
    assert gravity([0.0, 0.0, 0.0]) == pytest.approx(planar_arm.gravity_torque([0.0, 0.0, 0.0]))


def change_document(**changes):
    document = planar_arm.document()
    for path, value in changes.items():
        *parents, last = path.split("__")
        section = document
        for parent in parents:
            section = section[parent]
        section[last] = value
    return document


UNOBSERVABLE = {"n_x": None, "n_y": None, "std": None, "observable": False, "reason": "its angle spans only 20 degrees"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gravity__joint_2": UNOBSERVABLE}, "joint 'joint_2' was not observable .*spans only 20 degrees"),
        ({"gravity": None}, "no section 'gravity'"),
        ({"gravity__joint_3__n_x": "much"}, "joint 'joint_3'.*n_x is 'much'"),
        ({"gravity__joint_3__n_x": float("nan")}, "joint 'joint_3'.*n_x is nan"),
        ({"robot__joints": ["joint_1", "joint_3", "joint_2"]}, "this robot has"),
        ({"robot__kinematics_sha256": "0" * 64}, "another robot"),
        ({"robot__gravity": [0.0, -9.80665, 0.0]}, "gravity"),
        ({"robot__tip": ["link_3"]}, "robot.tip is"),
        ({"format": "dynid/9"}, "dynid/9"),
    ],
)
def test_malformed_file_is_refused_with_its_name(tmp_path, changes, message):
    path = planar_arm.write(tmp_path / "bad.yaml", change_document(**changes))
    with pytest.raises(IdentifiedFileError, match=message) as refusal:
        load_gravity_torque(path, planar_arm.urdf())
    assert "bad.yaml" in str(refusal.value)


def test_file_of_another_arm_is_refused(model_file):
    with pytest.raises(IdentifiedFileError, match="another robot"):
        load_gravity_torque(model_file, planar_arm.urdf(length=0.5))
    with pytest.raises(ModelError, match="tip link 'link_3'"):
        load_gravity_torque(model_file, planar_arm.urdf().replace("link_3", "hand"))


def add_load(**changes):
    load = {"frame": "link_3", "loaded": True, "mass": 2.0, "center": [0.1, 0.0, 0.0], "inertia": None} | changes
    return planar_arm.document() | {"load": load}


def test_load_of_the_file_is_carried(tmp_path):
    """The moment of 2 kg at 0.1 m about joint 3 is 0.2 kg m; about joint 2, the link length adds to it."""
    path = planar_arm.write(tmp_path / "loaded.yaml", add_load())
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    q = [0.1, 0.4, -0.7]
    moment_3 = -planar_arm.G * 0.2 * math.cos(q[1] + q[2])
    load_torque = [0.0, moment_3 - planar_arm.G * 2.0 * planar_arm.LENGTH * math.cos(q[1]), moment_3]
    assert np.subtract(gravity(q), planar_arm.gravity_torque(q)) == pytest.approx(load_torque, abs=1e-12)
    _, make_gravity = load_gravity_torque(path, planar_arm.urdf(), use_load=False)
    assert make_gravity(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)
    assert make_gravity.load is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": None}, "mass is None"),
        ({"mass": 6.0}, "mass is 6 kg; at most 5 kg"),
        ({"frame": "gripper"}, "frame 'gripper' is not fixed"),
        ({"center": None}, "center is None"),
    ],
)
def test_unusable_load_names_the_parameter_to_ignore_it(tmp_path, changes, message):
    path = planar_arm.write(tmp_path / "loaded.yaml", add_load(**changes))
    with pytest.raises(IdentifiedFileError, match=rf"loaded\.yaml: the load .*{message}.*use_load false"):
        load_gravity_torque(path, planar_arm.urdf(), largest_load=5.0)
