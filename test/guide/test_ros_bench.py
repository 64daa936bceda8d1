"""The bench finds drivers, calls services, stops, and receives joint states only while a page is open."""

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
def driver(bench, name="driver"):
    node = Node(name, namespace=bench.namespace)
    publisher = node.create_publisher(JointState, "joint_states", 10)
    try:
        yield publisher
    finally:
        node.destroy_node()


@contextlib.contextmanager
def serving(bench, **services):
    """Nodes with services that answer with a text, or refuse with an exception."""
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


def driver_of(bench):
    """Return the driver, or the reason why there is not one."""
    try:
        return bench.require_driver()
    except DynidError as error:
        return str(error)


def test_no_driver_is_one_line(bench):
    with pytest.raises(DynidError, match="no driver: nothing publishes"):
        bench.require_driver()


def test_two_drivers_are_named(bench):
    with driver(bench, "one"), driver(bench, "two"):
        wait_until(lambda: f"{bench.namespace}/one and {bench.namespace}/two publish" in driver_of(bench))


def test_one_driver_is_right(bench):
    with driver(bench):
        wait_until(lambda: driver_of(bench) == f"{bench.namespace}/driver")


def test_joint_states_are_received_while_a_page_is_open(bench):
    message = JointState(name=["b", "gripper", "a"], position=[2.0, 9.0, 1.0], effort=[4.0, 9.0, 3.0])
    with driver(bench) as publisher:
        bench.work(0.0, is_watched=False)
        assert publisher.get_subscription_count() == 0

        def arrives():
            publisher.publish(message)
            bench.work(0.01, is_watched=True)
            return bench.state is not None

        wait_until(arrives)
        assert bench.state[1] == {"position": [1.0, 2.0], "effort": [3.0, 4.0]}
        bench.work(0.0, is_watched=False)
        wait_until(lambda: publisher.get_subscription_count() == 0)


def test_joint_states_without_a_joint_are_reported(bench):
    with driver(bench) as publisher:

        def arrives():
            publisher.publish(JointState(name=["a"], position=[1.0]))
            bench.work(0.01, is_watched=True)
            return bool(bench.problem)

        wait_until(arrives)
        assert "joint(s) b" in bench.problem
        assert bench.state is None


def test_a_service_answers_or_refuses(bench):
    services = {"excitation__design": (Trigger, "40 s"), "recorder__stop": (Trigger, DynidError("nothing recorded"))}
    with serving(bench, **services):
        assert bench.call("excitation/design", None, 10.0) == "40 s"
        with pytest.raises(DynidError, match="nothing recorded"):
            bench.call("recorder/stop", None, 10.0)


def test_stop_reaches_the_motion_and_the_compensation(bench):
    services = {
        "excitation__stop": (Trigger, "The arm is at rest in 0.3 s."),
        "gravity_compensation__enable": (SetBool, DynidError("not configured")),
    }
    with serving(bench, **services):
        wait_until(lambda: bench.has("excitation/stop") and bench.has("gravity_compensation/enable"))
        answer = bench.stop()
    assert answer == "The arm is at rest in 0.3 s. service gravity_compensation/enable refused: not configured"


def test_stop_without_nodes_says_so(bench):
    assert "no node" in bench.stop()


def test_a_node_that_cannot_start_gives_its_last_line(bench, tmp_path):
    with pytest.raises(DynidError, match=r"node excitation ended: error: .*no-such"):
        start(bench, "excitation", {"robot_description": tmp_path / "no-such.urdf"})


def test_a_node_of_somebody_else_is_used(bench):
    with driver(bench, "recorder"):
        wait_until(lambda: bench.has("recorder/get_parameters"))
        assert "runs already" in bench.start("recorder", {})


def start(bench, node, parameters):
    """Start a node while the processes are looked at, as the guide does."""
    ended = []
    thread = Thread(target=lambda: [bench.work(0.1, False) for _ in iter(lambda: bool(ended), True)], daemon=True)
    thread.start()
    try:
        return bench.start(node, parameters)
    finally:
        ended.append(True)
        thread.join()
