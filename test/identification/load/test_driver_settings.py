"""Load settings of drivers: names, order, units and frames as in the sources of the drivers."""

import re
import subprocess
from dataclasses import replace
from xml.sax.saxutils import quoteattr

import carried_loads
import numpy as np
import pytest
import yaml
from clean_recordings import arm
from hostile_names import HOSTILE_NAMES
from slide_arms import scara

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.identification.load.driver_settings import driver_settings
from dynid_ros.identification.load_result import LoadResult
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES

ROBOT = arm("demo")
FRANKA = np.array([0.020, 0.003, -0.002, 0.003, 0.030, 0.001, -0.002, 0.001, 0.025])


def make_result(values=None, errors=1e-4, size=10, robot=ROBOT):
    values = (carried_loads.parameters() if values is None else values)[:size]
    names = LOAD_NAMES[:size]
    unknown = np.full(size, np.nan)
    estimate = BaseEstimate(names, names, values, errors**2 * np.eye(size), unknown, np.full(size, 50.0))
    return LoadResult(robot, estimate, np.nan_to_num(values), 3.0, (), np.empty(0), np.empty(0), 0, ("run",), {})


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def join_lines(text, mark):
    """Return the lines that do not start with a comment mark as one line."""
    return " ".join(line for line in text.splitlines() if not line.startswith(mark))


TEXTS = driver_settings(make_result())


def near(values, **tolerance):
    return pytest.approx(values, **(tolerance or {"abs": 1e-4}))


def test_settings_of_the_gravity_compensation_filter():
    node = yaml.safe_load(TEXTS["gravity_compensation_filter.yaml"])["force_torque_sensor_broadcaster"]
    chain = node["ros__parameters"]["sensor_filter_chain"]["filter1"]
    assert chain["type"] == "control_filters/GravityCompensationWrench"
    assert chain["params"] == {
        "world_frame": "base_link",
        "sensor_frame": "tool",
        "tool": {"mass": near(3.2), "CoG": near([0.03, -0.05, 0.12]), "gravity_field": [0.0, 0.0, -9.80665]},
    }


def test_filter_removes_the_wrench_of_the_load():
    """The filter of control_toolbox subtracts m g and CoG × m g, both in the axes of the sensor."""
    tool = yaml.safe_load(TEXTS["gravity_compensation_filter.yaml"])["force_torque_sensor_broadcaster"]
    tool = tool["ros__parameters"]["sensor_filter_chain"]["filter1"]["params"]["tool"]
    truth = carried_loads.LoadedArm(ROBOT.urdf, "tool", ROBOT.gravity)
    for q in np.random.default_rng(0).uniform(-2, 2, (5, ROBOT.n_joints)):
        still = np.zeros_like(q)
        turn = ROBOT.forward_kinematics(q[None])[0, -1, :3, :3] @ ROBOT.tip_offset[:3, :3]
        weight = tool["mass"] * turn.T @ tool["gravity_field"]
        taken = np.concatenate([weight, np.cross(tool["CoG"], weight)])
        assert taken == near(truth.wrench(q, still, still), abs=0.02)


def test_settings_of_the_static_transform():
    words = join_lines(TEXTS["static_transform.sh"], "#").split()
    assert words[:4] == ["ros2", "run", "tf2_ros", "static_transform_publisher"]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert [float(options[f"--{axis}"]) for axis in "xyz"] == near([0.03, -0.05, 0.12])
    assert (options["--frame-id"], options["--child-frame-id"]) == ("tool", "load")


def test_settings_of_the_admittance_controller():
    node = yaml.safe_load(TEXTS["admittance_controller.yaml"])["admittance_controller"]["ros__parameters"]
    assert node == {
        "fixed_world_frame": {"frame": {"id": "base_link"}},
        "gravity_compensation": {
            "frame": {"id": "tool"},
            "CoG": {"pos": near([0.03, -0.05, 0.12]), "force": near(3.2 * 9.80665, abs=0.005)},
        },
    }


def test_arm_on_a_wall_has_no_world_frame():
    robot = RobotModel.from_urdf(ROBOT.urdf, gravity=(9.80665, 0.0, 0.0))
    text = driver_settings(make_result(robot=robot))["admittance_controller.yaml"]
    assert "fixed_world_frame" not in yaml.safe_load(text)["admittance_controller"]["ros__parameters"]
    assert "gravity must point along its -z" in text


def test_settings_of_universal_robots():
    script = join_lines(TEXTS["ur.script"], "#")
    assert re.fullmatch(r"set_target_payload\([\d., \[\]-]+\)", script)
    inertia = [0.020, 0.030, 0.025, 0.003, -0.002, 0.001]
    assert numbers(script) == near([3.2, 0.03, -0.05, 0.12, *inertia], abs=3e-4)
    early = yaml.safe_load(TEXTS["ur_set_payload.yaml"])
    late = yaml.safe_load(TEXTS["ur_set_payload_7.yaml"])
    center = {"x": near(0.03), "y": near(-0.05), "z": near(0.12)}
    assert early == {"mass": near(3.2), "center_of_gravity": center}
    tensor = dict(zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), inertia, strict=True))
    inertia_fields = {name: near(value, abs=3e-4) for name, value in tensor.items()}
    assert late == {"payload": {"m": near(3.2), "com": center, **inertia_fields}}


def test_settings_of_franka():
    service = yaml.safe_load(TEXTS["franka_set_load.yaml"])
    assert list(service) == ["mass", "center_of_mass", "load_inertia"]
    assert service["load_inertia"] == near(FRANKA, abs=3e-4)
    code = join_lines(TEXTS["franka.cpp"], "//")
    assert code.startswith("robot.setLoad(")
    assert numbers(code) == near([3.2, 0.03, -0.05, 0.12, *FRANKA], abs=3e-4)


def test_omits_an_unknown_inertia():
    texts = driver_settings(make_result(size=4))
    assert numbers(join_lines(texts["ur.script"], "#")) == near([3.2, 0.03, -0.05, 0.12])
    assert "left out, as it is not known (the arm was at rest): the robot takes it for zero" in texts["ur.script"]
    assert set(yaml.safe_load(texts["ur_set_payload_7.yaml"])["payload"]) == {"m", "com"}
    assert yaml.safe_load(texts["franka_set_load.yaml"]) is None
    assert join_lines(texts["franka.cpp"], "//") == ""
    assert "No call is given" in texts["franka.cpp"]


def test_marks_an_uncertain_inertia():
    assert "it is a guess" not in TEXTS["ur.script"]
    assert "it is a guess" in driver_settings(make_result(errors=0.1))["ur.script"]


@pytest.mark.parametrize(
    ("values", "words"),
    [(np.full(10, np.nan), "do not show the mass"), (np.array([1e-5, *np.zeros(9)]), "no load is shown")],
)
def test_refuses_settings_without_a_mass(values, words):
    with pytest.raises(IdentificationError, match=words):
        driver_settings(make_result(values))


def test_explains_a_load_that_the_arm_cannot_tilt():
    """A SCARA determines the mass, two coordinates of the center and the inertia about the vertical axis."""
    values = carried_loads.parameters()
    values[3:9] = np.nan
    partly = make_result(values, robot=scara())
    with pytest.raises(IdentificationError, match="do not show the centre of mass"):
        driver_settings(partly)
    assert not any("at rest" in line for line in partly.joint_table())
    (missing,) = partly.missing
    assert "cannot tilt the load" in missing
    (missing,) = make_result(values).missing
    assert "record a motion" in missing


def test_small_numbers_are_yaml_floats():
    tiny = carried_loads.parameters(mass=2.0, center=np.zeros(3), inertia=2e-6 * np.eye(3))
    texts = driver_settings(make_result(tiny, errors=1e-9))
    assert yaml.safe_load(texts["franka_set_load.yaml"])["mass"] == 2.0
    for name, text in texts.items():
        if name.endswith(".yaml"):
            assert not re.search(r"\de-?\d|[ \[]-?\d+[,\]\n}]", join_lines(text, "#")), name


def settings_of_renamed_arm(name):
    """Return the settings of an arm whose name, base, tip and recording contain the name."""
    quoted = quoteattr(name)
    urdf = re.sub('"(base_link|tool)"', lambda match: quoteattr(f"{name}{match[1]}"), ROBOT.urdf)
    urdf = re.sub("<robot name=[^ >]*", lambda match: f"<robot name={quoted}", urdf)
    robot = RobotModel.from_urdf(urdf, f"{name}tool", gravity=ROBOT.gravity)
    assert (robot.name, robot.tip) == (name, f"{name}tool")
    return driver_settings(replace(make_result(robot=robot), sources=(f"{name}.csv", "line\nbreak\u2028.csv")))


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_quoted(name, tmp_path):
    texts = settings_of_renamed_arm(name)
    ros2 = tmp_path / "ros2"
    ros2.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    ros2.chmod(0o755)
    (tmp_path / "run.sh").write_text(texts["static_transform.sh"])
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    run = subprocess.run(["sh", "run.sh"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    words = run.stdout.split("\0")
    assert words[words.index("--frame-id") + 1] == f"{name}tool"
    assert not run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ros2", "run.sh"]
    for file, plain_text in TEXTS.items():
        assert len(texts[file].splitlines()) == len(plain_text.splitlines())
        if file.endswith(".yaml"):
            yaml.safe_load(texts[file])
    node = yaml.safe_load(texts["gravity_compensation_filter.yaml"])["force_torque_sensor_broadcaster"]
    parameters = node["ros__parameters"]["sensor_filter_chain"]["filter1"]["params"]
    assert (parameters["world_frame"], parameters["sensor_frame"]) == (f"{name}base_link", f"{name}tool")
    comments = [line for line in texts["franka.cpp"].splitlines() if line.startswith("//")]
    assert not any(line.endswith(("\\", "??/")) for line in comments)
