"""Test the plan from a position controller's reference and the watch of output efforts."""

import math
from dataclasses import replace
from types import SimpleNamespace

import planar_arm
import pytest
from builtin_interfaces.msg import Time
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from dynid_ros.control import JointSettings
from dynid_ros.control.added_torques import PlannedMotion
from dynid_ros.errors import ControlError
from dynid_ros.model import RobotModel
from dynid_ros.nodes.compensation import controller_state
from dynid_ros.nodes.compensation.configuration import PARAMETERS, joint_settings, read_arm
from dynid_ros.nodes.compensation.controller_state import (
    MAX_COMMAND_DELAY_S,
    MAX_DEVIATION_FRACTION,
    MIN_DEVIATION_S,
    OutputWatch,
)

JOINTS = JointSettings.from_robot(RobotModel.from_urdf(planar_arm.urdf()), fault_ramp_time=0.5, planned_scale=[1.0])
NAMES = list(planar_arm.JOINTS)

OUTPUT_WATCH_NAMES = ("shoulder", "elbow")
LIMITS = (100.0, 20.0)
PERIOD = 0.004


@pytest.fixture
def plan():
    return PlannedMotion(JOINTS)


def build_state(names=NAMES, **fields):
    """Return a message like `control_msgs/JointTrajectoryControllerState`."""
    motion = {"positions": [0.1, 0.2, 0.3], "velocities": [1.0, 2.0, 3.0]} | fields
    header = Header(stamp=Time(sec=5))
    return SimpleNamespace(header=header, joint_names=names, reference=JointTrajectoryPoint(**motion))


def test_reference_is_read_by_joint_name(plan):
    controller_state.ControllerPlan(None, "jtc", plan).on_state(build_state(NAMES[::-1]))
    assert not plan.problem
    assert plan._sample[2] == [0.3, 0.2, 0.1]
    assert plan._sample[3] == [3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "message",
    [build_state(velocities=[]), build_state(positions=[0.1]), build_state(["joint_1", "joint_2", "joint_9"])],
)
def test_incomplete_reference_is_no_plan(plan, message):
    controller_state.ControllerPlan(None, "jtc", plan).on_state(message)
    assert plan.problem.startswith("jtc/controller_state has no ")


@pytest.mark.parametrize(("controller", "message"), [("", "set position_controller"), ("jtc", "control_msgs is not")])
def test_plan_without_a_source_is_refused(plan, controller, message, monkeypatch):
    monkeypatch.setattr(controller_state, "message_type", lambda *_: None)
    source = controller_state.ControllerPlan(None, controller, plan)
    with pytest.raises(ControlError, match=message):
        source.use(JOINTS, follows_setpoint=False)
    source.use(JOINTS, follows_setpoint=True)
    assert plan.is_setpoint
    source.use(replace(JOINTS, planned_scale=(0.0,) * 3), follows_setpoint=False)


def test_motion_feedforward_without_links_is_refused(tmp_path):
    path = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    values = {parameter.name: parameter.default for parameter in PARAMETERS}
    settings = SimpleNamespace(**values | {"model_file": str(path), "motion_scale": [1.0]})
    arm = read_arm(settings, planar_arm.urdf())
    with pytest.raises(ControlError, match=r"needs the links of .*identified.yaml"):
        joint_settings(settings, arm)
    settings.motion_scale = [0.0]
    assert joint_settings(settings, arm).planned_scale == (0.0,) * 3


def find_deviation(seconds, command, compute_output, send_interval=1):
    """Return the time in s and message of the first deviation, or None."""
    watch = OutputWatch(OUTPUT_WATCH_NAMES, LIMITS)
    for number in range(round(seconds / PERIOD)):
        time = number * PERIOD
        if number % send_interval == 0:
            watch.sent(time, command(time))
        if problem := watch.seen(time, compute_output(time)):
            return time, problem
    return None


def ramp_effort(time):
    return [200.0 * time, -40.0 * time]


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.05, MAX_COMMAND_DELAY_S])
def test_delayed_output_is_no_deviation(delay):
    assert find_deviation(1.0, ramp_effort, lambda time: ramp_effort(max(time - delay, 0.0))) is None


def test_rare_commands_are_no_deviation():
    assert find_deviation(1.0, ramp_effort, lambda time: ramp_effort(time // 0.1 * 0.1), send_interval=25) is None


@pytest.mark.parametrize(
    ("fraction", "is_reported"), [(0.9 * MAX_DEVIATION_FRACTION, False), (1.1 * MAX_DEVIATION_FRACTION, True)]
)
@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_deviation_beyond_a_fraction_of_the_limit_is_reported(fraction, is_reported, joint, sign):
    def compute_output(_time):
        output = [-50.0, 5.0]
        output[joint] += sign * fraction * LIMITS[joint]
        return output

    problem = find_deviation(1.0, lambda _: [-50.0, 5.0], compute_output)
    assert (problem is not None) == is_reported
    if problem:
        assert problem[0] == pytest.approx(MIN_DEVIATION_S, abs=2 * PERIOD)
        assert f"joint '{OUTPUT_WATCH_NAMES[joint]}' gets" in problem[1]


def test_dropped_effort_is_reported_in_time():
    time, message = find_deviation(2.0, lambda _: [-50.0, 5.0], lambda time: [-50.0, 5.0] if time < 1.0 else [0.0, 0.0])
    assert time == pytest.approx(1.0 + MIN_DEVIATION_S, abs=2 * PERIOD)
    assert message == "joint 'shoulder' gets 0 N m (N), not the -50 that were sent"


def test_short_deviation_is_ignored():
    def compute_output(time):
        return [0.0, 0.0] if (time % 0.2) < 0.9 * MIN_DEVIATION_S else [-50.0, 5.0]

    assert find_deviation(2.0, lambda _: [-50.0, 5.0], compute_output) is None


@pytest.mark.parametrize("output", [[math.nan, 5.0], [-50.0], []])
def test_nan_or_missing_output_is_a_deviation(output):
    assert find_deviation(1.0, lambda _: [-50.0, 5.0], lambda _: output) is not None


def test_output_without_commands_is_not_compared():
    watch = OutputWatch(OUTPUT_WATCH_NAMES, LIMITS)
    assert not any(watch.seen(0.1 * n, [50.0, 5.0]) for n in range(10))
    watch.sent(1.0, [0.0, 0.0])
    watch.clear()
    assert not any(watch.seen(1.0 + 0.1 * n, [50.0, 5.0]) for n in range(10))


def test_deviation_needs_three_samples():
    watch = OutputWatch(OUTPUT_WATCH_NAMES, LIMITS)
    watch.sent(0.0, [0.0, 0.0])
    assert not watch.seen(0.2, [50.0, 5.0])
    assert not watch.seen(0.5, [50.0, 5.0])
    assert watch.seen(0.6, [50.0, 5.0])
