"""Detection of a controller's state. The robot publishes the messages of controller, manager and action server."""

from types import SimpleNamespace

import planar_arm
import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from helpers.compensation_bench import FAULT_RAMP, POSE, RAMP, Bench
from helpers.waiting import wait
from lifecycle_msgs.msg import State, TransitionEvent
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import Parameter
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.nodes.shared.topics import LATCHED

pytestmark = pytest.mark.usefixtures("ros")
FORWARD, TRAJECTORY = "forward_effort_controller", "joint_trajectory_controller"
SAFE = planar_arm.gravity_torque(POSE)
ACTING = [0.6 * torque for torque in SAFE]
RESTORES = "set_last_command_interface_value_as_state_on_activation"


class Controller:
    """Messages of one controller, published by the simulated robot."""

    def __init__(self, bench, name, **parameters):
        self.bench, self.robot, self.name = bench, bench.robot, name
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
    def watch(self):
        controller = self.bench.node._controller
        return controller.view if self.name == controller.name else controller.position

    def become(self, state):
        """Publish a transition to a state, and wait until the node has received it."""
        number = State.PRIMARY_STATE_ACTIVE if state == "active" else State.PRIMARY_STATE_INACTIVE
        self.events.publish(TransitionEvent(goal_state=State(id=number)))
        wait(lambda: self.watch.state == state)

    def be(self, state):
        """Report a state in the activity message of the controller manager."""
        number = State.PRIMARY_STATE_ACTIVE if state == "active" else State.PRIMARY_STATE_INACTIVE
        named = SimpleNamespace(name=self.name, state=SimpleNamespace(id=number))
        self.watch.on_activity(SimpleNamespace(controllers=[named]))

    def accept_goal(self):
        server = self.robot.create_publisher(
            GoalStatusArray, f"{self.name}/follow_joint_trajectory/_action/status", LATCHED
        )
        server.publish(GoalStatusArray(status_list=[GoalStatus()]))
        wait(lambda: self.watch.had_goal)
        return server


@pytest.fixture(name="forward")
def fixture_forward(model_file, keep):
    """Make an effort controller for a node that is active."""

    def make(**parameters):
        bench = keep(
            Bench(
                model_file,
                controller=FORWARD,
                **({"unchecked_controller": False, "assume_no_effort": False} | parameters),
            )
        )
        return ready(Controller(bench, FORWARD, joints=list(planar_arm.JOINTS), interface_name="effort"))

    return make


@pytest.fixture(name="follower")
def fixture_follower(model_file, keep):
    """Make a trajectory controller for a node that is active."""

    def make(**parameters):
        parameters = {"unchecked_controller": False, "output": "trajectory", "assume_no_effort": False} | parameters
        bench = keep(
            Bench(model_file, JointTrajectory, f"/{TRAJECTORY}/joint_trajectory", controller=TRAJECTORY, **parameters)
        )
        joints = list(planar_arm.JOINTS)
        return ready(Controller(bench, TRAJECTORY, joints=joints, command_interfaces=["position", "effort"]))

    return make


def ready(controller):
    bench = controller.bench
    wait(lambda: bench.node._controller.view.answer)
    bench.activate()
    wait(lambda: bench.robot.publisher.get_subscription_count() and bench.node._loop.compensator.position)
    wait(lambda: bench.node._loop.has_listener)
    return controller


def efforts(controller, values):
    """Joint states have these efforts from now on."""
    controller.robot.spoil = lambda message: setattr(message, "effort", list(values))
    heard = controller.bench.node._loop.states.states
    wait(lambda: controller.bench.node._loop.states.states > heard + 2)


def told(bench, text):
    wait(lambda: any(text in status.message for status in bench.robot.diagnostics))


def first_commands(bench, count=3):
    begun = len(bench.robot.commands)
    assert (answer := bench.enable()).success, answer.message
    wait(lambda: len(bench.robot.commands) >= begun + count)
    return bench.torques()[begun]


# a controller that is inactive


def test_deactivated_while_enabled_is_a_fault(forward):
    controller = forward()
    controller.become("inactive")
    controller.bench.enabled()
    controller.become("active")
    controller.become("inactive")
    bench = controller.bench
    wait(lambda: bench.state.startswith(f"fault: controller '{FORWARD}' was deactivated"))
    bench.check_fade(SAFE)


def test_an_inactive_controller_may_be_enabled_for_and_is_told_of(forward):
    controller = forward()
    bench = controller.bench
    controller.become("inactive")
    answer = bench.enable()
    assert answer.success
    assert f"controller '{FORWARD}' is inactive: the torque goes nowhere" in answer.message
    wait(lambda: bench.state == "active")
    told(bench, "active; controller 'forward_effort_controller' is inactive")
    controller.become("active")
    bench.robot.diagnostics.clear()
    wait(lambda: any(status.message == "active" for status in bench.robot.diagnostics))


# the output of a controller


def put_out(controller, effort, positions=POSE):
    """Publish a controller's output, as in `JointTrajectoryControllerState`, until the test ends."""
    output = SimpleNamespace(effort=effort, positions=list(positions))
    message = SimpleNamespace(joint_names=list(planar_arm.JOINTS), output=output)
    told_to = controller.bench.node._loop.controller.output
    controller.robot.executor.create_task(controller.robot.create_timer, 0.005, lambda: told_to.on_state(message))
    wait(lambda: told_to.effort(told_to._received) == effort)
    return output


def test_a_controller_that_drops_the_effort_is_a_fault_and_then_there_is_silence(follower):
    controller = follower()
    bench = controller.bench
    bench.enabled()
    wait(lambda: bench.torque == pytest.approx(SAFE))
    output = put_out(controller, list(SAFE))
    wait(lambda: len(bench.robot.commands) > 100)
    assert bench.state == "active"
    output.effort = [0.0, 0.0, 0.0]
    took = wait(lambda: bench.state.startswith("fault"))
    assert took < 0.1 + 0.4
    assert f"controller '{TRAJECTORY}' does not put out what it is sent, as after an abort: joint 'joint_2' gets 0" in (
        bench.state
    )
    assert bench.torque == pytest.approx(SAFE), "a ramp would be aborted as well"
    count = len(bench.robot.commands)
    wait(lambda: bench.node._loop.compensator.at_rest)
    wait(lambda: not bench.node._loop.commands.topic.is_open)
    assert len(bench.robot.commands) == count


# action goals


def test_after_an_action_goal_enable_is_refused_until_the_controller_is_configured_anew(follower):
    controller = follower()
    bench = controller.bench
    server = controller.accept_goal()
    answer = bench.enable()
    assert not answer.success
    assert "has accepted an action goal, whose tolerances" in answer.message
    assert f"ros2 control unload_controller {TRAJECTORY}" in answer.message
    bench.robot.executor.create_task(bench.robot.destroy_publisher, server)
    wait(lambda: not controller.watch.had_goal)
    bench.enabled()


def test_a_goal_while_enabled_is_a_fault(follower):
    controller = follower()
    controller.bench.enabled()
    controller.accept_goal()
    wait(lambda: controller.bench.state.startswith(f"fault: controller '{TRAJECTORY}' accepted an action goal"))


# the torque that acts at enable


def test_the_ramp_begins_at_the_torque_that_was_left(forward):
    controller = forward(effort_convention="torque")
    efforts(controller, ACTING)
    controller.be("active")
    controller.bench.start = ACTING
    assert first_commands(controller.bench) == pytest.approx(ACTING)
    wait(lambda: controller.bench.torque == pytest.approx(SAFE))


def test_offsets_of_the_sensors_are_never_commanded(forward):
    """What was left is known from all joints together; a light joint begins at its share of nearly nothing."""
    controller = forward(effort_convention="torque")
    offsets = [1.5, -1.0, 1.0]
    efforts(controller, [torque + offset for torque, offset in zip(SAFE, offsets, strict=True)])
    controller.be("active")
    controller.bench.start = SAFE
    first = first_commands(controller.bench)
    assert first[0] == 0.0
    assert first == pytest.approx(SAFE, rel=0.1)
    assert "measured effort agrees" in controller.bench.node._loop.began


def test_a_torque_that_is_no_part_of_gravity_is_refused(forward):
    controller = forward(effort_convention="torque")
    efforts(controller, [9.0, SAFE[1], -SAFE[2]])
    controller.be("active")
    answer = controller.bench.enable()
    assert not answer.success
    assert "it is not known what the controller holds" in answer.message
    assert not controller.bench.robot.commands


def test_a_ramp_that_would_let_the_arm_sink_is_refused(forward):
    controller = forward(effort_convention="torque", scale=[0.2])
    efforts(controller, list(SAFE))
    controller.be("active")
    answer = controller.bench.enable()
    assert not answer.success
    assert "the arm would sink" in answer.message
    assert not controller.bench.robot.commands


@pytest.mark.parametrize("values", [[], [0.0, float("nan"), 0.0]])
def test_an_effort_that_is_no_number_is_no_start(forward, values):
    controller = forward(effort_convention="torque")
    efforts(controller, values)
    answer = controller.bench.enable()
    assert not answer.success
    assert "joint_states" in answer.message
    assert "assume_no_effort" in answer.message
    assert not controller.bench.robot.commands


def test_efforts_of_a_position_controller_are_no_start(forward):
    controller = forward(effort_convention="torque", position_controller="position")
    position = Controller(controller.bench, "position", joints=list(planar_arm.JOINTS), command_interfaces=["position"])
    efforts(controller, SAFE)
    controller.be("inactive")
    position.be("active")
    assert first_commands(controller.bench) == [0.0] * 3


def test_an_active_controller_of_unknown_torque_is_refused(forward):
    controller = forward()
    controller.be("active")
    answer = controller.bench.enable()
    assert not answer.success
    assert "is active, and it is not known which torque it holds, as of a process that was killed" in answer.message
    assert "assume_no_effort" in answer.message
    controller.become("inactive")
    assert controller.bench.enable().success


def test_after_its_own_zero_it_may_be_enabled_again(forward):
    controller = forward()
    bench = controller.bench
    controller.become("inactive")
    assert bench.enable().success
    controller.become("active")
    wait(lambda: bench.state == "active")
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    assert first_commands(bench) == [0.0] * 3


def test_a_follower_of_trajectories_begins_at_zero_after_an_activation(follower):
    controller = follower()
    controller.be("active")
    assert "--activate joint_trajectory_controller" in controller.bench.enable().message
    controller.become("inactive")
    controller.become("active")
    assert first_commands(controller.bench) == [0.0] * 3


def test_of_a_follower_that_tells_the_ramp_begins_at_its_output(follower):
    controller = follower()
    put_out(controller, list(ACTING))
    controller.be("active")
    controller.bench.start = ACTING
    assert first_commands(controller.bench) == pytest.approx(ACTING)


# the pose that is held


SAG = 0.03


def points(bench):
    return [list(message.points[0].positions) for _, message in list(bench.robot.commands)]


def test_an_arm_that_sags_does_not_sink_from_one_enable_to_the_next(follower):
    bench = follower().bench
    for _ in range(3):
        bench.robot.position = list(POSE)
        bench.enabled()
        assert bench.enable(False).success
        wait(lambda: bench.state == "disabled")
        bench.robot.position[1] = POSE[1] - SAG
        heard = bench.node._loop.states.states
        wait(lambda heard=heard: bench.node._loop.states.states > heard + 2)
    assert {tuple(point) for point in points(bench)} == {tuple(POSE)}


def test_an_arm_that_was_moved_is_held_where_it_is(follower):
    controller = follower()
    bench = controller.bench
    bench.enabled()
    assert bench.enable(False).success
    wait(lambda: bench.state == "disabled")
    bench.robot.position[1] = POSE[1] - SAG
    controller.become("inactive")
    controller.become("active")
    heard = bench.node._loop.states.states
    wait(lambda: bench.node._loop.states.states > heard + 2)
    bench.enabled()
    assert points(bench)[-1] == pytest.approx(bench.robot.position)


def test_the_reference_of_a_controller_that_tells_is_where_it_begins(follower):
    controller = follower()
    put_out(controller, [0.0] * 3, [POSE[0], POSE[1] + SAG, POSE[2]])
    bench = controller.bench
    assert bench.enable().success
    wait(lambda: bench.robot.commands)
    assert points(bench)[0] == pytest.approx([POSE[0], POSE[1] + SAG, POSE[2]])


# what is told before it does harm


def test_a_position_controller_that_would_snap_back_is_named(forward, capfd):
    controller = forward(position_controller="position")
    joints = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]}
    position = Controller(controller.bench, "position", **joints, **{RESTORES: True})
    line = f"ros2 param set /position {RESTORES} false"
    told(controller.bench, line)
    assert capfd.readouterr().err.count(line) == 1
    position.parameters[RESTORES] = False
    controller.bench.robot.diagnostics.clear()
    wait(lambda: any(line not in status.message for status in controller.bench.robot.diagnostics))


def test_a_torque_that_acts_although_disabled_is_told_of(forward):
    controller = forward(effort_convention="torque")
    efforts(controller, ACTING)
    controller.be("active")
    told(controller.bench, f"{ACTING[1]:.3g} N m (N) act on joint 'joint_2' although disabled")


# silence


def value(bench, key):
    found = [pair.value for pair in bench.robot.diagnostics[-1].values if pair.key == key]
    return float(found[0]) if found else 0.0


def test_silence_alone_may_hold_the_torque_for_a_while(forward):
    bench = forward(timeout=0.5, hold_on_silence=0.5, assume_no_effort=True).bench
    bench.enabled()
    wait(lambda: bench.torque == pytest.approx(SAFE))
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault: no new joint state"))
    faulted = bench.robot.commands[-1][0]
    wait(lambda: not any(bench.torque))
    times = [sent for sent, message in bench.robot.commands if list(message.data) == pytest.approx(SAFE)]
    assert 0.4 < times[-1] - faulted < 0.5 + 0.2
    assert bench.robot.commands[-1][0] - times[-1] < FAULT_RAMP + RAMP
