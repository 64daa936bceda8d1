import numpy as np
import pendulum
import pytest

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.simulation.mujoco_model import compile_arm

BRANCH = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}_link"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
    <link name="{name}_link">{inertial}</link>"""


def branch(name, kind="revolute", parent="rod"):
    return BRANCH.format(name=name, kind=kind, parent=parent, inertial=pendulum.point_mass())


def compile_text(text, **choice):
    return compile_arm(RobotModel.from_urdf(text, **choice), 0.001)


def test_meshes_need_not_be_there():
    shape = '<visual><geometry><mesh filename="package://nowhere/rod.dae"/></geometry></visual>'
    model = compile_text(pendulum.urdf(rod=pendulum.point_mass() + shape + shape.replace("visual", "collision")))
    assert model.ngeom == 0


def test_settings_for_mujoco_in_the_urdf_do_not_matter():
    model = compile_text(pendulum.urdf(more='<mujoco><compiler balanceinertia="true" meshdir="nowhere"/></mujoco>'))
    assert model.njnt == 1


def test_gravity_is_given_in_the_base_frame():
    """Base half a turn about x from the root: what is down in the root is up in the base."""
    text = pendulum.urdf(
        more="""<link name="world_frame"/><joint name="mount" type="fixed"><parent link="world_frame"/>
            <child link="base"/><origin rpy="3.141592653589793 0 0"/></joint>"""
    )
    model = compile_text(text, base="base", tip="rod", gravity=(1.0, 2.0, 3.0))
    assert model.opt.gravity == pytest.approx([1.0, -2.0, -3.0])


def test_a_table_of_denavit_and_hartenberg_has_no_inertias():
    robot = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(ModelError, match="needs a URDF"):
        compile_arm(robot, 0.001)


def test_joints_beside_the_chain_are_named():
    with pytest.raises(ModelError, match=r"joint\(s\) finger move beside the chain from 'base' to 'rod'"):
        compile_text(pendulum.urdf(more=branch("finger")), tip="rod")


def test_massless_moving_link_is_refused():
    with pytest.raises(ModelError, match=r"MuJoCo refuses it.*mass and inertia"):
        compile_text(pendulum.urdf(rod=pendulum.point_mass(inertia=0.0).replace("3.0", "0.0")))


def test_impossible_inertia_is_refused_not_balanced():
    rod = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial>'
    with pytest.raises(ModelError, match=r"MuJoCo refuses it.*inertia must satisfy"):
        compile_text(pendulum.urdf(rod=rod))


@pytest.mark.parametrize("limit", ["effort", "velocity"])
def test_limit_of_zero_is_refused(limit):
    other = {"effort": 'velocity="20"', "velocity": 'effort="100"'}[limit]
    text = pendulum.urdf(limit=f'<limit lower="-1" upper="1" {limit}="0" {other}/>')
    with pytest.raises(ModelError, match=f"joint 'swing' has {limit} limit 0"):
        compile_text(text)


def test_joints_are_in_the_order_of_the_chain_whatever_that_of_the_file(demo_robot):
    head, *joints = demo_robot.urdf.split("<joint ")
    joints[-1], tail = joints[-1].split("</robot>")
    text = head + "<joint ".join(["", *joints[::-1]]) + "</robot>" + tail
    model = compile_text(text)
    assert [model.joint(i).name for i in range(6)] == list(demo_robot.joint_names)
    assert np.all(np.diff(model.jnt_bodyid) > 0)
