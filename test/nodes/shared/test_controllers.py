"""Whether a controller is active, told by messages as the controller manager and an action server publish them."""

from types import SimpleNamespace

import pytest
import rclpy
from action_msgs.msg import GoalStatus, GoalStatusArray
from helpers.node_threads import NodeThreads
from helpers.waiting import wait
from lifecycle_msgs.msg import State, TransitionEvent

from dynid_ros.nodes.shared.controllers import OWN_GOAL_PREFIX, QUERIED, ControllerAnswer, ControllerView, message_type
from dynid_ros.nodes.shared.topics import LATCHED

pytestmark = pytest.mark.usefixtures("ros")
ACTIVATION = (State.TRANSITION_STATE_ACTIVATING, State.PRIMARY_STATE_ACTIVE)
DEACTIVATION = (State.TRANSITION_STATE_DEACTIVATING, State.PRIMARY_STATE_INACTIVE)
CONFIGURATION = (State.TRANSITION_STATE_CONFIGURING, State.PRIMARY_STATE_INACTIVE)
STATUS = "jtc/follow_joint_trajectory/_action/status"


class Manager:
    """What a controller manager publishes, and the watch that listens."""

    def __init__(self):
        self.node, self.listener = rclpy.create_node("manager"), rclpy.create_node("listener")
        self.reported = []
        self.events = self.node.create_publisher(TransitionEvent, "jtc/transition_event", 10)
        self.watch = ControllerView(self.listener, "jtc", on_event=self.reported.append)
        self.threads = NodeThreads(self.node, self.listener)
        wait(self.events.get_subscription_count)

    def transition(self, states):
        for state in states:
            self.events.publish(TransitionEvent(goal_state=State(id=state)))

    def serve(self, *goals):
        server = self.node.create_publisher(GoalStatusArray, STATUS, LATCHED)
        self.accept(server, *goals)
        return server

    @staticmethod
    def accept(server, *goals):
        message = GoalStatusArray(status_list=[GoalStatus() for _ in goals])
        for status, goal in zip(message.status_list, goals, strict=True):
            status.goal_info.goal_id.uuid = list(goal.ljust(16)) if isinstance(goal, bytes) else [goal] * 16
            status.status = GoalStatus.STATUS_EXECUTING
        server.publish(message)

    def activity(self, state, name="jtc"):
        named = SimpleNamespace(name=name, state=SimpleNamespace(id=state))
        self.watch.on_activity(SimpleNamespace(controllers=[named]))

    def close(self):
        self.threads.close()
        self.node.destroy_node()
        self.listener.destroy_node()


@pytest.fixture(name="manager")
def fixture_manager(keep):
    return keep(Manager())


def test_transitions_are_followed(manager):
    assert manager.watch.state == "unknown"
    manager.transition(ACTIVATION)
    wait(lambda: manager.watch.state == "active")
    assert manager.watch.activated == manager.watch.transitioned
    manager.transition(DEACTIVATION)
    wait(lambda: manager.watch.state == "inactive")
    assert manager.watch.activated < manager.watch.transitioned
    assert manager.reported == ["was activated", "was deactivated"]


def test_the_manager_tells_what_was_before_and_that_is_no_event(manager):
    manager.activity(State.PRIMARY_STATE_ACTIVE, "another")
    assert manager.watch.state == "unknown"
    manager.activity(State.PRIMARY_STATE_ACTIVE)
    assert manager.watch.state == "active"
    assert manager.watch.activated is None
    assert manager.reported == [""]
    manager.activity(State.PRIMARY_STATE_INACTIVE)
    manager.activity(State.PRIMARY_STATE_ACTIVE)
    assert manager.watch.activated is not None
    assert manager.reported == ["", "was deactivated", "was activated"]


def test_a_goal_stays_known_until_the_controller_is_configured_anew(manager):
    server = manager.serve(1)
    wait(lambda: manager.watch.had_goal)
    manager.accept(server, 1)
    manager.transition(DEACTIVATION + ACTIVATION)
    wait(lambda: manager.watch.state == "active")
    assert manager.watch.had_goal, "an activation leaves tolerances as they are"
    manager.accept(server, 1, 2)
    wait(lambda: manager.reported.count("accepted an action goal") == 2)
    manager.transition(DEACTIVATION + CONFIGURATION)
    wait(lambda: not manager.watch.had_goal)


def test_goals_that_leave_nothing_behind_are_known(manager):
    server = manager.serve(OWN_GOAL_PREFIX + b"1")
    wait(lambda: manager.reported == ["accepted an action goal"])
    assert manager.watch.busy
    assert not manager.watch.had_goal
    manager.accept(server, OWN_GOAL_PREFIX + b"1", 2)
    wait(lambda: manager.watch.had_goal)


def test_a_goal_is_forgotten_with_its_server(manager):
    server = manager.serve(1)
    wait(lambda: manager.watch.had_goal)
    manager.node.destroy_publisher(server)
    wait(lambda: not manager.watch.had_goal)
    manager.serve()
    assert not manager.watch.had_goal


def test_messages_that_are_not_installed_are_done_without():
    assert message_type("no_such_msgs", "State") is None
    assert message_type("lifecycle_msgs", "NoSuchState") is None
    assert message_type("lifecycle_msgs", "State") is State


JOINTS = {"joints": ["joint_2", "joint_1"], "command_interfaces": ["position", "effort"]}


def answer(**values):
    tolerances = {f"constraints.{joint}.trajectory": None for joint in JOINTS["joints"]}
    return ControllerAnswer.from_parameters("jtc", dict.fromkeys(QUERIED) | tolerances | JOINTS | values)


def test_what_is_not_declared_is_not_so():
    said = answer()
    assert said.claims == (("joint_2", "joint_1"), ("position", "effort"), True)
    assert not said.interpolates_from_desired
    assert not said.restores_last_command
    assert said.tolerant


@pytest.mark.parametrize(("timeout", "goal_time", "effective"), [(0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.5, 0.6, 0.0)])
def test_a_timeout_counts_only_beyond_the_goal_time(timeout, goal_time, effective):
    said = answer(cmd_timeout=timeout, **{"constraints.goal_time": goal_time})
    assert said.command_timeout == effective


@pytest.mark.parametrize("name", ["interpolate_from_desired_state", "open_loop_control"])
def test_a_trajectory_begins_at_the_last_command_by_either_name(name):
    assert answer(**{name: True}).interpolates_from_desired


def test_activation_restores_the_last_command():
    assert answer(set_last_command_interface_value_as_state_on_activation=True).restores_last_command


def test_claims_do_not_change_with_what_may_be_set():
    assert answer(cmd_timeout=0.5, **{"constraints.joint_1.trajectory": 0.1}).claims == answer().claims
    assert answer(joints=["joint_1", "joint_2"]).claims != answer().claims
