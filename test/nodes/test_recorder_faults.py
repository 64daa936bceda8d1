"""Test the reactions of `recorder` in docs/promises.md that test_recorder.py does not test."""

import math
import os
import random
import re
import resource
import signal
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from helpers.node_process import InterpreterProcess, NodeProcess
from helpers.node_threads import assert_refused
from helpers.recorder_bench import RELIABLE, SENSOR, Bench
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.duration import Duration
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from dynid_ros.errors import RecordingError
from dynid_ros.nodes.recorder import Recorder
from dynid_ros.nodes.shared import topics as raw_subscription
from dynid_ros.nodes.shared.topics import RawSubscription
from dynid_ros.recording import Recording, bag_writer

MAX_LOSS_S = 0.5
"""Time in s of messages that SIGKILL may lose."""
BUSY_TIME_S = 0.5
"""Time in s by which a busy computer may exceed a promised time."""
PERIOD_S = 0.002
"""Period of the messages in s."""


pytestmark = pytest.mark.usefixtures("ros")


def read_positions(bag):
    """Return the positions of joint a, which count the messages, after asserting that the bag is complete."""
    with Reader(bag) as reader:
        count = reader.message_count
    recording = Recording.read(bag, ["a"])
    assert not recording.truncated
    assert count == recording.n_samples
    return recording.position[:, 0]


def mcap_size(bag):
    (file,) = Path(bag).glob("*.mcap")
    return file.stat().st_size


def test_full_disk_ends_the_recording_and_keeps_its_content(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        bench.spin_until(lambda: bool(bench.bags))
        empty = mcap_size(bench.bags[0])
        bench.publish(joints, 300)
        bench.spin_until(lambda: mcap_size(bench.bags[0]) > empty + 200 * 100)
        flushed = Recording.read(bench.bags[0], ["a"]).n_samples  # read while the recorder writes
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (mcap_size(bench.bags[0]) + 10_000, before[1]))
            start = time.monotonic()
            while bench.recorder._bag is not None:
                bench.publish(joints, 20)
                assert time.monotonic() - start < START_TIMEOUT_S
            status = bench.status()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert status.level == DiagnosticStatus.ERROR
        assert "free space" in status.message
        answer = bench.call("stop")
        assert (answer.success, answer.message) == (False, status.message)
        positions = read_positions(bench.bags[0])
        assert len(positions) >= flushed > 100
        np.testing.assert_array_equal(positions, np.arange(1, len(positions) + 1))
        first = bench.sent + 1
        assert bench.call("start").success
        bench.publish(joints, 50)
        assert "/joint_states 50" in bench.call("stop").message
        np.testing.assert_array_equal(read_positions(bench.bags[-1]), np.arange(first, first + 50))


@pytest.mark.parametrize("folder", ["a file", "no file system for files"])
def test_start_with_an_unwritable_folder_is_refused(tmp_path, folder):
    (tmp_path / "a file").touch()
    path = tmp_path / "a file" if folder == "a file" else Path("/proc/self/fdinfo/bags")
    with Bench(path) as bench:
        for _ in range(2):
            assert_refused(bench.call("start"), str(path), "choose a writable folder")
        assert bench.status().level == DiagnosticStatus.OK


def test_recorders_with_equal_folder_and_time_use_separate_bags(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_writer.time, "strftime", lambda _: "2024_01_02-03_04_05")
    with Bench(tmp_path) as bench:
        second = Recorder(namespace="second", parameter_overrides=bench.recorder._parameter_overrides.values())
        bench.executor.add_node(second)
        second._joint_states.topic = "/joint_states"
        joints = bench.robot.create_publisher(JointState, "joint_states", RELIABLE)
        bench.spin_until(lambda: joints.get_subscription_count() == 2)
        assert bench.call("start").success
        second.start()
        bench.publish(joints, 100)
        assert bench.call("stop").success
        second.stop()
        second.destroy_node()
    bags = sorted(tmp_path.iterdir())
    assert [bag.name for bag in bags] == ["recording_2024_01_02-03_04_05", "recording_2024_01_02-03_04_05_1"]
    for bag in bags:
        np.testing.assert_array_equal(read_positions(bag), np.arange(1, 101))


def test_second_node_of_the_same_name_is_a_warning(tmp_path):
    with Bench(tmp_path) as bench:
        text = "2 nodes are called /recorder, and a service of that name may reach any"
        assert text not in bench.recorder.start()
        context = rclpy.Context()
        rclpy.init(context=context)
        namesake = rclpy.create_node("recorder", context=context, start_parameter_services=False)
        joints = bench.publisher(JointState)

        def has_warning():
            bench.publish(joints, 10)
            status = bench.status()
            return status.level == DiagnosticStatus.WARN and text in status.message

        bench.spin_until(has_warning)
        assert bench.call("stop").success
        assert text in bench.recorder.start()
        namesake.destroy_node()
        context.shutdown()


def test_only_one_of_parallel_starts_or_stops_succeeds(tmp_path):
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        for _ in range(2):
            for name, refusal in (("start", "already recording"), ("stop", "nothing is being recorded")):
                clients = [bench.robot.create_client(Trigger, f"/recorder/{name}") for _ in range(4)]
                bench.spin_until(lambda clients=clients: all(client.service_is_ready() for client in clients))
                futures = [client.call_async(Trigger.Request()) for client in clients]
                bench.spin_until(lambda futures=futures: all(future.done() for future in futures))
                answers = [future.result() for future in futures]
                assert sum(answer.success for answer in answers) == 1
                assert all(refusal in answer.message for answer in answers if not answer.success)
                bench.publish(joints, 25)
    bags = sorted(tmp_path.iterdir())
    assert len(bags) == 2
    assert sorted(tuple(read_positions(bag)) for bag in bags) == [tuple(range(1, 26)), tuple(range(51, 76))]


def test_two_publishers_of_a_topic_are_recorded(tmp_path):
    with Bench(tmp_path) as bench:
        first = bench.publisher(JointState)
        second = bench.publisher(JointState)
        assert bench.call("start").success
        for _ in range(50):
            bench.publish(first, 1)
            bench.publish(second, 1)
        assert bench.status().message == "recording"
        bench.robot.destroy_publisher(first)
        bench.publish(second, 50)
        assert "/joint_states 150" in bench.call("stop").message
    np.testing.assert_array_equal(read_positions(bench.bags[-1]), np.arange(1, 151))


INVALID_STATES = {
    "not finite": JointState(name=["a", "b"], position=[math.nan, math.inf], effort=[-math.inf, 0.0]),
    "no values": JointState(name=["a"]),
    "nothing": JointState(),
    "too many values": JointState(name=["a"], position=[1.0, 2.0]),
}


def test_invalid_joint_states_are_recorded_unchanged(tmp_path):
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        for message in INVALID_STATES.values():
            joints.publish(message)
        bench.publish(joints, 1)
        assert f"/joint_states {len(INVALID_STATES) + 1}" in bench.call("stop").message
    types = get_typestore(Stores.LATEST)
    with Reader(bench.bags[-1]) as reader:
        messages = [types.deserialize_cdr(data, connection.msgtype) for connection, _, data in reader.messages()]
    for message, sent in zip(messages, INVALID_STATES.values(), strict=False):
        assert message.name == sent.name
        np.testing.assert_array_equal(message.position, sent.position)
        np.testing.assert_array_equal(message.effort, sent.effort)


def test_large_messages_do_not_displace_others(tmp_path):
    size = 8_000_000
    with Bench(tmp_path, {"extra_topics": ["/cloud"]}) as bench:
        joints = bench.publisher(JointState)
        cloud = bench.publisher(String, "/cloud")
        assert bench.call("start").success
        for i in range(3):
            cloud.publish(String(data=str(i) * size))
            bench.publish(joints, 100)
        bench.spin_until(lambda: bench.recorder._bag.counts.get("/cloud") == 3)
        assert "/joint_states 300" in bench.call("stop").message
    with Reader(bench.bags[-1]) as reader:
        contents = [data for connection, _, data in reader.messages() if connection.topic == "/cloud"]
        assert [bytes(data[8:9]) for data in contents] == [b"0", b"1", b"2"]
        assert all(len(data) > size for data in contents)


def test_messages_lost_by_a_full_queue_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_subscription, "MAX_WAITING_MESSAGES", 10)
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState, qos=SENSOR)
        assert bench.call("start").success
        bench.publish(joints, 5)
        bench.spin_until(lambda: bench.recorder._bag.counts.get("/joint_states") == 5)
        with bench.recorder.lock:  # the lock keeps the recorder's thread from the queue
            for _ in range(500):
                joints.publish(JointState(name=["a"], position=[0.0]))
            time.sleep(0.3)
        bench.spin_until(lambda: bench.recorder._bag.counts["/joint_states"] > 5)
        bench.publish(joints, 5)
        bench.spin_until(lambda: "messages were lost" in bench.status().message)
        assert bench.status().level == DiagnosticStatus.WARN
        bench.spin_until(lambda: bench.recorder._topics[0].lost + bench.recorder._bag.counts["/joint_states"] == 510)
        answer = bench.call("stop")
    recorded, lost = map(int, re.search(r"/joint_states (\d+); (\d+) messages were lost", answer.message).groups())
    assert recorded + lost == 510
    assert recorded < 50, "the queue holds ten messages; a busy computer may read it earlier"


@pytest.mark.parametrize(
    ("publishers", "numbers", "lost"),
    [
        (1, [41, 42, 43, 47, 48, 58], 12),
        (1, [7, 8, 1, 2, 4], 1),  # the publisher restarted
        (2, [10, 500, 11, 501, 14, 502, 506], 5),
        (2, [3, 3, 4, 4, 6, 5, 8, 7], 3),
    ],
)
def test_missing_numbers_are_counted_per_publisher(publishers, numbers, lost):
    topic = RawSubscription.__new__(RawSubscription)
    topic.offered = [SENSOR] * publishers
    topic.lost = 0
    topic._numbers = []
    for number in numbers:
        topic._count_missing(number)
    assert topic.lost == lost


def test_messages_lost_by_the_middleware_are_counted(tmp_path, monkeypatch):
    waiting_messages = raw_subscription.waiting_messages

    def drop_some(*arguments):
        return (item for item in waiting_messages(*arguments) if item[1]["publication_sequence_number"] % 9 != 5)

    monkeypatch.setattr(raw_subscription, "waiting_messages", drop_some)
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        bench.publish(joints, 1)
        bench.spin_until(lambda: bench.recorder._topics[0]._numbers)
        assert bench.call("start").success
        bench.publish(joints, 89)
        bench.spin_until(lambda: bench.recorder._topics[0].lost == 10)
        assert "/joint_states 79; 10 messages were lost" in bench.call("stop").message


def test_topic_of_unknown_type_does_not_affect_others(tmp_path, monkeypatch):
    learn = bag_writer.learn

    def learn_some(types, msgtype):
        if msgtype == "std_msgs/msg/String":
            raise RecordingError(f"message type {msgtype} is unknown")
        learn(types, msgtype)

    monkeypatch.setattr(bag_writer, "learn", learn_some)
    with Bench(tmp_path, {"extra_topics": ["/note"]}) as bench:
        joints = bench.publisher(JointState)
        note = bench.publisher(String, "/note")
        assert bench.call("start").success
        bench.publish(joints, 50)
        note.publish(String(data="a"))
        bench.spin_until(lambda: "is not recorded" in bench.status().message)
        assert bench.status().level == DiagnosticStatus.ERROR
        bench.publish(joints, 50)
        answer = bench.call("stop")
        assert answer.success
        assert "/joint_states 100; topic /note is not recorded: message type std_msgs/msg/String is" in answer.message
    with Reader(bench.bags[-1]) as reader:
        assert reader.message_count == 100


def test_clock_set_back_keeps_the_order(tmp_path, monkeypatch):
    class ShiftedTime:
        shift = 0
        monotonic_ns = staticmethod(time.monotonic_ns)
        strftime = staticmethod(time.strftime)

        def time_ns(self):
            return time.time_ns() + self.shift

    clock = ShiftedTime()
    receive = RawSubscription._receive
    monkeypatch.setattr(bag_writer, "time", clock)
    monkeypatch.setattr(
        RawSubscription,
        "_receive",
        lambda self, data, info: receive(
            self, data, info | {"received_timestamp": info["received_timestamp"] + clock.shift}
        ),
    )
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        bench.publish(joints, 100)
        clock.shift = -3600 * 10**9
        bench.publish(joints, 100)
        assert "/joint_states 200" in bench.call("stop").message
    np.testing.assert_array_equal(read_positions(bench.bags[-1]), np.arange(1, 201))
    with Reader(bench.bags[-1]) as reader:
        received = np.array([stamp for _, stamp, _ in reader.messages()])
    assert np.diff(received).min() >= 0
    assert np.diff(received).max() < 5 * 10**9
    assert len(set(received[100:])) > 50


def test_stalled_simulated_time_does_not_stop_the_recorder(tmp_path):
    with Bench(tmp_path, {"use_sim_time": True}) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        bench.spin_until(lambda: bool(bench.bags))
        empty = mcap_size(bench.bags[0])
        bench.publish(joints, 100)
        bench.spin_until(lambda: mcap_size(bench.bags[0]) > empty + 100 * 100)


def test_received_messages_are_written_at_the_end(tmp_path):
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        bench.recorder.steady.end()
        for i in range(1, 51):
            joints.publish(JointState(name=["a"], position=[float(i)]))
        assert joints.wait_for_all_acked(Duration(seconds=5.0))
        time.sleep(0.1)
        bench.recorder.destroy_node()
    (path,) = tmp_path.iterdir()
    np.testing.assert_array_equal(read_positions(path), np.arange(1, 51))


def test_repeated_signals_close_the_bag(tmp_path):
    with Bench(tmp_path, {"autostart": "true"}, process=InterpreterProcess) as bench:
        joints = bench.publisher(JointState)
        bench.publish(joints, 300)
        assert joints.wait_for_all_acked(Duration(seconds=5.0))
        for number in (signal.SIGINT, signal.SIGTERM) * 3:
            bench.process.send_signal(number)
            time.sleep(random.uniform(0.001, 0.02))
        assert bench.process.wait() == 0, bench.process.output
    (path,) = tmp_path.iterdir()
    np.testing.assert_array_equal(read_positions(path), np.arange(1, 301))


def test_killed_recorder_loses_at_most_half_a_second(tmp_path):
    count = 3
    rng = random.Random(os.getpid())
    with ExitStack() as stack:
        nodes = []
        for i in range(count):
            parameters = {
                "output_folder": tmp_path / str(i),
                "joint_states_topic": "/joint_states",
                "autostart": "true",
            }
            nodes.append(stack.enter_context(NodeProcess("recorder", parameters, "-r", f"__ns:=/r{i}")))
        robot = rclpy.create_node("robot")
        publisher = robot.create_publisher(JointState, "joint_states", RELIABLE)
        wait(lambda: publisher.get_subscription_count() == count, START_TIMEOUT_S)
        sent = []
        kill_times = {}
        while len(kill_times) < count:
            message = JointState(name=["a"], position=[float(len(sent) + 1)])
            message.header.stamp.sec, message.header.stamp.nanosec = divmod((len(sent) + 1) * 10**6, 10**9)
            publisher.publish(message)
            sent.append(time.monotonic())
            if sent[-1] - sent[0] > 0.8 and rng.random() < 0.005:
                nodes[len(kill_times)].send_signal(signal.SIGKILL)
                kill_times[len(kill_times)] = time.monotonic()
            time.sleep(PERIOD_S)
    losses = []  # s, counted in messages, because a busy computer delays recorders and publisher alike
    for i, kill_time in kill_times.items():
        (bag,) = (tmp_path / str(i)).iterdir()
        positions = Recording.read(bag, ["a"]).position[:, 0]  # incomplete at its end if the kill interrupted writing
        np.testing.assert_array_equal(positions, np.arange(1, len(positions) + 1))
        losses.append(PERIOD_S * sum(time_sent < kill_time for time_sent in sent[len(positions) :]))
    assert np.median(losses) <= MAX_LOSS_S + BUSY_TIME_S, "one recorder may have waited for the processor"


def test_messages_are_in_the_file_within_half_a_second(tmp_path):
    with Bench(tmp_path) as bench:
        joints = bench.publisher(JointState)
        assert bench.call("start").success
        bench.spin_until(lambda: bool(bench.bags))
        sizes = [mcap_size(bench.bags[0])]
        changes = []
        deadline = time.monotonic() + START_TIMEOUT_S
        while len(changes) < 7:
            assert time.monotonic() < deadline
            bench.publish(joints, 5)
            sizes.append(mcap_size(bench.bags[0]))
            if sizes[-1] > sizes[-2]:
                changes.append(bench.sent)
    # at most one message per millisecond, fewer on a busy computer
    periods = [0.001 * (after - before) for before, after in pairwise(changes)]
    assert np.median(periods) < MAX_LOSS_S
