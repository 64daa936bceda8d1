"""Test MJCF files by MuJoCo: torque, friction, springs and servos."""

import sys
from dataclasses import replace

import mujoco
import numpy as np
import planar_arm
import pytest
from c_arm import arm_of
from exported_arms import ARMS, load_identified_arm
from pinocchio_arm import example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.export import mjcf_file
from dynid_ros.export.export import export
from dynid_ros.export.exported_arm import Motion
from dynid_ros.export.exported_urdf import exported_urdf
from dynid_ros.export.held_friction import HeldFriction
from dynid_ros.identified.servos import ServoDrive
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording.series import CommandPath
from dynid_ros.simulation import SimulatedArm, mjcf
from dynid_ros.simulation.drives import KnownFriction
from dynid_ros.simulation.replay import Replay


def export_model(arm, path):
    mjcf_file.write(arm, path, Motion.sinusoids(arm.robot))
    return mujoco.MjModel.from_xml_path(str(path))


def inverse_dynamics(model, robot, q, qd, qdd):
    """Return the torque of the arm's joints with friction loss as a constraint."""
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in robot.joint_names]
    for joint, *state in zip(joints, q, qd, qdd, strict=True):
        data.qpos[joint.qposadr], data.qvel[joint.dofadr], data.qacc[joint.dofadr] = state
    mujoco.mj_inverse(model, data)
    return np.array([data.qfrc_inverse[joint.dofadr[0]] for joint in joints])


def test_torque_of_panda_with_friction_terms(tmp_path):
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    joint = JointFriction(coulomb=False, offset=True, rotor_inertia=True, spring=True)
    friction = FrictionModel([joint] * 7)
    coefficients = np.random.default_rng(0).uniform(0.1, 1.0, 28)
    model = export_model(arm_of(robot, friction, coefficients), tmp_path / "panda.xml")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    for q, qd, qdd in np.random.default_rng(1).normal(size=(20, 3, 7)):
        expected = robot.inverse_dynamics([q], [qd], [qdd])[0]
        expected += (friction.of_motion(robot, *(x[None] for x in (q, qd, qdd))) @ coefficients)[0]
        np.testing.assert_allclose(inverse_dynamics(model, robot, q, qd, qdd), expected, atol=1e-9)


@pytest.mark.parametrize("path", ARMS)
def test_links_of_real_arms_give_their_torque(path, tmp_path):
    robot, links = load_identified_arm(path)
    model = export_model(arm_of(robot, parameters=links), tmp_path / "arm.xml")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT | mujoco.mjtDisableBit.mjDSBL_EQUALITY
    for q, qd, qdd in np.random.default_rng(1).normal(size=(10, 3, robot.n_joints)):
        expected = robot.inverse_dynamics([q], [qd], [qdd], links)[0]
        actual = inverse_dynamics(model, robot, q, qd, qdd)
        np.testing.assert_allclose(actual, expected, atol=1e-9 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize(
    "inertial",
    [
        '<inertial><mass value="0.03"/><inertia ixx="1e-6" iyy="1e-6" izz="5e-6" ixy="0" ixz="0" iyz="0"/></inertial>',
        '<inertial><mass value="0.03"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>',
        "",
    ],
    ids=["impossible", "zero", "none"],
)
def test_impossible_finger_inertias_are_repaired(tmp_path, inertial):
    finger = (
        f'<link name="finger">{inertial}</link><joint name="slide" type="prismatic"><parent link="link_3"/>'
        '<child link="finger"/><origin xyz="0.2 0 0"/><axis xyz="1 0 0"/>'
        '<limit lower="0" upper="0.04" effort="10" velocity="0.1"/></joint>'
    )
    robot = RobotModel.from_urdf(planar_arm.urdf().replace("</robot>", f"{finger}</robot>"), tip="link_3")
    path = tmp_path / "arm.xml"
    export = mjcf_file.write(arm_of(robot), path, Motion.sinusoids(robot))
    assert any("finger" in remark for remark in export.remarks)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    for q, qd, qdd in np.random.default_rng(1).normal(size=(10, 3, 3)):
        expected = robot.inverse_dynamics([q], [qd], [qdd])[0]
        np.testing.assert_allclose(inverse_dynamics(model, robot, q, qd, qdd), expected, atol=1e-9)


def test_random_chains_with_random_gravity(tmp_path):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP, gravity=rng.normal(size=3) * 8)
        if not robot.parameters[::10].all():
            continue
        model = export_model(arm_of(robot), tmp_path / "arm.xml")
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
        q, qd, qdd = rng.normal(size=(3, 4))
        expected = robot.inverse_dynamics([q], [qd], [qdd])[0]
        actual = inverse_dynamics(model, robot, q, qd, qdd)
        np.testing.assert_allclose(actual, expected, atol=1e-9 * max(np.abs(expected).max(), 1.0))


def test_joints_have_friction_limits_and_motors(tmp_path):
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    arm = arm_of(robot, FrictionModel([JointFriction(rotor_inertia=True)] * 7), np.tile([2.0, 0.5, 0.1], 7))
    model = export_model(arm, tmp_path / "panda.xml")
    dofs = [model.joint(name).dofadr[0] for name in robot.joint_names]
    np.testing.assert_allclose(model.dof_frictionloss[dofs], 2.0)
    np.testing.assert_allclose(model.dof_armature[dofs], 0.1)
    limits = [model.joint(name).range for name in robot.joint_names]
    np.testing.assert_allclose(limits, np.stack([robot.limits.lower, robot.limits.upper], axis=1), atol=1e-6)
    motors = [model.actuator(name) for name in robot.joint_names]
    np.testing.assert_allclose([motor.ctrlrange[1] for motor in motors], robot.limits.effort)
    data = mujoco.MjData(model)
    data.ctrl[:] = np.arange(7)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.qfrc_actuator[dofs], np.arange(7))


def servo_arm(**friction):
    """Return an arm of three joints, the first of which has a servo."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    coefficients = np.tile([2.0, 0.5, *friction.pop("more", ())], 3)
    arm = arm_of(robot, FrictionModel([JointFriction(**friction)] * 3), coefficients)
    servo = ServoDrive(80.0, 3.0, 0.0254, 0.3, 0.1, 0.5, 2.0)
    return replace(arm, servos={robot.joint_names[0]: servo})


def test_servos_have_gains_limits_and_delays(tmp_path):
    arm = servo_arm()
    export = mjcf_file.write(arm, tmp_path / "arm.xml", Motion.sinusoids(arm.robot))
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    first, second = (model.actuator(name) for name in arm.robot.joint_names[:2])
    assert (first.gainprm[0], first.biasprm[1], first.biasprm[2]) == (80.0, -80.0, -3.0)
    assert first.forcerange[1] == arm.robot.limits.effort[0]
    assert model.actuator_delay[first.id] == pytest.approx(0.0254)
    assert (second.gainprm[0], second.biasprm[1]) == (1.0, 0.0)
    assert "servos of joint_1, motors of the others" in export.holds[0]
    assert any("3.5" in remark for remark in export.remarks)


def test_servos_are_for_mjcf_only():
    robot = RobotModel.from_urdf(planar_arm.urdf())
    with pytest.raises(ModelError, match="--servos"):
        export("none.yaml", robot, "urdf", "arm.urdf", servos="servos.yaml")


def test_old_mujoco_reports_missing_terms(tmp_path, monkeypatch):
    for module in (mjcf_file, mjcf):
        monkeypatch.setattr(module, "installed_version", lambda: (3, 4))
    arm = servo_arm(stribeck_velocity=0.1, more=(1.5,))
    export = mjcf_file.write(arm, tmp_path / "arm.xml", Motion.sinusoids(arm.robot))
    text = (tmp_path / "arm.xml").read_text()
    assert "delay" not in text
    assert "dcmotor" not in text
    assert any("cannot hold delays of commands of up to 25.4 ms; update to 3.5" in line for line in export.remarks)
    assert any("stribeck of all joints" in line for line in export.remarks)


@pytest.mark.skipif(mjcf.installed_version() < mjcf.BRISTLE_VERSION, reason="needs passive actuators with LuGre")
def test_joint_with_breakaway_friction_sticks_and_slides(tmp_path):
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=(0.0, 0.0, 0.0))
    friction = FrictionModel([JointFriction(stribeck_velocity=0.1, rotor_inertia=True)] * 3)
    model = export_model(arm_of(robot, friction, np.tile([2.0, 0.5, 1.5, 0.2], 3)), tmp_path / "arm.xml")
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.opt.timestep = 1e-3
    data = mujoco.MjData(model)

    def push(torque, seconds):
        data.ctrl[0] = torque
        mujoco.mj_step(model, data, round(seconds / model.opt.timestep))
        return abs(data.qvel[0])

    assert push(3.3, 1.0) < 1e-3, "3.5 N m of breakaway friction hold the joint"
    assert push(3.8, 0.5) > 0.2
    assert push(3.3, 0.5) > 0.2, "2 N m and damping brake the moving joint"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "coefficients"),
    [
        ({"stribeck_velocity": 0.05}, [1.5, 0.5, 1.0, 0.05]),
        ({"stribeck_velocity": 0.05, "sliding_length": 0.005}, [1.5, 0.5, 1.0, 0.05]),
        ({"saturation_velocity": 0.2}, [1.5, 2.0, 0.05]),
    ],
)
def test_servos_with_friction_move_like_the_arm(shape, coefficients):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    friction = FrictionModel([JointFriction(rotor_inertia=True, **shape)] * 3)
    values = np.outer([1.0, 0.8, 0.3], coefficients).ravel()
    stiffness, damping = np.array([[200.0, 150.0, 60.0], [10.0, 8.0, 2.0]])
    time = np.arange(0.0, 4.0, 0.01)
    command = 0.3 * np.sin(2 * np.pi * np.outer(time, [0.21, 0.27, 0.33])) * np.minimum(time, 1.0)[:, None]
    truth = SimulatedArm(robot, friction=KnownFriction(friction, values), timestep=2.5e-4, start=0.0)
    truth.release()
    path = []
    for target in command:
        for _ in range(40):
            path.append(truth.position)
            torque = stiffness * (target - truth.position) - damping * truth.velocity
            truth.command_effort(np.clip(torque, -robot.limits.effort, robot.limits.effort))
            truth.step(2.5e-4)
    drives = [ServoDrive(k, d, 0.0, 0.0, 0.0, 0.0, 0.0) for k, d in zip(stiffness, damping, strict=True)]
    arm = replace(arm_of(robot, friction, values), servos=dict(zip(robot.joint_names, drives, strict=True)))
    motion = Motion.sinusoids(robot)
    errors = []
    for held_friction in (
        mjcf_file.held_friction(arm, motion),
        HeldFriction.of(arm, ("rotor_inertia", "spring"), motion),
    ):
        replay = Replay(mjcf_file.arm_text(arm, exported_urdf(arm, held_friction)[0], held_friction), robot.joint_names)
        commands = [CommandPath(time, column) for column in command.T]
        _, positions = replay.follow(path[0], np.zeros(3), commands, 0.0, 3.9)
        errors.append(np.sqrt(np.mean((positions - path[: 4 * len(positions) : 4]) ** 2, axis=0)))
    assert (errors[0] < 1.5e-3).all()
    assert (errors[0] < 0.6 * errors[1]).all(), "nearer than with Coulomb and viscous friction"


def test_missing_mujoco_names_the_package_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "dynid_ros.export.mjcf_file", raising=False)
    monkeypatch.delitem(sys.modules, "dynid_ros.simulation.mjcf", raising=False)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(0), 2), tip=TIP)
    with pytest.raises(ModelError, match="--to mjcf needs mujoco, which is not installed: pip install mujoco"):
        export("none.yaml", robot, "mjcf", "arm.xml")
