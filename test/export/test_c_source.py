"""Test exported C source against Pinocchio and the Python model, with several compilers."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from c_arm import COMPILERS, CArm, arm_of
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_tree_urdf, random_urdf

from dynid_ros.export.c_source import c_header, c_identifier, c_source
from dynid_ros.export.exported_arm import ExportedLoad
from dynid_ros.identified.links import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import from_center_of_mass, transformed

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")

TOLERANCE = 1e-10
ARMS = {
    "panda_description/urdf/panda.urdf": "panda_hand",
    "ur_description/urdf/ur5_robot.urdf": "tool0",
    "kinova_description/robots/kinova.urdf": "j2s6s200_link_6",
    "talos_data/robots/talos_left_arm.urdf": "arm_left_7_link",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf": None,
}


def load_panda() -> RobotModel:
    return RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")


def draw_motions(robot: RobotModel, seed: int, count: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3, robot.n_joints)) * 1.5


def assert_agrees_with_pinocchio(robot: RobotModel, arm: CArm, seed: int, count: int) -> None:
    reference = PinocchioArm(robot.urdf or "", robot.joint_names, robot.gravity)
    for motion in draw_motions(robot, seed, count):
        for function, arguments, expected in (
            ("gravity_torque", motion[:1], reference.gravity_torque(motion[0])),
            ("inverse_dynamics", motion, reference.inverse_dynamics(*motion)),
        ):
            scale = max(np.abs(expected).max(), 1.0)
            np.testing.assert_allclose(arm.torque(function, *arguments), expected, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.parametrize("path", ARMS)
def test_real_arms_agree_with_pinocchio(path, tmp_path):
    robot = RobotModel.from_urdf(example_urdf(path), tip=ARMS[path])
    assert_agrees_with_pinocchio(robot, CArm(arm_of(robot), tmp_path), 1, 200)


@pytest.mark.parametrize("is_tree", [False, True])
def test_random_arms_agree_with_python(is_tree, tmp_path):
    """The arms have random axes, directions of gravity, and prismatic or mimic joints."""
    slides = mimics = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        urdf, tip = (random_tree_urdf(rng, 7), "all") if is_tree else (random_urdf(rng, 5), TIP)
        robot = RobotModel.from_urdf(urdf, tip, gravity=rng.normal(size=3) * 8)
        folder = tmp_path / str(seed)
        folder.mkdir()
        arm = CArm(arm_of(robot), folder)
        slides += robot.joint_types.count("prismatic")
        mimics += robot.chain.has_mimics
        for q, qd, qdd in draw_motions(robot, seed, 5):
            expected = robot.inverse_dynamics([q], [qd], [qdd])[0]
            np.testing.assert_allclose(
                arm.torque("inverse_dynamics", q, qd, qdd), expected, rtol=0, atol=TOLERANCE * 100
            )
            expected = robot.gravity_torque([q])[0]
            np.testing.assert_allclose(arm.torque("gravity_torque", q), expected, rtol=0, atol=TOLERANCE * 100)
    assert slides
    assert bool(mimics) == is_tree


def test_load_is_a_body_at_the_tip(tmp_path):
    robot = load_panda()
    arm = CArm(arm_of(robot), tmp_path)
    inertia, center = (
        np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.025]]),
        (0.05, -0.02, 0.1),
    )
    body = transformed(from_center_of_mass(2.5, np.array(center), inertia), robot.tip_offset)
    loaded = robot.parameters.copy()
    loaded[-10:] += body
    load = arm.load_type(2.5, center, tuple(inertia[np.triu_indices(3)]))
    for q, qd, qdd in draw_motions(robot, 2, 10):
        torque = arm.torque("inverse_dynamics", q, qd, qdd, load=load)
        np.testing.assert_allclose(torque, robot.inverse_dynamics([q], [qd], [qdd], loaded)[0], rtol=0, atol=1e-10)
        torque = arm.torque("gravity_torque", q, load=load)
        np.testing.assert_allclose(torque, robot.gravity_torque([q], loaded)[0], rtol=0, atol=1e-10)


ALL_TERMS = [
    JointFriction(offset=True, rotor_inertia=True, stribeck_velocity=0.1, load=True, sliding_length=0.02),
    JointFriction(asymmetric=True, saturation_velocity=0.5, dead_zone=0.01),
    JointFriction(smoothing=0.05, spring=True, offset=True, harmonics=(1.0, 2.0)),
    JointFriction.none(),
    JointFriction(dead_zone=0.02, smoothing=0.1),
    JointFriction(sliding_length=0.05),
    JointFriction(rotor_inertia=True),
]


def make_arm_with_all_terms() -> tuple[RobotModel, FrictionModel, np.ndarray]:
    robot = load_panda()
    loads = robot.parameters * 1.1
    friction = FrictionModel(ALL_TERMS, [(5, 6)], loads)
    return robot, friction, np.random.default_rng(3).uniform(0.1, 2.0, len(friction.names(robot)))


def test_torque_agrees_with_the_model(tmp_path):
    """The motion reverses, which exercises the memory of friction."""
    robot, friction, coefficients = make_arm_with_all_terms()
    arm = CArm(arm_of(robot, friction, coefficients), tmp_path)
    time = np.linspace(0.0, 4.0, 400)[:, None]
    speed = np.linspace(1.0, 3.0, robot.n_joints)
    q = np.sin(speed * time)
    qd = speed * np.cos(speed * time)
    qdd = -(speed**2) * np.sin(speed * time)
    q[100:110], qd[100:110] = q[100], 0.0  # standstill
    expected = LinkModel(robot, robot.parameters, friction, coefficients, None).predict(q, qd, qdd)
    memory = arm.memory_type()
    arm.library.arm_start_memory(ctypes.byref(memory), q[0].ctypes.data_as(ctypes.c_void_p))
    for k, motion in enumerate(zip(q, qd, qdd, strict=True)):
        arm.library.arm_advance_memory(ctypes.byref(memory), np.ascontiguousarray(q[k]).ctypes.data_as(ctypes.c_void_p))
        torque = arm.torque("torque", *motion, memory=memory, with_memory=True)
        np.testing.assert_allclose(torque, expected[k], rtol=0, atol=1e-10, err_msg=str(k))


def test_gravity_torque_includes_springs_and_offsets(tmp_path):
    robot, friction, coefficients = make_arm_with_all_terms()
    arm = CArm(arm_of(robot, friction, coefficients), tmp_path)
    value = dict(zip(friction.names(robot), coefficients, strict=True))
    q = np.linspace(-1.0, 1.0, robot.n_joints)
    extra_torque = arm.torque("gravity_torque", q) - robot.gravity_torque([q])[0]
    name = robot.joint_names[2]
    waves = sum(
        value[f"cos_{h:g} {name}"] * np.cos(h * q[2]) + value[f"sin_{h:g} {name}"] * np.sin(h * q[2]) for h in (1, 2)
    )
    expected = np.zeros(robot.n_joints)
    expected[2] = value[f"offset {name}"] + value[f"spring {name}"] * q[2] + waves
    np.testing.assert_allclose(extra_torque, expected, rtol=0, atol=1e-12)


def test_nan_gives_nan_and_outputs_may_be_inputs(tmp_path):
    robot, friction, coefficients = make_arm_with_all_terms()
    arm = CArm(arm_of(robot, friction, coefficients), tmp_path)
    q, qd, qdd = draw_motions(robot, 4, 1)[0]
    expected = arm.torque("inverse_dynamics", q, qd, qdd)
    shared = (ctypes.c_double * 7)(*q)
    others = [(ctypes.c_double * 7)(*array) for array in (qd, qdd)]
    arm.library.arm_inverse_dynamics(shared, *others, None, shared)
    np.testing.assert_array_equal(list(shared), expected)
    q[3] = np.nan
    assert np.isnan(arm.torque("gravity_torque", q)).any()
    memory = arm.memory_type()
    assert np.isnan(arm.torque("torque", q, qd, qdd, memory=memory, with_memory=True)).any()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_strict_compilers_give_no_warnings(compiler, tmp_path):
    robot, friction, coefficients = make_arm_with_all_terms()
    load = ExportedLoad(1.0, (0.0, 0.0, 0.1), (0.01,) * 6)
    CArm(arm_of(robot, friction, coefficients, load=load), tmp_path, compiler)
    CArm(arm_of(robot, parameters=None), tmp_path, compiler)


def test_source_has_no_allocation_or_static_state():
    robot, friction, coefficients = make_arm_with_all_terms()
    source = c_source(arm_of(robot, friction, coefficients), "arm", "arm.h")
    assert not re.search(r"alloc|\bfree\b|\bstatic (?!void|double \w+\()", source)
    assert re.findall(r"#include (.*)", source) == ['"arm.h"']


def test_names_are_escaped_for_c():
    assert c_identifier("my-arm 2") == "my_arm_2"
    assert c_identifier("7dof") == "_7dof"
    urdf = (
        '<robot name="a */ b"><link name="l&quot;??/"/><link name="t"/><joint name="ö\\" type="continuous">'
        '<parent link="l&quot;??/"/><child link="t"/></joint></robot>'
    )
    header = c_header(arm_of(RobotModel.from_urdf(urdf)), "arm")
    assert '"\\303\\266\\134"' in header
    assert header.count("*/") == header.count("/*")


def test_load_at_run_time_changes_load_dependent_friction(tmp_path):
    robot = load_panda()
    friction = FrictionModel([JointFriction(load=True)] * robot.n_joints, [], robot.parameters)
    coefficients = np.random.default_rng(5).uniform(0.1, 2.0, len(friction.names(robot)))
    arm = CArm(arm_of(robot, friction, coefficients), tmp_path)
    body = transformed(from_center_of_mass(2.5, np.array([0.05, -0.02, 0.1]), 0.02 * np.eye(3)), robot.tip_offset)
    loaded = robot.parameters.copy()
    loaded[-10:] += body
    loaded_friction = FrictionModel([JointFriction(load=True)] * robot.n_joints, [], loaded)
    load = arm.load_type(2.5, (0.05, -0.02, 0.1), (0.02, 0.0, 0.0, 0.02, 0.0, 0.02))
    reference = PinocchioArm(robot.urdf or "", robot.joint_names, robot.gravity)
    for q, qd, qdd in draw_motions(robot, 6, 10):
        torque = arm.torque("torque", q, qd, qdd, load=load, with_memory=True)
        expected = LinkModel(robot, loaded, loaded_friction, coefficients, None).predict([q], [qd], [qdd])[0]
        np.testing.assert_allclose(torque, expected, rtol=0, atol=1e-9)
        parts = [arm.torque(name, q, qd, qdd, with_memory=True) for name in ("torque", "joint_torque")]
        np.testing.assert_allclose(parts[0] - parts[1], reference.inverse_dynamics(q, qd, qdd), rtol=0, atol=1e-9)


def test_limits_of_continuous_joints_are_infinite(tmp_path):
    """The position of a continuous joint is unlimited, but its velocity and effort are limited."""
    limit = '<limit lower="-1.5" upper="0.5" velocity="2" effort="40"/>'
    urdf = (
        '<robot name="arm"><link name="base"/><link name="a"/><link name="b"/>'
        '<joint name="turns" type="continuous"><parent link="base"/><child link="a"/>'
        '<limit velocity="3" effort="50"/></joint>'
        f'<joint name="bends" type="revolute"><parent link="a"/><child link="b"/>{limit}</joint></robot>'
    )
    (tmp_path / "arm.h").write_text(c_header(arm_of(RobotModel.from_urdf(urdf)), "arm"))
    names = ("position_lower", "position_upper", "velocity_limit", "effort_limit")
    prints = "".join(f'printf("%g %g ", arm_{name}[0], arm_{name}[1]);' for name in names)
    (tmp_path / "main.c").write_text(f'#include <stdio.h>\n#include "arm.h"\nint main(void) {{ {prints} return 0; }}\n')
    subprocess.run(["gcc", "-std=c99", "main.c", "-o", "main"], cwd=tmp_path, check=True)
    output = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert [float(word) for word in output.split()] == [-np.inf, -1.5, np.inf, 0.5, 3.0, 2.0, 50.0, 40.0]
