import math

import numpy as np
import planar_arm
import pytest

from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import IdentifiedFileError, ModelError


@pytest.fixture
def model_file(tmp_path):
    return planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())


def test_torque_is_that_of_the_potential_energy(model_file):
    robot, gravity = load_gravity_torque(model_file, planar_arm.urdf())
    assert tuple(robot.joint_names) == planar_arm.JOINTS
    for q in np.random.default_rng(1).uniform(-2.5, 2.5, (50, 3)).tolist():
        assert gravity(q) == pytest.approx(planar_arm.gravity_torque(q), abs=1e-12)


def test_torque_is_that_of_pinocchio(model_file):
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromXML(planar_arm.urdf())
    model.gravity.linear = np.array([0.0, 0.0, -planar_arm.G])
    data = model.createData()
    _, gravity = load_gravity_torque(model_file, planar_arm.urdf())
    for q in np.random.default_rng(2).uniform(-2.5, 2.5, (20, 3)):
        expected = pinocchio.computeGeneralizedGravity(model, data, q)
        np.testing.assert_allclose(gravity(q.tolist()), expected, atol=1e-10)


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
        ({"gravity__joint_3__n_x": "much"}, "n_x of joint 'joint_3' is 'much'"),
        ({"gravity__joint_3__n_x": float("nan")}, "n_x of joint 'joint_3' is nan"),
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


@pytest.mark.parametrize(
    "text",
    ["format: [unclosed", "!!python/object/apply:os.system ['true']", "a: !secret 1", "\x00\x01", "just words", ""],
)
def test_text_that_is_not_plain_yaml_is_refused(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(IdentifiedFileError, match=r"bad\.yaml"):
        load_gravity_torque(path, planar_arm.urdf())


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(IdentifiedFileError, match=r"none\.yaml"):
        load_gravity_torque(tmp_path / "none.yaml", planar_arm.urdf())


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
