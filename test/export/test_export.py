"""Test `dynid export`: its files, remarks and refusals."""

import ast
import json
import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import link_experiment
import numpy as np
import planar_arm
import pytest
from c_arm import CArm, arm_of
from command_line import run, run_refused
from hostile_names import HOSTILE_NAMES

from dynid_ros.control.gravity_feedforward import load_gravity_torque
from dynid_ros.export import isaac, sdf
from dynid_ros.export.exported_arm import ExportedArm, Motion
from dynid_ros.identification import LinkIdentification
from dynid_ros.identified.gravity import gravity_section
from dynid_ros.identified.identified_file import load_identified, new_document, save_identified
from dynid_ros.identified.joint_friction import joint_friction_entry
from dynid_ros.identified.links import link_model
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.model.friction import JointFriction

PLANAR, TRUTH = link_experiment.build_planar()
ISAAC_FIELDS = (
    "armature",
    "friction",
    "dynamic_friction",
    "viscous_friction",
    "effort_limit_sim",
    "velocity_limit_sim",
)
"""Fields of ActuatorBaseCfg in Isaac Lab 2.3 and 3.0."""


@pytest.fixture(name="folder")
def fixture_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(planar_arm.urdf())
    return tmp_path


@pytest.fixture(name="fitted", scope="module")
def fixture_fitted():
    friction = JointFriction(coulomb=True, viscous=True, offset=True, stribeck_velocity=0.1)
    return LinkIdentification(PLANAR, friction=friction, prior_weight=1.0).fit(
        link_experiment.record(PLANAR, 1.3 * PLANAR.parameters)
    )


@pytest.fixture(name="links")
def fixture_links(fitted, folder):
    """Write `identified.yaml` with links."""
    link_experiment.record(PLANAR, 1.3 * PLANAR.parameters).write_npz("run.npz")
    return fitted.save(folder / "identified.yaml")


@pytest.fixture(name="gravity")
def fixture_gravity(folder):
    """Write a file with gravity only, and dry friction in both directions."""
    model = GravityModel(PLANAR)
    moments = model.project(1.2 * PLANAR.parameters)
    document = new_document(PLANAR, [], {})
    document["gravity"] = gravity_section(model, moments, np.full(len(moments), 0.01), {})
    terms = {"torque_positive": (2.5, 0.1, 9), "torque_negative": (-1.5, 0.1, 9), "viscous": (0.3, 0.1, 9)}
    document["friction"] = {joint: joint_friction_entry(terms) for joint in PLANAR.joint_names}
    return save_identified(folder / "gravity.yaml", document)


def list_arguments(model, target, output):
    return ("export", "--model", model, "--urdf", "arm.urdf", "--to", target, "--output", output)


def test_c_of_links_computes_the_identified_torque(links, capsys, tmp_path):
    code, out, err = run(capsys, *list_arguments(links, "c", "my-arm.h"))
    assert (code, err) == (0, "")
    assert "holds gravity torque, inverse dynamics with any load at 'link_3'" in out
    assert "stribeck" in out
    assert "wrote my-arm.h, my-arm.c" in out
    assert "void my_arm_torque(" in (tmp_path / "my-arm.h").read_text()
    robot = RobotModel.from_urdf("arm.urdf")
    arm = CArm(ExportedArm.read(links, robot), tmp_path)
    model = link_model(load_identified(links), robot)
    for motion in np.random.default_rng(0).normal(size=(10, 3, 3)):
        torque = arm.torque("torque", *motion, with_memory=True)
        np.testing.assert_allclose(torque, model.predict(*motion[:, None])[0], rtol=0, atol=1e-10)


def test_c_of_gravity_agrees_with_gravity_compensation(gravity, capsys, tmp_path):
    code, out, _ = run(capsys, *list_arguments(gravity, "c", "arm"))
    assert code == 0
    assert "no inverse dynamics: gravity.yaml knows gravity alone" in out
    assert "#define ARM_HAS_INVERSE_DYNAMICS 0" in (tmp_path / "arm.h").read_text()
    robot, expected = load_gravity_torque(gravity, "arm.urdf")
    arm = CArm(ExportedArm.read(gravity, robot), tmp_path)
    for q in np.random.default_rng(1).normal(size=(10, 3)):
        np.testing.assert_allclose(arm.torque("gravity_torque", q), expected(q), rtol=0, atol=1e-12)
    joints = arm.torque("joint_torque", np.zeros(3), np.array([1.0, -1.0, 0.0]), np.zeros(3), with_memory=True)
    np.testing.assert_allclose(joints, [0.5 + 2.0 + 0.3, 0.5 - 2.0 - 0.3, 0.5], rtol=0, atol=1e-12)


def test_load_of_the_file_is_in_the_header(gravity, capsys, tmp_path):
    document = dict(load_identified(gravity))
    document["load"] = {"mass": 1.5, "center": [0.0, 0.1, 0.2], "frame": "link_3", "inertia": None}
    save_identified(gravity, document)
    assert run(capsys, *list_arguments(gravity, "c", "arm"))[0] == 0
    assert "arm_identified_load = {1.5, {0.0, 0.1, 0.2}, {0.0, " in (tmp_path / "arm.h").read_text()
    document["load"]["frame"] = "link_2"
    save_identified(gravity, document)
    assert "its load is at link 'link_2', the arm ends at 'link_3'" in run_refused(
        capsys, *list_arguments(gravity, "c", "arm2")
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name, folder):
    urdf = re.sub(' name="([^"]*)"', lambda match: f" name={quoteattr(name + match[1])}", planar_arm.urdf())
    urdf = re.sub(
        '<(parent|child) link="([^"]*)"', lambda match: f"<{match[1]} link={quoteattr(name + match[2])}", urdf
    )
    robot = RobotModel.from_urdf(urdf)
    model = GravityModel(robot)
    document = new_document(robot, [], {})
    moments = model.project(robot.parameters)
    document["gravity"] = gravity_section(model, moments, np.full(len(moments), 0.01), {})
    save_identified(folder / f"{name.replace('/', '_')}.yaml", document)
    motion = Motion.sinusoids(robot)
    arm = ExportedArm.read(folder / f"{name.replace('/', '_')}.yaml", robot)
    assert robot.joint_names[0].startswith(name)
    CArm(arm, folder)
    isaac.write(arm, folder / "actuator.py", motion)
    module = ast.parse((folder / "actuator.py").read_text())
    assert [type(statement) for statement in module.body] == [ast.Expr, ast.Assign]
    sdf.write(arm, folder / "arm.sdf", motion)
    joints = ElementTree.parse(folder / "arm.sdf").findall("model/joint")
    assert set(robot.joint_names) <= {joint.get("name") for joint in joints}


@pytest.mark.parametrize("name", ['a".h', "a\\.h", "a??.h", "a\nb.h"])
def test_file_names_that_no_include_can_contain_are_refused(links, capsys, name):
    run_refused(capsys, *list_arguments(links, "c", name))


def test_incomplete_files_are_refused(gravity, capsys, folder):
    document = new_document(PLANAR, [], {})
    save_identified(folder / "empty.yaml", document)
    assert "neither links nor gravity in it" in run_refused(capsys, *list_arguments("empty.yaml", "c", "arm"))
    document = dict(load_identified(gravity))
    document["gravity"]["joint_2"] |= {"observable": False, "reason": "never moved"}
    save_identified(folder / "unknown.yaml", document)
    assert "joint 'joint_2' was not observable (never moved)" in run_refused(
        capsys, *list_arguments("unknown.yaml", "c", "arm")
    )
    assert "arm.txt: C is written into" in run_refused(capsys, *list_arguments(gravity, "c", "arm.txt"))
    other = arm_of(PLANAR)
    assert other.parameters is not None
    assert not (folder / "arm.h").exists()


def test_urdf_of_links_has_inertias_and_friction(links, capsys, tmp_path):
    code, out, err = run(capsys, *list_arguments(links, "urdf", "new.urdf"))
    assert (code, err) == (0, "")
    assert "a URDF cannot hold: offset of all joints" in out
    exported = RobotModel.from_urdf("new.urdf")
    model = link_model(load_identified(links), exported)
    np.testing.assert_allclose(exported.parameters, model.parameters, rtol=1e-9, atol=1e-9)
    joints = ElementTree.parse("new.urdf").getroot().findall("joint")
    dynamics = {joint.get("name"): joint.findall("dynamics") for joint in joints if joint.get("type") != "fixed"}
    assert [len(elements) for elements in dynamics.values()] == [1, 1, 1]
    assert 0.0 < float(dynamics["joint_1"][0].get("friction")) < 10.0


def test_urdf_of_gravity_has_its_torque(gravity, capsys):
    code, out, _ = run(capsys, *list_arguments(gravity, "urdf", "new.urdf"))
    assert code == 0
    assert "the centre that moved most is" in out
    new = RobotModel.from_urdf("new.urdf")
    old, expected = load_gravity_torque(gravity, "arm.urdf")
    for q in np.random.default_rng(2).normal(size=(10, 3)):
        np.testing.assert_allclose(new.gravity_torque([q])[0], expected(q), atol=1e-9)
    np.testing.assert_allclose(new.parameters[::10], old.parameters[::10])
    assert 'damping="0.3" friction="2.0"' in Path("new.urdf").read_text()


def test_friction_error_is_evaluated_on_a_recording(links, capsys):
    link_experiment.record(PLANAR, 1.3 * PLANAR.parameters, 5).write_npz("other.npz")
    code, out, _ = run(capsys, *list_arguments(links, "urdf", "new.urdf"), "--recording", "other.npz", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["friction"]["motion"] == "other.npz"
    assert set(document["friction"]["error"]) == set(PLANAR.joint_names)
    assert "one recording, not 2" in run_refused(
        capsys, *list_arguments(links, "urdf", "b.urdf"), "--recording", "other.npz", "--recording", "run.npz"
    )


def test_isaac_export_is_a_python_module(links, capsys, tmp_path):
    code, out, _ = run(capsys, *list_arguments(links, "isaac", "arm_actuator.py"))
    assert code == 0
    assert "armature is 0: no rotor inertia was identified" in out
    actuator = runpy.run_path("arm_actuator.py")["ACTUATOR"]
    assert actuator["joint_names_expr"] == list(PLANAR.joint_names)
    assert set(actuator) == {"joint_names_expr", *ISAAC_FIELDS}
    for joint in PLANAR.joint_names:
        assert actuator["friction"][joint] >= actuator["dynamic_friction"][joint] > 0.0
        assert actuator["armature"][joint] == 0.0
    assert actuator["velocity_limit_sim"] == dict(zip(PLANAR.joint_names, PLANAR.limits.velocity, strict=True))
    assert "a file that ends in .py" in run_refused(capsys, *list_arguments(links, "isaac", "arm.yaml"))


def test_missing_suffix_follows_from_the_format(gravity, capsys, folder):
    targets = ["c", "urdf", "sdf", "isaac", *(["mjcf"] if find_spec("mujoco") else [])]
    for target in targets:
        assert run(capsys, *list_arguments(gravity, target, "arm_model"))[0] == 0
    suffixes = sorted(path.suffix for path in folder.glob("arm_model*") if path.suffix != ".yaml")
    assert suffixes == sorted({".h", ".c", ".urdf", ".sdf", ".py"} | ({".xml"} if "mjcf" in targets else set()))
    (folder / "folder").mkdir()
    assert "it is a folder" in run_refused(capsys, *list_arguments(gravity, "urdf", "folder"))


@pytest.mark.parametrize(("target", "name", "words"), [("mjcf", "new.xml", "armature"), ("sdf", "new.sdf", "springs")])
def test_simulator_exports_of_links_and_of_gravity(target, name, words, links, gravity, capsys):
    if target == "mjcf":
        pytest.importorskip("mujoco")
    for model in (links, gravity):
        code, out, err = run(capsys, *list_arguments(model, target, name))
        assert (code, err) == (0, "")
        assert words in out.splitlines()[0]
        assert "cannot hold: offset of all joints" in out
        assert "no shapes" in out
        root = ElementTree.parse(name).getroot()
        names = {element.get("name") for element in root.iter("joint")}
        assert set(PLANAR.joint_names) <= names


def test_urdf_export_reports_missing_springs_and_load(gravity, capsys):
    document = dict(load_identified(gravity))
    document["load"] = {"mass": 1.5, "center": [0.0, 0.1, 0.2], "frame": "link_3", "inertia": None}
    document["flexible_joints"] = {"joint_2": {"stiffness": 500.0, "decided": {"stiffness": True}}}
    save_identified(gravity, document)
    code, out, _ = run(capsys, *list_arguments(gravity, "urdf", "new.urdf"), "--verbose")
    assert code == 0
    assert "a URDF has the arm without the 1.5 kg that gravity.yaml knows as its load" in out
    assert "a URDF has rigid joints, without the springs that were identified" in out
    sag = float(re.search(r"error of gravity at positions of motors.*joint_2 ([0-9.e-]+)", out)[1])
    _, soft = load_gravity_torque(gravity, "arm.urdf", use_load=False)
    _, rigid = load_gravity_torque(gravity, "arm.urdf", use_load=False, use_springs=False)
    poses = Motion.sinusoids(RobotModel.from_urdf("arm.urdf")).q[::100].tolist()
    differences = [soft(pose)[1] - rigid(pose)[1] for pose in poses]
    assert sag == pytest.approx(np.sqrt(np.mean(np.square(differences))), rel=0.01)
    assert sag > 0.0
