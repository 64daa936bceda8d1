"""Test the reactions of `gravity_compensation` in docs/promises.md; each test also checks that no torque steps."""

import math
import random
import signal
import time
from functools import partial
from itertools import count
from threading import Event, Thread

import planar_arm
import pytest
import rclpy
from helpers.command_watch import torque_of
from helpers.compensation_bench import (
    EFFORT_LIMIT,
    EFFORT_TOPIC,
    FAULT_RAMP_S,
    LATCHED,
    LONG_TIMEOUT_S,
    POSE,
    RAMP_S,
    TIMEOUT_S,
    Bench,
    Robot,
    start_process,
)
from helpers.node_threads import NodeThreads, assert_refused
from helpers.waiting import START_TIMEOUT_S, wait
from lifecycle_msgs.msg import Transition
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.control import GravityCompensator
from dynid_ros.nodes import gravity_compensation

BUSY_TIME_S = 0.4
"""Time in s by which a busy computer may exceed a promised time."""
GRAVITY_TORQUE = planar_arm.gravity_torque(POSE)


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(Bench(model_file, **arguments))


def wait_for_gravity_torque(bench, position=None):
    bench.wait_for_torque(planar_arm.gravity_torque(position or POSE))


def stop_publishing(robot):
    robot.silent = True


def freeze_stamp(robot):
    robot.stamp = robot.get_clock().now().to_msg()


def set_spoiling(change):
    """Return a function that changes each joint state of the robot from now on."""

    def begin(robot):
        robot.spoil = change

    return begin


def set_position(joint, value):
    def change(message):
        message.position[joint] = value

    return set_spoiling(change)


def drop_joint(message):
    message.name = message.name[:2]
    message.position = message.position[:2]


def shorten_positions(message):
    message.position = message.position[:2]


def duplicate_joint(message):
    message.name = [*message.name, "joint_2"]
    message.position = [*message.position, POSE[1]]


def jump_with_clock(message):
    """Jump with the encoder and the clock of the stamps at once."""
    message.header.stamp.sec += 3600
    message.position[1] = -2.4


def add_second_driver(robot):
    """Publish joint states of another arm with equal joint names."""
    other = robot.create_publisher(JointState, "joint_states", 10)

    def publish():
        message = JointState(name=robot.names, position=[0.0, -1.0, 1.0])
        message.header.stamp = robot.get_clock().now().to_msg()
        other.publish(message)

    robot.executor.create_task(robot.create_timer, 0.01, publish)


JUMP_TIMEOUT_S = 0.8
"""Timeout in s in which no joint can move as far as `jump_with_clock`."""
FAULTS = {
    "driver stops": (stop_publishing, "no new joint state", TIMEOUT_S),
    "stamps stand still": (freeze_stamp, "stamps stand still", TIMEOUT_S),
    "nan": (set_position(1, math.nan), "position of joint 'joint_2' is nan", 0.0),
    "infinite": (set_position(0, -math.inf), "position of joint 'joint_1' is -inf", 0.0),
    "beyond limits": (set_position(2, 60.0), "far outside its limits", 0.0),
    "encoder jumps": (set_position(2, 2.4), "'joint_3' jumped", 0.0),
    "encoder jumps with the clock": (set_spoiling(jump_with_clock), "'joint_2' jumped", 0.0),
    "joint missing": (set_spoiling(drop_joint), "lacks joint(s) joint_3", 0.0),
    "position short": (set_spoiling(shorten_positions), "2 values of position for 3 names", 0.0),
    "joint twice": (set_spoiling(duplicate_joint), "names joint(s) joint_2 more than once", 0.0),
    "two drivers": (add_second_driver, "no other node publishes its joint states", 0.0),
    "controller gone": (lambda robot: robot.stop_listening(), f"no controller listens on {EFFORT_TOPIC}", 0.0),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_fades_the_torque_and_waits_for_enable(bench, fault):
    begin, message, detection_time = FAULTS[fault]
    timeout = JUMP_TIMEOUT_S if fault == "encoder jumps with the clock" else detection_time or LONG_TIMEOUT_S
    bench = bench(timeout=timeout).run()
    wait_for_gravity_torque(bench)
    begin(bench.robot)
    duration = wait(lambda: bench.state.startswith("fault"))
    assert message in bench.state
    duration += wait(lambda: bench.node._loop.compensator.at_rest)
    assert duration < detection_time + FAULT_RAMP_S + BUSY_TIME_S
    if fault != "controller gone":
        bench.check_fade(GRAVITY_TORQUE)
    count = len(bench.robot.commands)
    bench.robot.spoil = lambda message: None
    bench.robot.silent = False
    bench.robot.stamp = None
    received = bench.node._loop.states.heard
    wait(lambda: bench.node._loop.states.heard > received + 0.1)
    assert bench.state.startswith("fault"), "valid states do not end the fault"
    assert len(bench.robot.commands) == count, "at zero, nothing is published"


def test_enable_after_a_fault_ramps_from_zero(bench):
    bench = bench(timeout=TIMEOUT_S).run()
    bench.robot.silent = True
    wait(lambda: bench.node._loop.compensator.at_rest and bench.state.startswith("fault"))
    assert not bench.enable().success, "the driver is still silent"
    bench.robot.silent = False
    count = len(bench.robot.commands)
    wait(lambda: bench.enable().success)
    wait(lambda: bench.state == "active")
    wait_for_gravity_torque(bench)
    sizes = [abs(torque[1]) for torque in bench.torques()[count:]]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.2 * sizes[-1]


def test_short_silence_is_no_fault(bench):
    bench = bench().run()
    for pause in (0.1, 0.3):
        bench.robot.silent = True
        time.sleep(pause)
        bench.robot.silent = False
        wait_for_gravity_torque(bench)
    assert bench.state == "active"
    assert bench.node._loop.compensator.faults == 0


def assert_compensation_continues(bench, commands=20):
    """Assert that commands keep the gravity torque of the pose without a fault."""
    before = len(bench.robot.commands)
    wait(lambda: len(bench.robot.commands) > before + commands)
    for torque in bench.torques()[before + commands // 2 :]:
        assert torque == pytest.approx(planar_arm.gravity_torque(bench.robot.position), abs=1e-9)
    assert bench.state == "active"


def reorder(message):
    order = [2, 0, 1]
    message.name = ["finger", *(message.name[i] for i in order)]
    message.position = [math.nan, *(message.position[i] for i in order)]


def later(message):
    message.header.stamp.sec += 3600


def earlier(message):
    message.header.stamp.sec -= 3600


def unstamped(message):
    message.header.stamp.sec = message.header.stamp.nanosec = 0


@pytest.mark.parametrize("change", [reorder, later, earlier, unstamped], ids=lambda change: change.__name__)
def test_unusual_joint_states_change_nothing(bench, change):
    bench = bench().run()
    bench.robot.spoil = change
    assert_compensation_continues(bench)
    bench.robot.spoil = lambda message: None
    assert_compensation_continues(bench)


def test_two_agreeing_drivers_are_no_fault(bench):
    bench = bench().run()
    publisher = bench.robot.create_publisher(JointState, "joint_states", 10)
    message = JointState(name=bench.robot.names[::-1], position=bench.robot.position[::-1])
    bench.robot.executor.create_task(bench.robot.create_timer, 0.01, lambda: publisher.publish(message))
    wait(publisher.get_subscription_count)
    assert_compensation_continues(bench, commands=50)


@pytest.mark.parametrize("rate", [10, 1000])
def test_joint_states_may_be_slow_or_fast(bench, rate):
    bench = bench().run()
    robot = bench.robot
    robot.silent = True
    with Driver(robot, rate):
        assert_compensation_continues(bench, commands=max(5, rate // 5))


def test_bursts_of_joint_states_use_the_newest(bench):
    bench = bench().run()
    robot = bench.robot
    robot.silent = True
    for _ in range(5):
        for step in range(100):
            robot.position[1] = POSE[1] + 0.0005 * step
            robot.silent = False
            robot.publish()
            robot.silent = True
        wait_for_gravity_torque(bench, robot.position)
        time.sleep(0.05)
    assert bench.state == "active"


class Driver:
    """Context that publishes joint states at another rate from a thread."""

    def __init__(self, robot, rate):

        self._end = Event()
        best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        publisher = robot.create_publisher(JointState, "joint_states", best_effort)

        def publish():
            while not self._end.wait(1.0 / rate):
                message = JointState(name=robot.names, position=robot.position)
                message.header.stamp = robot.get_clock().now().to_msg()
                publisher.publish(message)

        self._thread = Thread(target=publish, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def test_simulated_time_may_stall_and_jump(bench):
    bench = bench(timeout=2 * TIMEOUT_S, use_sim_time=True)
    clock = bench.robot.create_publisher(Clock, "/clock", 10)
    bench.run()  # no clock is published yet
    assert_compensation_continues(bench)
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault"))
    bench.robot.silent = False
    bench.enable_until_active()
    for seconds in (100, 5000, 10):
        message = Clock()
        message.clock.sec = seconds
        clock.publish(message)
        wait(lambda seconds=seconds: bench.node.get_clock().now().nanoseconds == seconds * 10**9)
        assert_compensation_continues(bench)
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault"))


def scaled_gravity_torque(factor):
    return pytest.approx([factor * value for value in GRAVITY_TORQUE], abs=1e-9)


def set_parameters(bench, **values):
    """Set parameters atomically; return the reason of a refusal, or an empty text."""
    parameters = [Parameter(name, value=value) for name, value in values.items()]
    return bench.node.set_parameters_atomically(parameters).reason


def test_parameters_change_without_a_step(bench):
    bench = bench(max_rate=[200.0]).run()
    bench.robot.spoil = lambda message: setattr(message, "velocity", [0.0] * len(message.name))
    for values, torque in (
        ({"scale": 0.5}, scaled_gravity_torque(0.5)),  # one number for a list, like `ros2 param set`
        ({"scale": [1.5, 1.5, 1.5], "ramp_time": 1}, scaled_gravity_torque(1.5)),
        ({"scale": [0.0]}, scaled_gravity_torque(0.0)),
        ({"scale": [1.0], "timeout": 5.0, "limit_margin": 0.2}, scaled_gravity_torque(1.0)),
    ):
        assert set_parameters(bench, **values) == ""
        wait(lambda torque=torque: bench.torque == torque)
    wait(lambda: bench.node._loop.states.last("velocity"))
    bench.robot.position = [value + 0.05 for value in POSE]
    wait(lambda: bench.node._loop.compensator.position == tuple(bench.robot.position))
    assert set_parameters(bench, stiffness=[400.0], damping=[20.0]) == ""
    wait_for_gravity_torque(bench, bench.robot.position)  # the desired pose is the present one, not that of enable
    bench.robot.position = [value + 0.01 for value in bench.robot.position]
    expected = [gravity - 4.0 for gravity in planar_arm.gravity_torque(bench.robot.position)]
    wait(lambda: bench.torque == pytest.approx(expected, abs=1e-6))
    assert set_parameters(bench, stiffness=[0.0]) == ""
    wait_for_gravity_torque(bench, bench.robot.position)


def test_invalid_parameters_are_refused_at_run_time(bench):
    bench = bench(output="effort").run()
    for values, reason in (
        ({"scale": [1.0, 3.0, 1.0]}, "'scale' of node 'gravity_compensation' is [1.0, 3.0, 1.0]; expected 0 to 1.5"),
        ({"scale": [1.0, 1.0]}, "scale"),
        ({"friction_scale": 0.5}, "friction"),
        ({"fault_ramp_time": 10.0}, "fault_ramp_time"),
        ({"torque_limits": [50.0, 0.1, 50.0]}, "disable first"),
        ({"max_rate": [1.0]}, "max_rate of joint 'joint_1' is 1.0 per second"),
        ({"stiffness": [10.0]}, "no damping"),
        ({"damping": [10.0]}, "velocity"),  # this driver publishes no velocity
        ({"scale": "much"}, "DOUBLE_ARRAY"),
        ({"autostart": True}, "read-only"),
    ):
        assert reason in set_parameters(bench, **values), values
    assert bench.node.get_parameter("scale").value == [1.0]
    wait_for_gravity_torque(bench)
    assert_compensation_continues(bench)


def test_model_parameters_take_effect_at_reload_or_configuration(bench, model_file, tmp_path):
    bench = bench().run()
    heavy = planar_arm.document()
    for joint in ("joint_2", "joint_3"):
        heavy["gravity"][joint]["n_x"] *= 1.1
    file = planar_arm.write(tmp_path / "heavy.yaml", heavy)
    assert set_parameters(bench, model_file=str(file), setpoint_topic="") == ""
    assert set_parameters(bench, setpoint_topic="a b").startswith("Parameter 'setpoint_topic'")
    assert_compensation_continues(bench)
    wait_for_gravity_torque(bench)
    assert bench.reload().success
    wait(lambda: bench.torque == scaled_gravity_torque(1.1))
    assert bench.robot.count_subscribers("/gravity_compensation/setpoint") == 1
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    assert bench.transition(Transition.TRANSITION_CLEANUP)
    assert set_parameters(bench, model_file=str(model_file)) == ""
    bench.activate()
    wait(lambda: bench.robot.count_subscribers("/gravity_compensation/setpoint") == 0)
    bench.enable_until_active()
    wait_for_gravity_torque(bench)


def test_parallel_service_calls_are_all_answered(bench):
    bench = bench().run()
    kinds = {"enable": SetBool, "reload": Trigger}
    clients = {name: bench.robot.create_client(kind, f"/gravity_compensation/{name}") for name, kind in kinds.items()}
    assert all(client.wait_for_service(START_TIMEOUT_S) for client in clients.values())
    futures = []
    for turn in range(6):
        futures.append(clients["enable"].call_async(SetBool.Request(data=turn % 3 != 0)))
        futures.append(clients["reload"].call_async(Trigger.Request()))
    wait(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)
    bench.enable_until_active()
    wait_for_gravity_torque(bench)


def test_unexpected_exception_is_answered_and_compensation_continues(bench, monkeypatch):
    bench = bench().run()
    monkeypatch.setattr("dynid_ros.nodes.compensation.configuration.read_arm", lambda *_: 1 / 0)
    assert_refused(bench.reload(), "unexpected ZeroDivisionError")
    assert_compensation_continues(bench)


def test_enable_without_a_controller_is_refused(bench):
    bench = bench()
    bench.robot.stop_listening()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    wait(lambda: not bench.node._loop.has_listener)
    assert_refused(bench.enable(), f"cannot enable: no controller listens on {EFFORT_TOPIC}")
    bench.robot.create_subscription(Float64MultiArray, EFFORT_TOPIC, bench.robot.watch, 1000)
    bench.enable_until_active()


def test_malformed_urdf_is_reported_and_a_valid_one_starts(bench, capfd):
    bench = bench(robot_description="", autostart=True, enable_on_activate=True)
    publisher = bench.robot.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=planar_arm.urdf()[:300]))
    wait(lambda: any("unconfigured: " in status.message for status in bench.robot.diagnostics))
    assert bench.state == "unconfigured"
    publisher.publish(String(data=planar_arm.urdf()))
    wait(lambda: bench.state == "active")
    wait_for_gravity_torque(bench)
    assert capfd.readouterr().err.count("[ERROR]") == 1


def test_new_urdf_while_active_changes_nothing(bench, capfd):
    bench = bench(robot_description="")
    publisher = bench.robot.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=planar_arm.urdf()))
    wait(lambda: not bench.node._model.waits)
    bench.run()
    for text in (planar_arm.urdf(length=0.5), "<robot"):
        publisher.publish(String(data=text))
        wait(lambda text=text: bench.node._model._description == text)
        assert_compensation_continues(bench)
        assert_refused(bench.reload(), "the model in force stays")
    assert capfd.readouterr().err.count("URDF arrived on robot_description; the model in force stays") == 2
    assert_compensation_continues(bench)


def test_random_faults_in_joint_states_never_step_the_torque(bench):
    rng = random.Random(1)
    bench = bench(timeout=JUMP_TIMEOUT_S).run()
    robot = bench.robot
    changes = [reorder, later, earlier, unstamped, drop_joint, shorten_positions, duplicate_joint, jump_with_clock]
    changes += [lambda message, j=j: message.position.__setitem__(j, math.nan) for j in range(3)]

    def spoil_randomly(message):
        robot.position = [value + rng.uniform(-0.02, 0.02) for value in POSE]
        if rng.random() < 0.1:
            rng.choice(changes)(message)

    robot.spoil = spoil_randomly
    compensator = bench.node._loop.compensator
    wait(lambda: bench.enable() and compensator.faults >= 15, 60.0)
    robot.spoil = lambda message: None
    robot.position = list(POSE)
    wait(lambda: bench.enable().success)
    bench.enable_until_active()
    wait_for_gravity_torque(bench)


def test_halted_or_killed_process_starts_again_without_a_step(model_file, tmp_path):
    robot = Robot()
    threads = NodeThreads(robot)
    with start_process(model_file, tmp_path, TIMEOUT_S) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIMEOUT_S)
        node.send_signal(signal.SIGSTOP)
        time.sleep(2 * TIMEOUT_S)
        count = len(robot.commands)
        node.send_signal(signal.SIGCONT)
        wait(lambda: len(robot.commands) > count + 5 and not any(torque_of(robot.commands[-1][1])))
        assert torque_of(robot.commands[count][1]) == pytest.approx(GRAVITY_TORQUE, rel=0.3), "no step"
        assert "no new joint state" in robot.states[-1]
    count = len(robot.commands)
    with start_process(model_file, tmp_path, TIMEOUT_S):
        wait(lambda: robot.states[-1] == "active", START_TIMEOUT_S)
        assert torque_of(robot.commands[count][1]) == pytest.approx([0.0] * 3, abs=0.2 * abs(GRAVITY_TORQUE[1])), (
            "ramp from zero"
        )
    threads.close()
    robot.destroy_node()
    robot.watch.check(EFFORT_LIMIT / FAULT_RAMP_S, EFFORT_LIMIT, robot.late)


def test_exception_in_the_loop_ends_the_process_at_zero_torque(model_file, monkeypatch):
    update = GravityCompensator.update
    calls = count()
    monkeypatch.setattr(GravityCompensator, "update", lambda *a, **k: update(*a, **k) if next(calls) < 150 else 1 / 0)
    values = {"robot_description": planar_arm.urdf(), "model_file": str(model_file), "ramp_time": RAMP_S}
    values |= {
        "fault_ramp_time": FAULT_RAMP_S,
        "timeout": LONG_TIMEOUT_S,
        "autostart": True,
        "enable_on_activate": True,
    }
    values |= {"unchecked_controller": True, "assume_no_effort": True, "scale": [1.0]}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = partial(gravity_compensation.GravityCompensation, parameter_overrides=overrides)
    monkeypatch.setattr(gravity_compensation, "GravityCompensation", node)
    for function in ("init", "try_shutdown"):
        monkeypatch.setattr(rclpy, function, lambda **_: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    robot = Robot()
    threads = NodeThreads(robot)
    try:
        with pytest.raises(ZeroDivisionError):
            gravity_compensation.main()
        assert wait(lambda: not any(torque_of(robot.commands[-1][1]))) < 0.5 * LONG_TIMEOUT_S, (
            "before joint states become stale"
        )
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        threads.close()
        robot.destroy_node()
    assert max(abs(torque[1]) for torque in robot.watch.torques()) == pytest.approx(abs(GRAVITY_TORQUE[1]))
    robot.watch.check(EFFORT_LIMIT / FAULT_RAMP_S, EFFORT_LIMIT, robot.late)
