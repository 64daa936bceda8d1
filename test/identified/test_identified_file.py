"""Test identified.yaml: round trip, and refusal of malformed files and other robots."""

import known_problems as problems
import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import DOF, check_same_robot, dof_of, load_identified
from dynid_ros.model import GravityModel, RobotModel


@pytest.fixture(name="robot", scope="module")
def fixture_robot():
    return RobotModel.from_dh(problems.sarcos_dh(), gravity=(3.0, 2.0, -9.1))


@pytest.fixture(name="result", scope="module")
def fixture_result(robot):
    q = problems.single_rotations(np.random.default_rng(1).uniform(-1, 1, 7), np.pi, 8)
    torque = problems.dh_gravity_torque(
        problems.sarcos_dh(), problems.sarcos_masses(), problems.SARCOS_MOMENTS, q, robot.gravity
    )
    m = len(q)
    direction = problems.approach_directions(8, 7, 7)
    samples = Samples(q, 0 * q, torque + direction, direction, np.ones(m, bool), np.arange(m) * 1.0, np.zeros(m, int))
    return GravityIdentification(robot).fit_samples(samples, ["run"])


def test_identified_file_round_trips(robot, result, tmp_path):
    document = load_identified(result.save(tmp_path / "arm.identified.yaml"))
    check_same_robot(document, robot)
    np.testing.assert_array_equal(gravity_moments(document, GravityModel(robot)), result.parameters)
    assert document["format"] == "dynid/1"
    assert document["source"]["recordings"] == ["run"]
    assert document["gravity"]["joint_2"]["std"]["n_x"] == result.standard_errors[2]
    assert document["friction"]["joint_4"]["coulomb"] == pytest.approx(1.0)


def test_refuses_yaml_tags(tmp_path):
    path = tmp_path / "evil.yaml"
    path.write_text("format: dynid/1\nrobot: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(IdentifiedFileError, match="tags"):
        load_identified(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: dynid/9\n", "expected dynid/1 or dynid/2"),
        ("format: dynid/3\nsource: {version: 7.1.0}\n", "dynid_ros 7.1.0 or newer"),
        ("[1, 2]", "expected dynid/1 or dynid/2"),
        ("", "expected dynid/1 or dynid/2"),
        ("format: dynid/1\n", "section 'robot'"),
        ("a: [", "not plain YAML"),
    ],
)
def test_refuses_malformed_files(text, message, tmp_path):
    path = tmp_path / "identified.yaml"
    path.write_text(text)
    with pytest.raises(IdentifiedFileError, match=message) as caught:
        load_identified(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows, g: (rows[:-1], g), "with joints"),
        (lambda rows, g: ([rows[0] | {"d": 0.1}, *rows[1:]], g), "other axes or placements"),
        (lambda rows, g: (rows, (0, 0, -9.80665)), "gravity"),
    ],
)
def test_refuses_files_of_another_robot(change, message, robot, result):
    rows, gravity = change(problems.sarcos_dh(), robot.gravity)
    with pytest.raises(IdentifiedFileError, match=message):
        check_same_robot(result.document(), RobotModel.from_dh(rows, gravity=gravity))


def test_refuses_joints_without_observability(robot, result):
    document = result.document()
    del document["gravity"]["joint_3"]["observable"]
    with pytest.raises(IdentifiedFileError, match=r"joint_3.*was not observable"):
        gravity_moments(document, GravityModel(robot))


def test_refuses_unobservable_joints_that_carry_gravity(robot, result):
    document = result.document()
    document["gravity"]["joint_3"] |= {"observable": False, "reason": "spans only 5 degrees"}
    with pytest.raises(IdentifiedFileError, match=r"joint_3.*spans only 5 degrees"):
        gravity_moments(document, GravityModel(robot))
    upright = RobotModel.from_urdf(planar_arm.urdf())
    moments = gravity_moments(planar_arm.document(), GravityModel(upright))
    np.testing.assert_allclose(moments, [0, 0, planar_arm.MOMENTS["joint_2"], 0, planar_arm.MOMENTS["joint_3"], 0])


@pytest.mark.parametrize("value", [None, "1.0", float("nan"), True, [1.0]])
def test_refuses_moments_that_are_not_numbers(value, robot, result):
    document = result.document()
    document["gravity"]["joint_2"]["n_x"] = value
    with pytest.raises(IdentifiedFileError, match=r"joint 'joint_2'.*n_x"):
        gravity_moments(document, GravityModel(robot))


@pytest.mark.parametrize(
    ("document", "entry", "expected"),
    [
        ({DOF: 7}, None, 7.0),
        ({DOF: 7}, {}, 7.0),
        ({DOF: 7}, {DOF: 3.5}, 3.5),
        ({DOF: 7}, {DOF: {"mass": 4}}, 4.0),
        ({DOF: 7}, {DOF: {"n_x": 4}}, np.inf),
        ({}, {}, np.inf),
        ({DOF: None}, None, np.inf),
        ({DOF: "many"}, None, np.inf),
        ({DOF: -1}, None, np.inf),
    ],
)
def test_reads_degrees_of_freedom(document, entry, expected):
    assert dof_of(document, entry, "mass") == expected
