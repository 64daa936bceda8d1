"""Test the reactions of identification nodes in docs/promises.md: answers to bad recordings and whole files."""

import gc
import itertools
import math
import multiprocessing
import os
import random
import re
import signal
import sys
import time
from functools import cache

import numpy as np
import planar_arm
import pytest
import rclpy
from bag_files import START, joint_state, write_bag
from helpers.identification_bench import IdentificationBench
from helpers.node_process import NodeProcess
from helpers.node_threads import assert_refused, assert_success
from helpers.waiting import START_TIMEOUT_S
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.files import write_atomically
from dynid_ros.identification import GravityIdentification
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.nodes.gravity_identification import GravityIdentificationNode
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.nodes.torque_sensor_calibration import TorqueSensorCalibrationNode
from dynid_ros.progress import each
from dynid_ros.recording import Recording
from dynid_ros.report.gravity import write_gravity_report
from dynid_ros.trajectories import Trajectory, move


@cache
def record_rests():
    """Return a recording of joints 2 and 3 at rest at six angles, approached from below and from above."""
    rng = np.random.default_rng(0)
    poses = [np.zeros(3)]
    for sign in (1, -1):
        for joint in (2, 1):
            for angle in np.linspace(-1.2, 1.2, 6)[::sign]:
                pose = angle * np.eye(3)[joint]
                poses += [pose - sign * np.array([0.0, 0.1, 0.1]), pose]
    segments = [
        move(planar_arm.JOINTS, start, end, 0.4)
        for pair in itertools.pairwise(poses)
        for start, end in (pair, pair[1:] * 2)
    ]
    motion = Trajectory.join(segments).sample(100.0)
    noise = rng.normal(size=(2, *motion.position.shape))
    torque = [planar_arm.gravity_torque(pose) for pose in motion.position] + 0.02 * noise[0]
    position = motion.position + 2e-5 * noise[1]
    return Recording(planar_arm.JOINTS, motion.time, position, motion.velocity, torque, source="planar")


@pytest.fixture(name="recording")
def fixture_recording(tmp_path):
    path = tmp_path / "run.npz"
    record_rests().write_npz(path)
    return path


@pytest.fixture(name="start")
def fixture_start(tmp_path, urdf_file, keep):
    """Return a function that starts a node with parameters."""

    def start(make_node=GravityIdentificationNode, **parameters):
        values = {
            "robot_description": urdf_file,
            "effort_convention": "torque",
            "output": tmp_path / "out",
        } | parameters
        return keep(IdentificationBench(make_node, **values))

    return start


def wait(bench, condition, seconds=START_TIMEOUT_S):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        rclpy.spin_once(bench.client, timeout_sec=0.02)


def check_files(output):
    """Assert that each output file is whole or absent; return whether both exist."""
    identified = output / "identified.yaml"
    report = output / "report.html"
    if identified.exists():
        assert load_identified(identified)["gravity"]["joint_2"]["observable"]
    if report.exists():
        assert report.read_text().rstrip().endswith("</html>")
    return identified.exists() and report.exists()


def name_missing_path(path):
    return path / "nowhere"


def make_empty_folder(path):
    (path / "bag").mkdir()
    return path / "bag"


def write_empty_bag(path):
    return write_bag(path / "bag", [])


def write_wrong_content(path):
    (path / "run.mcap").write_bytes(b"no bag at all" * 100)
    return path / "run.mcap"


def write_invalid_npz(path):
    (path / "run.npz").write_bytes(b"PK\x03\x04 and then nothing")
    return path / "run.npz"


def write_half_npz(path):
    record_rests().write_npz(path / "run.npz")
    content = (path / "run.npz").read_bytes()
    (path / "run.npz").write_bytes(content[: len(content) // 2])
    return path / "run.npz"


def write_recording(path, names, position, effort):
    """Write a bag at 100 Hz in chunks; return its MCAP file."""
    stamps = START + 10**7 * np.arange(len(position))
    rows = zip(stamps.tolist(), position, effort, strict=True)
    messages = [("/joint_states", stamp, joint_state(stamp, names, q, (), tau)) for stamp, q, tau in rows]
    return write_bag(path / "bag", messages, chunk=50) / "bag.mcap"


def truncate(file, share):
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    return file


def write_another_arm(path):
    return write_recording(path, ["a", "b"], np.zeros((50, 2)), np.zeros((50, 2)))


def write_nan_positions(path):
    return write_recording(path, planar_arm.JOINTS, np.full((50, 3), math.nan), np.zeros((50, 3)))


def write_truncated_header(path):
    return truncate(write_recording(path, planar_arm.JOINTS, np.zeros((200, 3)), np.zeros((200, 3))), 0.02)


BAD_RECORDINGS = [
    name_missing_path,
    make_empty_folder,
    write_empty_bag,
    write_wrong_content,
    write_invalid_npz,
    write_half_npz,
    write_another_arm,
    write_nan_positions,
    write_truncated_header,
]


def test_bad_recordings_are_answered_and_the_next_is_fitted(start, tmp_path, recording):
    bench = start()
    for make_recording in BAD_RECORDINGS:
        folder = tmp_path / make_recording.__name__
        folder.mkdir()
        path = make_recording(folder)
        bench.set_parameters(recording=str(path))
        answer = bench.identify()
        assert not answer.success, make_recording
        assert path.name in answer.message
        assert len(answer.message.splitlines()) < 5
        assert answer.message in bench.node.status()[1]
        assert "unexpected" not in answer.message, answer.message
    assert not (tmp_path / "out").exists()
    bench.set_parameters(recording=str(recording), validation_recording=str(tmp_path / "gone"))
    assert "gone does not exist" in bench.identify().message
    bench.set_parameters(validation_recording="")
    assert bench.identify().success
    assert check_files(tmp_path / "out")


def test_complete_part_of_a_truncated_bag_is_fitted(start, tmp_path):
    path = truncate(write_recording(tmp_path, planar_arm.JOINTS, record_rests().position, record_rests().torque), 0.9)
    assert_success(start(recording=path).identify(), "cut off")


def test_missing_bag_is_named(start, tmp_path):
    bench = start()
    bench.announce_bag(tmp_path / "deleted")
    wait(bench, lambda: bench.node.bag)
    assert "deleted does not exist" in bench.identify().message


def test_only_one_of_parallel_calls_is_served(start, recording, tmp_path):
    bench = start(recording=recording)
    service = bench.client.create_client(Trigger, "/gravity_identification/identify")
    assert service.wait_for_service(START_TIMEOUT_S)
    calls = [service.call_async(Trigger.Request()) for _ in range(4)]
    wait(bench, lambda: all(call.done() for call in calls))
    answers = [call.result() for call in calls]
    assert any(answer.success for answer in answers)
    assert all(answer.success or "already" in answer.message for answer in answers)
    assert check_files(tmp_path / "out")
    assert bench.identify().success


def test_long_identification_reports_progress_and_can_be_cancelled(start, recording, tmp_path, monkeypatch):
    fit = GravityIdentification.fit
    steps = []

    def fit_slowly(self, *recordings):
        for _ in each(range(1000)):
            steps.append(time.monotonic())
            time.sleep(0.02)
        return fit(self, *recordings)

    monkeypatch.setattr(GravityIdentification, "fit", fit_slowly)
    bench = start(recording=recording)
    states = []
    progress = []
    bench.client.create_subscription(String, "/gravity_identification/state", lambda m: states.append(m.data), LATCHED)
    bench.client.create_subscription(
        Float32, "/gravity_identification/progress", lambda m: progress.append(m.data), LATCHED
    )
    services = {
        name: bench.client.create_client(Trigger, f"/gravity_identification/{name}") for name in ("identify", "cancel")
    }
    assert all(service.wait_for_service(START_TIMEOUT_S) for service in services.values())
    wait(bench, lambda: states)
    assert states == ["idle"]
    cancel_call = services["cancel"].call_async(Trigger.Request())
    wait(bench, cancel_call.done)
    assert cancel_call.result().message == "nothing to cancel: no identification runs"
    call = services["identify"].call_async(Trigger.Request())
    wait(bench, lambda: any(" left" in state for state in states))
    state_text = next(state for state in states if " left" in state)
    percentage, left = re.fullmatch(r"identifying: .* \(2 of 3\), (\d+) %, some (\d+) s left", state_text).groups()
    step_time = (steps[-1] - steps[0]) / (len(steps) - 1)  # 20 ms, or more on a busy computer
    assert float(left) == pytest.approx(1000 * step_time * (1.0 - 0.01 * float(percentage)), rel=0.5)
    wait(bench, lambda: 1 / 3 < progress[-1] < 2 / 3)
    services["cancel"].call_async(Trigger.Request())
    done = len(steps)
    wait(bench, call.done)
    assert 0.02 * (len(steps) - done) < 2.0
    assert not call.result().success
    assert "cancelled while identifying" in call.result().message
    wait(bench, lambda: states[-1].startswith("cancelled while"))
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    assert_success(bench.identify())
    wait(bench, lambda: states[-1].startswith("identified"))
    assert len(states[-1].splitlines()) <= 25
    assert progress[-1] == 1.0


def test_changed_parameters_and_urdf_apply_to_the_next_call(start, recording, tmp_path):
    bench = start(recording=recording)
    publisher = bench.client.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data="<robot"))
    service = bench.client.create_client(Trigger, "/gravity_identification/identify")
    assert service.wait_for_service(START_TIMEOUT_S)
    call = service.call_async(Trigger.Request())
    wait(bench, lambda: bench.node._since is not None or call.done())
    bench.set_parameters(recording=str(tmp_path / "nowhere"))
    wait(bench, call.done)
    assert call.result().success, call.result().message
    assert "nowhere does not exist" in bench.identify().message
    with pytest.raises(DynidError, match="effort_convention"):
        bench.set_parameters(effort_convention="motor_current")


def test_unwritable_folder_is_named(start, recording, tmp_path):
    (tmp_path / "file").touch()
    bench = start(recording=recording, output=tmp_path / "file" / "out")
    assert_refused(bench.identify(), f"cannot write {tmp_path / 'file' / 'out'}")


def test_unexpected_exception_is_answered(start, recording, monkeypatch):
    bench = start(recording=recording)
    monkeypatch.setattr("dynid_ros.report.gravity.write_gravity_report", lambda *_: 1 / 0)
    assert_refused(bench.identify(), "ZeroDivisionError")
    assert "ZeroDivisionError" in bench.node.status()[1]
    monkeypatch.undo()
    assert bench.identify().success


@pytest.mark.parametrize("text", ["", "<robot", "<robot name='a'><link name='b'/></robot>"])
def test_malformed_urdf_ends_the_node_with_an_error(start, text):
    context = rclpy.Context()
    rclpy.init(context=context)
    node = Node("state_publisher", context=context)
    node.create_publisher(String, "robot_description", LATCHED).publish(String(data=text))
    with pytest.raises(DynidError):
        start(robot_description="''")
    node.destroy_node()
    context.shutdown()


WRITER_FILE = "atomic.py"
FORK = multiprocessing.get_context("fork")


class Steps:
    """Profiler that counts the calls of the file writer, and kills the process at one of them."""

    def __init__(self, last=-1):
        self.count = 0
        self._last = last

    def __call__(self, frame, _event, _argument):
        if frame.f_code.co_filename.endswith(WRITER_FILE):
            self.count += 1
            if self.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)

    def write(self, path, content):
        sys.setprofile(self)
        try:
            write_atomically(path, content)
        finally:
            sys.setprofile(None)


def test_file_is_old_or_new_after_a_kill_at_any_step(tmp_path):
    new = b"new" * 100_000
    counter = Steps()
    counter.write(tmp_path / "file", new)
    contents = set()
    for old in (None, b"old" * 100_000):
        for step in range(1, counter.count + 1):
            for path in tmp_path.iterdir():  # also temporary files of a killed process, whose removal would add steps
                path.unlink()
            if old is not None:
                (tmp_path / "file").write_bytes(old)
            process = FORK.Process(target=Steps(step).write, args=(tmp_path / "file", new), daemon=True)
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            content = (tmp_path / "file").read_bytes() if (tmp_path / "file").exists() else None
            assert content in (old, new), f"half a file at step {step} of {counter.count}"
            contents.add(content)
    assert len(contents) == 3


def write_repeatedly(robot, result, output):
    gc.freeze()  # ROS objects of earlier tests must not be finalized in a fork
    while True:
        result.save(output / "identified.yaml")
        write_gravity_report(output / "report.html", robot, result.document() | {"validation": []}, result.samples)


def test_files_are_whole_or_absent_after_a_kill_at_any_time(tmp_path):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    result = GravityIdentification(robot).fit(record_rests())
    rng = random.Random(0)
    for turn in range(5):
        process = FORK.Process(target=write_repeatedly, args=(robot, result, tmp_path), daemon=True)
        process.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while turn == 2 and not check_files(tmp_path):
            assert time.monotonic() < deadline
        time.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        check_files(tmp_path)
    assert check_files(tmp_path)
    names = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert names == {"identified.yaml", "report.html"}


def test_process_ends_on_signals_during_a_fit(recording, urdf_file, tmp_path):
    parameters = {
        "robot_description": urdf_file,
        "effort_convention": "torque",
        "recording": recording,
        "output": tmp_path / "out",
    }
    rclpy.init()
    client = rclpy.create_node("client")
    service = client.create_client(Trigger, "/gravity_identification/identify")
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with NodeProcess("gravity_identification", parameters) as process:
                assert service.wait_for_service(START_TIMEOUT_S)
                service.call_async(Trigger.Request())
                rclpy.spin_once(client, timeout_sec=0.2)
                process.send_signal(number)
                assert process.wait() == (0 if number == signal.SIGTERM else -number)
                assert "Traceback" not in process.output
            check_files(tmp_path / "out")
    finally:
        client.destroy_node()
        rclpy.shutdown()


def test_torque_sensor_watch_survives_nan_and_clock_jumps(start, tmp_path):
    model = planar_arm.write(tmp_path / "identified.yaml", planar_arm.document())
    bench = start(TorqueSensorCalibrationNode, model_file=model, observe=True, observe_period=0.05)
    publisher = bench.client.create_publisher(JointState, "joint_states", 100)
    wait(bench, publisher.get_subscription_count)
    watch = bench.node.watch

    def publish(seconds, position=0.1):
        message = JointState(name=list(planar_arm.JOINTS), position=[position] * 3, effort=[0.0] * 3)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(round(seconds * 1e9), 10**9)
        publisher.publish(message)

    publish(1000.0, math.nan)
    wait(bench, lambda: "position of joint 'joint_1' is nan" in watch.status()[1])
    # The clock is set forward, back and to before the start; the time of the watch continues.
    for first, end in ((1000.0, 0.02), (5000.0, 4000.02), (100.0, 4000.04), (-50.0, 4000.06)):
        for step in range(3):
            publish(first + 0.01 * step)
            last = end - 0.01 * (2 - step)
            wait(bench, lambda last=last: watch._states._last_time == pytest.approx(last, abs=1e-5))
    wait(bench, lambda: "no message on /joint_states" in watch.status()[1])
