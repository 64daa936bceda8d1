"""Test the bench of the guide: drivers, services, STOP, and joint states of an open page."""

import contextlib
import time
from threading import Thread

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from dynid_ros.errors import DynidError
from dynid_ros.guide.ros_bench import RosBench


@pytest.fixture(params=["/left"])
def bench(tmp_path, request):
    bench = RosBench(request.param, ["a", "b"], tmp_path, [])
    yield bench
    bench.end()


@contextlib.contextmanager
def publish_driver(bench, name="driver"):
    node = Node(name, namespace=bench.namespace)
    publisher = node.create_publisher(JointState, "joint_states", 10)
    try:
        yield publisher
    finally:
        node.destroy_node()


@contextlib.contextmanager
def serve(bench, **services):
    """Run nodes with services that answer with a text, or refuse with an exception."""
    nodes = {}
    executor = SingleThreadedExecutor()
    for name, (kind, reply) in services.items():
        owner, service = name.split("__")
        if owner not in nodes:
            nodes[owner] = Node(owner, namespace=bench.namespace)
            executor.add_node(nodes[owner])

        def answer(request, response, reply=reply):
            response.success = not isinstance(reply, Exception)
            response.message = str(reply)
            return response

        nodes[owner].create_service(kind, f"~/{service}", answer)
    thread = Thread(target=executor.spin, daemon=True)
    thread.start()
    try:
        yield
    finally:
        executor.shutdown()
        thread.join(5.0)
        for node in nodes.values():
            node.destroy_node()


def wait_until(is_true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def describe_driver(bench):
    """Return the driver, or the reason why there is none."""
    try:
        return bench.require_driver()
    except DynidError as error:
        return str(error)


def test_missing_driver_is_one_line(bench):
    with pytest.raises(DynidError, match="no driver: nothing publishes"):
        bench.require_driver()


def test_two_drivers_are_named(bench):
    with publish_driver(bench, "one"), publish_driver(bench, "two"):
        wait_until(lambda: f"{bench.namespace}/one and {bench.namespace}/two publish" in describe_driver(bench))


def test_single_driver_is_accepted(bench):
    with publish_driver(bench):
        wait_until(lambda: describe_driver(bench) == f"{bench.namespace}/driver")


def test_joint_states_are_received_while_a_page_is_open(bench):
    message = JointState(name=["b", "gripper", "a"], position=[2.0, 9.0, 1.0], effort=[4.0, 9.0, 3.0])
    with publish_driver(bench) as publisher:
        bench.work(0.0, is_watched=False)
        assert publisher.get_subscription_count() == 0

        def publish_and_work():
            publisher.publish(message)
            bench.work(0.01, is_watched=True)
            return bench.state is not None

        wait_until(publish_and_work)
        assert bench.state[1] == {"position": [1.0, 2.0], "effort": [3.0, 4.0]}
        bench.work(0.0, is_watched=False)
        wait_until(lambda: publisher.get_subscription_count() == 0)


def test_joint_states_without_a_joint_are_reported(bench):
    with publish_driver(bench) as publisher:

        def publish_and_work():
            publisher.publish(JointState(name=["a"], position=[1.0]))
            bench.work(0.01, is_watched=True)
            return bool(bench.problem)

        wait_until(publish_and_work)
        assert "joint(s) b" in bench.problem
        assert bench.state is None


def test_service_answers_or_refuses(bench):
    services = {"excitation__design": (Trigger, "40 s"), "recorder__stop": (Trigger, DynidError("nothing recorded"))}
    with serve(bench, **services):
        assert bench.call("excitation/design", None, 10.0) == "40 s"
        with pytest.raises(DynidError, match="nothing recorded"):
            bench.call("recorder/stop", None, 10.0)


def test_stop_reaches_motion_and_compensation(bench):
    services = {
        "excitation__stop": (Trigger, "The arm is at rest in 0.3 s."),
        "gravity_compensation__enable": (SetBool, DynidError("not configured")),
    }
    with serve(bench, **services):
        wait_until(lambda: bench.has("excitation/stop") and bench.has("gravity_compensation/enable"))
        answer = bench.stop()
    assert answer == "The arm is at rest in 0.3 s. service gravity_compensation/enable refused: not configured"


def test_stop_without_nodes_reports_it(bench):
    assert "no node" in bench.stop()


def test_node_that_cannot_start_gives_its_last_line(bench, tmp_path):
    with pytest.raises(DynidError, match=r"node excitation ended: error: .*no-such"):
        start_node(bench, "excitation", {"robot_description": tmp_path / "no-such.urdf"})


def test_node_of_another_process_is_used(bench):
    with publish_driver(bench, "recorder"):
        wait_until(lambda: bench.has("recorder/get_parameters"))
        assert "runs already" in bench.start("recorder", {})


def start_node(bench, node, parameters):
    """Start a node while another thread processes the bench, like the guide."""
    ended = []
    thread = Thread(target=lambda: [bench.work(0.1, False) for _ in iter(lambda: bool(ended), True)], daemon=True)
    thread.start()
    try:
        return bench.start(node, parameters)
    finally:
        ended.append(True)
        thread.join()
