"""Test the recorder: contents and QoS of bags, faults, signals, an IMU and recording by motion states."""

import re
import shutil
import signal
import time

import numpy as np
import pytest
import rclpy
from command_line import run
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, WrenchStamped
from gravity_experiment import demo_robot, planned_motion
from helpers.node_process import NodeProcess
from helpers.node_threads import assert_refused
from helpers.recorder_bench import LATCHED, RELIABLE, SENSOR, Bench
from rclpy.duration import Duration
from rclpy.qos import LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from benchmarks import recording_loss
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model.gravity import angle_between, turned
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.recording import Recording

pytestmark = pytest.mark.usefixtures("ros")


def read_bag(bench, **options):
    return Recording.read(bench.bags[-1], **options)


def test_bag_contains_the_published_messages(tmp_path):
    parameters = {
        "torque_topics": ["torques"],
        "wrench_topics": ["/ft/wrench"],
        "pose_topics": ["/tool/pose", "/markers"],
        "extra_topics": ["/note"],
    }
    with Bench(tmp_path, parameters) as bench:
        latched = bench.publisher(String, "robot_description", LATCHED)
        latched.publish(String(data="<robot/>"))
        joints = bench.publisher(JointState)
        torques = bench.publisher(Float64MultiArray, "torques")
        wrench = bench.publisher(WrenchStamped, "/ft/wrench", SENSOR)
        body = bench.publisher(PoseStamped, "/tool/pose", SENSOR)
        markers = bench.publisher(PoseArray, "/markers", SENSOR)
        bench.publish(joints, 50)
        bench.spin(0.5)
        answer = bench.call("start")
        assert answer.success
        assert "not published yet: /note" in answer.message
        for i in range(100):
            torques.publish(Float64MultiArray(data=[float(i), 0.0]))
            bench.publish(joints, 1)
        wrench.publish(WrenchStamped())
        body.publish(PoseStamped())
        markers.publish(PoseArray(poses=[Pose(), Pose()]))
        note = bench.publisher(String, "/note")
        note.publish(String(data="late"))
        answer = bench.call("stop")
        assert answer.success
        bench.publish(joints, 10)
        bench.spin(0.1)
    (path,) = tmp_path.iterdir()
    assert bench.bags == [str(path)]
    for part in (f"to {path}", "/joint_states 100", "/torques 100", "/ft/wrench 1", "/robot_description 1", "/note 1"):
        assert part in answer.message
    assert "were lost" not in answer.message
    recording = read_bag(bench, joint_names=["a", "b"], torque_topic="/torques")
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(51, 151))
    np.testing.assert_array_equal(recording.position[:, 1], -np.arange(51, 151))
    assert len(recording.wrench.time) == 1
    assert sorted(recording.poses) == ["/markers[0]", "/markers[1]", "/tool/pose"]
    with Reader(path) as reader:
        offered = {c.topic: c.ext.offered_qos_profiles[0].durability.name for c in reader.connections}
        assert offered["/robot_description"] == "TRANSIENT_LOCAL"
        assert offered["/joint_states"] == "VOLATILE"
        (urdf,) = [bytes(data) for connection, _, data in reader.messages() if connection.topic == "/robot_description"]
    assert b"<robot/>" in urdf


def test_second_recording_has_its_own_bag_with_the_urdf(tmp_path):
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        bench.publisher(String, "robot_description", LATCHED).publish(String(data="<robot/>"))
        for count in (20, 30):
            assert bench.call("start").success
            bench.publish(joints, count)
            message = bench.call("stop").message
            assert f"/joint_states {count}" in message
            assert "/robot_description 1" in message
        bench.spin_until(lambda: len(bench.bags) == 2)
    assert [Recording.read(bag).n_samples for bag in bench.bags] == [20, 30]


def test_recording_without_joint_states_warns(tmp_path):
    with Bench(tmp_path, {"extra_topics": ["note"]}) as bench:
        assert "not published yet: /joint_states, /robot_description, /note" in bench.call("start").message
        assert bench.status().level in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
        bench.spin(1.0)
        status = bench.status()
        assert status.level == DiagnosticStatus.WARN
        assert "no message on /joint_states for" in status.message
        assert_refused(bench.call("stop"), "no message came on /joint_states while recording")
        assert bench.status().message == "not recording"


def test_late_publishers_with_other_qos_are_recorded(tmp_path):
    with Bench(tmp_path) as bench:
        before_start = time.monotonic()
        assert bench.call("start").success
        after_start = time.monotonic()
        for qos in (RELIABLE, SENSOR, RELIABLE):
            publisher = bench.publisher(JointState, qos=qos)
            bench.spin(0.5)  # the recorder searches for publishers every 0.2 s
            bench.publish(publisher, 20)
            bench.spin(0.2)
            bench.robot.destroy_publisher(publisher)
            bench.spin(0.5)
        min_duration = time.monotonic() - after_start
        message = bench.call("stop").message
        assert "/joint_states 60" in message
        assert (
            min_duration - 0.1
            < float(re.search(r"wrote ([\d.]+) s", message)[1])
            < time.monotonic() - before_start + 0.1
        )
    np.testing.assert_array_equal(read_bag(bench, joint_names=["a"]).position[:, 0], np.arange(1, 61))


def test_bag_stores_the_qos_of_the_publisher(tmp_path):
    qos = QoSProfile(
        depth=7,
        reliability=ReliabilityPolicy.BEST_EFFORT,
        deadline=Duration(seconds=3, nanoseconds=250_000_000),
        lifespan=Duration(seconds=4, nanoseconds=500_000_000),
        liveliness=LivelinessPolicy.AUTOMATIC,
        liveliness_lease_duration=Duration(seconds=5, nanoseconds=750_000_000),
    )
    with Bench(tmp_path) as bench:
        publisher = bench.publisher(JointState, qos=qos)
        bench.spin(0.5)
        assert bench.call("start").success
        bench.publish(publisher, 20)
        bench.spin(0.2)
        assert bench.call("stop").success
        with Reader(bench.bags[-1]) as reader:
            (offered,) = reader.connections[0].ext.offered_qos_profiles
    assert (offered.reliability.name, offered.durability.name) == ("BEST_EFFORT", "VOLATILE")
    times = offered.deadline, offered.lifespan, offered.liveliness_lease_duration
    assert [(time.sec, time.nsec) for time in times] == [(3, 250_000_000), (4, 500_000_000), (5, 750_000_000)]


def test_topic_of_a_wrong_type_is_an_error(tmp_path):
    with Bench(tmp_path, {"wrench_topics": ["/ft/wrench"]}) as bench:
        wrong = bench.robot.create_publisher(String, "/ft/wrench", RELIABLE)
        text = "topic /ft/wrench has type std_msgs/msg/String; expected geometry_msgs/msg/WrenchStamped"
        bench.spin_until(lambda: bench.status().message == text)
        assert bench.status().level == DiagnosticStatus.ERROR
        context = rclpy.Context()
        rclpy.init(context=context)
        sensor = rclpy.create_node("sensor", context=context)
        sensor.create_publisher(WrenchStamped, "/ft/wrench", RELIABLE)
        bench.spin_until(lambda: "is published with several types" in bench.status().message)
        bench.robot.destroy_publisher(wrong)
        bench.spin_until(lambda: bench.status().level == DiagnosticStatus.OK)
        sensor.destroy_node()
        context.shutdown()


def test_lost_disk_is_an_error(tmp_path):
    with Bench(tmp_path) as bench:
        assert bench.call("start").success
        bench.spin_until(lambda: bool(bench.bags))
        shutil.rmtree(bench.bags[0])
        bench.spin_until(lambda: bench.status().level == DiagnosticStatus.ERROR)
        assert "cannot write bag" in bench.status().message
        assert_refused(bench.call("stop"), "cannot write bag")
        assert bench.call("start").success
        assert bench.status().level in (DiagnosticStatus.OK, DiagnosticStatus.WARN)


def test_signal_closes_the_bag(tmp_path):
    with Bench(tmp_path, {"autostart": "true"}, process=NodeProcess) as bench:
        joints = bench.publisher(JointState)
        bench.publish(joints, 300)
        bench.spin(0.5)
        bench.process.send_signal(signal.SIGTERM)  # test_recorder_faults tests SIGINT
        assert bench.process.wait() == 0, bench.process.output
        assert "closed" in bench.process.output
    (path,) = tmp_path.iterdir()
    with Reader(path) as reader:
        assert reader.message_count == 300
    recording = Recording.read(path, ["a"])
    assert not recording.truncated
    np.testing.assert_array_equal(recording.position[:, 0], np.arange(1, 301))


def test_autostart_into_an_unwritable_folder_is_one_error(tmp_path):
    (tmp_path / "file").touch()
    with Bench(tmp_path / "file", {"autostart": "true"}, process=NodeProcess) as bench:
        assert bench.process.wait() == 2
        error = bench.process.output
    assert error.startswith("error: cannot write bag")
    assert len(error.splitlines()) == 1


def test_no_message_is_lost_at_1_khz_with_a_busy_core(tmp_path):
    rclpy.shutdown()
    outcome = recording_loss.measure(2.0, tmp_path)
    assert (outcome.recorded, outcome.gaps) == (outcome.sent, 0)
    assert outcome.sent == 2000
    assert "were lost" not in outcome.answer


def test_gravity_direction_comes_from_a_recorded_imu(tmp_path, capsys):
    """The robot's base is tilted, and its IMU has a frame of its own."""
    gravity = turned(STANDARD_GRAVITY, (0.15, -0.1, 0.0))
    urdf = demo_robot().urdf.replace(
        "</robot>",
        '<link name="imu"/><joint name="imu_mount" type="fixed"><parent link="base_link"/><child link="imu"/>'
        '<origin xyz="0.1 0 0.05" rpy="3.14159265 0 1.5707963"/></joint></robot>',
    )
    (tmp_path / "arm.urdf").write_text(urdf)
    tilted = demo_robot().with_gravity(gravity)
    motion = planned_motion().slice(slice(None, None, 4))
    torque = motion.torque + tilted.gravity_torque(motion.position) - demo_robot().gravity_torque(motion.position)
    rng = np.random.default_rng(0)
    with Bench(tmp_path / "bags", {"imu_topics": ["/base/imu"], "robot_description_topic": ""}) as bench:
        joints = bench.publisher(JointState)
        imu = bench.publisher(Imu, "/base/imu", SENSOR)
        assert bench.call("start").success
        for k, (time_of, position, effort) in enumerate(zip(motion.time, motion.position, torque, strict=True)):
            message = JointState(name=list(motion.joint_names), position=position.tolist(), effort=effort.tolist())
            message.header.stamp = Time(nanoseconds=10**9 + round(1e9 * time_of)).to_msg()
            joints.publish(message)
            if k % 10 == 0:
                imu_message = Imu(header=message.header)
                imu_message.header.frame_id = "imu"
                x, y, z = -gravity + rng.normal(0.0, 0.05, 3)
                # The sensor is rotated by half a turn about x, then by a quarter about the base's z axis.
                a = imu_message.linear_acceleration
                a.x = y
                a.y = x
                a.z = -z
                imu.publish(imu_message)
                bench.executor.spin_once(timeout_sec=0)
                time.sleep(0.002)
        message = bench.call("stop").message
    assert f"/base/imu {len(motion.time[::10])}" in message
    assert "were lost" not in message
    assert read_bag(bench).imus["/base/imu"].frame_id == "imu"
    arguments = ("--urdf", tmp_path / "arm.urdf", "--recording", bench.bags[-1], "--gravity-direction", "imu")
    code, output, _ = run(capsys, "identify", "gravity", *arguments, "--tip", demo_robot().tip, "--output", tmp_path)
    assert code == 1  # on a tilted base gravity also loads joint 1, which the motion does not rotate
    assert "not enough: gravity of joint_1 is not known" in output
    direction = GravityDirection.of_document(load_identified(tmp_path / "identified.yaml"))
    assert (direction.source, direction.base) == ("imu", "base_link")
    assert direction.widest < np.radians(0.1)
    assert angle_between(direction.gravity, gravity) < np.radians(0.1)
    np.testing.assert_allclose(direction.given, STANDARD_GRAVITY)


def test_motion_is_recorded_from_approach_to_end(tmp_path):
    with Bench(tmp_path, {"motion_state_topic": "excitation/state"}) as bench:
        joints = bench.publisher(JointState)
        states = bench.publisher(String, "excitation/state", LATCHED)
        states.publish(String(data="running"))  # no recording starts within a motion
        bench.publish(joints, 20)
        bench.spin(0.5)
        assert not bench.bags
        for state in ("idle", "approaching", "running"):
            states.publish(String(data=state))
            bench.publish(joints, 50)
        bench.spin_until(lambda: bench.bags)
        assert not bench.call("start").success
        bench.publish(joints, 50)
        states.publish(String(data="done"))
        bench.spin_until(lambda: not bench.call("stop").success)
        assert Recording.read(bench.bags[-1]).n_samples >= 50
        assert bench.call("start").success
        states.publish(String(data="approaching"))
        bench.publish(joints, 50)
        states.publish(String(data="stopped: requested"))
        bench.spin(0.5)
        assert bench.call("stop").success, "only ~/stop ends a recording of ~/start"
