"""Test how compensation reacts to the state, output and goals of its controller, which the robot publishes."""

from types import SimpleNamespace

import planar_arm
import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from helpers.compensation_bench import FAULT_RAMP_S, POSE, RAMP_S, Bench
from helpers.node_threads import assert_refused, assert_success
from helpers.waiting import wait
from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.shared.topics import LATCHED

pytestmark = pytest.mark.usefixtures("ros")
FORWARD = "forward_effort_controller"
TRAJECTORY = "joint_trajectory_controller"
GRAVITY_TORQUE = planar_arm.gravity_torque(POSE)
LEFT_TORQUE = [0.6 * torque for torque in GRAVITY_TORQUE]
RESTORES = "set_last_command_interface_value_as_state_on_activation"


class Controller:
    """Messages of one controller, published by the simulated robot."""

    def __init__(self, bench, name, **parameters):
        self.bench = bench
        self.robot = bench.robot
        self.name = name
        self.events = self.robot.create_publisher(TransitionEvent, f"{name}/transition_event", 10)
        self.parameters = parameters
        self.robot.create_service(GetParameters, f"{name}/get_parameters", self._answer)
        wait(self.events.get_subscription_count)

    def _answer(self, request, response):
        if set(request.names) <= self.parameters.keys():
            values = [Parameter(name, value=self.parameters[name]) for name in request.names]
            response.values = [value.to_parameter_msg().value for value in values]
        return response

    @property
    def view(self):
        controller = self.bench.node._controller
        return controller.view if self.name == controller.name else controller.position

    def publish_transition(self, state):
        """Publish a transition to a state, and wait until the node has received it."""
        number = State.PRIMARY_STATE_ACTIVE if state == "active" else State.PRIMARY_STATE_INACTIVE
        self.events.publish(TransitionEvent(goal_state=State(id=number)))
        wait(lambda: self.view.state == state)

    def report_state(self, state):
        """Report a state in the activity message of the controller manager."""
        number = State.PRIMARY_STATE_ACTIVE if state == "active" else State.PRIMARY_STATE_INACTIVE
        controller = SimpleNamespace(name=self.name, state=SimpleNamespace(id=number))
        self.view.on_activity(SimpleNamespace(controllers=[controller]))

    def accept_goal(self):
        server = self.robot.create_publisher(
            GoalStatusArray, f"{self.name}/follow_joint_trajectory/_action/status", LATCHED
        )
        server.publish(GoalStatusArray(status_list=[GoalStatus()]))
        wait(lambda: self.view.had_goal)
        return server


@pytest.fixture(name="forward")
def fixture_forward(model_file, keep):
    """Return a function that makes an effort controller for an active node."""

    def make(**parameters):
        bench = keep(
            Bench(
                model_file,
                controller=FORWARD,
                **({"unchecked_controller": False, "assume_no_effort": False} | parameters),
            )
        )
        return activate_node(Controller(bench, FORWARD, joints=list(planar_arm.JOINTS), interface_name="effort"))

    return make


@pytest.fixture(name="follower")
def fixture_follower(model_file, keep):
    """Return a function that makes a trajectory controller for an active node."""

    def make(**parameters):
        parameters = {"unchecked_controller": False, "output": "trajectory", "assume_no_effort": False} | parameters
        bench = keep(
            Bench(model_file, JointTrajectory, f"/{TRAJECTORY}/joint_trajectory", controller=TRAJECTORY, **parameters)
        )
        joints = list(planar_arm.JOINTS)
        return activate_node(Controller(bench, TRAJECTORY, joints=joints, command_interfaces=["position", "effort"]))

    return make


def activate_node(controller):
    bench = controller.bench
    wait(lambda: bench.node._controller.view.answer)
    bench.activate()
    wait(lambda: bench.robot.publisher.get_subscription_count() and bench.node._loop.compensator.position)
    wait(lambda: bench.node._loop.has_listener)
    return controller


def set_measured_efforts(controller, values):
    """Set the efforts of all joint states from now on."""
    controller.robot.spoil = lambda message: setattr(message, "effort", list(values))
    n_states = controller.bench.node._loop.states.states
    wait(lambda: controller.bench.node._loop.states.states > n_states + 2)


def wait_for_diagnostics(bench, text):
    wait(lambda: any(text in status.message for status in bench.robot.diagnostics))


def enable_and_read_first_command(bench, count=3):
    """Enable the compensation and return its first command."""
    n_before = len(bench.robot.commands)
    assert_success(bench.enable())
    wait(lambda: len(bench.robot.commands) >= n_before + count)
    return bench.torques()[n_before]


# Inactive controller.


def test_deactivation_while_enabled_is_a_fault(forward):
    controller = forward()
    controller.publish_transition("inactive")
    controller.bench.enable_until_active()
    controller.publish_transition("active")
    controller.publish_transition("inactive")
    bench = controller.bench
    wait(lambda: bench.state.startswith(f"fault: controller '{FORWARD}' was deactivated"))
    bench.check_fade(GRAVITY_TORQUE)


def test_enable_with_inactive_controller_succeeds_with_a_warning(forward):
    controller = forward()
    bench = controller.bench
    controller.publish_transition("inactive")
    answer = bench.enable()
    assert answer.success
    assert f"controller '{FORWARD}' is inactive: the torque goes nowhere" in answer.message
    wait(lambda: bench.state == "active")
    wait_for_diagnostics(bench, "active; controller 'forward_effort_controller' is inactive")
    controller.publish_transition("active")
    bench.robot.diagnostics.clear()
    wait(lambda: any(status.message == "active" for status in bench.robot.diagnostics))


# Output of a controller.


def publish_output(controller, effort, positions=POSE):
    """Publish a controller's output like `JointTrajectoryControllerState` until the test ends."""
    output = SimpleNamespace(effort=effort, positions=list(positions))
    message = SimpleNamespace(joint_names=list(planar_arm.JOINTS), output=output)
    watch = controller.bench.node._loop.controller.output
    controller.robot.executor.create_task(controller.robot.create_timer, 0.005, lambda: watch.on_state(message))
    wait(lambda: watch.effort(watch._received) == effort)
    return output


def test_dropped_effort_is_a_fault_without_further_commands(follower):
    controller = follower()
    bench = controller.bench
    bench.enable_until_active()
    wait(lambda: bench.torque == pytest.approx(GRAVITY_TORQUE))
    output = publish_output(controller, list(GRAVITY_TORQUE))
    wait(lambda: len(bench.robot.commands) > 100)
    assert bench.state == "active"
    output.effort = [0.0, 0.0, 0.0]
    duration = wait(lambda: bench.state.startswith("fault"))
    assert duration < 0.1 + 0.4
    assert f"controller '{TRAJECTORY}' does not put out what it is sent, as after an abort: joint 'joint_2' gets 0" in (
        bench.state
    )
    assert bench.torque == pytest.approx(GRAVITY_TORQUE), "the controller would drop a ramp as well"
    count = len(bench.robot.commands)
    wait(lambda: bench.node._loop.compensator.at_rest)
    wait(lambda: not bench.node._loop.commands.topic.is_open)
    assert len(bench.robot.commands) == count


# Action goals.


def test_action_goal_refuses_enable_until_reconfiguration(follower):
    controller = follower()
    bench = controller.bench
    server = controller.accept_goal()
    assert_refused(
        bench.enable(), "has accepted an action goal, whose tolerances", f"ros2 control unload_controller {TRAJECTORY}"
    )
    bench.robot.executor.create_task(bench.robot.destroy_publisher, server)
    wait(lambda: not controller.view.had_goal)
    bench.enable_until_active()


def test_action_goal_while_enabled_is_a_fault(follower):
    controller = follower()
    controller.bench.enable_until_active()
    controller.accept_goal()
    wait(lambda: controller.bench.state.startswith(f"fault: controller '{TRAJECTORY}' accepted an action goal"))


# Torque that acts at the time of enable.


def test_ramp_starts_at_the_measured_torque(forward):
    controller = forward(effort_convention="torque")
    set_measured_efforts(controller, LEFT_TORQUE)
    controller.report_state("active")
    controller.bench.start = LEFT_TORQUE
    assert enable_and_read_first_command(controller.bench) == pytest.approx(LEFT_TORQUE)
    wait(lambda: controller.bench.torque == pytest.approx(GRAVITY_TORQUE))


def test_sensor_offsets_are_never_commanded(forward):
    """The acting share of gravity follows from all joints, so an unloaded joint starts near zero."""
    controller = forward(effort_convention="torque")
    offsets = [1.5, -1.0, 1.0]
    set_measured_efforts(controller, [torque + offset for torque, offset in zip(GRAVITY_TORQUE, offsets, strict=True)])
    controller.report_state("active")
    controller.bench.start = GRAVITY_TORQUE
    first = enable_and_read_first_command(controller.bench)
    assert first[0] == 0.0
    assert first == pytest.approx(GRAVITY_TORQUE, rel=0.1)
    assert "measured effort agrees" in controller.bench.node._loop.began


def test_torque_other_than_gravity_refuses_enable(forward):
    controller = forward(effort_convention="torque")
    set_measured_efforts(controller, [9.0, GRAVITY_TORQUE[1], -GRAVITY_TORQUE[2]])
    controller.report_state("active")
    assert_refused(controller.bench.enable(), "it is not known what the controller holds")
    assert not controller.bench.robot.commands


def test_ramp_that_lets_the_arm_sink_is_refused(forward):
    controller = forward(effort_convention="torque", scale=[0.2])
    set_measured_efforts(controller, list(GRAVITY_TORQUE))
    controller.report_state("active")
    assert_refused(controller.bench.enable(), "the arm would sink")
    assert not controller.bench.robot.commands


@pytest.mark.parametrize("values", [[], [0.0, float("nan"), 0.0]])
def test_missing_or_nan_effort_refuses_enable(forward, values):
    controller = forward(effort_convention="torque")
    set_measured_efforts(controller, values)
    assert_refused(controller.bench.enable(), "joint_states", "assume_no_effort")
    assert not controller.bench.robot.commands


def test_effort_of_a_position_controller_is_not_the_start(forward):
    controller = forward(effort_convention="torque", position_controller="position")
    position = Controller(controller.bench, "position", joints=list(planar_arm.JOINTS), command_interfaces=["position"])
    set_measured_efforts(controller, GRAVITY_TORQUE)
    controller.report_state("inactive")
    position.report_state("active")
    assert enable_and_read_first_command(controller.bench) == [0.0] * 3


def test_active_controller_with_unknown_torque_is_refused(forward):
    controller = forward()
    controller.report_state("active")
    assert_refused(
        controller.bench.enable(),
        "is active, and it is not known which torque it holds, as of a process that was killed",
        "assume_no_effort",
    )
    controller.publish_transition("inactive")
    assert controller.bench.enable().success


def test_enable_succeeds_after_ramp_to_zero(forward):
    controller = forward()
    bench = controller.bench
    controller.publish_transition("inactive")
    assert bench.enable().success
    controller.publish_transition("active")
    wait(lambda: bench.state == "active")
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    assert enable_and_read_first_command(bench) == [0.0] * 3


def test_ramp_starts_at_zero_after_an_activation(follower):
    controller = follower()
    controller.report_state("active")
    assert "--activate joint_trajectory_controller" in controller.bench.enable().message
    controller.publish_transition("inactive")
    controller.publish_transition("active")
    assert enable_and_read_first_command(controller.bench) == [0.0] * 3


def test_ramp_starts_at_the_published_output(follower):
    controller = follower()
    publish_output(controller, list(LEFT_TORQUE))
    controller.report_state("active")
    controller.bench.start = LEFT_TORQUE
    assert enable_and_read_first_command(controller.bench) == pytest.approx(LEFT_TORQUE)


# Pose that is held.


SAG_RAD = 0.03


def read_positions(bench):
    return [list(message.points[0].positions) for _, message in list(bench.robot.commands)]


def test_repeated_enable_holds_a_sagging_arm_at_the_first_pose(follower):
    bench = follower().bench
    for _ in range(3):
        bench.robot.position = list(POSE)
        bench.enable_until_active()
        assert bench.enable(False).success
        wait(lambda: bench.state == "disabled")
        bench.robot.position[1] = POSE[1] - SAG_RAD
        n_states = bench.node._loop.states.states
        wait(lambda n_states=n_states: bench.node._loop.states.states > n_states + 2)
    assert {tuple(point) for point in read_positions(bench)} == {tuple(POSE)}


def test_moved_arm_is_held_at_its_measured_pose(follower):
    controller = follower()
    bench = controller.bench
    bench.enable_until_active()
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    bench.robot.position[1] = POSE[1] - SAG_RAD
    controller.publish_transition("inactive")
    controller.publish_transition("active")
    n_states = bench.node._loop.states.states
    wait(lambda: bench.node._loop.states.states > n_states + 2)
    bench.enable_until_active()
    assert read_positions(bench)[-1] == pytest.approx(bench.robot.position)


def test_held_pose_starts_at_the_published_reference(follower):
    controller = follower()
    publish_output(controller, [0.0] * 3, [POSE[0], POSE[1] + SAG_RAD, POSE[2]])
    bench = controller.bench
    assert bench.enable().success
    wait(lambda: bench.robot.commands)
    assert read_positions(bench)[0] == pytest.approx([POSE[0], POSE[1] + SAG_RAD, POSE[2]])


# Warnings.


def test_warns_of_position_controller_that_restores_its_last_command(forward, capfd):
    controller = forward(position_controller="position")
    joints = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]}
    position = Controller(controller.bench, "position", **joints, **{RESTORES: True})
    line = f"ros2 param set /position {RESTORES} false"
    wait_for_diagnostics(controller.bench, line)
    assert capfd.readouterr().err.count(line) == 1
    position.parameters[RESTORES] = False
    controller.bench.robot.diagnostics.clear()
    wait(lambda: any(line not in status.message for status in controller.bench.robot.diagnostics))


def test_warns_of_torque_that_acts_while_disabled(forward):
    controller = forward(effort_convention="torque")
    set_measured_efforts(controller, LEFT_TORQUE)
    controller.report_state("active")
    wait_for_diagnostics(controller.bench, f"{LEFT_TORQUE[1]:.3g} N m (N) act on joint 'joint_2' although disabled")


# Silent joint states.


def test_torque_may_be_held_during_silence(forward):
    bench = forward(timeout=0.5, hold_on_silence=0.5, assume_no_effort=True).bench
    bench.enable_until_active()
    wait(lambda: bench.torque == pytest.approx(GRAVITY_TORQUE))
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault: no new joint state"))
    fault_time = bench.robot.commands[-1][0]
    wait(lambda: not any(bench.torque))
    times = [sent for sent, message in bench.robot.commands if list(message.data) == pytest.approx(GRAVITY_TORQUE)]
    assert 0.4 < times[-1] - fault_time < 0.5 + 0.2
    assert bench.robot.commands[-1][0] - times[-1] < FAULT_RAMP_S + RAMP_S
