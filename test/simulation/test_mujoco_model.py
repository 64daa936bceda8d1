"""Test the conversion of robot models and payloads to MuJoCo."""

import carried_loads
import mujoco
import numpy as np
import pendulum
import pytest
from scipy.spatial.transform import Rotation
from urdf_parts import joint, link, robot

from dynid_ros.errors import DynidError, ModelError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.mujoco_model import LINK, checked_load, compile_arm, put_load


@pytest.fixture
def model(demo_robot):
    return compile_arm(demo_robot, 0.001)


def inertia_in_tip(model):
    """Return the payload's inertia tensor (3, 3) in the tip frame."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body(LINK).iquat)
    axes = axes.reshape(3, 3)
    return axes @ np.diag(model.body(LINK).inertia) @ axes.T


def test_payload_body_has_mass_center_and_principal_moments(model):
    put_load(model, carried_loads.parameters())
    body = model.body(LINK)
    assert body.mass == pytest.approx([3.2])
    assert body.ipos == pytest.approx([0.03, -0.05, 0.12])
    assert np.sort(body.inertia) == pytest.approx(np.linalg.eigvalsh(carried_loads.INERTIA), abs=1e-12)
    assert inertia_in_tip(model) == pytest.approx(carried_loads.INERTIA, abs=1e-12)


def test_principal_axes_form_a_right_handed_frame(model):
    for turn in np.linalg.qr(np.random.default_rng(0).normal(size=(20, 3, 3)))[0]:
        inertia = turn @ np.diag([0.02, 0.03, 0.04]) @ turn.T
        put_load(model, carried_loads.parameters(inertia=inertia))
        assert inertia_in_tip(model) == pytest.approx(inertia, abs=1e-12)


def test_removed_payload_has_zero_mass_and_inertia(model):
    put_load(model, carried_loads.parameters())
    put_load(model, None)
    assert model.body(LINK).mass.tolist() == [0.0]
    assert model.body(LINK).inertia.tolist() == [0.0] * 3


def test_accepts_points_rods_and_plates_as_payloads():
    for inertia in (np.zeros(3), [0.0, 0.1, 0.1], [0.1, 0.2, 0.3]):
        load = carried_loads.parameters(inertia=np.diag(inertia))
        assert np.array_equal(checked_load(load), load)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (np.zeros(10), "mass is 0 kg; expected more than 0"),
        (-carried_loads.parameters(), "mass is -3.2 kg"),
        (np.r_[1.0, 0.1, np.zeros(8)], "no body of 1 kg .* about the frame, not the centre of mass"),
        (carried_loads.parameters(inertia=np.diag([0.1, 0.1, 0.3])), "second moment about its centre of mass is -0.05"),
        (np.r_[5e-324, 1.0, np.zeros(8)], "mass is 4.94066e-324 kg, too little for its moments"),
        (np.r_[np.nan, np.zeros(9)], "entry 0 is not finite"),
        (np.ones(9), r"shape \(9,\); expected \(10,\)"),
    ],
)
def test_refuses_impossible_payloads(load, message):
    with pytest.raises(DynidError, match=message):
        checked_load(load)


BRANCH = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}_link"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
    <link name="{name}_link">{inertial}</link>"""


def write_branch(name, kind="revolute", parent="rod"):
    return BRANCH.format(name=name, kind=kind, parent=parent, inertial=pendulum.point_mass())


def compile_text(text, **choice):
    return compile_arm(RobotModel.from_urdf(text, **choice), 0.001)


def test_ignores_meshes_and_mujoco_settings_in_the_urdf():
    shape = '<visual><geometry><mesh filename="package://nowhere/rod.dae"/></geometry></visual>'
    model = compile_text(pendulum.urdf(rod=pendulum.point_mass() + shape + shape.replace("visual", "collision")))
    assert model.ngeom == 0
    model = compile_text(pendulum.urdf(more='<mujoco><compiler balanceinertia="true" meshdir="nowhere"/></mujoco>'))
    assert model.njnt == 1


def test_converts_gravity_to_the_base_frame():
    """The base is turned by half a revolution about x, so gravity changes sign along y and z."""
    text = pendulum.urdf(
        more="""<link name="world_frame"/><joint name="mount" type="fixed"><parent link="world_frame"/>
            <child link="base"/><origin rpy="3.141592653589793 0 0"/></joint>"""
    )
    model = compile_text(text, base="base", tip="rod", gravity=(1.0, 2.0, 3.0))
    assert model.opt.gravity == pytest.approx([1.0, -2.0, -3.0])


IMPOSSIBLE = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": write_branch("finger")}, r"joint\(s\) finger move beside the chain from 'base' to 'rod'"),
        ({"rod": pendulum.point_mass(inertia=0.0).replace("3.0", "0.0")}, r"MuJoCo refuses it.*mass and inertia"),
        ({"rod": IMPOSSIBLE}, r"MuJoCo refuses it.*inertia must satisfy"),
        ({"limit": '<limit lower="-1" upper="1" effort="0" velocity="20"/>'}, "joint 'swing' has effort limit 0"),
        ({"limit": '<limit lower="-1" upper="1" velocity="0" effort="100"/>'}, "joint 'swing' has velocity limit 0"),
    ],
)
def test_refuses_robots_that_mujoco_cannot_simulate(changes, message):
    with pytest.raises(ModelError, match=message):
        compile_text(pendulum.urdf(**changes), tip="rod")


def test_refuses_models_from_denavit_hartenberg_tables():
    robot = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(ModelError, match="needs a URDF"):
        compile_arm(robot, 0.001)


def test_orders_joints_by_chain_instead_of_file(demo_robot):
    head, *joints = demo_robot.urdf.split("<joint ")
    joints[-1], tail = joints[-1].split("</robot>")
    text = head + "<joint ".join(["", *joints[::-1]]) + "</robot>" + tail
    model = compile_text(text)
    assert [model.joint(i).name for i in range(6)] == list(demo_robot.joint_names)
    assert np.all(np.diff(model.jnt_bodyid) > 0)


def test_accepts_impossible_inertia_on_fixed_parts_of_the_base(demo_robot):
    """A public robot has such an antenna; MuJoCo refuses this inertia on a moving link."""
    antenna = """<link name="antenna"><inertial><mass value="1e-6"/>
        <inertia ixx="2.4e-8" ixy="6.1e-8" ixz="1.2e-8" iyy="2.8e-8" iyz="7.7e-9" izz="3.8e-8"/></inertial></link>
        <joint name="on" type="fixed"><parent link="{}"/><child link="antenna"/></joint></robot>"""

    def compile_with_antenna(parent):
        urdf = demo_robot.urdf.replace("</robot>", antenna.format(parent))
        return compile_arm(RobotModel.from_urdf(urdf, demo_robot.tip), 0.001)

    np.testing.assert_array_equal(compile_with_antenna(demo_robot.base).dof_M0, compile_arm(demo_robot, 0.001).dof_M0)
    with pytest.raises(ModelError, match=r"MuJoCo refuses it: .*antenna"):
        compile_with_antenna(demo_robot.tip)


def test_reads_quaternions_of_urdf_1_1():
    turn = Rotation.from_euler("xyz", [0.3, -0.7, 2.1])
    models = []
    for attribute in ('rpy="0.3 -0.7 2.1"', 'quat_xyzw="{} {} {} {}"'.format(*turn.as_quat().tolist())):
        placed = joint("joint_1", "base", "a", content=f"<origin {attribute}/>")
        models.append(compile_arm(RobotModel.from_urdf(robot(link("base"), link("a"), placed)), 0.001))
    assert models[1].body("a").quat == pytest.approx(models[0].body("a").quat, abs=1e-12)
