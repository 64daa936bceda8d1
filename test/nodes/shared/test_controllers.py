"""Test how a controller's state is known from messages of the controller manager and of the action server."""

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
    """Publisher of a controller manager's messages, and the view of a controller that listens."""

    def __init__(self):
        self.node = rclpy.create_node("manager")
        self.listener = rclpy.create_node("listener")
        self.reported = []
        self.events = self.node.create_publisher(TransitionEvent, "jtc/transition_event", 10)
        self.view = ControllerView(self.listener, "jtc", on_event=self.reported.append)
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

    def report_state(self, state, name="jtc"):
        controller = SimpleNamespace(name=name, state=SimpleNamespace(id=state))
        self.view.on_activity(SimpleNamespace(controllers=[controller]))

    def close(self):
        self.threads.close()
        self.node.destroy_node()
        self.listener.destroy_node()


@pytest.fixture(name="manager")
def fixture_manager(keep):
    return keep(Manager())


def test_transitions_update_the_state(manager):
    assert manager.view.state == "unknown"
    manager.transition(ACTIVATION)
    wait(lambda: manager.view.state == "active")
    assert manager.view.activated == manager.view.transitioned
    manager.transition(DEACTIVATION)
    wait(lambda: manager.view.state == "inactive")
    assert manager.view.activated < manager.view.transitioned
    assert manager.reported == ["was activated", "was deactivated"]


def test_first_state_from_the_manager_is_no_event(manager):
    manager.report_state(State.PRIMARY_STATE_ACTIVE, "another")
    assert manager.view.state == "unknown"
    manager.report_state(State.PRIMARY_STATE_ACTIVE)
    assert manager.view.state == "active"
    assert manager.view.activated is None
    assert manager.reported == [""]
    manager.report_state(State.PRIMARY_STATE_INACTIVE)
    manager.report_state(State.PRIMARY_STATE_ACTIVE)
    assert manager.view.activated is not None
    assert manager.reported == ["", "was deactivated", "was activated"]


def test_goal_is_known_until_reconfiguration(manager):
    server = manager.serve(1)
    wait(lambda: manager.view.had_goal)
    manager.accept(server, 1)
    manager.transition(DEACTIVATION + ACTIVATION)
    wait(lambda: manager.view.state == "active")
    assert manager.view.had_goal, "an activation keeps the tolerances of the goal"
    manager.accept(server, 1, 2)
    wait(lambda: manager.reported.count("accepted an action goal") == 2)
    manager.transition(DEACTIVATION + CONFIGURATION)
    wait(lambda: not manager.view.had_goal)


def test_own_goals_keep_the_tolerances(manager):
    server = manager.serve(OWN_GOAL_PREFIX + b"1")
    wait(lambda: manager.reported == ["accepted an action goal"])
    assert manager.view.busy
    assert not manager.view.had_goal
    manager.accept(server, OWN_GOAL_PREFIX + b"1", 2)
    wait(lambda: manager.view.had_goal)


def test_goal_is_unknown_after_its_server_ends(manager):
    server = manager.serve(1)
    wait(lambda: manager.view.had_goal)
    manager.node.destroy_publisher(server)
    wait(lambda: not manager.view.had_goal)
    manager.serve()
    assert not manager.view.had_goal


def test_missing_message_types_are_none():
    assert message_type("no_such_msgs", "State") is None
    assert message_type("lifecycle_msgs", "NoSuchState") is None
    assert message_type("lifecycle_msgs", "State") is State


JOINTS = {"joints": ["joint_2", "joint_1"], "command_interfaces": ["position", "effort"]}


def build_answer(**values):
    tolerances = {f"constraints.{joint}.trajectory": None for joint in JOINTS["joints"]}
    return ControllerAnswer.from_parameters("jtc", dict.fromkeys(QUERIED) | tolerances | JOINTS | values)


def test_undeclared_parameters_have_their_defaults():
    answer = build_answer()
    assert answer.claims == (("joint_2", "joint_1"), ("position", "effort"), True)
    assert not answer.interpolates_from_desired
    assert not answer.restores_last_command
    assert answer.tolerant


@pytest.mark.parametrize(("timeout", "goal_time", "effective"), [(0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.5, 0.6, 0.0)])
def test_command_timeout_must_exceed_the_goal_time(timeout, goal_time, effective):
    answer = build_answer(cmd_timeout=timeout, **{"constraints.goal_time": goal_time})
    assert answer.command_timeout == effective


@pytest.mark.parametrize("name", ["interpolate_from_desired_state", "open_loop_control"])
def test_both_names_of_interpolation_from_desired_state_count(name):
    assert build_answer(**{name: True}).interpolates_from_desired


def test_activation_restores_the_last_command():
    assert build_answer(set_last_command_interface_value_as_state_on_activation=True).restores_last_command


def test_claims_do_not_depend_on_adjustable_parameters():
    assert build_answer(cmd_timeout=0.5, **{"constraints.joint_1.trajectory": 0.1}).claims == build_answer().claims
    assert build_answer(joints=["joint_1", "joint_2"]).claims != build_answer().claims
