"""Test the load identification node over DDS: from recordings, and live from joint states."""

import time
from dataclasses import replace

import numpy as np
import pytest
import rclpy
import weighed_loads
import wrench_experiments
from command_line import run
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from helpers.identification_bench import TIMEOUT, IdentificationBench, make_starter
from helpers.node_threads import assert_refused, assert_success
from rclpy.qos import QoSProfile
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid_ros.identified.identified_file import load_identified
from dynid_ros.nodes.load_identification import LoadIdentificationNode
from dynid_ros.nodes.shared.diagnostics import NO_CLOCK
from dynid_ros.nodes.shared.topics import LATCHED

LOAD = weighed_loads.experiment().load
MASS = LOAD[0]
CENTER = LOAD[1:4] / LOAD[0]
START_S = 1_700_000_000


class Bench(IdentificationBench):
    """Node with a client that listens to load and diagnostics and publishes joint states."""

    def __init__(self, **parameters):
        super().__init__(LoadIdentificationNode, **parameters)
        self.loads = []
        self.statuses = {}
        self.client.create_subscription(InertiaStamped, "load", self.loads.append, LATCHED)
        self.client.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.states = self.client.create_publisher(JointState, "joint_states", QoSProfile(depth=10_000))

    def _on_diagnostics(self, message):
        self.statuses |= {
            status.name: ({value.key: value.value for value in status.values}, status) for status in message.status
        }

    def wait(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < deadline
            rclpy.spin_once(self.client, timeout_sec=0.05)

    def live(self):
        """Return the newest diagnostics of the live identification."""
        self.statuses.clear()
        self.wait(lambda: "load_identification: live" in self.statuses)
        return self.statuses["load_identification: live"]

    def publish(self, recording):
        self.wait(lambda: self.states.get_subscription_count() > 0)
        gripper = JointState(name=["finger"], position=[0.0])
        for k in range(recording.n_samples):
            # joints in another order, and states of a gripper in between
            message = JointState(name=list(recording.joint_names[::-1]))
            message.header.stamp = Time(nanoseconds=round((START_S + recording.time[k]) * 1e9)).to_msg()
            message.position = recording.position[k, ::-1].tolist()
            message.effort = recording.torque[k, ::-1].tolist()
            self.states.publish(message)
            if k % 50 == 0:
                self.states.publish(gripper)


@pytest.fixture(name="files", scope="module")
def fixture_files(tmp_path_factory):
    return weighed_loads.files(tmp_path_factory.mktemp("load"))


@pytest.fixture(name="start")
def fixture_start(tmp_path, files, monkeypatch, keep):
    """Return a function that starts the node with parameters."""
    monkeypatch.setattr("dynid_ros.report.load.write_load_report", lambda path, *_: path)

    return make_starter(
        keep,
        Bench,
        robot_description=files.urdf,
        effort_convention="torque",
        output=tmp_path / "out",
        model_file=files.model,
    )


def test_load_of_a_recording_is_identified_and_published(start, files, tmp_path, capsys):
    bench = start(recording=files.loaded)
    assert_success(bench.identify())
    assert bench.result()["load"]["mass"] == pytest.approx(MASS, rel=0.03)
    bench.wait(lambda: bench.loads)
    message = bench.loads[-1]
    document = load_identified(tmp_path / "out" / "identified.yaml")
    assert "links" in document
    assert message.header.frame_id == document["load"]["frame"] == "tool"
    assert message.inertia.m == document["load"]["mass"]
    assert [message.inertia.com.x, message.inertia.com.y, message.inertia.com.z] == pytest.approx(
        document["load"]["center"]
    )
    inertia = [getattr(message.inertia, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
    assert inertia == pytest.approx(document["load"]["inertia"])
    assert (tmp_path / "out" / "drivers" / "ur.script").exists()
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_arm_without_load_publishes_zero_mass(start, files, tmp_path):
    path = tmp_path / "empty.npz"
    weighed_loads.experiment(1).unloaded.write_npz(path)
    bench = start(recording=path)
    assert bench.identify().success
    bench.wait(lambda: bench.loads)
    assert bench.loads[-1].inertia.m == 0.0


def test_undetermined_load_is_not_published(start, files):
    bench = start(recording=files.loaded, largest_error=0.001)
    assert bench.identify().success
    assert bench.result()["load"]["loaded"]
    assert bench.node.load.mass is None


def test_recordings_are_chosen_while_the_node_runs(start, files):
    bench = start(model_file="''")
    assert "No recording" in bench.identify().message
    bench.set_parameters(recording=str(files.loaded))
    assert_refused(bench.identify(), "model_file")
    bench.set_parameters(unloaded_recording=str(files.unloaded))
    assert_success(bench.identify())
    assert bench.result()["load"]["mass"] == pytest.approx(MASS, rel=0.03)


def test_wrist_sensor_needs_no_model_and_no_convention(start, tmp_path):
    motion = wrench_experiments.carried_motion("demo", 10.0, 0)
    motion.record(wrench_experiments.FT_300, np.random.default_rng(0)).write_npz(tmp_path / "run.npz")
    sensor = {"source": "wrench", "wrench_topic": "/wrench", "wrench_frame": "sensor"}
    bench = start(recording=tmp_path / "run.npz", model_file="''", effort_convention="''", **sensor)
    assert_success(bench.identify())
    bench.wait(lambda: bench.loads)
    assert bench.loads[-1].inertia.m == pytest.approx(motion.load[0], rel=0.01)
    bench.set_parameters(unloaded_recording=str(tmp_path / "run.npz"))
    assert "are for joint torques" in bench.identify().message


def test_live_load_is_estimated_and_its_loss_detected(start):
    bench = start(live=True, publish_rate=20.0)
    recording = weighed_loads.record_work(50.0, drop=30.0)
    held = recording.slice(recording.time < 30.0)
    bench.publish(held)
    bench.wait(lambda: bench.node.live.status()[2]["samples"] == held.n_samples)
    bench.wait(lambda: bench.loads)
    inertia = bench.loads[-1].inertia
    assert inertia.m == pytest.approx(MASS, rel=0.05)
    assert [inertia.com.x, inertia.com.y, inertia.com.z] == pytest.approx(CENTER, abs=0.01)
    values, status = bench.live()
    assert values["dropped"] == values["refused"] == "0"
    assert "95 %" in values["load"]
    assert status.message.startswith(
        (f"load {values['load']}", "no message on")
    )  # the second text may appear on a busy computer
    bench.publish(recording.slice(recording.time >= 30.0))
    bench.wait(lambda: bench.loads[-1].inertia.m == 0.0)
    change = bench.node.live.identification.changes[-1]
    assert change.time == pytest.approx(30.0, abs=0.5)
    assert f"dropped about {-change.mass:.2g} kg at 17000000" in bench.live()[0]["last_change"]


def test_live_bag_uses_its_own_clock(start, capfd):
    bench = start(live=True, publish_rate=20.0, use_sim_time="true")
    bench.wait(lambda: NO_CLOCK in bench.live()[1].message)
    clock = bench.client.create_publisher(Clock, "/clock", 10)
    bench.wait(lambda: clock.get_subscription_count() > 0)
    recording = weighed_loads.record_work(30.0)
    for begin in np.arange(0.0, 30.0, 3.0):
        now = round((START_S + begin) * 1e9)
        clock.publish(Clock(clock=Time(nanoseconds=now).to_msg()))
        # /clock and joint_states may arrive in any order.
        bench.wait(lambda now=now: bench.node.get_clock().now().nanoseconds == now)
        bench.publish(recording.slice((recording.time >= begin) & (recording.time < begin + 3.0)))
    bench.wait(lambda: bench.loads)
    assert bench.loads[-1].inertia.m == pytest.approx(MASS, rel=0.05)
    assert START_S <= bench.loads[-1].header.stamp.sec <= START_S + 30
    assert NO_CLOCK not in bench.live()[1].message
    assert capfd.readouterr().err.count(NO_CLOCK) == 1


def test_live_gaps_are_counted_and_nan_efforts_named(start):
    bench = start(live=True)
    recording = weighed_loads.record_work(3.0)
    bench.publish(recording.slice(np.r_[0:100, 120:300]))
    bench.wait(lambda: bench.node.live.status()[2]["samples"] == 280)
    assert bench.live()[0]["dropped"] == "20"
    torque = recording.torque.copy()
    torque[0, 2] = np.nan
    bench.publish(replace(recording, torque=torque, time=recording.time + 3.0).slice(slice(0, 1)))
    bench.wait(lambda: bench.node.live.status()[2]["refused"] == 1)
    assert "effort of joint 'joint_3' is nan" in bench.live()[1].message


def test_live_failed_estimate_is_skipped(start, monkeypatch, capfd):
    bench = start(live=True, publish_rate=20.0)
    estimates = []
    bench.client.create_subscription(String, "load_identification/estimate", estimates.append, 10)

    def fail():
        raise ValueError("no such factor")

    with monkeypatch.context() as patch:
        patch.setattr(bench.node.live.identification, "estimate", fail)
        bench.publish(weighed_loads.record_work(3.0))
        bench.wait(lambda: "no such factor" in bench.live()[0]["load"])
        assert not estimates
    bench.wait(lambda: estimates)
    assert "joint_states: no load is published at this moment: no such factor" in capfd.readouterr().err


def test_live_wrong_message_type_is_an_error(start):
    bench = start(live=True)
    bench.client.destroy_publisher(bench.states)
    bench.client.create_publisher(String, "joint_states", 10)
    words = "topic /joint_states has type std_msgs/msg/String; expected sensor_msgs/msg/JointState"
    bench.wait(lambda: bench.node.live.status()[1] == words)
    assert bench.live()[1].level == DiagnosticStatus.ERROR


def test_live_clock_set_back_restarts_the_estimate(start):
    bench = start(live=True)
    recording = weighed_loads.record_work(6.0)
    for _ in range(2):
        bench.publish(recording)
    bench.wait(lambda: bench.node.live.status()[2]["samples"] == 2 * recording.n_samples)
    assert bench.node.live.identification.estimate().time < 6.0


def test_live_late_states_are_dropped_without_a_restart(start, capfd):
    """States half a second late are dropped; one and a half seconds mean that the clock was set back."""
    bench = start(live=True)
    recording = weighed_loads.record_work(6.0)
    parts = [recording.slice(recording.time >= begin) for begin in (0.0, 5.5, 4.5)]
    for part in parts:
        bench.publish(part)
    expected = parts[0].n_samples + parts[2].n_samples
    bench.wait(lambda: bench.node.live.status()[2]["samples"] == expected)
    assert bench.node.live.identification.estimate().time < 1.5
    assert "was set back by 1.5 s" in capfd.readouterr().err
