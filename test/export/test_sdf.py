"""Test SDF files by a reader of their format, and by Drake with libsdformat if it is installed."""

from xml.etree import ElementTree as ET

import numpy as np
import planar_arm
import pytest
from c_arm import arm_of
from pinocchio_arm import example_urdf
from random_chains import TIP, random_urdf

from dynid_ros.export import sdf
from dynid_ros.export.exported_arm import Motion
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import from_center_of_mass, transformed
from dynid_ros.model.urdf import Origin, pose


def make_panda():
    robot = RobotModel.from_urdf(example_urdf("panda_description/urdf/panda.urdf"), tip="panda_hand")
    joint = JointFriction(spring=True, offset=True)
    return arm_of(robot, FrictionModel([joint] * 7), np.tile([2.0, 0.5, 0.3, 4.0], 7))


def make_chains():
    arms = [make_panda()]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        robot = RobotModel.from_urdf(random_urdf(rng, 4), tip=TIP)
        arms += [arm_of(robot)] if robot.parameters[::10].all() else []
    return arms


def write_sdf(arm, path):
    return sdf.write(arm, path, Motion.sinusoids(arm.robot))


def _transform(text):
    numbers = [float(word) for word in text.split()]
    return pose(Origin(numbers[:3], numbers[3:]), "pose")


def read_sdf(text, robot):
    """Return the joints of an SDF by child, and the links (10,) with their fixed parts."""
    model = ET.fromstring(text.split("\n", 1)[1]).find("model")
    joints = {joint.findtext("child"): joint for joint in model.findall("joint")}
    links = {link.get("name"): link for link in model.findall("link")}
    frames = {frame.get("name"): frame for frame in model.findall("frame")}

    def parent_of(name):
        """Return parent, transform in the parent, and moving joint of a link or frame."""
        if name in frames:
            return frames[name].get("attached_to"), _transform(frames[name].findtext("pose")), None
        joint = joints[name]
        parent = joint.findtext("parent")
        if parent == "world":
            return None, np.eye(4), None
        assert links[name].find("pose").get("relative_to") == joint.get("name")
        assert joint.find("pose").get("relative_to") == parent
        return parent, _transform(joint.findtext("pose")), joint if joint.get("type") != "fixed" else None

    lumps = {}
    for name, link in links.items():
        inertial = link.find("inertial")
        matrix = [float(inertial.findtext(f"inertia/{entry}")) for entry in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        tensor = np.zeros((3, 3))
        tensor[np.triu_indices(3)] = matrix
        tensor = tensor + np.triu(tensor, 1).T
        inertial_pose = _transform(inertial.findtext("pose"))
        body = from_center_of_mass(
            float(inertial.findtext("mass")),
            inertial_pose[:3, 3],
            inertial_pose[:3, :3] @ tensor @ inertial_pose[:3, :3].T,
        )
        owner = name
        placement = np.eye(4)
        joint = None
        while joint is None and owner is not None:
            if owner in robot.link_names:
                break
            parent, step, joint = parent_of(owner)
            if joint is None:
                owner = parent
                placement = step @ placement
        if owner in robot.link_names:
            lumps[owner] = lumps.get(owner, 0) + transformed(body, placement)
    return joints, lumps


@pytest.mark.parametrize("arm", make_chains(), ids=lambda arm: f"{arm.robot.name}_{arm.robot.n_joints}")
def test_links_have_the_parameters_of_the_arm(arm, tmp_path):
    write_sdf(arm, tmp_path / "arm.sdf")
    joints, lumps = read_sdf((tmp_path / "arm.sdf").read_text(), arm.robot)
    for link, expected in zip(arm.robot.link_names, arm.robot.parameters.reshape(-1, 10), strict=True):
        if arm.robot.name != "panda" or link != "panda_link7":  # the last link carries the fingers
            np.testing.assert_allclose(lumps[link], expected, atol=1e-9)
        assert joints[link].get("name") in arm.robot.joint_names


def test_joints_have_friction_and_springs(tmp_path):
    export = write_sdf(make_panda(), tmp_path / "arm.sdf")
    joint = ET.fromstring((tmp_path / "arm.sdf").read_text().split("\n", 1)[1]).find(
        "model/joint[@name='panda_joint1']"
    )
    dynamics = {element.tag: float(element.text) for element in joint.find("axis/dynamics")}
    assert dynamics == {"damping": 0.5, "friction": 2.0, "spring_reference": -0.075, "spring_stiffness": 4.0}
    assert float(joint.findtext("axis/limit/effort")) == 87.0
    assert "no shapes" in export.remarks[-1]


@pytest.mark.parametrize("arm", make_chains(), ids=lambda arm: f"{arm.robot.name}_{arm.robot.n_joints}")
def test_torque_agrees_with_drake(arm, tmp_path):
    """Damping and springs are passive forces in Drake."""
    plants = pytest.importorskip("pydrake.multibody.plant")
    trees = pytest.importorskip("pydrake.multibody.tree")
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    write_sdf(arm, tmp_path / "arm.sdf")
    plant = plants.MultibodyPlant(0.0)
    robot = arm.robot
    parsing.Parser(plant).AddModels(str(tmp_path / "arm.sdf"))
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    joints = [plant.GetJointByName(name) for name in robot.joint_names]
    for q, qd, qdd in np.random.default_rng(0).normal(size=(5, 3, robot.n_joints)):
        positions, velocities, accelerations = (np.zeros(plant.num_velocities()) for _ in range(3))
        for joint, *state in zip(joints, q, qd, qdd, strict=True):
            (
                positions[joint.position_start()],
                velocities[joint.velocity_start()],
                accelerations[joint.velocity_start()],
            ) = state
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, velocities)
        forces = trees.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        torque = plant.CalcInverseDynamics(context, accelerations, forces)
        actual = np.array([torque[joint.velocity_start()] for joint in joints])
        expected = robot.inverse_dynamics([q], [qd], [qdd])[0]
        for j, terms in enumerate(arm.joint_terms):
            value = {part.name: coefficient for part, coefficient in terms.items()}
            expected[j] += (
                value.get("spring", 0.0) * q[j] + value.get("offset", 0.0) + value.get("viscous", 0.0) * qd[j]
            )
        np.testing.assert_allclose(actual, expected, atol=1e-8 * max(np.abs(expected).max(), 1.0))


def test_world_link_of_a_urdf_becomes_the_world(tmp_path):
    """SDF has a world of its own, and massless links become frames."""
    urdf = (
        '<robot name="arm"><link name="world"/><link name="base"/><link name="link"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tool"/>'
        '<joint name="stand" type="fixed"><parent link="world"/><child link="base"/><origin xyz="0 0 1"/></joint>'
        '<joint name="turn" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 2 0"/></joint>'
        '<joint name="flange" type="fixed"><parent link="link"/><child link="tool"/></joint></robot>'
    )
    arm = arm_of(RobotModel.from_urdf(urdf))
    write_sdf(arm, tmp_path / "arm.sdf")
    model = ET.fromstring((tmp_path / "arm.sdf").read_text().split("\n", 1)[1]).find("model")
    assert [link.get("name") for link in model.findall("link")] == ["base", "link"]
    assert [frame.get("name") for frame in model.findall("frame")] == ["tool"]
    assert [joint.findtext("parent") for joint in model.findall("joint")] == ["world", "base"]
    assert model.findtext("joint[@name='turn']/axis/xyz") == "0.0 1.0 0.0"
    # Gazebo would fix joints of type continuous.
    assert model.find("joint[@name='turn']").get("type") == "revolute"
    assert model.find("joint[@name='turn']/axis/limit/lower") is None
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    plant = pytest.importorskip("pydrake.multibody.plant").MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(tmp_path / "arm.sdf"))
    plant.Finalize()
    assert plant.num_velocities() == 1


def test_position_limits_exist_except_for_continuous_joints(tmp_path):
    text = planar_arm.urdf().replace('"joint_2" type="revolute"', '"joint_2" type="continuous"')
    write_sdf(arm_of(RobotModel.from_urdf(text)), tmp_path / "arm.sdf")
    model = ET.fromstring((tmp_path / "arm.sdf").read_text().split("\n", 1)[1]).find("model")
    limits = {joint.get("name"): joint.find("axis/limit") for joint in model.findall("joint[axis]")}
    for name, limit in limits.items():
        expected = {"effort": "50.0", "velocity": "3.0"}
        if name != "joint_2":
            expected |= {"lower": "-2.5", "upper": "2.5"}
        assert {entry.tag: entry.text for entry in limit} == expected
    assert set(limits) == {"joint_1", "joint_2", "joint_3"}
