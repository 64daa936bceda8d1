"""What docs/promises.md says of output position: servos that sag, whose set-points pass through the node."""

import math
import time

import planar_arm
import pytest
from helpers.compensation_bench import CALM, FAULT_RAMP, POSE, TIMEOUT, Bench, Robot
from helpers.node_process import NodeProcess
from helpers.node_threads import NodeThreads
from helpers.waiting import START_TIME, wait
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from dynid_ros.control import CarriedLoad

TOPIC = "/forward_position_controller/commands"
STIFFNESS = 200.0
OFFSET_LIMIT = 0.15
SPEED = 0.5
PARAMETERS = {
    "output": "position",
    "servo_stiffness": [STIFFNESS],
    "offset_limits": [OFFSET_LIMIT],
    "setpoint_velocity": [SPEED],
}
MAX_SETPOINT_RATE = SPEED + OFFSET_LIMIT / FAULT_RAMP
TARGET = [0.2, 0.5, -0.1]
SAG = [torque / STIFFNESS for torque in planar_arm.gravity_torque(POSE)]

pytestmark = pytest.mark.usefixtures("ros")


class Servos(Robot):
    """Proportional servos without friction, which hold the last set-point that they received."""

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
                position = [q - value / STIFFNESS for q, value in zip(self.setpoint, torque, strict=True)]
            self.position = position
        super()._tick()

    def aim(self, position, names=planar_arm.JOINTS):
        self.target.publish(JointState(name=list(names), position=list(position)))


class ServoBench(Bench):
    def __init__(self, model_file, **parameters):
        super().__init__(model_file, Float64MultiArray, TOPIC, Servos, **(PARAMETERS | parameters))
        self.limit = 2.5
        self.rate = MAX_SETPOINT_RATE
        self.start = list(POSE)

    def error(self, pose):
        return max(abs(q - wanted) for q, wanted in zip(self.robot.position, pose, strict=True))

    def arrive(self, pose=TARGET):
        self.robot.aim(pose)
        wait(lambda: self.error(pose) < 0.1 * max(map(abs, SAG)))
        return self


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(ServoBench(model_file, **arguments))


def settled_command(bench):
    """Wait until the command has reached the set-point, and return it."""

    def command():
        return list(bench.robot.commands[-1][1].data)

    wait(lambda: command()[0] == pytest.approx(TARGET[0], abs=1e-4))  # gravity does not act on joint 1
    time.sleep(0.2)
    return command()


def test_enable_moves_nothing_and_set_points_are_reached(bench):
    bench = bench()
    wait(lambda: bench.robot.position != POSE)
    resting = list(bench.robot.position)
    bench.run()
    assert bench.error(resting) < 1e-3
    assert bench.robot.commands[0][1].data.tolist() == pytest.approx(POSE, abs=1e-3)
    bench.arrive()
    time.sleep(0.3)
    assert bench.error(TARGET) < 0.05 * max(map(abs, SAG))


def test_a_scale_below_one_leaves_the_arm_where_it_rests(bench):
    bench = bench(scale=[0.2])
    wait(lambda: bench.robot.position != POSE)
    resting = list(bench.robot.position)
    bench.run()
    time.sleep(0.3)
    assert bench.error(resting) < 2e-3


def put(joint, value):
    def begin(robot):
        robot.spoil = lambda message: message.position.__setitem__(joint, value)

    return begin


FAULTS = {
    "driver stops": (lambda robot: setattr(robot, "silent", True), "no new joint state"),
    "nan": (put(1, math.nan), "position of joint 'joint_2' is nan"),
    "encoder jumps": (put(2, 2.4), "'joint_3' jumped"),
    "blocked": (lambda robot: setattr(robot, "blocked", True), "stays"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_arm_sags_and_no_further(bench, fault):
    begin, words = FAULTS[fault]
    bench = bench(timeout=TIMEOUT if fault == "driver stops" else CALM).run().arrive()
    begin(bench.robot)
    if fault == "blocked":
        bench.robot.aim([0.2, 0.1, -0.1])
    wait(lambda: bench.state.startswith("fault"))
    assert words in bench.state
    wait(lambda: bench.node._loop.compensator.at_rest)
    wait(lambda: bench.robot.commands[-1][1].data.tolist() == pytest.approx(bench.node._loop.compensator.desired))
    count = len(bench.robot.commands)
    bench.robot.aim(POSE)
    time.sleep(0.2)
    assert len(bench.robot.commands) == count, "the set-point stays until somebody enables again"
    if fault != "blocked":
        sag = max(abs(torque) for torque in planar_arm.gravity_torque(TARGET)) / STIFFNESS
        wait(lambda: bench.error(TARGET) == pytest.approx(sag, rel=0.1))


def test_a_second_commander_ends_it(bench):
    bench = bench().run().arrive()
    other = bench.robot.create_publisher(Float64MultiArray, TOPIC, 1)
    bench.robot.watch.foreign = [0.0, 0.0, 0.0]
    wait(lambda: other.get_subscription_count() >= 2)
    other.publish(Float64MultiArray(data=[0.0, 0.0, 0.0]))
    wait(lambda: bench.state.startswith("fault"))
    assert "publishes on /forward_position_controller/commands" in bench.state


@pytest.mark.parametrize(
    ("position", "names"),
    [([0.1, 0.2], planar_arm.JOINTS), ([math.nan, 0.0, 0.0], planar_arm.JOINTS), ([0.0, 9.0, 0.0], planar_arm.JOINTS)],
)
def test_a_set_point_that_cannot_be_meant_is_refused(bench, position, names):
    bench = bench().run().arrive()
    bench.robot.aim(position, names)
    wait(lambda: "a set-point was refused" in bench.node._loop.setpoint.problem)
    assert bench.state == "active"
    time.sleep(0.2)
    assert bench.error(TARGET) < 0.05 * max(map(abs, SAG))


def test_a_load_is_carried_too(bench):
    bench = bench().run().arrive()
    before = settled_command(bench)
    load = CarriedLoad(0.5, (0.15, 0.0, 0.0), "link_3")
    bench.node._loop.announce(load)
    gravity = bench.node._loop.load.gravity(TARGET)
    wait(
        lambda: (
            bench.robot.commands[-1][1].data.tolist()
            == pytest.approx([q + value / STIFFNESS for q, value in zip(TARGET, gravity, strict=True)], abs=1e-6)
        )
    )
    assert abs(bench.robot.commands[-1][1].data[1] - before[1]) > 0.005


def test_offsets_stay_within_their_limit(bench):
    bench = bench(offset_limits=[0.02]).run()
    bench.robot.aim(TARGET)
    wait(lambda: list(bench.node._loop.compensator.desired) == pytest.approx(TARGET))
    time.sleep(0.1)
    shift = [abs(sent - q) for sent, q in zip(bench.robot.commands[-1][1].data, TARGET, strict=True)]
    assert max(shift) == pytest.approx(0.02)
    assert "joint_2" in bench.node._loop.compensator.limited


def test_another_stiffness_is_refused_while_offsets_act(bench):
    bench = bench().run().arrive()
    before = settled_command(bench)
    (result,) = bench.node.set_parameters([Parameter("servo_stiffness", value=[0.5 * STIFFNESS])])
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
def test_what_is_missing_is_said_at_configuration(bench, parameters, words):
    bench = bench(**parameters)
    assert not bench.configure()
    assert words in bench.node._refusal


def test_killed_it_leaves_the_arm_where_it_is(model_file, tmp_path, keep):
    (tmp_path / "planar.urdf").write_text(planar_arm.urdf())
    robot = Servos()
    threads = NodeThreads(robot)
    keep(threads)
    parameters = {
        **{name: str(value).replace("'", "") for name, value in PARAMETERS.items()},
        "robot_description": tmp_path / "planar.urdf",
        "model_file": model_file,
        "autostart": "true",
        "enable_on_activate": "true",
        "unchecked_controller": "true",
        "timeout": CALM,
        "ramp_time": 0.3,
        "scale": "[1.0]",
    }
    with NodeProcess("gravity_compensation", parameters) as process:
        wait(lambda: "active" in robot.states, START_TIME)
        robot.aim(TARGET)
        wait(lambda: max(abs(q - wanted) for q, wanted in zip(robot.position, TARGET, strict=True)) < 0.005)
        process.kill()
        time.sleep(0.5)
        assert max(abs(q - wanted) for q, wanted in zip(robot.position, TARGET, strict=True)) < 0.005
