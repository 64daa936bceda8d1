"""The reference of a position controller as a plan, and the settings under which it is followed."""

from dataclasses import replace
from types import SimpleNamespace

import planar_arm
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from dynid_ros.control import JointSettings
from dynid_ros.control.planned_motion import PlannedMotion
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.compensation import controller_plan
from dynid_ros.nodes.compensation.configuration import PARAMETERS, joint_settings, read_arm

JOINTS = JointSettings.from_robot(RobotModel.from_urdf(planar_arm.urdf()), fault_ramp_time=0.5, planned_scale=[1.0])
NAMES = list(planar_arm.JOINTS)


@pytest.fixture
def plan():
    return PlannedMotion(JOINTS)


def state(names=NAMES, **fields):
    """As `control_msgs/JointTrajectoryControllerState`."""
    motion = {"positions": [0.1, 0.2, 0.3], "velocities": [1.0, 2.0, 3.0]} | fields
    header = Header(stamp=Time(sec=5))
    return SimpleNamespace(header=header, joint_names=names, reference=JointTrajectoryPoint(**motion))


def test_joints_in_another_order_are_found_by_name(plan):
    controller_plan.ControllerPlan(None, "jtc", plan).on_state(state(NAMES[::-1]))
    assert not plan.problem
    assert plan._sample[2] == [0.3, 0.2, 0.1]
    assert plan._sample[3] == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "message", [state(velocities=[]), state(positions=[0.1]), state(["joint_1", "joint_2", "joint_9"])]
)
def test_a_reference_that_lacks_joints_or_velocities_is_no_plan(plan, message):
    controller_plan.ControllerPlan(None, "jtc", plan).on_state(message)
    assert plan.problem.startswith("jtc/controller_state has no ")


@pytest.mark.parametrize(("controller", "message"), [("", "set position_controller"), ("jtc", "control_msgs is not")])
def test_without_a_source_of_a_plan_it_is_refused(plan, controller, message, monkeypatch):
    monkeypatch.setattr(controller_plan, "message_type", lambda *_: None)
    source = controller_plan.ControllerPlan(None, controller, plan)
    with pytest.raises(ControlError, match=message):
        source.use(JOINTS, follows_setpoint=False)
    source.use(JOINTS, follows_setpoint=True)
    assert plan.is_setpoint
    source.use(replace(JOINTS, planned_scale=(0.0,) * 3), follows_setpoint=False)


def test_a_motion_without_links_is_refused(tmp_path):
    path = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    values = {parameter.name: parameter.default for parameter in PARAMETERS}
    chosen = SimpleNamespace(**values | {"model_file": str(path), "motion_scale": [1.0]})
    arm = read_arm(chosen, planar_arm.urdf())
    with pytest.raises(ControlError, match=r"needs the links of .*identified.yaml"):
        joint_settings(chosen, arm)
    chosen.motion_scale = [0.0]
    assert joint_settings(chosen, arm).planned_scale == (0.0,) * 3
