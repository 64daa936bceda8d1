"""Test compensation on a tilting base with an IMU; each test also checks that no torque steps."""

import math
import time

import planar_arm
import pytest
from helpers.compensation_bench import FAULT_RAMP_S, Bench
from helpers.waiting import wait
from rclpy.node import Node
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import Imu

from dynid_ros.model import RobotModel
from dynid_ros.nodes.compensation.base_imu import CompensationImu

pytestmark = pytest.mark.usefixtures("ros")
SETTINGS = {"imu_topic": "imu", "imu_time_constant": 0.02, "imu_timeout": 2.0, "imu_max_rate": 0.2}


class Sensor(Node):
    """IMU at 50 Hz on a base that is rotated by `tilt` (rad) about its y axis."""

    def __init__(self):
        super().__init__("sensor")
        self.tilt = 0.0
        self.size = planar_arm.G
        self.silent = False
        self.frame = "base_link"
        self.publisher = self.create_publisher(Imu, "imu", 10)
        self.create_timer(0.02, self._tick)

    def _tick(self):
        if self.silent:
            return
        message = Imu()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = self.frame
        message.orientation_covariance[0] = -1.0
        message.linear_acceleration.x = -self.size * math.sin(self.tilt)
        message.linear_acceleration.z = self.size * math.cos(self.tilt)
        self.publisher.publish(message)


class TiltingBench(Bench):
    """Compensation bench with an IMU."""

    def __init__(self, model_file, **parameters):
        super().__init__(model_file, **(SETTINGS | parameters))
        self.sensor = Sensor()
        self.threads_of_sensor = type(self.threads)(self.sensor)

    def close(self):
        self.threads_of_sensor.close()
        super().close()
        self.sensor.destroy_node()

    def activate_and_settle(self):
        """Activate the node and wait until its gravity estimate has settled."""
        self.activate()
        wait(lambda: self.node._loop.imu.topic and not self.node._loop.imu.doubt(time.monotonic()))
        wait(lambda: not self.node._loop.imu.base.unsettled(time.monotonic()))


@pytest.fixture(name="bench")
def fixture_bench(model_file, keep):
    return lambda **arguments: keep(TiltingBench(model_file, **arguments))


def predict_torque(tilt, position):
    gravity = (planar_arm.G * math.sin(tilt), 0.0, -planar_arm.G * math.cos(tilt))
    return RobotModel.from_urdf(planar_arm.urdf(), gravity=gravity).gravity_torque([position])[0].tolist()


def test_torque_follows_a_tilting_base(bench):
    bench = bench()
    bench.activate_and_settle()
    bench.enable_until_active()
    wait(lambda: bench.torque == pytest.approx(predict_torque(0.0, bench.robot.position), abs=1e-3))
    bench.sensor.tilt = 0.3
    start = time.monotonic()
    before = bench.node._loop.imu.base.down
    wait(lambda: bench.torque == pytest.approx(predict_torque(0.3, bench.robot.position), abs=0.02))
    assert time.monotonic() - start > 0.9 * 0.3 / SETTINGS["imu_max_rate"]
    assert bench.node._loop.imu.base.down != before
    assert bench.torque[0] == pytest.approx(predict_torque(0.3, bench.robot.position)[0], abs=0.02)
    assert bench.state == "active"


def test_torque_follows_a_rotated_imu(model_file, keep):
    """The IMU is rotated by half a turn about the base's z axis, so its x axis points backward."""
    fixed = '<joint name="mount" type="fixed"><parent link="base_link"/><child link="imu"/>'
    mounted = planar_arm.urdf().replace(
        "</robot>", f'<link name="imu"/>{fixed}<origin rpy="0 0 {math.pi}"/></joint></robot>'
    )
    bench = keep(TiltingBench(model_file, robot_description=mounted))
    bench.sensor.frame = "imu"
    bench.sensor.tilt = -0.3
    bench.activate_and_settle()
    bench.enable_until_active()
    wait(lambda: bench.torque == pytest.approx(predict_torque(0.3, bench.robot.position), abs=0.02))
    bench.sensor.frame = "link_2"
    wait(lambda: bench.state.startswith("fault: the IMU on imu"))
    assert "'link_2' is no link that is fixed to 'base_link'" in bench.state
    wait(lambda: not any(bench.torque))


def stop_publishing(sensor):
    sensor.silent = True


def send_nan(sensor):
    sensor.size = math.nan


def send_wrong_units(sensor):
    sensor.size = 1.0


def tilt_far(sensor):
    sensor.tilt = 0.8


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(stop_publishing, "has said nothing for", id="silent"),
        pytest.param(send_nan, "not finite", id="nan"),
        pytest.param(send_wrong_units, "feels", id="units"),
        pytest.param(tilt_far, "tilted by", id="fallen"),
    ],
)
def test_failed_imu_fades_the_torque(bench, fault, words):
    bench = bench()
    bench.activate_and_settle()
    bench.enable_until_active()
    fault(bench.sensor)
    wait(lambda: bench.state.startswith("fault: the IMU on imu"))
    assert words in bench.state
    wait(lambda: not any(bench.torque))


def test_failed_imu_holds_the_arm_before_descent(model_file, keep):
    bench = keep(TiltingBench(model_file, descent_time=30.0))
    bench.activate_and_settle()
    bench.enable_until_active()
    bench.sensor.silent = True
    wait(lambda: bench.state.startswith("fault: the IMU on imu"))
    time.sleep(2.0 * FAULT_RAMP_S)
    assert bench.torque == pytest.approx(predict_torque(0.0, bench.robot.position), abs=0.02)


def invert(sensor):
    sensor.size = -planar_arm.G


def change_frame(sensor):
    sensor.frame = "link_2"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        pytest.param(stop_publishing, "has said nothing", id="silent"),
        pytest.param(invert, "upside down", id="upside down"),
        pytest.param(change_frame, "'link_2' is no link that is fixed to 'base_link'", id="frame"),
    ],
)
def test_implausible_imu_refuses_enable(bench, fault, words):
    bench = bench()
    fault(bench.sensor)
    bench.activate()
    wait(lambda: bench.node._loop.compensator.position)
    wait(lambda: words in bench.enable().message)
    assert bench.state == "disabled"
    assert not bench.robot.commands


@pytest.mark.parametrize("seed", range(4))
def test_orientation_of_the_imu_gives_the_direction_of_gravity(seed):
    """The orientation of REP 145 rotates sensor vectors into a world frame whose z axis points up."""
    mounting, orientation = Rotation.random(2, rng=seed)
    imu = CompensationImu.__new__(CompensationImu)
    imu._to_base = mounting.as_matrix()
    message = Imu()
    q = message.orientation
    q.x, q.y, q.z, q.w = orientation.as_quat()
    down = mounting.apply(orientation.inv().apply([0.0, 0.0, -1.0]))
    assert imu._gravity_by_orientation(message) == pytest.approx(down.tolist())
    message.orientation_covariance[0] = -1.0
    assert imu._gravity_by_orientation(message) is None
    message.orientation_covariance[0] = 0.0
    q.x = q.y = q.z = q.w = 0.0
    assert imu._gravity_by_orientation(message) is None
