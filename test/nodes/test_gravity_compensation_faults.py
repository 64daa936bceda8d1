"""What docs/promises.md says of `gravity_compensation`; that no torque steps is checked after each test."""

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
    CALM,
    EFFORT,
    EFFORT_TOPIC,
    FAULT_RAMP,
    LATCHED,
    POSE,
    RAMP,
    TIMEOUT,
    Bench,
    Robot,
    process,
)
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIME, wait
from lifecycle_msgs.msg import Transition
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.control import GravityCompensator
from dynid_ros.nodes import gravity_compensation

BUSY = 0.4
"""s that a busy machine may take longer than promised."""
SAFE = planar_arm.gravity_torque(POSE)


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(Bench(model_file, **arguments))


def holds(bench, position=None):
    wait(lambda: bench.torque == pytest.approx(planar_arm.gravity_torque(position or POSE), abs=1e-9))


def silent(robot):
    robot.silent = True


def frozen(robot):
    robot.stamp = robot.get_clock().now().to_msg()


def spoiled(change):
    """What makes each joint state of a robot wrong from now on."""

    def begin(robot):
        robot.spoil = change

    return begin


def put(joint, value):
    def change(message):
        message.position[joint] = value

    return spoiled(change)


def missing(message):
    message.name, message.position = message.name[:2], message.position[:2]


def short(message):
    message.position = message.position[:2]


def doubled(message):
    message.name, message.position = [*message.name, "joint_2"], [*message.position, POSE[1]]


def hidden_jump(message):
    """Of an encoder while the clock of its stamps is set."""
    message.header.stamp.sec += 3600
    message.position[1] = -2.4


def second_driver(robot):
    """Of another arm that calls its joints the same."""
    other = robot.create_publisher(JointState, "joint_states", 10)

    def publish():
        message = JointState(name=robot.names, position=[0.0, -1.0, 1.0])
        message.header.stamp = robot.get_clock().now().to_msg()
        other.publish(message)

    robot.executor.create_task(robot.create_timer, 0.01, publish)


SOON = 0.8
"""s of `timeout` in which no joint goes as far as `hidden_jump`."""
FAULTS = {
    "driver stops": (silent, "no new joint state", TIMEOUT),
    "stamps stand still": (frozen, "stamps stand still", TIMEOUT),
    "nan": (put(1, math.nan), "position of joint 'joint_2' is nan", 0.0),
    "infinite": (put(0, -math.inf), "position of joint 'joint_1' is -inf", 0.0),
    "beyond limits": (put(2, 60.0), "far outside its limits", 0.0),
    "encoder jumps": (put(2, 2.4), "'joint_3' jumped", 0.0),
    "encoder jumps with the clock": (spoiled(hidden_jump), "'joint_2' jumped", 0.0),
    "joint missing": (spoiled(missing), "lacks joint(s) joint_3", 0.0),
    "position short": (spoiled(short), "2 values of position for 3 names", 0.0),
    "joint twice": (spoiled(doubled), "names joint(s) joint_2 more than once", 0.0),
    "two drivers": (second_driver, "no other node publishes its joint states", 0.0),
    "controller gone": (
        lambda robot: robot.stop_listening(),
        f"no controller listens on {EFFORT_TOPIC}",
        0.0,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fades_the_torque_and_waits_for_enable(bench, fault):
    begin, message, noticed = FAULTS[fault]
    timeout = SOON if fault == "encoder jumps with the clock" else noticed or CALM
    bench = bench(timeout=timeout).run()
    holds(bench)
    begin(bench.robot)
    took = wait(lambda: bench.state.startswith("fault"))
    assert message in bench.state
    took += wait(lambda: bench.node._loop.compensator.at_rest)
    assert took < noticed + FAULT_RAMP + BUSY
    if fault != "controller gone":
        bench.check_fade(SAFE)
    count = len(bench.robot.commands)
    bench.robot.spoil = lambda message: None
    bench.robot.silent, bench.robot.stamp = False, None
    heard = bench.node._loop.states.heard
    wait(lambda: bench.node._loop.states.heard > heard + 0.1)
    assert bench.state.startswith("fault"), "good states do not end it"
    assert len(bench.robot.commands) == count, "at zero, nothing is published"


def test_after_a_fault_enable_ramps_in_anew(bench):
    bench = bench(timeout=TIMEOUT).run()
    bench.robot.silent = True
    wait(lambda: bench.node._loop.compensator.at_rest and bench.state.startswith("fault"))
    assert not bench.enable().success, "the driver is still silent"
    bench.robot.silent = False
    count = len(bench.robot.commands)
    wait(lambda: bench.enable().success)
    wait(lambda: bench.state == "active")
    holds(bench)
    sizes = [abs(torque[1]) for torque in bench.torques()[count:]]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.2 * sizes[-1]


def test_a_short_silence_is_nothing(bench):
    bench = bench().run()
    for pause in (0.1, 0.3):
        bench.robot.silent = True
        time.sleep(pause)
        bench.robot.silent = False
        holds(bench)
    assert bench.state == "active"
    assert bench.node._loop.compensator.faults == 0


def goes_on(bench, commands=20):
    """The torque stays that of the pose, and no fault comes, while joint states are answered."""
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
def test_what_is_no_fault_changes_nothing(bench, change):
    bench = bench().run()
    bench.robot.spoil = change
    goes_on(bench)
    bench.robot.spoil = lambda message: None
    goes_on(bench)


def test_two_drivers_that_agree_are_as_one(bench):
    bench = bench().run()
    other = bench.robot.create_publisher(JointState, "joint_states", 10)
    message = JointState(name=bench.robot.names[::-1], position=bench.robot.position[::-1])
    bench.robot.executor.create_task(bench.robot.create_timer, 0.01, lambda: other.publish(message))
    wait(other.get_subscription_count)
    goes_on(bench, commands=50)


@pytest.mark.parametrize("rate", [10, 1000])
def test_slow_and_fast_joint_states(bench, rate):
    bench = bench().run()
    robot = bench.robot
    robot.silent = True
    with driver(robot, rate):
        goes_on(bench, commands=max(5, rate // 5))


def test_bursts_of_joint_states_are_passed_over_for_the_newest(bench):
    bench = bench().run()
    robot = bench.robot
    robot.silent = True
    for _ in range(5):
        for step in range(100):
            robot.position[1] = POSE[1] + 0.0005 * step
            robot.silent = False
            robot.publish()
            robot.silent = True
        holds(bench, robot.position)
        time.sleep(0.05)
    assert bench.state == "active"


class driver:  # noqa: N801
    """Joint states at another rate, from a thread of their own."""

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


def test_simulated_time_may_stand_still_and_jump(bench):
    bench = bench(timeout=2 * TIMEOUT, use_sim_time=True)
    clock = bench.robot.create_publisher(Clock, "/clock", 10)
    bench.run()  # no clock yet
    goes_on(bench)
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault"))
    bench.robot.silent = False
    bench.enabled()
    for seconds in (100, 5000, 10):
        message = Clock()
        message.clock.sec = seconds
        clock.publish(message)
        wait(lambda seconds=seconds: bench.node.get_clock().now().nanoseconds == seconds * 10**9)
        goes_on(bench)
    bench.robot.silent = True
    wait(lambda: bench.state.startswith("fault"))


def scaled(factor):
    return pytest.approx([factor * value for value in SAFE], abs=1e-9)


def put_parameters(bench, **values):
    """Set them all at once; why that is refused, or nothing."""
    parameters = [Parameter(name, value=value) for name, value in values.items()]
    return bench.node.set_parameters_atomically(parameters).reason


def test_parameters_that_are_set_while_it_floats_make_no_step(bench):
    bench = bench(max_rate=[200.0]).run()
    bench.robot.spoil = lambda message: setattr(message, "velocity", [0.0] * len(message.name))
    for values, torque in (
        ({"scale": 0.5}, scaled(0.5)),  # one number for a list, as `ros2 param set` makes it
        ({"scale": [1.5, 1.5, 1.5], "ramp_time": 1}, scaled(1.5)),
        ({"scale": [0.0]}, scaled(0.0)),
        ({"scale": [1.0], "timeout": 5.0, "limit_margin": 0.2}, scaled(1.0)),
    ):
        assert put_parameters(bench, **values) == ""
        wait(lambda torque=torque: bench.torque == torque)
    wait(lambda: bench.node._loop.states.last("velocity"))
    bench.robot.position = [value + 0.05 for value in POSE]
    wait(lambda: bench.node._loop.compensator.position == tuple(bench.robot.position))
    assert put_parameters(bench, stiffness=[400.0], damping=[20.0]) == ""
    holds(bench, bench.robot.position)  # it is pulled to where it is, not to where it was enabled
    bench.robot.position = [value + 0.01 for value in bench.robot.position]
    pulled = [gravity - 4.0 for gravity in planar_arm.gravity_torque(bench.robot.position)]
    wait(lambda: bench.torque == pytest.approx(pulled, abs=1e-6))
    assert put_parameters(bench, stiffness=[0.0]) == ""
    holds(bench, bench.robot.position)


def test_parameters_out_of_range_are_refused_while_it_floats(bench):
    bench = bench(output="effort").run()
    for values, reason in (
        ({"scale": [1.0, 3.0, 1.0]}, "'scale' of node 'gravity_compensation' is [1.0, 3.0, 1.0]; expected 0 to 1.5"),
        ({"scale": [1.0, 1.0]}, "scale"),
        ({"friction_scale": 0.5}, "friction"),
        ({"fault_ramp_time": 10.0}, "fault_ramp_time"),
        ({"torque_limits": [50.0, 0.1, 50.0]}, "disable first"),
        ({"max_rate": [1.0]}, "max_rate of joint 'joint_1' is 1.0 per second"),
        ({"stiffness": [10.0]}, "no damping"),
        ({"damping": [10.0]}, "velocity"),  # which this driver does not publish
        ({"scale": "much"}, "DOUBLE_ARRAY"),
        ({"autostart": True}, "read-only"),
    ):
        assert reason in put_parameters(bench, **values), values
    assert bench.node.get_parameter("scale").value == [1.0]
    holds(bench)
    goes_on(bench)


def test_a_parameter_of_the_model_waits_for_reload_or_configuration(bench, model_file, tmp_path):
    bench = bench().run()
    heavy = planar_arm.document()
    for joint in ("joint_2", "joint_3"):
        heavy["gravity"][joint]["n_x"] *= 1.1
    file = planar_arm.write(tmp_path / "heavy.yaml", heavy)
    assert put_parameters(bench, model_file=str(file), setpoint_topic="") == ""
    assert put_parameters(bench, setpoint_topic="a b").startswith("Parameter 'setpoint_topic'")
    goes_on(bench)
    holds(bench)
    assert bench.reload().success
    wait(lambda: bench.torque == scaled(1.1))
    assert bench.robot.count_subscribers("/gravity_compensation/setpoint") == 1
    assert bench.transition(Transition.TRANSITION_DEACTIVATE)
    assert bench.transition(Transition.TRANSITION_CLEANUP)
    assert put_parameters(bench, model_file=str(model_file)) == ""
    bench.activate()
    wait(lambda: bench.robot.count_subscribers("/gravity_compensation/setpoint") == 0)
    bench.enabled()
    holds(bench)


def test_services_in_parallel_are_all_answered(bench):
    bench = bench().run()
    kinds = {"enable": SetBool, "reload": Trigger}
    clients = {name: bench.robot.create_client(kind, f"/gravity_compensation/{name}") for name, kind in kinds.items()}
    assert all(client.wait_for_service(START_TIME) for client in clients.values())
    futures = []
    for turn in range(6):
        futures.append(clients["enable"].call_async(SetBool.Request(data=turn % 3 != 0)))
        futures.append(clients["reload"].call_async(Trigger.Request()))
    wait(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)
    bench.enabled()
    holds(bench)


def test_a_fault_of_the_code_is_answered_and_the_torque_goes_on(bench, monkeypatch):
    bench = bench().run()
    monkeypatch.setattr("dynid_ros.nodes.compensation.configuration.read_arm", lambda *_: 1 / 0)
    answer = bench.reload()
    assert not answer.success
    assert "unexpected ZeroDivisionError" in answer.message
    goes_on(bench)


def test_enable_without_a_controller_is_refused(bench):
    bench = bench()
    bench.robot.stop_listening()
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    wait(lambda: not bench.node._loop.has_listener)
    answer = bench.enable()
    assert not answer.success
    assert f"cannot enable: no controller listens on {EFFORT_TOPIC}" in answer.message
    bench.robot.create_subscription(Float64MultiArray, EFFORT_TOPIC, bench.robot.watch, 1000)
    bench.enabled()


def test_a_malformed_urdf_is_told_and_a_good_one_then_starts(bench, capfd):
    bench = bench(robot_description="", autostart=True, enable_on_activate=True)
    publisher = bench.robot.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=planar_arm.urdf()[:300]))
    wait(lambda: any("unconfigured: " in status.message for status in bench.robot.diagnostics))
    assert bench.state == "unconfigured"
    publisher.publish(String(data=planar_arm.urdf()))
    wait(lambda: bench.state == "active")
    holds(bench)
    assert capfd.readouterr().err.count("[ERROR]") == 1


def test_another_urdf_while_active_changes_nothing(bench, capfd):
    bench = bench(robot_description="")
    publisher = bench.robot.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=planar_arm.urdf()))
    wait(lambda: not bench.node._model.waits)
    bench.run()
    for text in (planar_arm.urdf(length=0.5), "<robot"):
        publisher.publish(String(data=text))
        wait(lambda text=text: bench.node._model._description == text)
        goes_on(bench)
        answer = bench.reload()
        assert not answer.success
        assert "the model in force stays" in answer.message
    assert capfd.readouterr().err.count("URDF arrived on robot_description; the model in force stays") == 2
    goes_on(bench)


def test_a_storm_of_bad_joint_states(bench):
    """All faults in random order, enabled again and again."""
    rng = random.Random(1)
    bench = bench(timeout=SOON).run()
    robot = bench.robot
    changes = [reorder, later, earlier, unstamped, missing, short, doubled, hidden_jump]
    changes += [lambda message, j=j: message.position.__setitem__(j, math.nan) for j in range(3)]

    def storm(message):
        robot.position = [value + rng.uniform(-0.02, 0.02) for value in POSE]
        if rng.random() < 0.1:
            rng.choice(changes)(message)

    robot.spoil = storm
    compensator = bench.node._loop.compensator
    wait(lambda: bench.enable() and compensator.faults >= 15, 60.0)
    robot.spoil = lambda message: None
    robot.position = list(POSE)
    wait(lambda: bench.enable().success)
    bench.enabled()
    holds(bench)


def test_a_process_that_is_halted_or_killed(model_file, tmp_path):
    robot = Robot()
    threads = NodeThreads(robot)
    with process(model_file, tmp_path, TIMEOUT) as node:
        wait(lambda: robot.states and robot.states[-1] == "active", START_TIME)
        node.send_signal(signal.SIGSTOP)
        time.sleep(2 * TIMEOUT)
        count = len(robot.commands)
        node.send_signal(signal.SIGCONT)
        wait(lambda: len(robot.commands) > count + 5 and not any(torque_of(robot.commands[-1][1])))
        assert torque_of(robot.commands[count][1]) == pytest.approx(SAFE, rel=0.3), "no step"
        assert "no new joint state" in robot.states[-1]
    count = len(robot.commands)
    with process(model_file, tmp_path, TIMEOUT):
        wait(lambda: robot.states[-1] == "active", START_TIME)
        assert torque_of(robot.commands[count][1]) == pytest.approx([0.0] * 3, abs=0.2 * abs(SAFE[1])), "from zero"
    threads.close()
    robot.destroy_node()
    robot.watch.check(EFFORT / FAULT_RAMP, EFFORT, robot.late)


def test_a_fault_of_the_code_in_the_loop_ends_the_process_at_zero(model_file, monkeypatch):
    update, turns = GravityCompensator.update, count()
    monkeypatch.setattr(GravityCompensator, "update", lambda *a, **k: update(*a, **k) if next(turns) < 150 else 1 / 0)
    values = {"robot_description": planar_arm.urdf(), "model_file": str(model_file), "ramp_time": RAMP}
    values |= {"fault_ramp_time": FAULT_RAMP, "timeout": CALM, "autostart": True, "enable_on_activate": True}
    values |= {"unchecked_controller": True, "assume_no_effort": True, "scale": [1.0]}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = partial(gravity_compensation.GravityCompensation, parameter_overrides=overrides)
    monkeypatch.setattr(gravity_compensation, "GravityCompensation", node)
    for ours in ("init", "try_shutdown"):
        monkeypatch.setattr(rclpy, ours, lambda **_: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    robot = Robot()
    threads = NodeThreads(robot)
    try:
        with pytest.raises(ZeroDivisionError):
            gravity_compensation.main()
        assert wait(lambda: not any(torque_of(robot.commands[-1][1]))) < 0.5 * CALM, "not by a joint state that is old"
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        threads.close()
        robot.destroy_node()
    assert max(abs(torque[1]) for torque in robot.watch.torques()) == pytest.approx(abs(SAFE[1]))
    robot.watch.check(EFFORT / FAULT_RAMP, EFFORT, robot.late)
