"""What `benchmarks.node_load` makes of what its processes leave behind."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from benchmarks.node_load import latencies, losses
from benchmarks.node_load_peers import RATES
from benchmarks.node_load_run import MOVING
from benchmarks.node_load_usage import Usage
from dynid_ros.recording.bag_writer import BagWriter

START = 1_700_000_000 * 10**9
MS = 10**6
TYPES = {
    "joint_states": "sensor_msgs/msg/JointState",
    "wrench": "geometry_msgs/msg/WrenchStamped",
    "pose": "geometry_msgs/msg/PoseStamped",
    "markers": "geometry_msgs/msg/PoseArray",
}


def a_run(folder, count=1000, period=400):
    """Joint states of `count` ms, with a motion that repeats after `period` of them."""
    poses = np.zeros((period, 3))
    poses[:, MOVING] = np.random.default_rng(0).permutation(period) / period
    np.save(folder / "joints.npy", START + MS * np.arange(count))
    return SimpleNamespace(
        folder=folder,
        poses=poses,
        torques=10.0 * np.cos(poses[:, MOVING]),
        started=START + 100 * MS - 1,
        stopped=START + 900 * MS,
    )


def test_each_state_counts_until_the_first_command_that_knows_of_it(tmp_path):
    run = a_run(tmp_path)
    count, period = 1000, len(run.poses)
    every, third = np.arange(count), np.arange(2, count, 3)  # the node passes over two of three
    published = START + MS * np.arange(count)
    np.savez(
        tmp_path / "commands.npz",
        relay_value=run.poses[every % period, MOVING],
        relay_published=published[every] + 2 * MS,
        relay_received=published[every] + 3 * MS,
        node_value=np.append(0.5, run.torques[third % period]),  # the first is of a ramp
        node_published=np.append(START, published[third] + MS),
        node_received=np.append(START, published[third] + MS + MS // 2),
    )
    found = latencies(run)
    np.testing.assert_allclose(found["relay"].published, 0.002, atol=1e-12)
    np.testing.assert_allclose(found["relay"].received, 0.003, atol=1e-12)
    assert found["relay"].commands == 1.0
    assert len(found["node"].published) == 800
    np.testing.assert_allclose(np.sort(found["node"].published)[[0, 400, 799]], [0.001, 0.002, 0.003], atol=1e-12)
    np.testing.assert_allclose(found["node"].received.mean(), 0.0025, atol=1e-5)
    assert found["node"].commands == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize("missing", [{}, {"joint_states": {500}, "wrench": {101, 102, 899}, "markers": {400}}])
def test_what_is_missing_between_start_and_stop_is_lost(tmp_path, missing):
    run = a_run(tmp_path)
    sent = {topic: START + 1000 // rate * MS * np.arange(rate) for topic, rate in RATES.items()}
    np.savez(tmp_path / "sensors.npz", **{topic: times for topic, times in sent.items() if topic != "joint_states"})
    with BagWriter(tmp_path / "bags") as bag:
        for topic, kind in TYPES.items():
            bag.add_topic(f"/{topic}", kind)
            step = 1000 // RATES[topic]
            for i, at in enumerate(sent[topic]):
                number = (i + 1) * step  # ms, counted from 1
                if 100 <= i * step < 900 and i * step not in missing.get(topic, ()):
                    encoding = b"\x00\x01\x00\x00"
                    stamp = np.array([number // 1000, number % 1000 * MS], "<u4").tobytes()
                    bag.write(f"/{topic}", int(at), encoding + stamp + bytes(200))
    found = losses(run)
    assert {topic: gone for topic, (_, gone) in found.items()} == {t: len(missing.get(t, ())) for t in RATES}


def test_growth_of_memory_is_that_after_the_warm_up():
    time = np.arange(0.0, 1801.0, 5.0)
    noise = np.random.default_rng(0).normal(size=len(time))
    for slope in (0.0, 30.0):
        memory = 1e5 + 5e4 * np.minimum(time / 300, 1.0) + slope * time / 60 + noise
        usage = Usage(time=list(time), private=list(memory))
        found, error, whole = usage.growth()
        assert found == pytest.approx(slope, abs=0.1)
        assert 0.0 < error < 0.2
        assert whole == pytest.approx(slope * 22.5, abs=5.0)
