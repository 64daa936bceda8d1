"""Test the recording of a simulated arm with flexible joints and motion capture."""

import signal
from pathlib import Path

import numpy as np
import pytest
import rclpy
import yaml
from helpers.node_process import NodeProcess
from helpers.waiting import START_TIMEOUT_S
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.recorder import Recorder
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.simulated_arm.parameters import PARAMETERS, camera_of, make_arm
from dynid_ros.recording import Recording
from dynid_ros.simulation import demo_arm_urdf, tabled_arm

ROOT = Path(__file__).resolve().parents[3]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STIFFNESS = [5980.0, 11900.0, 4600.0, 709.0, 772.0, 478.0]
OFFSET = 0.25
DRIFT = 1e-3
BASE = [0.5, -0.2, 1.5, 0.3, -0.4, 2.0]
SETTINGS = {
    "stiffness": STIFFNESS,
    "motor_viscous": [5.0, 5.0, 3.0, 0.5, 0.5, 0.3],
    "rate": 100.0,
    "position_noise": [0.0],
    "link_states_topic": "link_states",
    "markers_topic": "markers",
    "mocap_prefix": "/mocap",
    "marker_noise": 1e-4,
    "marker_occlusion": 0.1,
    "camera_rate": 50.0,
    "camera_latency": 0.03,
    "camera_clock_offset": OFFSET,
    "camera_clock_drift": DRIFT,
    "base_in_camera": BASE,
}
GOAL = [0.4, 0.1, 1.5, -0.5, 1.2, 0.6]


def build_trajectory():
    point = JointTrajectoryPoint(positions=GOAL, velocities=[0.0] * 6)
    point.time_from_start.sec = 2
    return JointTrajectory(joint_names=[f"joint_{i}" for i in range(1, 7)], points=[point])


@pytest.fixture
def camera_recording(ros, tmp_path):
    """Record a motion of two seconds; return the path of the bag and the true parameters."""
    process = NodeProcess("simulator", SETTINGS, "--params-file", str(ROOT / "config/simulator.yaml"))
    topics = ["markers", *(f"/mocap/link_{i}/pose" for i in range(1, 7))]
    parameters = {"output_folder": str(tmp_path), "pose_topics": topics, "extra_topics": ["link_states"]}
    recorder = Recorder(parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()])
    client = rclpy.create_node("client")
    executor = SingleThreadedExecutor()
    for node in (recorder, client):
        executor.add_node(node)
    states = []
    truth = []
    client.create_subscription(JointState, "joint_states", states.append, 100)
    client.create_subscription(String, "/simulator/true_parameters", lambda m: truth.append(m.data), LATCHED)
    command = client.create_publisher(JointTrajectory, "/joint_trajectory_controller/joint_trajectory", 10)

    def spin_until(condition, seconds=START_TIMEOUT_S):
        end = client.get_clock().now().nanoseconds + seconds * 1e9
        while not condition():
            assert client.get_clock().now().nanoseconds < end, "timed out"
            executor.spin_once(timeout_sec=0.02)

    try:
        spin_until(lambda: states and truth and command.get_subscription_count())
        spin_until(lambda: all(topic.type for topic in recorder._topics if topic.topic != "/robot_description"))
        recorder.start()
        command.publish(build_trajectory())
        count = len(states)
        spin_until(lambda: len(states) > count + 350)
        path = recorder.stop().split(" to ")[1].split(": ")[0]
    finally:
        process.send_signal(signal.SIGINT)
        recorder.destroy_node()
        client.destroy_node()
        executor.shutdown()
        with process:
            process.wait()
    return path, yaml.safe_load(truth[-1])


def test_markers_and_bodies_match_the_links_on_the_camera_clock(camera_recording):
    path, truth = camera_recording
    arm = tabled_arm(truth)
    names = arm.robot.joint_names
    assert arm.springs.stiffness.tolist() == STIFFNESS
    assert truth["camera"]["clock_offset"] == OFFSET
    base = np.eye(4)
    base[:3, :3] = Rotation.from_euler("xyz", BASE[3:]).as_matrix()
    base[:3, 3] = BASE[:3]
    assert np.allclose(truth["camera"]["base"], base)

    recording = Recording.read(path, joint_names=names)
    links = Recording.read(path, joint_names=names, joint_states_topic="/link_states")
    link_time = links.time + links.start_time - recording.start_time
    assert np.abs(recording.position[-1] - GOAL).max() < 0.01
    deflection = recording.position[-1] - links.position[-1]
    assert 2e-3 < np.abs(deflection).max() < 0.05
    assert set(recording.poses) == {
        *(f"/markers[{i}]" for i in range(len(truth["markers"]))),
        *(f"/mocap/{name}/pose" for name in arm.robot.link_names),
    }

    def position_error(series, place, link, drifted):
        """Return the distance in m between measured positions and those of the link encoders."""
        when = series.time - SETTINGS["camera_latency"] + OFFSET + drifted
        inside = (when > link_time[0]) & (when < link_time[-1]) & np.isfinite(series.position).all(axis=1)
        q = np.stack([np.interp(when[inside], link_time, column) for column in links.position.T], axis=1)
        pose = base @ arm.robot.forward_kinematics(q)[:, link]
        assert inside.sum() > 100
        return np.linalg.norm(series.position[inside] - pose[:, :3, :3] @ place - pose[:, :3, 3], axis=1)

    # The clock drift since the start of the node is estimated from the body of the last link.
    body = recording.poses["/mocap/link_6/pose"]
    drift = minimize_scalar(
        lambda x: np.mean(position_error(body, np.zeros(3), 5, x) ** 2), bounds=(-0.05, 0.15), method="bounded"
    )
    assert 0.0 < drift.x < DRIFT * 120.0
    # A quantile excludes samples at which the simulation on a busy computer lost time.
    assert np.quantile(position_error(body, np.zeros(3), 5, drift.x), 0.99) < 2e-3
    hidden = []
    for number, marker in enumerate(truth["markers"].values()):
        series = recording.poses[f"/markers[{number}]"]
        assert series.frame_id == "camera"
        hidden.append(np.isnan(series.position).any(axis=1).mean())
        link = arm.robot.link_names.index(marker["link"])
        assert np.quantile(position_error(series, marker["place"], link, drift.x), 0.99) < 1e-3
    assert np.mean(hidden) == pytest.approx(0.1, abs=0.03)
    assert len(body.time) < 0.9 * len(series.time), "a lost body is not published"


def build_settings(**overrides):
    values = {parameter.name: parameter.default for parameter in PARAMETERS if isinstance(parameter, NodeParameter)}
    return type("Settings", (), values | {"base_link": None, "tip_link": None} | overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"base_in_camera": [0.0] * 5}, "'base_in_camera' is .* expected 6"),
        ({"marker_occlusion": 1.5}, "occlusion of the camera is 1.5"),
    ],
)
def test_invalid_camera_setting_is_refused(overrides, message):
    with pytest.raises(DynidError, match=message):
        camera_of(build_settings(**overrides))


@pytest.mark.parametrize(("rate", "timestep", "parts"), [(100.0, 0.001, 10), (100.0, 0.003, 4), (250.0, 0.01, 1)])
def test_sample_period_is_a_multiple_of_the_timestep(rate, timestep, parts):
    arm = make_arm(build_settings(rate=rate, timestep=timestep), demo_arm_urdf())
    assert arm.timestep == pytest.approx(1.0 / (rate * parts), rel=1e-12)


def test_joints_have_springs_only_with_a_stiffness():
    overrides = {"stiffness": STIFFNESS, "rotor_inertia": [1.0], "spring_dead_zone": [1e-3], "spring_cubic": [1e6]}
    springs = make_arm(build_settings(**overrides), demo_arm_urdf()).springs
    assert (springs.stiffness.tolist(), springs.dead_zone.tolist()) == (STIFFNESS, [1e-3] * 6)
    assert (springs.cubic.tolist(), springs.motor_viscous.tolist()) == ([1e6] * 6, [0.0] * 6)
    assert make_arm(build_settings(), demo_arm_urdf()).springs is None
    with pytest.raises(DynidError, match="stiffness of joint"):
        make_arm(build_settings(stiffness=[1e3] * 5 + [float("inf")]), demo_arm_urdf())


def test_missing_friction_file_is_refused():
    assert make_arm(build_settings(), demo_arm_urdf()).friction is None
    with pytest.raises(DynidError, match=r"nowhere\.yaml"):
        make_arm(build_settings(friction_file="nowhere.yaml"), demo_arm_urdf())
