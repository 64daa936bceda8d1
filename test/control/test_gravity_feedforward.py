"""test_gravity_feedforward."""

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

# What is believed of a load, and where it may be fixed.


HERE = (0.1, 0.0, 0.02)
FIXED = """<link name="flange"/><joint name="flange_joint" type="fixed"><parent link="link_3"/><child link="flange"/>
    <origin xyz="0.3 0 0" rpy="0 0 1.5707963267948966"/></joint><link name="cup"/><joint name="cup_joint" type="fixed">
    <parent link="flange"/><child link="cup"/><origin xyz="0.05 0 0"/></joint></robot>"""


@pytest.fixture
def frames():
    return LoadFrames(RobotModel.from_urdf(planar_arm.urdf().replace("</robot>", FIXED), tip="flange"))


@pytest.mark.parametrize("mass", [-0.1, math.nan, math.inf])
def test_a_mass_that_is_none_is_refused(mass):
    with pytest.raises(ControlError, match=rf"mass is {mass} kg; expected a finite number of at least 0"):
        CarriedLoad(mass, HERE, "link_3")


@pytest.mark.parametrize("center", [(50.0, 0.0, 0.0), (math.nan, 0.0, 0.0), (0.0, math.inf, 0.0)])
def test_a_centre_out_of_reach_is_refused(center):
    """50 is one in millimetres."""
    with pytest.raises(ControlError, match=r"centre of mass is \[.*\] m from link 'link_3'"):
        CarriedLoad(1.0, center, "link_3")


def test_no_load_needs_no_centre(frames):
    load = CarriedLoad(0.0, (math.nan, 0.0, 0.0), "link_3")
    assert frames.parameters(load).tolist() == [0.0] * 30
    assert str(load) == "none"


def test_it_belongs_to_the_last_link_wherever_it_is_fixed(frames):
    """The flange is turned by 90 degrees about z and 0.3 m along x; the cup 0.05 m along the flange's x."""
    for frame, center, in_link in (
        ("link_3", HERE, HERE),
        ("flange", HERE, (0.3, 0.1, 0.02)),
        ("cup", HERE, (0.3, 0.15, 0.02)),
    ):
        parameters = frames.parameters(CarriedLoad(2.0, center, frame)).reshape(3, 10)
        assert not parameters[:2].any()
        assert parameters[2, :4] == pytest.approx([2.0, *(2.0 * np.array(in_link))])


@pytest.mark.parametrize("frame", ["link_2", "base_link", "hand", ""])
def test_another_frame_is_refused_with_those_that_may_be(frames, frame):
    with pytest.raises(
        ControlError, match=f"'{frame}' is not fixed to the last link; expected link_3 or flange or cup"
    ):
        frames.parameters(CarriedLoad(1.0, HERE, frame))


def test_a_section_as_the_load_identification_writes_it():
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
def test_a_section_that_does_not_say_it_is_refused(change, message):
    with pytest.raises(ControlError, match=message):
        CarriedLoad.from_section({"frame": "tool", "mass": 2.0, "center": [0.0, 0.0, 0.1]} | change)


# The torque of arm and load against Pinocchio, and against MuJoCo, which lets fall what is not held.


START = np.array([0.0, 0.5, 1.0, 0.0, 0.8, 0.0])
PERIOD = 0.004
TOLD = 25


def load_at(frame):
    return CarriedLoad(carried_loads.MASS, tuple(carried_loads.CENTER.tolist()), frame)


def alone(robot, **settings):
    model = GravityModel(robot)
    return LoadedGravity(model, model.project(robot.parameters), **settings)


@pytest.fixture(scope="module")
def demo_robot():
    return RobotModel.from_urdf(share_path("config/demo_arm.urdf"))


@pytest.mark.parametrize(
    ("path", "tip"),
    [("", "tool"), ("ur_description/urdf/ur10_robot.urdf", "tool0"), ("xarm_description/urdf/xarm7.urdf", "link7")],
)
def test_torque_of_arm_and_load_is_that_of_pinocchio(path, tip):
    robot = RobotModel.from_urdf(example_urdf(path) if path else share_path("config/demo_arm.urdf"), tip=tip)
    reference = LoadedArm(robot.urdf, tip, robot.gravity)
    gravity = alone(robot).carrying(load_at(tip))
    for q in np.random.default_rng(3).uniform(-3.0, 3.0, (50, robot.n_joints)):
        np.testing.assert_allclose(gravity(q.tolist()), reference.gravity_torque(q), rtol=0, atol=1e-10)


def test_another_load_leaves_the_torque_in_force_alone(demo_robot):
    gravity = alone(demo_robot)
    q = START.tolist()
    bare = gravity(q)
    loaded = gravity.carrying(load_at("tool"))
    assert gravity(q) == bare
    assert loaded.load == load_at("tool")
    assert np.abs(np.subtract(loaded(q), bare)).max() > 10.0
    assert loaded.carrying(CarriedLoad(0.0, (0.0, 0.0, 0.0), "tool"))(q) == pytest.approx(bare, abs=1e-12)
    assert loaded.carrying(None)(q) == bare


def test_load_tilt_and_own_angles_stay_through_each_others_changes(demo_robot):
    down = [-3.0, 0.0, -9.0]
    whole = alone(demo_robot, own_angles=lambda q: [2.0] * len(q)).carrying(load_at("tool")).tilting(lambda: down)
    tilted = RobotModel.from_urdf(demo_robot.urdf, gravity=down)
    q, last = START.tolist(), demo_robot.tip_columns
    parameters = demo_robot.parameters.copy()
    parameters[last] += LoadFrames(demo_robot).parameters(load_at("tool"))[last]
    expected = tilted.gravity_torque(START, parameters) + 2.0
    assert whole(q) == pytest.approx(expected, abs=1e-9)
    assert whole.carrying(load_at("tool"))(q) == pytest.approx(expected, abs=1e-9)
    assert whole.carrying(None)(q) == pytest.approx(tilted.gravity_torque(START) + 2.0, abs=1e-9)
    assert whole.tilting(lambda: down).load == load_at("tool")


def test_too_heavy_is_not_believed(demo_robot):
    gravity = alone(demo_robot, largest_load=3.0)
    with pytest.raises(ControlError, match=r"mass is 3.2 kg; at most 3 kg are believed \(parameter largest_load\)"):
        gravity.carrying(load_at("tool"))
    light = gravity.carrying(CarriedLoad(3.0, (0.0, 0.0, 0.1), "tool"))
    with pytest.raises(ControlError, match="at most 3 kg"):
        light.carrying(load_at("tool"))
    with pytest.raises(ControlError, match="frame 'link_5' is not fixed"):
        gravity.carrying(CarriedLoad(1.0, (0.0, 0.0, 0.1), "link_5"))


def hold(demo_robot, told):
    """Simulated arm that has picked something up and has been told of it after 0.1 s, or not; 3 s later.

    Returns:
        The arm, the commands (N, n), and their fastest change (n,).
    """
    simulation = pytest.importorskip("dynid_ros.simulation")
    arm = simulation.SimulatedArm(demo_robot, start=START)
    joints = JointSettings.from_robot(demo_robot, fault_ramp_time=0.5)
    gravity = alone(demo_robot)
    compensator = GravityCompensator(gravity, joints, Timing(ramp_time=0.01))
    compensator.update(0.0, START.tolist())
    compensator.enable(0.0)
    while compensator.torque != tuple(gravity(START.tolist())):
        arm.step(PERIOD)
        compensator.update(arm.time, START.tolist())
    arm.release()
    arm.attach_load(carried_loads.parameters())
    commands = []
    for sample in range(round(3.0 / PERIOD)):
        commands.append(compensator.update(arm.time, arm.position.tolist()))
        arm.command_effort(commands[-1])
        arm.step(PERIOD)
        if told and sample == TOLD:
            compensator.replace(gravity.carrying(load_at("tool")), joints)
    return arm, np.array(commands), np.array(joints.rate)


def test_an_arm_that_is_told_of_its_load_stops_falling_without_a_step_in_torque(demo_robot):
    """A load of 3.2 kg is more than friction holds; the shoulder of an arm that is not told falls to its stop."""
    falling, _, _ = hold(demo_robot, told=False)
    held, commands, rate = hold(demo_robot, told=True)
    assert falling.position[1] == pytest.approx(demo_robot.limits.upper[1], abs=0.02)
    assert held.position[1] == pytest.approx(START[1], abs=0.02)
    assert np.abs(held.velocity).max() < 1e-3
    change = np.abs(np.diff(commands, axis=0))
    assert np.all(change <= rate * PERIOD * (1.0 + 1e-6))
    assert (change[TOLD] / (rate * PERIOD)).max() == pytest.approx(1.0)


@pytest.fixture
def model_file(tmp_path):
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())


def test_torque_is_that_of_the_potential_energy(model_file):
    robot, gravity = load_gravity_torque(model_file, planar_arm.urdf())
    assert tuple(robot.joint_names) == planar_arm.JOINTS
    for q in np.random.default_rng(1).uniform(-2.5, 2.5, (50, 3)).tolist():
        assert gravity(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)


def test_base_and_tip_are_those_of_the_file_where_a_gripper_branches_off(model_file):
    branch = (
        '<link name="finger"/><joint name="finger_joint" type="prismatic"><parent link="link_3"/><child link="finger"/>'
        '<axis xyz="0 1 0"/><limit lower="0" upper="0.05" velocity="1" effort="5"/></joint></robot>'
    )
    robot, gravity = load_gravity_torque(model_file, planar_arm.urdf().replace("</robot>", branch))
    assert robot.n_joints == 3
    assert gravity([0.0, 0.0, 0.0]) == pytest.approx(planar_arm.gravity_torque([0.0, 0.0, 0.0]))


def changed(**changes):
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
def test_a_bad_file_is_refused_with_its_name(tmp_path, changes, message):
    path = planar_arm.write(tmp_path / "bad.yaml", changed(**changes))
    with pytest.raises(IdentifiedFileError, match=message) as refusal:
        load_gravity_torque(path, planar_arm.urdf())
    assert "bad.yaml" in str(refusal.value)


def test_another_arm_is_refused(model_file):
    with pytest.raises(IdentifiedFileError, match="another robot"):
        load_gravity_torque(model_file, planar_arm.urdf(length=0.5))
    with pytest.raises(ModelError, match="tip link 'link_3'"):
        load_gravity_torque(model_file, planar_arm.urdf().replace("link_3", "hand"))


def with_load(**changes):
    load = {"frame": "link_3", "loaded": True, "mass": 2.0, "center": [0.1, 0.0, 0.0], "inertia": None} | changes
    return planar_arm.document() | {"load": load}


def test_the_load_of_the_file_is_carried(tmp_path):
    """2 kg, 0.1 m along link 3: its moment about joint 3 is 0.2, about joint 2 a further 2 times the link's length."""
    path = planar_arm.write(tmp_path / "loaded.yaml", with_load())
    _, gravity = load_gravity_torque(path, planar_arm.urdf())
    q = [0.1, 0.4, -0.7]
    outer = -planar_arm.G * 0.2 * math.cos(q[1] + q[2])
    carried = [0.0, outer - planar_arm.G * 2.0 * planar_arm.LENGTH * math.cos(q[1]), outer]
    assert np.subtract(gravity(q), planar_arm.gravity_torque(q)) == pytest.approx(carried, abs=1e-12)
    _, alone = load_gravity_torque(path, planar_arm.urdf(), use_load=False)
    assert alone(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)
    assert alone.load is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": None}, "mass is None"),
        ({"mass": 6.0}, "mass is 6 kg; at most 5 kg"),
        ({"frame": "gripper"}, "frame 'gripper' is not fixed"),
        ({"center": None}, "center is None"),
    ],
)
def test_a_load_that_cannot_be_used_is_refused_with_the_way_out(tmp_path, changes, message):
    path = planar_arm.write(tmp_path / "loaded.yaml", with_load(**changes))
    with pytest.raises(IdentifiedFileError, match=rf"loaded\.yaml: the load .*{message}.*use_load false"):
        load_gravity_torque(path, planar_arm.urdf(), largest_load=5.0)
