"""The excitation node beside a controller that answers, as those of ros2_control do."""

import planar_arm
import pytest

rclpy = pytest.importorskip("rclpy")

from excitation_bench import START, TOPIC, VELOCITY, Bench, moving  # noqa: E402
from node_threads import call  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from waiting import wait  # noqa: E402

from dynid_ros.nodes.experiment import trajectory_execution as arm_in_motion  # noqa: E402
from dynid_ros.nodes.experiment.trajectory_execution import LEAD  # noqa: E402
from dynid_ros.nodes.simulated_arm.controller_node import ControllerNode  # noqa: E402
from dynid_ros.trajectories import Trajectory, move  # noqa: E402

pytestmark = pytest.mark.usefixtures("ros")
CONTROLLER = "joint_trajectory_controller"
INTERPOLATES = "interpolate_from_desired_state"
SWING = [START[0] + 0.5, START[1] - 0.4, START[2] + 0.4]


@pytest.fixture(autouse=True)
def fixture_short_pause(monkeypatch):
    monkeypatch.setattr(arm_in_motion, "PAUSE", 0.3)


@pytest.fixture
def bench(tmp_path, keep):
    """The node, on a motion that takes no design, and a controller that tells these parameters."""
    swing = [move(planar_arm.JOINTS, *ends, 1.0) for ends in ((START, SWING), (SWING, START))]
    path = Trajectory.join(swing).save(tmp_path / "swing.yaml")

    def make(answers, **parameters):
        made = keep(Bench(motion="file", motion_file=str(path), repeats=3, **parameters))
        values = {"joints": list(planar_arm.JOINTS), "command_interfaces": ["position"]} | answers
        made.served = ControllerNode(made.robot, f"/{CONTROLLER}/joint_trajectory", values)
        wait(lambda: made.node.arm._controller._query.latest)
        wait(lambda: made.robot.count_subscribers(f"/{CONTROLLER}/transition_event"))
        wait(lambda: made.node.arm._has_controller() and made.robot.publisher.get_subscription_count())
        return made

    return make


def stopped(bench):
    """The message that stops a motion, and the state of the arm when it comes."""
    bench.start()
    wait(lambda: moving(bench.robot))
    answer = bench.call("stop")
    assert answer.success, answer.message
    wait(lambda: len(bench.robot.commands) == 2)
    return bench.robot.commands[1]


def first_time(message):
    return message.points[0].time_from_start.sec + 1e-9 * message.points[0].time_from_start.nanosec


def test_no_motion_is_sent_to_a_controller_that_begins_each_at_the_measured_pose(bench):
    bench = bench({INTERPOLATES: False})
    answer = bench.call("start")
    assert not answer.success
    assert "begins each trajectory, so each stop, at the measured pose" in answer.message
    assert "accept_jerk" in answer.message
    assert not bench.robot.commands
    assert not bench.robot.holds
    assert "accept_jerk" in bench.node.status()[1]


def test_accepted_its_stop_begins_where_the_arm_was_to_be(bench):
    bench = bench({INTERPOLATES: False}, accept_jerk=True)
    stop = stopped(bench)
    assert first_time(stop) == 0.0
    order = [bench.robot.joints.index(name) for name in stop.joint_names]
    moved = abs(bench.robot.state[0][order] - stop.points[0].positions)  # since it was sent
    assert max(moved) < 0.1 * VELOCITY
    assert any(stop.points[0].velocities)


def test_one_that_interpolates_is_led_to_the_stop_smoothly(bench):
    assert first_time(stopped(bench({INTERPOLATES: True}))) == pytest.approx(LEAD, abs=0.01)


def test_the_parameter_of_older_controllers_counts_too(bench):
    bench = bench({"open_loop_control": True})
    bench.start()
    wait(lambda: moving(bench.robot))


def test_an_inactive_controller_is_refused(bench):
    bench = bench({INTERPOLATES: True})
    bench.served.tell_active(False)
    wait(lambda: bench.node.arm.doubt)
    answer = bench.call("start")
    assert answer.message == f"controller '{CONTROLLER}' is inactive; activate it (ros2 control list_controllers)"
    bench.served.tell_active(True)
    wait(lambda: not bench.node.arm.doubt)
    bench.start()


def test_deactivated_under_way_it_is_told_and_the_motion_is_stopped(bench):
    bench = bench({INTERPOLATES: True})
    bench.start()
    wait(lambda: moving(bench.robot))
    bench.served.tell_active(False)
    wait(lambda: bench.state == f"stopped: controller '{CONTROLLER}' was deactivated")
    wait(lambda: not bench.node.arm.moving)
    assert len(bench.robot.commands) == 2


def test_a_controller_that_cannot_be_asked_is_taken(keep):
    bench = keep(Bench())
    wait(lambda: bench.node.arm._has_controller() and bench.robot.publisher.get_subscription_count())
    assert call(bench.robot, Trigger, "/excitation/start").success
    assert TOPIC.startswith(f"/{CONTROLLER}")
