"""Test the exported controller: its C++ header computes like the Python compensator."""

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import planar_arm
import pytest
from c_arm import arm_of
from command_line import run, run_refused
from pinocchio_arm import example_urdf

from dynid_ros.control import CarriedLoad, GravityCompensator, JointSettings, LoadedGravity, State, Timing
from dynid_ros.errors import ControlError
from dynid_ros.export.c_source import c_header, c_source
from dynid_ros.export.controller import TEMPLATES
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-ffp-contract=off"]
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
STATES = list(State)
ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "tool0"),
    "z1": ("z1_description/urdf/z1.urdf", None),
}
pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C++ compiler is installed")


def build(robot: RobotModel, folder: Path, compiler: str) -> Path:
    """Compile the header with the exported arm, and return the program."""
    arm = arm_of(robot)
    (folder / "arm.h").write_text(c_header(arm, "arm"), encoding="utf-8")
    (folder / "arm.c").write_text(c_source(arm, "arm", "arm.h"), encoding="utf-8")
    source = Path(__file__).with_name("replayed_loop.cpp")
    program = folder / "loop"
    subprocess.run(["gcc", "-std=c99", "-O2", "-c", "arm.c", "-o", "arm.o"], cwd=folder, check=True)
    command = [compiler, *STRICT, f"-I{folder}", f"-I{TEMPLATES}", str(source), "arm.o", "-lm", "-o", str(program)]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return program


def draw_events(robot: RobotModel, seed: int) -> list[tuple]:
    """Return events (kind, time, stamp, values): joint states with all faults and all calls."""
    rng = np.random.default_rng(seed)
    lower = np.maximum(robot.limits.lower, -3.0)
    upper = np.minimum(robot.limits.upper, 3.0)
    middle = lower + rng.uniform(0.3, 0.7, robot.n_joints) * (upper - lower)
    events: list[tuple] = []
    time = 5.0
    calls = ["enable", "load", "scale", "disable", "enable", "stop", "enable", "interrupt", "restart"]
    faults = ["nan", "far", "jump", "silence", "pause", "two drivers", "unstamped"]
    for kind in rng.permutation(calls * 4 + faults * 3):
        for k in range(rng.integers(5, 250)):
            time += 0.004 * rng.uniform(0.7, 1.5)
            q = middle + 0.05 * (upper - lower) * np.sin(0.4 * time + np.arange(robot.n_joints))
            stamp = time - 0.002
            if k == 3:
                q, stamp = _spoil_state(kind, q, stamp)
            events.append(("state", time, stamp, q.tolist()))
            if k == 1 and rng.random() < 0.6:
                events += _draw_call("enable", time, robot, rng)
            if k % 3 == 0:
                events.append(("watch", time + 0.001, 0.0, []))
        events += _draw_call(kind, time, robot, rng)
        if kind == "restart":
            time = 0.0
        silence = {"silence": 90, "pause": 12, "stop": 60}.get(kind, 2)
        events += [("watch", time + 0.01 * step, 0.0, []) for step in range(1, silence)]
        time = events[-1][1]
    return events


def _spoil_state(kind, q, stamp):
    if kind == "nan":
        return np.append(q[:-1], np.nan), stamp
    if kind == "far":
        return np.append(q[:-1], 50.0), stamp
    if kind in ("jump", "two drivers"):
        return q + 0.3, stamp
    return q, np.nan if kind == "unstamped" else stamp


def _draw_call(kind, time, robot, rng):
    if kind == "enable":
        return [("enable", time, 0.0, (0.1 * rng.choice([0.0, 1.0, 20.0]) * np.array(robot.limits.effort)).tolist())]
    if kind == "load":
        return [("load", time, 0.0, [rng.choice([0.0, 0.7, 1.5]), *rng.uniform(-0.1, 0.1, 3)])]
    if kind == "scale":
        return [("scale", time, 0.0, rng.uniform(0.0, 1.5, robot.n_joints).tolist())]
    return [(kind, time, 0.0, [])] if kind in ("disable", "stop", "interrupt", "restart") else []


def replay(robot: RobotModel, settings: dict, times: Timing, events: list[tuple]) -> np.ndarray:
    """Return state, whether it commands, refusal and torques of the Python compensator after each event."""
    model = GravityModel(robot)
    gravity = LoadedGravity(model, model.project(robot.parameters))
    joints = JointSettings.from_robot(robot, **settings)
    compensator = GravityCompensator(gravity, joints, times)
    rows = []
    for kind, time, stamp, values in events:
        torque = None
        is_refused = False
        try:
            if kind == "state":
                torque = compensator.update(time, values, None if np.isnan(stamp) else stamp)
            elif kind == "watch":
                torque = compensator.watch(time)
            elif kind == "enable":
                compensator.enable(time, values)
            elif kind == "disable":
                compensator.disable()
            elif kind == "stop":
                compensator.stop(time)
            elif kind == "interrupt":
                compensator.interrupt(time, "asked", fade=True)
            elif kind == "restart":
                compensator = GravityCompensator(gravity, compensator.joints, times)
            elif kind == "load":
                load = CarriedLoad(values[0], tuple(values[1:]), robot.tip) if values[0] else None
                gravity = gravity.carrying(load)
                compensator.replace(gravity, compensator.joints, load=True)
            elif kind == "scale":
                compensator.adjust(JointSettings.from_robot(robot, **settings | {"gain": values}), times)
        except ControlError:
            is_refused = True
        rows.append([STATES.index(compensator.state), torque is not None, is_refused, *compensator.torque])
    return np.array(rows, dtype=float)


def to_words(values) -> str:
    return " ".join(repr(float(value)) for value in values)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("arm", ARMS)
def test_header_computes_like_the_compensator(arm, compiler, tmp_path):
    path, tip = ARMS[arm]
    robot = RobotModel.from_urdf(example_urdf(path), tip=tip)
    times = Timing(0.8, 0.4, 0.2, 0.05, watch_motion=False)
    settings = {"fault_ramp_time": 0.4, "gain": [0.9]}
    joints = JointSettings.from_robot(robot, **settings)
    events = draw_events(robot, len(arm))
    rows = (joints.gain, joints.torque, joints.rate, joints.lower, joints.upper, joints.velocity)
    head = [*map(to_words, rows), to_words([0.8, 0.4, 0.2, 0.05])]
    script = "\n".join([*head, *(f"{kind} {to_words([time, stamp, *values])}" for kind, time, stamp, values in events)])
    program = build(robot, tmp_path, compiler)
    output = subprocess.run([program], input=script, capture_output=True, text=True, check=True).stdout
    replayed = np.array([line.split() for line in output.splitlines()], dtype=float)
    expected = replay(robot, settings, times, events)
    assert set(expected[:, 0]) == set(range(len(STATES))), "the script reaches every state"
    np.testing.assert_array_equal(replayed[:, :3], expected[:, :3])
    np.testing.assert_allclose(replayed[:, 3:], expected[:, 3:], rtol=0.0, atol=1e-9)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf(), encoding="utf-8")
    planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    return tmp_path


EXPORT = ("export", "--urdf", "arm.urdf", "--model", "identified.yaml", "--to", "controller", "--output")


def test_package_is_complete_and_can_be_overwritten(folder, capsys):
    for _ in range(2):
        assert run(capsys, *EXPORT, "planar_controller")[0] == 0
    package = folder / "planar_controller"
    files = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in package.rglob("*.*")}
    assert set(files) - {"experiment.yaml"} == {
        "CMakeLists.txt",
        "package.xml",
        "plugin.xml",
        "include/arm.h",
        "include/gravity_loop.hpp",
        "src/arm.c",
        "src/controller.cpp",
    }
    assert not any(re.search(r"@[A-Z]+@", text) for text in files.values())
    assert ElementTree.fromstring(files["package.xml"]).findtext("name") == "planar_controller"
    plugin = ElementTree.fromstring(files["plugin.xml"])
    assert plugin.get("path") == "planar_controller"
    assert plugin.find("class").get("type") == "planar_controller::GravityController"


@pytest.mark.parametrize("name", ["Planar", "planar-arm", "2arms"])
def test_invalid_package_name_is_refused(folder, capsys, name):
    run_refused(capsys, *EXPORT, name)
    assert not (folder / name).exists()


def test_file_in_place_of_the_folder_is_refused(folder, capsys):
    (folder / "taken").write_text("", encoding="utf-8")
    run_refused(capsys, *EXPORT, "taken")
