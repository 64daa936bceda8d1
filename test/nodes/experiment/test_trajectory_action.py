"""The excitation node beside a controller that serves FollowJointTrajectory; what it does in place of a topic."""

import sys
from types import SimpleNamespace

import planar_arm
import pytest
from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from helpers.excitation_bench import START, Bench, check_smooth, moving
from helpers.waiting import START_TIME, wait
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
SWING = [START[0] + 0.5, START[1] - 0.4, START[2] + 0.4]


class Server:
    """Serves the action as joint_trajectory_controller does: a goal replaces the one before, which is cancelled."""

    def __init__(self, robot, kind):
        self.robot, self.kind = robot, kind
        self.goals, self.cancelled = [], 0
        self.rejects, self.ends = False, {}
        self.server = ActionServer(
            robot,
            kind,
            ACTION,
            self.execute,
            goal_callback=lambda _: GoalResponse.REJECT if self.rejects else GoalResponse.ACCEPT,
            handle_accepted_callback=self.accept,
            cancel_callback=self.cancel,
        )
        robot.create_timer(0.02, self.look)

    def accept(self, handle):
        for ended in self.ends.values():
            if not ended.done():
                ended.set_result("replaced")
        self.goals.append(handle)
        self.ends[bytes(bytearray(handle.goal_id.uuid))] = Future()
        self.robot.follow(handle.request.trajectory, {"source_timestamp": self.robot.now() * 1e9})
        handle.execute()

    def cancel(self, handle):
        self.cancelled += 1
        self.ends[bytes(bytearray(handle.goal_id.uuid))].set_result("cancelled")
        return CancelResponse.ACCEPT

    async def execute(self, handle):
        how = await self.ends[bytes(bytearray(handle.goal_id.uuid))]
        result = self.kind.Result()
        if how == "done":
            handle.succeed()
        else:
            result.error_code, result.error_string = self.kind.Result.PATH_TOLERANCE_VIOLATED, f"{how} at joint_2"
            handle.abort()
        return result

    def look(self):
        robot = self.robot
        if robot.spline is not None and robot.now() > robot.spline_start + robot.spline_end:
            self.end("done")

    def end_serving(self):
        self.robot.executor.create_task(self.server.destroy)

    def end(self, how):
        for ended in self.ends.values():
            if not ended.done():
                ended.set_result(how)


KIND = SimpleNamespace(Goal=SimpleNamespace, Result=SimpleNamespace(SUCCESSFUL=0, PATH_TOLERANCE_VIOLATED=-4))


class Client:
    """In place of rclpy's, which needs the action's type support."""

    server = None

    def server_is_ready(self):
        return self.server is not None and self.server.ready

    def send_goal_async(self, *goal):
        return self.server.send_goal_async(*goal)


class StandIn(Server):
    """The same without `control_msgs`: real statuses on their topic, goals by a call in place of a service."""

    def __init__(self, robot):
        self.robot, self.kind = robot, KIND
        self.goals, self.ends, self.cancelled, self.rejects, self.ready = [], {}, 0, False, True
        self.status = robot.create_publisher(GoalStatusArray, f"{ACTION}/_action/status", LATCHED)
        robot.create_timer(0.02, self.look)

    def send_goal_async(self, goal, _feedback=None, uuid=None):
        answer, result = Future(), Future()
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
        handle.execute = self.tell
        super().accept(handle)

    def tell(self):
        for goal in self.goals:
            how = self.ends[bytes(bytearray(goal.goal_id.uuid))]
            if how.done() and goal.status == GoalStatus.STATUS_EXECUTING:
                done = how.result() == "done"
                goal.status = GoalStatus.STATUS_SUCCEEDED if done else GoalStatus.STATUS_ABORTED
                result = SimpleNamespace(error_code=-4 * (not done), error_string=f"{how.result()} at joint_2")
                goal.result.set_result(SimpleNamespace(status=goal.status, result=result))
        told = [GoalStatus(status=goal.status) for goal in self.goals]
        for status, goal in zip(told, self.goals, strict=True):
            status.goal_info.goal_id = goal.goal_id
        self.status.publish(GoalStatusArray(status_list=told))

    def look(self):
        super().look()
        self.tell()

    def end_serving(self):
        self.ready = False


@pytest.fixture(params=["control_msgs", "stand-in"])
def bench(request, tmp_path, keep, monkeypatch):
    """The node on a motion that takes no design, and the server."""
    monkeypatch.setattr(arm_in_motion, "START_PAUSE_S", 0.3)
    swing = [move(planar_arm.JOINTS, *ends, 1.0) for ends in ((START, SWING), (SWING, START))]
    path = Trajectory.join(swing).save(tmp_path / "swing.yaml")
    client = Client()
    if request.param == "control_msgs":
        kind = pytest.importorskip("control_msgs.action").FollowJointTrajectory
    else:
        monkeypatch.setattr(trajectory_action, "_action_type", lambda: KIND)
        monkeypatch.setattr(trajectory_action, "message_type", lambda *_: SimpleNamespace)
        monkeypatch.setattr(trajectory_action, "ActionClient", lambda *_: client)
    made = keep(Bench(controller=False, motion="file", motion_file=str(path), repeats=3))
    if request.param == "control_msgs":
        made.server = Server(made.robot, kind)
    else:
        made.server = client.server = StandIn(made.robot)
    wait(lambda: made.node.arm._has_controller() and made.robot.publisher.get_subscription_count(), START_TIME)
    return made


def started(bench):
    answer = bench.call("start")
    assert answer.success, answer.message
    assert f"by action {ACTION}" in answer.message
    wait(lambda: moving(bench.robot))


def test_motions_are_goals_that_leave_nothing_behind(bench):
    started(bench)
    assert bench.robot.count_publishers("/joint_trajectory_controller/joint_trajectory") == 1  # for others to see
    wait(lambda: bench.state == "done")
    hold, motion = bench.server.goals
    assert len(hold.request.trajectory.points) == 1
    for goal in (hold, motion):
        assert bytes(bytearray(goal.goal_id.uuid)).startswith(OWN_GOAL_PREFIX)
        for tolerances in (goal.request.path_tolerance, goal.request.goal_tolerance):
            assert sorted(each.name for each in tolerances) == sorted(planar_arm.JOINTS)
            assert {(each.position, each.velocity, each.acceleration) for each in tolerances} == {(-1.0, -1.0, -1.0)}
        assert goal.request.goal_time_tolerance.sec == -1
        assert not any(point.effort for point in goal.request.trajectory.points)
    wait(lambda: motion.status == GoalStatus.STATUS_SUCCEEDED)
    wait(lambda: bench.robot.count_publishers("/joint_trajectory_controller/joint_trajectory") == 0)
    check_smooth(bench.robot)


def test_a_stop_is_a_goal_along_the_path(bench):
    started(bench)
    assert bench.call("stop").success
    wait(lambda: bench.state == "idle")
    assert len(bench.server.goals) == 3
    assert not bench.server.cancelled
    check_smooth(bench.robot)


def test_where_a_stop_is_not_taken_the_goal_is_cancelled(bench):
    started(bench)
    bench.server.rejects = True
    assert bench.call("stop").success
    wait(lambda: bench.server.cancelled)


def test_a_goal_that_is_rejected_is_told(bench):
    bench.server.rejects = True
    answer = bench.call("start")
    assert not answer.success
    assert answer.message == f"{ACTION} rejected the goal; see the controller's log"
    assert not bench.robot.commands


def test_a_goal_that_is_aborted_is_told_with_its_reason(bench):
    started(bench)
    bench.robot.fault = "stuck"
    bench.server.end("aborted")
    wait(lambda: bench.state.startswith("stopped"))
    assert bench.state == f"stopped: {ACTION} aborted the goal: PATH_TOLERANCE_VIOLATED: aborted at joint_2"
    wait(lambda: not bench.node.arm.moving)
    assert len(bench.server.goals) == 2  # the controller holds the arm


def test_a_goal_of_another_client_takes_the_arm_and_is_left_alone(bench):
    started(bench)
    client = bench.node.arm.action._client
    client.send_goal_async(bench.server.kind.Goal(trajectory=bench.server.goals[-1].request.trajectory))
    wait(lambda: bench.state.startswith("stopped"))
    assert "another client's goal" in bench.state
    answer = bench.call("start")
    assert not answer.success
    assert "a goal of another client is running" in answer.message
    assert len(bench.server.goals) == 3


def test_a_server_that_is_gone_is_told(bench):
    started(bench)
    bench.server.end_serving()
    wait(lambda: bench.state.startswith("stopped"))
    assert "any more" in bench.state


def test_without_control_msgs_an_action_is_refused_and_auto_takes_the_topic(keep, monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs.action", None)
    with pytest.raises(DynidError, match=r"^Parameter command_interface is action, for which control_msgs is not"):
        Bench(command_interface="action")
    bench = keep(Bench())
    assert bench.node.arm.action is None
    assert bench.node.arm.interface == "topic /joint_trajectory_controller/joint_trajectory"


def in_pieces(bench):
    """Let the controller answer that it passes over from one trajectory to the next without a jump."""
    answers = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]}
    topic = "/joint_trajectory_controller/joint_trajectory"
    ControllerNode(bench.robot, topic, answers | {"interpolate_from_desired_state": True})
    wait(lambda: bench.node.arm._controller._view.answer)
    started(bench)


def test_pieces_are_goals_that_replace_each_other(bench):
    in_pieces(bench)
    wait(lambda: bench.state == "done")
    assert len(bench.server.goals) > 10
    assert not bench.server.cancelled
    check_smooth(bench.robot)


def test_where_no_more_goals_come_the_arm_rests_within_two_seconds(bench):
    in_pieces(bench)
    with bench.node.arm.lock:  # the thread that sends waits for it
        began, sent = bench.robot.now(), len(bench.server.goals)
        wait(lambda: bench.robot.now() > bench.robot.spline_start + bench.robot.spline_end)
        assert bench.robot.now() - began < 2.5
        assert len(bench.server.goals) <= sent + 1
    wait(lambda: bench.state.startswith("stopped: this process was kept from sending"))
    assert not bench.server.cancelled


def test_a_stop_of_a_goal_that_another_process_sent_replaces_it(bench):
    wait(lambda: bench.node.arm.doubt == "")
    path = Trajectory.join([move(planar_arm.JOINTS, START, SWING, 1.5), move(planar_arm.JOINTS, SWING, START, 1.5)])
    message = trajectory_message(path.sample(50.0), planar_arm.JOINTS, 0.25)
    bench.node.arm.action._client.send_goal_async(bench.server.kind.Goal(trajectory=message))
    wait(lambda: moving(bench.robot))
    answer = bench.call("stop")
    assert answer.success, answer.message
    assert "arm was moving ('joint_" in answer.message
    wait(lambda: bench.state == "idle")
    assert len(bench.server.goals) == 2
    check_smooth(bench.robot)


def test_where_that_stop_is_not_taken_all_goals_are_cancelled(bench, monkeypatch):
    cancelled = []
    monkeypatch.setattr(type(bench.node.arm.action), "cancel_all", lambda _: cancelled.append(True))
    wait(lambda: bench.node.arm.doubt == "")
    path = Trajectory.join([move(planar_arm.JOINTS, START, SWING, 1.5), move(planar_arm.JOINTS, SWING, START, 1.5)])
    message = trajectory_message(path.sample(50.0), planar_arm.JOINTS, 0.25)
    bench.node.arm.action._client.send_goal_async(bench.server.kind.Goal(trajectory=message))
    wait(lambda: moving(bench.robot))
    bench.server.rejects = True
    bench.call("stop")
    wait(lambda: cancelled)
