"""Test the excitation node with a controller that serves FollowJointTrajectory."""

import sys
from types import SimpleNamespace

import planar_arm
import pytest
from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from helpers.excitation_bench import START, SWING, Bench, check_smooth, is_moving, write_swing
from helpers.node_threads import assert_refused, assert_success
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.task import Future

from dynid_ros.errors import DynidError
from dynid_ros.nodes.experiment import trajectory_action, trajectory_execution as arm_in_motion
from dynid_ros.nodes.experiment.trajectory_action import trajectory_message
from dynid_ros.nodes.shared.controllers import OWN_GOAL_PREFIX
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode
from dynid_ros.trajectories import Trajectory, move

pytestmark = pytest.mark.usefixtures("ros")
ACTION = "/joint_trajectory_controller/follow_joint_trajectory"


class Server:
    """Action server like joint_trajectory_controller: a new goal cancels the previous goal."""

    def __init__(self, robot, kind):
        self.robot = robot
        self.kind = kind
        self.goals = []
        self.cancelled = 0
        self.rejects = False
        self.outcomes = {}
        self.server = ActionServer(
            robot,
            kind,
            ACTION,
            self.execute,
            goal_callback=lambda _: GoalResponse.REJECT if self.rejects else GoalResponse.ACCEPT,
            handle_accepted_callback=self.accept,
            cancel_callback=self.cancel,
        )
        robot.create_timer(0.02, self.end_finished_goal)

    def accept(self, handle):
        for outcome in self.outcomes.values():
            if not outcome.done():
                outcome.set_result("replaced")
        self.goals.append(handle)
        self.outcomes[bytes(bytearray(handle.goal_id.uuid))] = Future()
        self.robot.follow(handle.request.trajectory, {"source_timestamp": self.robot.now() * 1e9})
        handle.execute()

    def cancel(self, handle):
        self.cancelled += 1
        self.outcomes[bytes(bytearray(handle.goal_id.uuid))].set_result("cancelled")
        return CancelResponse.ACCEPT

    async def execute(self, handle):
        how = await self.outcomes[bytes(bytearray(handle.goal_id.uuid))]
        result = self.kind.Result()
        if how == "done":
            handle.succeed()
        else:
            result.error_code = self.kind.Result.PATH_TOLERANCE_VIOLATED
            result.error_string = f"{how} at joint_2"
            handle.abort()
        return result

    def end_finished_goal(self):
        robot = self.robot
        if robot.spline is not None and robot.now() > robot.spline_start + robot.spline_end:
            self.end_goals("done")

    def end_serving(self):
        self.robot.executor.create_task(self.server.destroy)

    def end_goals(self, how):
        for outcome in self.outcomes.values():
            if not outcome.done():
                outcome.set_result(how)


KIND = SimpleNamespace(Goal=SimpleNamespace, Result=SimpleNamespace(SUCCESSFUL=0, PATH_TOLERANCE_VIOLATED=-4))


class Client:
    """Action client without type support, which rclpy's client needs."""

    server = None

    def server_is_ready(self):
        return self.server is not None and self.server.ready

    def send_goal_async(self, *goal):
        return self.server.send_goal_async(*goal)


class ServerWithoutMessages(Server):
    """Action server without `control_msgs`: publishes real statuses and accepts goals by a function call."""

    def __init__(self, robot):
        self.robot = robot
        self.kind = KIND
        self.goals = []
        self.outcomes = {}
        self.cancelled = 0
        self.rejects = False
        self.ready = True
        self.status = robot.create_publisher(GoalStatusArray, f"{ACTION}/_action/status", LATCHED)
        robot.create_timer(0.02, self.end_finished_goal)

    def send_goal_async(self, goal, _feedback=None, uuid=None):
        answer = Future()
        result = Future()
        handle = SimpleNamespace(
            request=goal,
            goal_id=uuid or GoalInfo().goal_id,
            status=GoalStatus.STATUS_EXECUTING,
            accepted=not self.rejects,
            get_result_async=lambda: result,
            cancel_goal_async=lambda: self.cancel(handle),
            result=result,
        )
        answer.set_result(handle)
        if handle.accepted:
            self.robot.executor.create_task(self.accept, handle)
        return answer

    def accept(self, handle):
        handle.execute = self.publish_statuses
        super().accept(handle)

    def publish_statuses(self):
        for goal in self.goals:
            outcome = self.outcomes[bytes(bytearray(goal.goal_id.uuid))]
            if outcome.done() and goal.status == GoalStatus.STATUS_EXECUTING:
                done = outcome.result() == "done"
                goal.status = GoalStatus.STATUS_SUCCEEDED if done else GoalStatus.STATUS_ABORTED
                result = SimpleNamespace(error_code=-4 * (not done), error_string=f"{outcome.result()} at joint_2")
                goal.result.set_result(SimpleNamespace(status=goal.status, result=result))
        statuses = [GoalStatus(status=goal.status) for goal in self.goals]
        for status, goal in zip(statuses, self.goals, strict=True):
            status.goal_info.goal_id = goal.goal_id
        self.status.publish(GoalStatusArray(status_list=statuses))

    def end_finished_goal(self):
        super().end_finished_goal()
        self.publish_statuses()

    def end_serving(self):
        self.ready = False


@pytest.fixture(params=["control_msgs", "stand-in"])
def bench(request, tmp_path, keep, monkeypatch):
    """Start the node with a prepared motion and an action server."""
    monkeypatch.setattr(arm_in_motion, "START_PAUSE_S", 0.3)
    client = Client()
    if request.param == "control_msgs":
        kind = pytest.importorskip("control_msgs.action").FollowJointTrajectory
    else:
        monkeypatch.setattr(trajectory_action, "_action_type", lambda: KIND)
        monkeypatch.setattr(trajectory_action, "message_type", lambda *_: SimpleNamespace)
        monkeypatch.setattr(trajectory_action, "ActionClient", lambda *_: client)
    bench = keep(Bench(controller=False, repeats=3, **write_swing(tmp_path)))
    if request.param == "control_msgs":
        bench.server = Server(bench.robot, kind)
    else:
        bench.server = client.server = ServerWithoutMessages(bench.robot)
    wait(lambda: bench.node.arm._has_controller() and bench.robot.publisher.get_subscription_count(), START_TIMEOUT_S)
    return bench


def start_motion(bench):
    assert_success(bench.call("start"), f"by action {ACTION}")
    wait(lambda: is_moving(bench.robot))


def test_goals_keep_tolerances_efforts_and_publishers_unchanged(bench):
    start_motion(bench)
    assert bench.robot.count_publishers("/joint_trajectory_controller/joint_trajectory") == 1  # visible to other nodes
    wait(lambda: bench.state == "done")
    hold, motion = bench.server.goals
    assert len(hold.request.trajectory.points) == 1
    for goal in (hold, motion):
        assert bytes(bytearray(goal.goal_id.uuid)).startswith(OWN_GOAL_PREFIX)
        for tolerances in (goal.request.path_tolerance, goal.request.goal_tolerance):
            assert sorted(tolerance.name for tolerance in tolerances) == sorted(planar_arm.JOINTS)
            assert {(t.position, t.velocity, t.acceleration) for t in tolerances} == {(-1.0, -1.0, -1.0)}
        assert goal.request.goal_time_tolerance.sec == -1
        assert not any(point.effort for point in goal.request.trajectory.points)
    wait(lambda: motion.status == GoalStatus.STATUS_SUCCEEDED)
    wait(lambda: bench.robot.count_publishers("/joint_trajectory_controller/joint_trajectory") == 0)
    check_smooth(bench.robot)


def test_stop_is_a_goal_along_the_path(bench):
    start_motion(bench)
    assert bench.call("stop").success
    wait(lambda: bench.state == "idle")
    assert len(bench.server.goals) == 3
    assert not bench.server.cancelled
    check_smooth(bench.robot)


def test_rejected_stop_cancels_the_goal(bench):
    start_motion(bench)
    bench.server.rejects = True
    assert bench.call("stop").success
    wait(lambda: bench.server.cancelled)


def test_rejected_goal_is_reported(bench):
    bench.server.rejects = True
    answer = bench.call("start")
    assert not answer.success
    assert answer.message == f"{ACTION} rejected the goal; see the controller's log"
    assert not bench.robot.commands


def test_aborted_goal_is_reported_with_its_reason(bench):
    start_motion(bench)
    bench.robot.fault = "stuck"
    bench.server.end_goals("aborted")
    wait(lambda: bench.state.startswith("stopped"))
    assert bench.state == f"stopped: {ACTION} aborted the goal: PATH_TOLERANCE_VIOLATED: aborted at joint_2"
    wait(lambda: not bench.node.arm.moving)
    assert len(bench.server.goals) == 2  # the controller holds the arm, so the node sends no stop


def test_goal_of_another_client_stops_the_motion_and_continues(bench):
    start_motion(bench)
    client = bench.node.arm.action._client
    client.send_goal_async(bench.server.kind.Goal(trajectory=bench.server.goals[-1].request.trajectory))
    wait(lambda: bench.state.startswith("stopped"))
    assert "another client's goal" in bench.state
    assert_refused(bench.call("start"), "a goal of another client is running")
    assert len(bench.server.goals) == 3


def test_lost_server_is_reported(bench):
    start_motion(bench)
    bench.server.end_serving()
    wait(lambda: bench.state.startswith("stopped"))
    assert "any more" in bench.state


def test_missing_control_msgs_allows_only_the_topic(keep, monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs.action", None)
    with pytest.raises(DynidError, match=r"^Parameter command_interface is action, for which control_msgs is not"):
        Bench(command_interface="action")
    bench = keep(Bench())
    assert bench.node.arm.action is None
    assert bench.node.arm.interface == "topic /joint_trajectory_controller/joint_trajectory"


def start_in_pieces(bench):
    """Start a motion with a controller that replaces trajectories without a jump."""
    answers = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]}
    topic = "/joint_trajectory_controller/joint_trajectory"
    ControllerNode(bench.robot, topic, answers | {"interpolate_from_desired_state": True})
    wait(lambda: bench.node.arm._controller._view.answer)
    start_motion(bench)


def test_pieces_are_goals_that_replace_each_other(bench):
    start_in_pieces(bench)
    wait(lambda: bench.state == "done")
    assert len(bench.server.goals) > 10
    assert not bench.server.cancelled
    check_smooth(bench.robot)


def test_arm_stops_within_two_seconds_of_the_last_goal(bench):
    start_in_pieces(bench)
    with bench.node.arm.lock:  # the sending thread waits for this lock
        began = bench.robot.now()
        sent = len(bench.server.goals)
        wait(lambda: bench.robot.now() > bench.robot.spline_start + bench.robot.spline_end)
        assert bench.robot.now() - began < 2.5
        assert len(bench.server.goals) <= sent + 1
    wait(lambda: bench.state.startswith("stopped: this process was kept from sending"))
    assert not bench.server.cancelled


def send_foreign_goal(bench):
    """Send a motion as another process does, and wait until the arm moves."""
    wait(lambda: bench.node.arm.doubt == "")
    path = Trajectory.join([move(planar_arm.JOINTS, START, SWING, 1.5), move(planar_arm.JOINTS, SWING, START, 1.5)])
    message = trajectory_message(path.sample(50.0), planar_arm.JOINTS, 0.25)
    bench.node.arm.action._client.send_goal_async(bench.server.kind.Goal(trajectory=message))
    wait(lambda: is_moving(bench.robot))


def test_stop_replaces_the_goal_of_another_process(bench):
    send_foreign_goal(bench)
    assert_success(bench.call("stop"), "arm was moving ('joint_")
    wait(lambda: bench.state == "idle")
    assert len(bench.server.goals) == 2
    check_smooth(bench.robot)


def test_rejected_stop_cancels_the_goals_of_all_clients(bench, monkeypatch):
    cancelled = []
    monkeypatch.setattr(type(bench.node.arm.action), "cancel_all", lambda _: cancelled.append(True))
    send_foreign_goal(bench)
    bench.server.rejects = True
    bench.call("stop")
    wait(lambda: cancelled)
