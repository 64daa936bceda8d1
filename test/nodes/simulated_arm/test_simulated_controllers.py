"""Test the ROS interfaces of the simulated controllers: parameters, transitions, goals and switches."""

import numpy as np
import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from helpers.node_threads import assert_refused, call
from helpers.simulator_bench import SimulatorBench
from helpers.waiting import wait
from lifecycle_msgs.msg import TransitionEvent
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

JTC = "/joint_trajectory_controller"
FCC = "/forward_effort_controller"
STATUS = f"{JTC}/follow_joint_trajectory/_action/status"
LATEST = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LAST = "set_last_command_interface_value_as_state_on_activation"


class Client(Node):
    """Node that calls the controllers and listens to them."""

    def __init__(self):
        super().__init__("client")
        self.events = []
        self.statuses = []
        for name in (JTC, FCC):
            self.create_subscription(
                TransitionEvent,
                f"{name}/transition_event",
                lambda m, name=name: self.events.append((name, m.start_state.label, m.goal_state.label)),
                10,
            )
        self.create_subscription(GoalStatusArray, STATUS, self.statuses.append, LATEST)
        self.goal = self.create_publisher(JointTrajectory, "/simulator/goal", 10)
        self.topic = self.create_publisher(JointTrajectory, f"{JTC}/joint_trajectory", 10)
        self.effort = self.create_publisher(Float64MultiArray, f"{FCC}/commands", 10)

    def parameters(self, controller, *names):
        response = call(self, GetParameters, f"{controller}/get_parameters", GetParameters.Request(names=list(names)))
        return [parameter_value_to_python(value) for value in response.values]

    def set(self, node, name, value):
        parameter = Parameter(name, value=value).to_parameter_msg()
        request = SetParameters.Request(parameters=[parameter])
        return call(self, SetParameters, f"{node}/set_parameters", request).results[0]

    def switch(self, service, active):
        return call(self, SetBool, f"/simulator/{service}", SetBool.Request(data=active))

    def trigger(self, service):
        return call(self, Trigger, f"/simulator/{service}", Trigger.Request())


class Bench(SimulatorBench):
    """Simulator with access to the commanded efforts of its controllers."""

    def __init__(self, **parameters):
        super().__init__(Client, rate=100.0, **parameters)
        self.names = list(self.node.arm.robot.joint_names)
        self.controlled = self.node._controller.controlled
        wait(lambda: all(p.get_subscription_count() for p in (self.client.goal, self.client.topic)))

    def points(self, seconds, offset=0.0, effort=None):
        position = (self.node.arm.position + offset).tolist()
        point = JointTrajectoryPoint(positions=position, effort=[] if effort is None else [effort] * len(self.names))
        point.time_from_start.sec, nanoseconds = divmod(round(seconds * 1e9), 10**9)
        point.time_from_start.nanosec = nanoseconds
        return JointTrajectory(joint_names=self.names, points=[point])

    def efforts(self):
        return self.controlled.interfaces.effort.copy()


@pytest.fixture(name="bench")
def fixture_bench(keep):
    return lambda **parameters: keep(Bench(**parameters))


def test_parameters_have_the_names_of_ros2_controllers(bench):
    bench = bench(controller="trajectory_effort", cmd_timeout="0.5", **{"constraints.trajectory": "[0.1]"})
    client = bench.client
    assert client.parameters(JTC, "joints", "command_interfaces", "state_interfaces") == [
        bench.names,
        ["position", "effort"],
        ["position", "velocity"],
    ]
    names = ["cmd_timeout", LAST, "interpolate_from_desired_state", "constraints.joint_3.trajectory"]
    assert client.parameters(JTC, *names, "constraints.goal_time") == [0.5, True, False, 0.1, 0.0]
    assert client.parameters(JTC, "cmd_timeout", "nonsense") == [], "rclcpp returns nothing if a name is unknown"


def test_only_adjustable_parameters_can_be_set(bench):
    bench = bench()
    client = bench.client
    assert client.set(JTC, LAST, False).successful
    assert client.parameters(JTC, LAST) == [False]
    assert not bench.controlled.trajectory.settings.set_last_command_interface_value_as_state_on_activation
    assert client.set(JTC, "constraints.joint_2.trajectory", 0.3).successful
    assert bench.controlled.trajectory.settings.trajectory == [0.0, 0.3, 0.0, 0.0, 0.0, 0.0]
    for name, value, reason in (
        ("interpolate_from_desired_state", True, "read-only"),
        ("nonsense", 1.0, "was not declared"),
        ("cmd_timeout", "long", "another type"),
        ("cmd_timeout", -1.0, "expected 0 or more"),
    ):
        refused = client.set(JTC, name, value)
        assert not refused.successful
        assert reason in refused.reason


def test_transitions_are_published(bench):
    bench = bench()
    client = bench.client
    wait(lambda: len(client.get_publishers_info_by_topic(f"{JTC}/transition_event")) == 1)
    wait(lambda: bench.node.count_subscribers(f"{JTC}/transition_event") == 1)
    assert client.switch("effort_mode", True).success
    wait(lambda: len(client.events) >= 4)
    events = {name: [event for event in client.events if event[0] == name] for name in (JTC, FCC)}
    assert events[JTC] == [(JTC, "active", "deactivating"), (JTC, "deactivating", "inactive")]
    assert events[FCC] == [(FCC, "inactive", "activating"), (FCC, "activating", "active")]
    client.events.clear()
    wait(client.effort.get_subscription_count)
    client.effort.publish(Float64MultiArray(data=[1.0]))
    wait(lambda: client.events == [(FCC, "active", "deactivating"), (FCC, "deactivating", "inactive")])
    assert bench.node.status()[1].startswith("effort mode, both controllers are inactive")
    assert client.trigger("reset").success
    wait(lambda: (JTC, "configuring", "inactive") in client.events)
    wait(lambda: client.events[-1] == (JTC, "activating", "active"))


def test_goal_status_effort_and_tolerances_persist(bench):
    """The status is latched, and a newly configured controller has no status."""
    bench = bench(controller="trajectory_effort")
    client = bench.client
    assert client.set("/simulator", "goal.path_tolerance", [0.05]).successful
    client.goal.publish(bench.points(0.2, effort=3.0))
    wait(lambda: client.statuses and client.statuses[-1].status_list[-1].status == GoalStatus.STATUS_SUCCEEDED)
    assert client.statuses[-1].status_list[0].goal_info.goal_id.uuid.any()
    wait(lambda: np.all(bench.efforts() == 3.0))
    late = []
    client.create_subscription(GoalStatusArray, STATUS, late.append, LATEST)
    wait(lambda: late)
    assert late[0].status_list[-1].status == GoalStatus.STATUS_SUCCEEDED
    assert client.parameters(JTC, "constraints.joint_1.trajectory") == [0.0]
    client.topic.publish(bench.points(0.0, offset=0.1, effort=0.0))
    wait(lambda: bench.controlled.trajectory.aborts == 1)
    wait(lambda: np.all(bench.efforts() == 3.0))
    assert bench.client.switch("activate_trajectory_controller", False).success
    assert not bench.efforts().any()
    assert bench.client.switch("activate_trajectory_controller", True).success
    wait(lambda: np.all(bench.efforts() == 3.0))
    assert "can not be configured from 'active' state" in client.trigger("configure_trajectory_controller").message
    assert bench.client.switch("activate_trajectory_controller", False).success
    assert bench.client.trigger("configure_trajectory_controller").success
    assert bench.client.switch("activate_trajectory_controller", True).success
    wait(lambda: not bench.efforts().any())
    last = []
    client.create_subscription(GoalStatusArray, STATUS, last.append, LATEST)
    client.topic.publish(bench.points(0.0, offset=0.1, effort=1.0))
    wait(lambda: np.all(bench.efforts() == 1.0))
    assert bench.controlled.trajectory.aborts == 1
    assert last == []


def test_switch_of_a_missing_controller_is_refused(bench):
    bench = bench(controller="trajectory_effort")
    assert_refused(bench.client.switch("activate_effort_controller", True), "efforts are in the points of trajectories")
    assert bench.client.switch("effort_mode", False).message == "trajectories with effort: the servo is on"
