"""Test the excitation node: design, start, stop and the refusals of each."""

import math
import re
import signal
import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from helpers.excitation_bench import PARAMETERS, TOPIC, Bench, Robot, call_excitation, check_smooth, is_moving
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads, assert_refused, assert_success
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.excitation.experiment import Experiment
from dynid_ros.nodes.excitation import ExcitationNode
from dynid_ros.trajectories import Trajectory, move

pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(keep):
    """Return a function that starts a bench."""
    return lambda **arguments: keep(Bench(**arguments))


def test_designs_starts_and_completes_an_experiment(bench, tmp_path):
    bench = bench(trajectory_file=str(tmp_path / "motion.yaml"))
    robot = bench.robot
    wait(lambda: bench.state == "idle")
    answer = bench.call("design")
    assert answer.success, answer.message
    assert "\n" not in answer.message
    assert len(answer.message.replace(str(tmp_path), "")) < 200
    wait(lambda: robot.plans)
    assert "joint_1: not rotated, axis parallel to gravity" in robot.plans[-1]["summary"]
    assert "joint_3: 46° in steps, its axis 90° from the vertical" in robot.plans[-1]["summary"]
    assert "start_time" not in robot.plans[-1]
    motion = Trajectory.read(tmp_path / "motion.yaml")
    assert motion.duration == pytest.approx(robot.plans[-1]["duration"], abs=1e-3)

    started = bench.start()
    assert "approaches the first pose for" in started.message
    assert_refused(bench.call("start"), "moving already (approaching)")
    assert "the arm is moving already" in bench.call("design").message
    wait(lambda: bench.state == "done")
    assert robot.states == ["idle", "designing", "idle", "approaching", "running", "done"]
    assert len(robot.commands) == 1
    assert robot.progress[0] == 0.0
    assert robot.progress[-1] == 1.0
    assert len(robot.progress) > 10
    assert robot.progress == sorted(robot.progress)
    check_smooth(robot)

    plan = robot.plans[-1]
    motion_start = robot.spline_start + robot.spline_end - plan["duration"]
    assert plan["start_time"] == pytest.approx(motion_start, abs=0.3)
    for dwell in plan["dwells"]:
        start, end = (motion_start + dwell[key] for key in ("start", "end"))  # the start is known to a few milliseconds
        speeds = [np.abs(state[1]).max() for t, state in robot.track if start + 0.05 < t < end - 0.05]
        assert max(speeds, default=0.0) < 1e-3
    assert_refused(bench.call("stop"), "nothing to stop: the state is done")
    assert DiagnosticStatus.ERROR not in robot.levels


FOURIER = {"motion": "fourier", "base_frequency": 0.4, "harmonics": 3, "design_time": 0.0, "periods": 1, "workers": 1}
SEARCH = FOURIER | {"design_time": 60.0}  # long enough to be stopped


def test_motion_can_be_changed_at_run_time_but_limits_cannot(bench, tmp_path):
    bench = bench(**FOURIER | {"motion": "static_rotation"})

    def design(**changes):
        bench.set(**changes)
        return bench.call("design")

    assert design().success
    wait(lambda: bench.robot.plans and "joint_3: 46° in steps" in bench.robot.plans[-1]["summary"])
    first = design(motion="fourier").message
    second = design(seed=1).message
    assert first.startswith("2.5 s, 1 period")
    assert second != first
    assert_refused(design(harmonics=1), "harmonics is 1; it must be at least 2")
    bench.set(harmonics=3)
    (result,) = bench.node.set_parameters([Parameter("motion", value="walk")])
    assert not result.successful
    assert "'motion' of node 'excitation' is 'walk'; expected fourier, static_rotation" in result.reason
    path = tmp_path / "motion.yaml"
    assert design(motion="fourier", seed=0, trajectory_file=str(path)).message == f"{first}; written to {path}"
    answer = design(motion="file", motion_file=str(path), trajectory_file="", repeats=3)
    assert answer.message.startswith(f"7.5 s, 3 times the motion of 2.5 s, from {path}")
    assert_refused(
        design(motion_file=str(tmp_path / "none.yaml")), f"cannot read trajectory '{tmp_path / 'none.yaml'}'"
    )
    (result,) = bench.node.set_parameters([Parameter("acceleration_limits", value=[100.0])])
    assert not result.successful


def test_start_designs_again_after_a_change_of_the_motion(bench):
    bench = bench()
    assert bench.call("design").success
    wait(lambda: bench.robot.plans)
    before = len(bench.robot.plans[-1]["dwells"])
    bench.set(steps=4)
    bench.start()
    wait(lambda: "start_time" in bench.robot.plans[-1])
    assert len(bench.robot.plans[-1]["dwells"]) > before


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_design_keeps_the_node_responsive_and_can_be_stopped(bench, workers):
    bench = bench(**SEARCH | {"workers": workers})
    robot = bench.robot
    arm = bench.node.arm
    wait(lambda: arm.states.received > 0)
    designing = bench.call_async("design")
    wait(lambda: bench.state == "designing" and robot.progress and robot.progress[-1] > 0.0)
    received = arm.states.received
    n_statuses = len(robot.levels)
    assert_refused(bench.call("design"), "the node is designing already; wait, or call ~/stop first")
    assert not bench.call("start").success
    wait(lambda: len(robot.levels) > n_statuses + 1)  # published once a second
    assert arm.states.received > received + 0.5
    assert robot.progress == sorted(robot.progress)
    assert robot.progress[-1] < 1.0
    assert bench.state == "designing"
    stopped = bench.call("stop")
    assert "the best motion so far" in stopped.message
    wait(designing.done)
    assert designing.result().success
    assert designing.result().message.startswith("2.5 s, 1 period of frequencies")
    wait(lambda: bench.state == "idle")
    assert robot.commands == []
    assert "2.5 s of excitation" in bench.start().message, "the stopped design is used"
    assert robot.states[-3:] == ["designing", "idle", "approaching"]


def test_stop_while_start_designs_keeps_the_arm_at_rest(bench):
    bench = bench(**SEARCH)
    wait(lambda: bench.node.arm._has_controller() and bench.node.arm.states.received > 0)
    starting = bench.call_async("start")
    wait(lambda: bench.state == "designing")
    assert bench.call("stop").success
    wait(starting.done)
    assert not starting.result().success
    assert "stopped before the arm moved; ~/start carries out the best motion" in starting.result().message
    assert bench.robot.commands == []
    assert not bench.call("stop").success
    bench.start()


def test_node_ends_soon_during_a_design(bench):
    bench = bench(**SEARCH)
    bench.call_async("design")
    wait(lambda: bench.state == "designing")
    bench.threads.threads[1].close(START_TIMEOUT_S)
    bench.node.destroy_node()
    assert not bench.node._background._thread.is_alive()


def test_stop_brings_the_arm_to_rest_and_start_works_again(bench):
    bench = bench()
    clients = [bench.client(name) for name in ("stop", "stop", "start")]
    bench.start()
    robot = bench.robot
    wait(lambda: bench.state == "running" and is_moving(robot))
    calls = [
        client.call_async(Trigger.Request()) for client in clients
    ]  # all at once, because the arm comes to rest soon
    wait(lambda: all(call.done() for call in calls))
    stopped, refused = sorted((call.result() for call in calls[:2]), key=lambda answer: not answer.success)
    assert stopped.success
    assert "at rest in " in stopped.message
    assert not refused.success
    assert re.search("coming to rest already|the state is idle", refused.message), (
        "a busy computer answers only when the arm is idle"
    )
    assert not calls[2].result().success
    wait(lambda: bench.state == "idle")
    assert robot.states[-2:] == ["stopped: on request", "idle"]
    check_smooth(robot)
    assert len(robot.commands) == 2
    resting = robot.state[0].copy()
    assert bench.call("start").success
    wait(lambda: len(robot.commands) == 3)
    order = [robot.commands[-1].joint_names.index(name) for name in robot.joints]
    np.testing.assert_allclose(np.array(robot.commands[-1].points[0].positions)[order], resting, atol=1e-9)


def test_design_may_be_answered_at_once(bench):
    bench = bench(answer_at_once=True)
    bench.set(motion="file")
    assert_refused(bench.call("design"), "motion_file is empty")
    bench.set(motion="static_rotation")
    answer = bench.call("design")
    assert (answer.success, answer.message) == (True, "The work has begun; ~/state reports its end.")
    wait(lambda: bench.robot.plans)
    wait(lambda: bench.state == "idle")
    bench.set(torque_fraction=0.001)
    assert bench.call("design").success
    wait(lambda: bench.state.startswith("stopped: no design: "))


def test_start_is_refused_without_a_controller(bench):
    assert_refused(bench(controller=False).call("start"), f"no controller listens on '{TOPIC}'")


@pytest.mark.parametrize(("fault", "message"), [("silent", "see that the driver runs"), ("nan", "'joint_3' is nan")])
def test_start_is_refused_without_good_joint_states(bench, fault, message):
    bench = bench()
    bench.robot.fault = fault
    time.sleep(1.0)  # earlier joint states become stale
    assert_refused(bench.call("start"), "no usable joint_states within 1 s", message)
    assert bench.robot.commands == []
    assert bench.state == "idle"


@pytest.mark.parametrize(
    ("pose", "velocity", "message"),
    [
        ([2.6, -0.3, 0.2], 0.0, "joint 'joint_1' would reach position 2.6 rad at 0.000 s; its limit is 2.5 rad"),
        ([0.4, 0.9, 0.2], 0.0, "'link_3' would be at height -0.013 m at 0.000 s, below floor_height 0.1 m"),
        ([0.4, -0.3, 0.2], 0.3, "the arm is moving ('joint_3' at 0.3 rad/s or m/s); bring it to rest first"),
    ],
)
def test_start_is_refused_from_an_unsafe_state(bench, pose, velocity, message):
    bench = bench()
    bench.robot.state = np.array([pose, [0.0, 0.0, velocity], [0.0] * 3])
    time.sleep(0.2)
    assert_refused(bench.call("start"), message)
    assert bench.robot.commands == []


def test_start_uses_a_new_joint_state_of_a_moved_arm(bench):
    bench = bench()
    wait(lambda: math.isfinite(bench.node.arm.states.received))
    bench.robot.fault = "silent"
    time.sleep(0.05)
    bench.robot.state = np.array([[2.6, -0.3, 0.2], [0.0] * 3, [0.0] * 3])
    answer = bench.call_async("start")
    time.sleep(0.2)
    bench.robot.fault = None
    wait(answer.done)
    assert not answer.result().success
    assert "joint 'joint_1' would reach position 2.6 rad at 0.000 s" in answer.result().message


def test_motion_beyond_a_limit_is_never_sent(bench, monkeypatch):
    bench = bench()
    assert_success(bench.call("design"))
    measured_position = np.array([0.0, -0.3, 0.2])
    bench.robot.state = np.array([measured_position, [0.0] * 3, [0.0] * 3])

    def approach_beyond_limit(self, measured, plan):
        far = np.array([2.7, *measured[1:]])
        segments = [(measured, far), (far, plan.trajectory.position[0])]
        return Trajectory.join([move(bench.robot.joints, a, b, 20.0) for a, b in segments])

    monkeypatch.setattr(Experiment, "approach_motion", approach_beyond_limit)
    time.sleep(0.2)
    assert_refused(bench.call("start"), "joint 'joint_1' would reach position 2.7 rad")
    assert bench.robot.commands == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"acceleration_limits": [math.nan]},
            "acceleration_limits of joint 'joint_1' is not in the robot's description",
        ),
        (
            {"velocity_limits": [1.0, 2.0]},
            "velocity_limits: 2 values; give one for all joints or one for each of joint_1",
        ),
        ({"tracking_error_limit": [0.1] * 4}, "tracking_error_limit: 4 values"),
        ({"seed": -1}, "'seed' of node 'excitation' is -1; expected 0 or more"),
        ({"command_topic": "a b"}, "'command_topic' of node 'excitation' is 'a b', which is no name of a topic"),
        ({"steps": 1}, "steps is 1; it must be at least 3"),
        ({"point_rate": 1.0}, "'point_rate' of node 'excitation' is 1.0; expected 10 to 1000"),
        ({"motion": "walk"}, "'motion' of node 'excitation' is 'walk'"),
        (
            {"motion": "fourier", "base_frequency": 2.0},
            "the fastest of 10 harmonics is 20 Hz; with point_rate 50 it may be 5 Hz at most",
        ),
        ({"tip_link": "hand"}, "'hand' is not in the URDF"),
        ({"effort_limit": [0.0]}, "'effort_limit' of node 'excitation' is [0.0]; expected above 0"),
        ({"torque_fraction": 1.5}, "torque_fraction is 1.5; it must be above 0 and at most 1"),
        ({"repeats": 0}, "'repeats' of node 'excitation' is 0; expected 1 or more"),
        ({"motion": "file"}, "motion_file is empty; name the file of the motion"),
        ({"motion": "joint_by_joint", "joint_motion": "jumps"}, "'jumps'; expected sinusoid or steps"),
        ({"motion": "joint_by_joint", "frequencies": [0.1, 7.0]}, "the fastest of frequencies is 7 Hz"),
        ({"motion": "poses", "target": "links"}, "target is 'links'; motion poses shows gravity or load"),
        ({"link_shapes": "some"}, "'some'; expected available, required or none"),
        ({"obstacles_file": "/nowhere/boxes.yaml"}, "obstacles '/nowhere/boxes.yaml': cannot be read"),
    ],
)
def test_invalid_parameter_is_refused(parameters, message):
    overrides = [Parameter(name, value=value) for name, value in (PARAMETERS | parameters).items()]
    with pytest.raises(DynidError) as error:
        ExcitationNode(parameter_overrides=overrides)
    assert message in str(error.value)


def test_interrupt_stops_the_arm_before_the_process_ends(urdf_file):
    robot = Robot()
    threads = NodeThreads(robot)
    with NodeProcess("excitation", PARAMETERS | {"robot_description": urdf_file}) as process:
        wait(lambda: robot.states, START_TIMEOUT_S)
        wait(lambda: call_excitation(robot, "start").success)
        wait(lambda: robot.states[-1] == "running" and is_moving(robot))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0, process.output
        wait(lambda: len(robot.commands) == 2)
        assert len(robot.commands[1].points) < len(robot.commands[0].points)
        check_smooth(robot)
        assert "Traceback" not in process.output
    threads.close()
    robot.destroy_node()
