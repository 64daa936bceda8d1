"""Test the compensator: ramps, limits, faults, feedback, changes, and random sequences of events."""

import math

import pytest
from driven_pendulum import TIMING, TORQUE_LIMITS, Arm, bias_gravity, make_gains, make_joint_settings, pendulum_gravity
from hypothesis import example, given, settings, strategies as st

from dynid_ros.control import GravityCompensator, JointBrake, State, Timing
from dynid_ros.control.added_torques import PlannedMotion
from dynid_ros.control.gravity_compensator import LOAD_CHANGE_S
from dynid_ros.errors import ControlError


def test_ramp_in_is_linear_and_ends_at_the_gravity_torque():
    arm = Arm().run(0.02)
    assert arm.commands == [None, None]
    arm.compensator.enable(arm.time)
    assert arm.compensator.state is State.RAMPING_IN
    arm.run(0.25)
    assert arm.commands[-1] == pytest.approx([0.24 * torque for torque in pendulum_gravity(arm.position)])
    arm.run(0.80)
    assert arm.compensator.state is State.ACTIVE
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(arm.position), abs=1e-12)


def test_ramp_out_follows_the_pose_to_zero_and_silence():
    arm = Arm().run_enabled()
    arm.compensator.disable()
    assert arm.compensator.state is State.RAMPING_OUT
    arm.position = [0.9, 0.3]
    arm.run(0.5)
    assert arm.commands[-1] == pytest.approx([0.5 * torque for torque in pendulum_gravity(arm.position)], abs=1e-9)
    arm.run(0.6)
    assert arm.compensator.state is State.DISABLED
    published = [command for command in arm.commands if command is not None]
    assert published[-1] == [0.0, 0.0]
    assert arm.commands[-1] is None


def test_torque_is_limited_and_the_joint_named():
    arm = Arm(gravity=lambda q: [50.0, -3.0]).run_enabled()
    assert arm.commands[-1] == [20.0, -3.0]
    assert arm.compensator.limited == ("shoulder",)
    assert arm.compensator.state is State.ACTIVE
    arm = Arm(gravity=lambda q: [3.0, -50.0]).run_enabled()
    assert arm.commands[-1] == [3.0, -10.0]
    assert arm.compensator.limited == ("elbow",)


def test_gain_scales_each_joint_before_the_limit():
    arm = Arm(gravity=lambda q: [15.0, 8.0], joints=make_joint_settings(gain=(0.5, 0.0))).run_enabled()
    assert arm.commands[-1] == [7.5, 0.0]


def test_jump_of_the_target_is_followed_at_the_rate_limit():
    arm = Arm(gravity=lambda q: [math.copysign(10.0, q[0]), 0.0], position=(0.01, 0.0)).run_enabled()
    arm.position = [-0.01, 0.0]
    arm.run(0.01)
    assert arm.commands[-1] == pytest.approx([10.0 - 40.0 * 0.01, 0.0])
    arm.run(0.6)
    assert arm.commands[-1] == [-10.0, 0.0]


def test_new_model_and_limits_act_at_the_rate_limit():
    arm = Arm(gravity=lambda q: [18.0, 8.0]).run_enabled()
    lower = make_joint_settings(torque=(5.0, 4.0), rate=(10.0, 8.0))
    arm.compensator.replace(lambda q: [18.0, -8.0], lower)
    arm.run(0.01)
    assert arm.commands[-1] == pytest.approx([17.9, 7.92])
    arm.run(2.0)
    assert arm.commands[-1] == [5.0, -4.0]


def test_model_of_other_joints_is_refused():
    arm = Arm().run_enabled()
    with pytest.raises(ControlError, match="is of joints elbow, shoulder, the one in force of shoulder, elbow"):
        arm.compensator.replace(pendulum_gravity, make_joint_settings(names=("elbow", "shoulder")))
    with pytest.raises(ControlError, match="wrist"):
        arm.compensator.replace(lambda q: [0.0, 0.0], make_joint_settings(names=("shoulder", "wrist")))
    assert arm.run(0.01).commands[-1] == pytest.approx(pendulum_gravity(arm.position))


def send_position(arm, position):
    arm.position = position
    arm.run(0.01)


FAULTS = {
    "stale": (lambda arm: arm.watch(0.12), "no new joint state for 0.1"),
    "late": (lambda arm: arm.run(0.15, dt=0.15), "no new joint state for 0.15"),
    "nan": (lambda arm: send_position(arm, [math.nan, 0.3]), "position of joint 'shoulder' is nan"),
    "inf": (lambda arm: send_position(arm, [1.0, math.inf]), "position of joint 'elbow' is inf"),
    "short": (lambda arm: send_position(arm, [1.0]), "1 positions for 2 joints"),
    "above limits": (lambda arm: send_position(arm, [3.2, 0.3]), "'shoulder' is 3.2000, far outside its limits"),
    "below limits": (lambda arm: send_position(arm, [-3.2, 0.3]), "'shoulder' is -3.2000, far outside its limits"),
    "jump up": (lambda arm: send_position(arm, [1.0, 1.3]), "'elbow' jumped from 0.3000 to 1.3000"),
    "jump down": (lambda arm: send_position(arm, [1.0, -0.7]), "'elbow' jumped from 0.3000 to -0.7000"),
    "missing": (lambda arm: arm.compensator.fault(arm.time, "joint_states lacks joint elbow"), "lacks joint elbow"),
    "torque": (lambda arm: arm.compensator.replace(lambda q: [math.nan, 0.0], make_joint_settings()), "not finite"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_fades_the_last_command_until_enabled(fault):
    arm = Arm().run_enabled()
    torque_before = arm.commands[-1]
    valid_position = [1.0, 0.3]
    cause, message = FAULTS[fault]
    cause(arm)
    if fault == "torque":
        arm.run(0.01)
    assert arm.compensator.state is State.FAULT
    assert message in arm.compensator.fault_reason
    assert arm.compensator.torque == pytest.approx(torque_before, abs=0.05 * max(torque_before)), (
        "no step at the fault itself"
    )
    arm.position = valid_position
    before = arm.compensator.torque
    arm.watch(0.2)
    assert arm.commands[-1] == pytest.approx([b - 0.4 * s for b, s in zip(before, torque_before, strict=True)])
    arm.run(0.1).watch(0.3)
    published = [command for command in arm.commands if command is not None]
    assert published[-1] == [0.0, 0.0]
    assert arm.commands[-1] is None
    arm.run(1.0)
    assert arm.compensator.state is State.FAULT
    assert arm.compensator.torque == (0.0, 0.0)
    assert arm.compensator.faults == 1
    arm.compensator.replace(pendulum_gravity, make_joint_settings())
    arm.compensator.enable(arm.time)
    arm.run(1.1)
    assert arm.compensator.state is State.ACTIVE
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(valid_position))


def test_rejected_state_resets_the_velocity():
    arm = Arm().run_enabled()
    send_position(arm, [1.01, 0.3])
    assert any(arm.compensator.motion.velocity)
    send_position(arm, [math.nan, 0.3])
    assert not any(arm.compensator.motion.velocity)


def test_disable_acknowledges_a_fault_and_continues_its_ramp():
    arm = Arm().run_enabled()
    arm.watch(0.15)
    torque = arm.compensator.torque
    arm.compensator.disable()
    assert arm.compensator.state is State.RAMPING_OUT
    arm.watch(0.01)
    assert arm.commands[-1] == pytest.approx(
        [t - s * 0.02 for t, s in zip(torque, pendulum_gravity([1.0, 0.3]), strict=True)]
    )
    arm.watch(0.5)
    assert arm.compensator.state is State.DISABLED
    assert arm.compensator.fault_reason == ""


def test_enable_during_a_fault_ramp_starts_at_its_torque():
    arm = Arm().run_enabled()
    arm.watch(0.3)
    remaining = arm.compensator.torque
    arm.run(0.01)
    arm.compensator.enable(arm.time)
    arm.run(0.01)
    steps = [abs(a - b) for a, b in zip(arm.commands[-1], remaining, strict=True)]
    assert all(step <= rate * 0.02 + 1e-12 for step, rate in zip(steps, make_joint_settings().rate, strict=True))
    arm.run(0.29)
    expected = [0.71 * a + 0.29 * b for a, b in zip(remaining, pendulum_gravity(arm.position), strict=True)]
    assert arm.commands[-1] == pytest.approx(expected, rel=0.02)
    arm.run(1.5)
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(arm.position))


def test_stop_at_rest_commands_nothing_and_clears_a_fault():
    arm = Arm().run_enabled()
    arm.watch(1.0)
    arm.compensator.stop(arm.time)
    assert arm.compensator.state is State.DISABLED
    assert arm.compensator.watch(arm.time) is None


@pytest.mark.parametrize(
    ("position", "age", "message"),
    [
        ([math.nan, 0.0], 0.0, "is nan"),
        ([9.0, 0.0], 0.0, "far outside"),
        ([1.0, 0.3], 0.5, "no new joint state for 0.500 s"),
    ],
)
def test_enable_needs_a_valid_and_recent_state(position, age, message):
    arm = Arm(position=position).run(0.01)
    with pytest.raises(ControlError, match=message):
        arm.compensator.enable(arm.time + age)
    assert arm.compensator.state is State.DISABLED


def test_enable_before_any_joint_state_is_refused():
    with pytest.raises(ControlError, match="no joint state has arrived"):
        Arm().compensator.enable(0.0)


def test_motion_while_disabled_is_no_jump():
    arm = Arm().run(0.05)
    arm.position = [-2.0, 0.3]
    arm.run(0.01)
    arm.compensator.enable(arm.time)
    arm.run(0.1)
    assert arm.compensator.state is State.RAMPING_IN


def test_contradicting_drivers_refuse_enable():
    """A single jump may come from a reset encoder; a jump back within a second comes from another driver."""
    arm = Arm().run(0.05)
    for elbow in (1.8, 0.3):
        arm.position = [1.0, elbow]
        arm.run(0.01)
    with pytest.raises(ControlError, match=r"cannot enable: position of joint 'elbow' jumped from 1\.8000 to 0\.3000"):
        arm.compensator.enable(arm.time)
    arm.run(1.1)
    arm.compensator.enable(arm.time)
    assert arm.compensator.state is State.RAMPING_IN


def test_motion_at_the_velocity_limit_with_late_arrivals_is_no_jump():
    arm = Arm(position=(-2.0, 0.0)).run_enabled()
    for gap in (0.01, 0.01, 0.09, 0.001, 0.001, 0.05):
        arm.position[0] += 2.0 * 0.03
        arm.run(gap, dt=gap)
    assert arm.compensator.state is State.ACTIVE


@pytest.mark.parametrize(
    ("jump", "stamp", "state"), [(0.11, 50.01, State.ACTIVE), (0.13, 50.01, State.FAULT), (0.15, 3.0, State.ACTIVE)]
)
def test_increasing_stamps_reduce_the_allowed_jump(jump, stamp, state):
    """Allow 0.12 rad at 2 rad/s for 10 ms and the jitter of 50 ms, but 0.22 rad without increasing stamps."""
    arm = Arm().run_enabled()
    arm.compensator.update(arm.time + 0.01, arm.position, stamp=50.00)
    arm.compensator.update(arm.time + 0.02, [arm.position[0] + jump, arm.position[1]], stamp=stamp)
    assert arm.compensator.state is state


def test_burst_of_late_states_is_no_jump():
    arm = Arm(position=(-2.0, 0.0)).run_enabled()
    arm.compensator.update(arm.time + 0.001, arm.position, stamp=50.0)
    arm.compensator.update(arm.time + 0.090, arm.position, stamp=50.001)
    arm.compensator.update(arm.time + 0.0901, [arm.position[0] + 2.0 * 0.09, 0.0], stamp=50.091)
    assert arm.compensator.state is State.ACTIVE


class Recorder:
    """Checker of rate and limit after each call; time counts from the last command or the start of a ramp."""

    def __init__(self, compensator):
        self.compensator = compensator
        self.state = compensator.state
        self.last = compensator.torque
        self.time = 100.0

    def check(self, time, joints, command=None):
        torque = self.compensator.torque
        assert command is None or tuple(command) == torque
        for i, (now, before) in enumerate(zip(torque, self.last, strict=True)):
            assert math.isfinite(now)
            assert abs(now - before) <= joints.rate[i] * (time - self.time) + 1e-9
            assert abs(now) <= TORQUE_LIMITS[i]
        state = self.compensator.state
        ramp_starts = state is State.RAMPING_IN and self.state in (State.DISABLED, State.FAULT)
        if command is not None or ramp_starts or (state is State.FAULT and self.state is not State.FAULT):
            self.time = time
        self.last = torque
        self.state = state


EVENTS = st.one_of(
    st.tuples(st.just("state"), st.floats(-4.0, 4.0), st.floats(-4.0, 4.0)),
    st.tuples(st.just("near"), st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)),
    st.tuples(st.just("bad"), st.sampled_from([math.nan, math.inf, -math.inf]), st.just(0.0)),
    st.tuples(
        st.sampled_from(["watch", "watch", "enable", "enable", "enable", "disable", "stop", "fault"]),
        st.none(),
        st.none(),
    ),
    st.tuples(st.just("start"), st.floats(-22.0, 22.0) | st.just(math.nan), st.floats(-12.0, 12.0)),
    st.tuples(st.just("reload"), st.floats(-60.0, 60.0) | st.just(math.nan), st.sampled_from([1.0, 0.3])),
)


ENABLE_DURING_STOP = [*2 * [("bad", math.nan, 0.0)], ("enable", None, None), ("stop", None, None), ("start", 0.0, 1.0)]
"""Events that report an acting torque while the compensator commands zero."""


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 0.15), EVENTS), min_size=5, max_size=80))
@example([(0.0, (kind, *values)) for kind, *values in ENABLE_DURING_STOP])
def test_random_events_keep_rate_and_limit(events):
    joints = make_joint_settings()
    compensator = GravityCompensator(pendulum_gravity, joints, TIMING)
    record = Recorder(compensator)
    time = 100.0
    position = [1.0, 0.3]
    for gap, (kind, first, second) in events:
        time += gap
        command = None
        if kind in ("state", "bad"):
            command = compensator.update(time, [first, second])
        elif kind == "near":
            command = compensator.update(time, [position[0] + first, position[1] + second])
        elif kind == "watch":
            command = compensator.watch(time)
        elif kind in ("enable", "start"):
            record.check(time, joints, compensator.update(time, position))
            try:
                rested = compensator.at_rest
                compensator.enable(time, [first, second] if kind == "start" else None)
                if kind == "start" and rested:  # no step, because this torque acts already
                    assert compensator.torque == pytest.approx((first, second), rel=0.05)
                    record.last = compensator.torque
            except ControlError:
                assert compensator.state in (State.DISABLED, State.FAULT, State.RAMPING_OUT)
        elif kind == "disable":
            compensator.disable()
        elif kind == "stop":
            compensator.stop(time)
        elif kind == "fault":
            compensator.fault(time, "missing joint")
        else:
            joints = make_joint_settings(
                torque=tuple(second * limit for limit in TORQUE_LIMITS),
                rate=tuple(second * limit / TIMING.fault_ramp_time for limit in TORQUE_LIMITS),
            )
            compensator.replace(bias_gravity(first), joints)
        record.check(time, joints, command)
    held = max(abs(torque) / rate for torque, rate in zip(compensator.torque, joints.rate, strict=True))
    compensator.stop(time)
    for _ in range(2 + round(max(TIMING.fault_ramp_time, held) / 0.01)):
        time += 0.01
        record.check(time, joints, compensator.watch(time))
    assert compensator.torque == (0.0, 0.0)
    assert compensator.watch(time + 1.0) is None


@pytest.mark.parametrize(
    "values", [{"ramp_time": 0.0}, {"timeout": -1.0}, {"fault_ramp_time": math.nan}, {"fault_ramp_time": 10.0}]
)
def test_invalid_durations_are_refused(values):
    with pytest.raises(ControlError, match=next(iter(values))):
        Timing(**values)


def make_pd_settings(**changes):
    return make_joint_settings(feedback=make_gains(**({"stiffness": (8.0, 4.0), "damping": (1.0, 0.5)} | changes)))


class MovingArm(Arm):
    """Arm with measured velocities."""

    velocity = (0.0, 0.0)

    def run(self, seconds, dt=0.01):
        for _ in range(round(seconds / dt)):
            self.time += dt
            self.commands.append(self.compensator.update(self.time, self.position, None, None, self.velocity))
        return self


def test_feedback_holds_the_pose_of_enable():
    arm = MovingArm(joints=make_pd_settings()).run_enabled()
    assert arm.compensator.desired == (1.0, 0.3)
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(arm.position))
    arm.position[0] -= 0.02
    arm.run(0.5)
    expected = pendulum_gravity(arm.position)
    expected[0] += 8.0 * 0.02
    assert arm.commands[-1] == pytest.approx(expected)
    arm.compensator.disable()
    arm.run(1.5)
    assert arm.compensator.state is State.DISABLED
    arm.compensator.enable(arm.time)
    assert arm.compensator.desired == tuple(arm.position)


def test_feedback_stays_within_the_torque_limit_and_the_rate():
    arm = MovingArm(joints=make_pd_settings(stiffness=(5000.0, 5000.0))).run_enabled()
    arm.position[0] -= 0.02
    arm.position[1] += 0.02
    arm.run(1.0)
    assert arm.commands[-1] == pytest.approx([TORQUE_LIMITS[0], -TORQUE_LIMITS[1]])
    assert arm.compensator.limited == ("shoulder", "elbow")
    for before, after in zip(arm.commands, arm.commands[1:], strict=False):
        if before is not None:
            assert all(
                abs(b - a) <= limit / 0.5 * 0.01 + 1e-9
                for a, b, limit in zip(before, after, TORQUE_LIMITS, strict=True)
            )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_new_stiffness_holds_the_present_position(sign):
    arm = MovingArm(joints=make_pd_settings(stiffness=(0.0, 0.0))).run_enabled()
    arm.position[0] += sign * 0.1
    arm.run(0.5)
    arm.compensator.adjust(make_pd_settings(), TIMING)
    arm.run(0.5)
    assert arm.commands[-1] == pytest.approx(pendulum_gravity(arm.position))


def test_set_point_before_enable_is_refused():
    arm = MovingArm(joints=make_pd_settings()).run(0.1)
    with pytest.raises(ControlError, match="the compensation is disabled; enable it first"):
        arm.compensator.aim([0.0, 0.0])


def test_fault_fades_feedback_and_clears_the_set_point():
    arm = MovingArm(joints=make_pd_settings()).run_enabled()
    arm.compensator.aim([0.5, 0.3])
    arm.run(0.2).watch(1.0)
    assert arm.compensator.state is State.FAULT
    assert arm.compensator.torque == (0.0, 0.0)
    arm.run(0.02)
    arm.compensator.enable(arm.time)
    arm.run(1.5)
    assert arm.compensator.desired == (1.0, 0.3)


def test_ramp_starts_with_the_first_state_after_enable():
    arm = Arm().run(0.02)
    arm.compensator.enable(arm.time)
    arm.time += 0.08
    arm.run(0.01)
    assert arm.commands[-1] == [0.0, 0.0]
    arm.run(0.1)
    assert arm.commands[-1] == pytest.approx([0.1 * torque for torque in pendulum_gravity(arm.position)])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limit_below_the_acting_torque_is_refused(sign):
    arm = Arm(gravity=lambda q: [sign * 15.0, sign * 8.0]).run_enabled()
    with pytest.raises(ControlError, match=r"on joint 'elbow' .* act, and its limit is to be 5"):
        arm.compensator.adjust(make_joint_settings(torque=(20.0, 5.0)), TIMING)
    arm.run(0.5)
    assert arm.commands[-1] == [sign * 15.0, sign * 8.0], "the settings stay unchanged"
    arm.compensator.adjust(make_joint_settings(torque=(16.0, 9.0)), TIMING)
    assert arm.compensator.joints.torque == (16.0, 9.0)


@pytest.mark.parametrize(("load", "seconds"), [(True, LOAD_CHANGE_S), (False, TIMING.ramp_time)])
def test_load_acts_sooner_than_a_model(load, seconds):
    arm = Arm(gravity=lambda q: [10.0, 4.0]).run_enabled()
    arm.compensator.replace(lambda q: [13.0, 5.0], make_joint_settings(), load=load)
    arm.run(0.5 * seconds)
    assert arm.commands[-1] == pytest.approx([11.5, 4.5], abs=0.1)
    arm.run(0.5 * seconds + 0.02)
    assert arm.commands[-1] == pytest.approx([13.0, 5.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_change_that_moves_a_joint_is_taken_back(sign):
    arm = Arm(gravity=lambda q: [sign * 5.0, 0.0]).run_enabled()
    arm.compensator.replace(lambda q: [sign * 9.0, 0.0], make_joint_settings())
    for _ in range(400):
        is_lifted = sign * arm.compensator.torque[0] > 6.0
        arm.position[0] += sign * 0.01 * 0.2 * is_lifted
        arm.run(0.01)
        if arm.compensator.notice:
            break
    assert "joint 'shoulder' began to move by itself" in arm.compensator.notice
    arm.run(1.0)
    assert arm.commands[-1] == pytest.approx([sign * 5.0, 0.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_change_during_a_planned_motion_is_kept(sign, monkeypatch):
    monkeypatch.setattr(PlannedMotion, "moves", True)
    arm = Arm(gravity=lambda q: [sign * 5.0, 0.0]).run_enabled()
    arm.compensator.replace(lambda q: [sign * 9.0, 0.0], make_joint_settings())
    for _ in range(400):
        arm.position[0] += sign * 0.01 * 0.2 * (sign * arm.compensator.torque[0] > 6.0)
        arm.run(0.01)
    assert not arm.compensator.notice
    assert arm.commands[-1] == pytest.approx([sign * 9.0, 0.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_change_during_a_guided_motion_is_kept(sign):
    arm = Arm(gravity=lambda q: [5.0, 0.0]).run_enabled()
    for k in range(400):
        if k == 20:
            arm.compensator.replace(lambda q: [9.0, 0.0], make_joint_settings())
        arm.position[0] += sign * 0.01 * 0.2
        arm.run(0.01)
    assert not arm.compensator.notice
    assert arm.commands[-1] == pytest.approx([9.0, 0.0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("ends", "part"), [(True, 0.5), (False, 1.0)])
def test_ending_process_lowers_the_arm_faster(sign, ends, part):
    """The arm sinks at 1.5 times the speed of a descent, and 0.75 times that of an ending process."""
    timing = Timing(ramp_time=1.0, fault_ramp_time=0.5, timeout=0.1, descent_time=1.0, descent_speed=0.1)
    brake = JointBrake((0.01, 0.01), (20.0, 10.0), (0.0, 0.0))
    joints = make_joint_settings(brake=brake, speed_limit=(2.0, 2.0))
    arm = Arm(gravity=lambda q: [10.0, 4.0], joints=joints, timing=timing).run_enabled()
    if ends:
        arm.compensator.stop(arm.time, 8.0)
    else:
        arm.compensator.disable(arm.time)
    for _ in range(200):
        arm.position[0] += sign * 0.15 * 0.01
        arm.run(0.01)
    assert arm.commands[-1][1] == pytest.approx(4.0 * part, abs=0.6)
