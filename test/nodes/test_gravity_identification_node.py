"""The node over DDS: a recording in, the latched result and the files out; bad settings and calls answered clearly."""

import threading

import pytest

pytest.importorskip("rclpy")

import rclpy
import yaml
from gravity_experiment import demo_recording
from rclpy.executors import SingleThreadedExecutor
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError, RecordingError
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode
from dynid_ros.nodes.robot_description import LATCHED
from dynid_ros.share import share_path

TIMEOUT = 30.0


@pytest.fixture(name="bag")
def fixture_bag(tmp_path):
    path = tmp_path / "run.npz"
    demo_recording().write_npz(path)
    return path


@pytest.fixture(name="start")
def fixture_start(tmp_path):
    """Makes the node with parameters and spins it; yields a function that does so and returns a client node."""
    started = []

    def start(**parameters):
        given = {
            "robot_description": str(share_path("config/demo_arm.urdf")),
            "effort_convention": "torque",
            "output": str(tmp_path / "out"),
        } | parameters
        arguments = ["--ros-args"] + [part for name, value in given.items() for part in ("-p", f"{name}:={value}")]
        rclpy.init(args=arguments)
        node, client = GravityIdentificationNode(), rclpy.create_node("client")
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        thread = threading.Thread(target=executor.spin, daemon=True)
        thread.start()
        started.append((executor, thread, node, client))
        return client

    yield start
    for executor, thread, *nodes in started:
        executor.shutdown()
        thread.join(TIMEOUT)
        for node in nodes:
            node.destroy_node()
    rclpy.try_shutdown()


def identify(client):
    service = client.create_client(Trigger, "/gravity_identification/identify")
    assert service.wait_for_service(TIMEOUT)
    future = service.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(client, future, timeout_sec=TIMEOUT)
    return future.result()


def test_result_is_latched_and_written(start, bag, tmp_path):
    client = start(recording=bag)
    response = identify(client)
    assert response.success, response.message
    assert "joint_2" in response.message
    received = []
    client.create_subscription(String, "/gravity_identification/result", received.append, LATCHED)  # late on purpose
    for _ in range(100):
        rclpy.spin_once(client, timeout_sec=0.1)
        if received:
            break
    assert yaml.safe_load(received[0].data)["gravity"]["joint_2"]["observable"]
    assert (tmp_path / "out" / "identified.yaml").exists()
    assert (tmp_path / "out" / "report.html").exists()


def test_the_recorders_bag_is_taken(start, bag):
    client = start()
    before = identify(client)
    assert not before.success
    assert "No recording" in before.message
    client.create_publisher(String, "/recorder/bag", LATCHED).publish(String(data=str(bag)))
    for _ in range(50):
        after = identify(client)
        if after.success:
            break
        rclpy.spin_once(client, timeout_sec=0.1)
    assert after.success, after.message


def test_bad_recording_is_answered_and_the_node_lives(start, tmp_path):
    client = start(recording=tmp_path / "nowhere")
    for _ in range(2):
        response = identify(client)
        assert not response.success
        assert "nowhere does not exist" in response.message


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"effort_convention": "newton"}, RecordingError, "effort_convention 'newton' is unknown"),
        ({"effort_convention": "''"}, RecordingError, "expected one of torque"),
        ({"effort_convention": "motor_current"}, RecordingError, "needs gains"),
        ({"estimator": "guess"}, DynidError, "estimator"),
        ({"samples": "all"}, DynidError, "samples"),
        ({"tip_link": "hand"}, DynidError, "hand"),
        ({"torque_offset": "1.5"}, DynidError, "torque_offset"),
    ],
)
def test_bad_parameters_end_the_node_at_the_start(start, parameters, error, words):
    with pytest.raises(error, match=words):
        start(**parameters)
