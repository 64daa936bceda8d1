"""PD about a desired pose, in the node: set-points, and the velocities that damping needs."""

import math

import planar_arm
import pytest

rclpy = pytest.importorskip("rclpy")

from helpers.compensation_bench import POSE, Bench  # noqa: E402
from helpers.waiting import wait  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

STIFFNESS, DAMPING = 20.0, 2.0
GAINS = {"stiffness": [STIFFNESS], "damping": [DAMPING], "setpoint_velocity": [2.0]}


pytestmark = pytest.mark.usefixtures("ros")


@pytest.fixture
def bench(tmp_path, keep):
    def make(velocity=(0.0, 0.0, 0.0), **parameters):
        made = keep(Bench(planar_arm.write(tmp_path / "identified.yaml", planar_arm.document()), **parameters))
        made.velocity = list(velocity)
        made.robot.spoil = lambda message: setattr(message, "velocity", made.velocity)
        made.setpoint = made.robot.create_publisher(JointState, "/gravity_compensation/setpoint", 10)
        return made

    return make


def gravity(position):
    return planar_arm.gravity_torque(position)


def test_the_pose_of_enable_is_held_until_a_set_point_comes(bench):
    bench = bench(velocity=[0.0, 0.5, 0.0], **GAINS).run()
    expected = gravity(POSE)
    expected[1] -= DAMPING * 0.5
    wait(lambda: bench.torque == pytest.approx(expected, abs=1e-9))
    wait(bench.setpoint.get_subscription_count)
    bench.setpoint.publish(JointState(name=["joint_3", "joint_1"], position=[POSE[2] + 0.2, POSE[0] - 0.1]))
    expected[0] -= 0.1 * STIFFNESS
    expected[2] += 0.2 * STIFFNESS
    wait(lambda: bench.torque == pytest.approx(expected, abs=1e-6))


@pytest.mark.parametrize(
    ("names", "positions", "message"),
    [
        (["joint_9"], [0.0], "it names joint_9; the model's joints are joint_1"),
        ([], [], "it names no joint"),
        (["joint_1", "joint_2"], [0.0], "it has 1 positions for joints joint_1, joint_2"),
        (["joint_1"], [math.nan], "position of joint 'joint_1' is nan"),
        (["joint_2"], [2.6], "joint 'joint_2' is to go to 2.6000; its limits are -2.5000 to 2.5000"),
    ],
)
def test_a_set_point_that_cannot_be_meant_is_refused(bench, names, positions, message):
    bench = bench(**GAINS).run()
    wait(bench.setpoint.get_subscription_count)
    bench.setpoint.publish(JointState(name=names, position=positions))
    wait(lambda: any("set-point was refused" in status.message for status in bench.robot.diagnostics))
    assert message in bench.node._loop.setpoint.problem
    assert bench.state == "active"
    assert bench.torque == pytest.approx(gravity(POSE), abs=1e-9)


@pytest.mark.parametrize(("gains", "message"), [({}, "nothing pulls the arm there"), (GAINS, "enable it first")])
def test_a_set_point_without_effect_is_refused(bench, gains, message):
    bench = bench(**gains)
    bench.activate()
    wait(bench.setpoint.get_subscription_count)
    bench.setpoint.publish(JointState(name=["joint_1"], position=[0.0]))
    wait(lambda: message in bench.node._loop.setpoint.problem)


@pytest.mark.parametrize(("velocity", "message"), [([], "0 values of velocity"), ([0.0, math.nan, 0.0], "is nan")])
def test_damping_without_velocities_is_a_fault(bench, velocity, message):
    bench = bench(**GAINS).run()
    bench.velocity = velocity
    wait(lambda: bench.state.startswith("fault"))
    assert message in bench.state


def test_velocities_do_not_matter_without_gains(bench):
    bench = bench(velocity=[]).run()
    assert bench.torque == pytest.approx(gravity(POSE), abs=1e-9)
