"""Test output position in docs/promises.md: set-points of sagging servos pass through the node."""

import math
import time

import planar_arm
import pytest
from helpers.compensation_bench import FAULT_RAMP_S, LONG_TIMEOUT_S, POSE, TIMEOUT_S, Bench, Robot
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from dynid_ros.control import CarriedLoad

TOPIC = "/forward_position_controller/commands"
STIFFNESS_NM_RAD = 200.0
OFFSET_LIMIT_RAD = 0.15
SPEED_RAD_S = 0.5
PARAMETERS = {
    "output": "position",
    "servo_stiffness": [STIFFNESS_NM_RAD],
    "offset_limits": [OFFSET_LIMIT_RAD],
    "setpoint_velocity": [SPEED_RAD_S],
}
MAX_SETPOINT_RATE = SPEED_RAD_S + OFFSET_LIMIT_RAD / FAULT_RAMP_S
TARGET = [0.2, 0.5, -0.1]
SAG = [torque / STIFFNESS_NM_RAD for torque in planar_arm.gravity_torque(POSE)]

pytestmark = pytest.mark.usefixtures("ros")


class Servos(Robot):
    """Proportional servos without friction, which hold the last received set-point."""

    def __init__(self, message=Float64MultiArray, topic=TOPIC):
        super().__init__(message, topic)
        self.setpoint = list(POSE)
        self.blocked = False
        self.load = 0.0
        self.target = self.create_publisher(JointState, "/gravity_compensation/setpoint", 10)

    def _tick(self):
        if self.commands:
            self.setpoint = list(self.commands[-1][1].data)
        if not self.blocked:
            position = list(self.setpoint)
            for _ in range(8):
                torque = planar_arm.gravity_torque(position, 1.0 + self.load)
                position = [q - value / STIFFNESS_NM_RAD for q, value in zip(self.setpoint, torque, strict=True)]
            self.position = position
        super()._tick()

    def publish_setpoint(self, position, names=planar_arm.JOINTS):
        self.target.publish(JointState(name=list(names), position=list(position)))


class ServoBench(Bench):
    def __init__(self, model_file, **parameters):
        super().__init__(model_file, Float64MultiArray, TOPIC, Servos, **(PARAMETERS | parameters))
        self.limit = 2.5
        self.rate = MAX_SETPOINT_RATE
        self.start = list(POSE)

    def position_error(self, pose):
        return max(abs(q - target) for q, target in zip(self.robot.position, pose, strict=True))

    def reach(self, pose=TARGET):
        self.robot.publish_setpoint(pose)
        wait(lambda: self.position_error(pose) < 0.1 * max(map(abs, SAG)))
        return self


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(ServoBench(model_file, **arguments))


def read_settled_command(bench):
    """Wait until the command has reached the set-point, and return the command."""

    def read_command():
        return list(bench.robot.commands[-1][1].data)

    wait(lambda: read_command()[0] == pytest.approx(TARGET[0], abs=1e-4))  # gravity does not load joint 1
    time.sleep(0.2)
    return read_command()


def test_enable_keeps_the_pose_and_set_points_are_reached(bench):
    bench = bench()
    wait(lambda: bench.robot.position != POSE)
    resting = list(bench.robot.position)
    bench.run()
    assert bench.position_error(resting) < 1e-3
    assert bench.robot.commands[0][1].data.tolist() == pytest.approx(POSE, abs=1e-3)
    bench.reach()
    time.sleep(0.3)
    assert bench.position_error(TARGET) < 0.05 * max(map(abs, SAG))


def test_scale_below_one_keeps_the_resting_pose(bench):
    bench = bench(scale=[0.2])
    wait(lambda: bench.robot.position != POSE)
    resting = list(bench.robot.position)
    bench.run()
    time.sleep(0.3)
    assert bench.position_error(resting) < 2e-3


def set_position(joint, value):
    def begin(robot):
        robot.spoil = lambda message: message.position.__setitem__(joint, value)

    return begin


FAULTS = {
    "driver stops": (lambda robot: setattr(robot, "silent", True), "no new joint state"),
    "nan": (set_position(1, math.nan), "position of joint 'joint_2' is nan"),
    "encoder jumps": (set_position(2, 2.4), "'joint_3' jumped"),
    "blocked": (lambda robot: setattr(robot, "blocked", True), "stays"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_lets_the_arm_sag_and_no_further(bench, fault):
    begin, words = FAULTS[fault]
    bench = bench(timeout=TIMEOUT_S if fault == "driver stops" else LONG_TIMEOUT_S).run().reach()
    begin(bench.robot)
    if fault == "blocked":
        bench.robot.publish_setpoint([0.2, 0.1, -0.1])
    wait(lambda: bench.state.startswith("fault"))
    assert words in bench.state
    wait(lambda: bench.node._loop.compensator.at_rest)
    wait(lambda: bench.robot.commands[-1][1].data.tolist() == pytest.approx(bench.node._loop.compensator.desired))
    count = len(bench.robot.commands)
    bench.robot.publish_setpoint(POSE)
    time.sleep(0.2)
    assert len(bench.robot.commands) == count, "the set-point stays until the next enable"
    if fault != "blocked":
        sag = max(abs(torque) for torque in planar_arm.gravity_torque(TARGET)) / STIFFNESS_NM_RAD
        wait(lambda: bench.position_error(TARGET) == pytest.approx(sag, rel=0.1))


def test_second_publisher_is_a_fault(bench):
    bench = bench().run().reach()
    publisher = bench.robot.create_publisher(Float64MultiArray, TOPIC, 1)
    bench.robot.watch.foreign = [0.0, 0.0, 0.0]
    wait(lambda: publisher.get_subscription_count() >= 2)
    publisher.publish(Float64MultiArray(data=[0.0, 0.0, 0.0]))
    wait(lambda: bench.state.startswith("fault"))
    assert "publishes on /forward_position_controller/commands" in bench.state


@pytest.mark.parametrize(
    ("position", "names"),
    [([0.1, 0.2], planar_arm.JOINTS), ([math.nan, 0.0, 0.0], planar_arm.JOINTS), ([0.0, 9.0, 0.0], planar_arm.JOINTS)],
)
def test_invalid_set_point_is_refused(bench, position, names):
    bench = bench().run().reach()
    bench.robot.publish_setpoint(position, names)
    wait(lambda: "a set-point was refused" in bench.node._loop.setpoint.problem)
    assert bench.state == "active"
    time.sleep(0.2)
    assert bench.position_error(TARGET) < 0.05 * max(map(abs, SAG))


def test_offsets_include_the_load(bench):
    bench = bench().run().reach()
    before = read_settled_command(bench)
    load = CarriedLoad(0.5, (0.15, 0.0, 0.0), "link_3")
    bench.node._loop.announce(load)
    gravity = bench.node._loop.load.gravity(TARGET)
    wait(
        lambda: (
            bench.robot.commands[-1][1].data.tolist()
            == pytest.approx([q + value / STIFFNESS_NM_RAD for q, value in zip(TARGET, gravity, strict=True)], abs=1e-6)
        )
    )
    assert abs(bench.robot.commands[-1][1].data[1] - before[1]) > 0.005


def test_offsets_stay_within_their_limit(bench):
    bench = bench(offset_limits=[0.02]).run()
    bench.robot.publish_setpoint(TARGET)
    wait(lambda: list(bench.node._loop.compensator.desired) == pytest.approx(TARGET))
    time.sleep(0.1)
    offsets = [abs(command - q) for command, q in zip(bench.robot.commands[-1][1].data, TARGET, strict=True)]
    assert max(offsets) == pytest.approx(0.02)
    assert "joint_2" in bench.node._loop.compensator.limited


def test_stiffness_cannot_change_while_offsets_act(bench):
    bench = bench().run().reach()
    before = read_settled_command(bench)
    (result,) = bench.node.set_parameters([Parameter("servo_stiffness", value=[0.5 * STIFFNESS_NM_RAD])])
    assert not result.successful
    assert "disable first" in result.reason
    time.sleep(0.1)
    assert list(bench.robot.commands[-1][1].data) == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"servo_stiffness": [0.0]}, "needs the stiffness of joint_1, joint_2, joint_3: give servo_stiffness"),
        ({"servo_stiffness": [1.0, 2.0]}, "servo_stiffness"),
        ({"stiffness": [5.0], "damping": [1.0]}, "with output position set them to 0"),
    ],
)
def test_missing_stiffness_is_refused_at_configuration(bench, parameters, words):
    bench = bench(**parameters)
    assert not bench.configure()
    assert words in bench.node._refusal


def test_killed_node_leaves_the_arm_in_place(model_file, urdf_file, keep):
    robot = Servos()
    threads = NodeThreads(robot)
    keep(threads)
    parameters = {
        **{name: str(value).replace("'", "") for name, value in PARAMETERS.items()},
        "robot_description": urdf_file,
        "model_file": model_file,
        "autostart": "true",
        "enable_on_activate": "true",
        "unchecked_controller": "true",
        "timeout": LONG_TIMEOUT_S,
        "ramp_time": 0.3,
        "scale": "[1.0]",
    }
    with NodeProcess("gravity_compensation", parameters) as process:
        wait(lambda: "active" in robot.states, START_TIMEOUT_S)
        robot.publish_setpoint(TARGET)
        wait(lambda: max(abs(q - target) for q, target in zip(robot.position, TARGET, strict=True)) < 0.005)
        process.kill()
        time.sleep(0.5)
        assert max(abs(q - target) for q, target in zip(robot.position, TARGET, strict=True)) < 0.005
