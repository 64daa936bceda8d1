"""Test the calibration node over DDS: from recordings, and its watch on joint states."""

import time

import numpy as np
import pytest
import rclpy
import torque_sensor_bench as bench
from command_line import run
from helpers.identification_bench import TIMEOUT, make_starter
from helpers.node_threads import assert_refused, assert_success
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import share_path
from dynid_ros.identification import GravityIdentification
from dynid_ros.nodes.torque_sensor_calibration import TorqueSensorCalibrationNode

GRAVITY = str(list(bench.GRAVITY))


@pytest.fixture(name="start")
def fixture_start(tmp_path, keep):
    """Return a function that starts the node with parameters."""
    return make_starter(
        keep,
        TorqueSensorCalibrationNode,
        robot_description=share_path("config/demo_arm.urdf"),
        gravity=GRAVITY,
        effort_convention="torque",
        output=tmp_path / "out",
    )


@pytest.fixture(name="truth", scope="module")
def fixture_truth():
    return bench.Truth.draw(np.random.default_rng(0), bench.aslant_robot())


@pytest.fixture(name="model")
def fixture_model(tmp_path, truth):
    """Write `identified.yaml` with gravity parameters from error-free sensors."""
    sound = bench.sound(truth)
    samples, _ = bench.experiment(sound, np.random.default_rng(1), loaded=False)
    return GravityIdentification(bench.aslant_robot()).fit_samples(samples).save(tmp_path / "gravity.yaml")


def test_calibration_needs_recordings_with_and_without_mass(start, tmp_path, truth, capsys):
    rng = np.random.default_rng(2)
    for name, loaded in (("plain", False), ("loaded", True)):
        bench.recording(truth, rng, loaded=loaded).write_npz(tmp_path / f"{name}.npz")
    node = start(reference_mass=bench.MASS)
    assert_refused(node.identify(), "No recording")
    plain = str(tmp_path / "plain.npz")
    loaded = str(tmp_path / "loaded.npz")
    node.set_parameters(recording=plain, recording_with_mass=plain)
    assert "with and without the reference mass" in node.identify().message
    bench.recording(truth, rng).write_npz(tmp_path / "forgotten.npz")
    node.set_parameters(recording_with_mass=str(tmp_path / "forgotten.npz"))
    assert_refused(node.identify(), "the reference mass of 2 kg is not seen")
    node.set_parameters(recording_with_mass=loaded)
    assert_success(node.identify())
    sensors = node.result()["torque_sensors"]
    gains = [sensors[joint]["gain"] for joint in bench.aslant_robot().joint_names]
    np.testing.assert_allclose(gains, truth.gain, rtol=0.02)
    assert (tmp_path / "out" / "report.html").exists()
    assert "files are the same" in run(capsys, "run", tmp_path / "out/experiment.yaml", "--check")[1]


def test_watch_raises_an_alarm_and_accepts_new_gains(start, truth, model):
    node = start(observe=True, model_file=model, learning=12, observe_period=0.1)
    recording = bench.recording(truth, np.random.default_rng(3))
    publisher = node.client.create_publisher(JointState, "joint_states", 100)
    while not publisher.get_subscription_count():
        rclpy.spin_once(node.client, timeout_sec=0.05)
    for stamp, position, effort in zip(
        1000.0 + recording.time[::2], recording.position[::2], recording.torque[::2], strict=True
    ):
        message = JointState(name=list(recording.joint_names), position=list(position), effort=list(effort))
        message.header.stamp.sec = int(stamp)
        message.header.stamp.nanosec = int(stamp % 1 * 1e9)
        publisher.publish(message)
        time.sleep(5e-4)
    result = node.result()
    assert result["start_time"] == pytest.approx(1000.0, abs=2.0)
    assert result["alarms"]
    assert {alarm["joint"] for alarm in result["alarms"]} <= set(recording.joint_names)
    level, message, values = node.node.watch.status()
    assert level == b"\x01"
    assert "drifted" in message
    assert values["samples"] > 40
    observer = node.node.watch.observer
    sensors = node.node.watch.document()["torque_sensors"]
    stds = [[sensors[name]["std"][label] for label in ("gain", "offset")] for name in recording.joint_names]
    is_known = np.isfinite(observer.standard_errors)
    assert is_known.any(axis=0).all()
    np.testing.assert_allclose(np.array(stds, dtype=float)[is_known], observer.standard_errors[is_known], rtol=0.1)
    service = node.client.create_client(Trigger, "/torque_sensor_calibration/accept")
    assert service.wait_for_service(TIMEOUT)
    future = service.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(node.client, future, timeout_sec=TIMEOUT)
    assert future.result().success
    assert "reference gains are now" in future.result().message
    assert "drifted" not in node.node.watch.status()[1]


def test_accept_without_samples_is_refused(start, model):
    node = start(observe=True, model_file=model)
    with pytest.raises(DynidError, match="there is nothing to accept"):
        node.caller.trigger("/torque_sensor_calibration/accept")
