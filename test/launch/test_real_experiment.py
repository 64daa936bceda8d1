"""Excite, record, identify, compensate by the launch files: real ros2_control in a namespace, time of /clock.

Skips where that is not installed.
"""

import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

from helpers.controller_stack import CALM, FORWARD, LATCHED, START, TRAJECTORY, missing_packages
from helpers.node_threads import NodeThreads, call
from helpers.waiting import START_TIME, wait
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.shared.process import own_domain

EPOCH = 1000.0
"""s, of a clock that is not the computer's."""
TICK = 0.002
HELD = 0.05
"""Farthest that an arm goes which is held, rad."""
NAMES = [f"joint_{i}" for i in range(1, 7)]
PARAMETERS = {
    "simulator": {"start_position": START, **CALM, "torque_offset": [0.0]},
    "excitation": {"count": 12, "dwell": 0.4, "speed_fraction": 0.8, "travel_speed_fraction": 0.8, "floor_height": 0.1}
    | {"stale_after": 2.0, "tracking_error_limit": [1.0], "effort_grace": 2.0},
    "gravity_compensation": {"scale": [1.0], "ramp_time": 0.5, "timeout": 1.0},
}


class SimulatedTime:
    """Publishes /clock at the pace of time."""

    def __init__(self):
        self.node = rclpy.create_node("clock")
        self.publisher = self.node.create_publisher(Clock, "/clock", 1)
        self.closed = False
        self.thread = threading.Thread(target=self._tick, daemon=True)
        self.thread.start()

    def _tick(self):
        begun = time.monotonic()
        while not self.closed:
            message = Clock()
            seconds = EPOCH + time.monotonic() - begun
            message.clock.sec, message.clock.nanosec = int(seconds), int(seconds % 1 * 1e9)
            self.publisher.publish(message)
            time.sleep(TICK)

    def close(self):
        self.closed = True
        self.thread.join()
        self.node.destroy_node()


class Arm:
    """Launch files in namespace left, and who listens to what they start."""

    def __init__(self, folder: Path, route: str, interface: str):
        self.folder, self.route, self.interface = folder, route, interface
        self.launched, self.latest, self.stamp, self.said = {}, None, 0.0, {}
        self.client = rclpy.create_node("client", namespace="left")
        self.client.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        for topic in ("excitation/state", "gravity_compensation/state", "recorder/bag"):
            self.client.create_subscription(
                String, topic, lambda m, topic=topic: self.said.update({topic: m.data}), LATCHED
            )
        self.threads = NodeThreads(self.client)
        given = PARAMETERS | {
            "recorder": {"output_folder": str(folder / "bags")},
            "gravity_identification": {"effort_convention": "torque", "output": str(folder)},
        }
        given["excitation"] = given["excitation"] | {"command_interface": interface}
        self.params_file = folder / "params.yaml"
        self.params_file.write_text(yaml.safe_dump({f"/**/{n}": {"ros__parameters": p} for n, p in given.items()}))

    def launch(self, name: str, **arguments: str):
        arguments |= {"namespace": "left", "use_sim_time": "true", "params_file": str(self.params_file)}
        words = [f"{key}:={value}" for key, value in arguments.items()]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.launched[name] = subprocess.Popen(
                ["ros2", "launch", "dynid_ros", f"{name}.launch.py", *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _on_state(self, message):
        if set(message.name) == set(NAMES):
            self.latest = np.array([message.position[message.name.index(name)] for name in NAMES])
            self.stamp = message.header.stamp.sec

    def ask(self, service, kind=Trigger, **request):
        return call(self.client, kind, f"/left/{service}", kind.Request(**request))

    def does(self, service, kind=Trigger, **request):
        answer = self.ask(service, kind, **request)
        assert getattr(answer, "success", True), f"{service}: {answer.message}"
        return getattr(answer, "message", "")

    def says(self, node, begin, seconds=START_TIME):
        wait(lambda: self.said.get(f"{node}/state", "").startswith(begin), seconds)

    def switch(self, activate=(), deactivate=()):
        kind = import_module("controller_manager_msgs.srv").SwitchController
        answer = self.ask(
            "controller_manager/switch_controller",
            kind,
            activate_controllers=list(activate),
            deactivate_controllers=list(deactivate),
            strictness=kind.Request.STRICT,
        )
        assert answer.ok, answer.message

    def goal(self, **fields):
        """Accepted goal of another client: to stay where the arm is, for 2 s."""
        action = import_module("control_msgs.action").FollowJointTrajectory
        client = ActionClient(self.client, action, f"{TRAJECTORY}/follow_joint_trajectory")
        wait(client.server_is_ready, START_TIME)
        point = JointTrajectoryPoint(positions=self.latest.tolist(), velocities=[0.0] * len(NAMES))
        point.time_from_start.sec = 2
        trajectory = JointTrajectory(joint_names=NAMES, points=[point])
        future = client.send_goal_async(action.Goal(trajectory=trajectory, **fields))
        wait(future.done)
        assert future.result().accepted
        return future.result()

    def is_running(self):
        self.says("excitation", "running")
        before = self.latest
        wait(lambda: np.abs(self.latest - before).max() > 2 * HELD)

    def rests(self):
        def still():
            before = self.latest
            time.sleep(0.5)
            return np.abs(self.latest - before).max() < 1e-3

        wait(still)

    def close(self):
        for process in self.launched.values():
            process.send_signal(signal.SIGINT)
        for process in self.launched.values():
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        self.threads.close()
        self.client.destroy_node()


@pytest.fixture(
    name="arm",
    params=[("effort", "topic"), ("feedforward", "action"), ("trajectory", "auto")],
    ids=":".join,
)
def fixture_arm(request, monkeypatch, tmp_path):
    pytest.importorskip("ros2launch", reason="ros2launch is not installed")
    if absent := missing_packages():
        pytest.skip(f"ros2_control is not all there: not installed are {', '.join(absent)}")
    with ExitStack() as entered:
        monkeypatch.setenv("ROS_DOMAIN_ID", entered.enter_context(own_domain()))
        rclpy.init()
        entered.callback(rclpy.shutdown)
        entered.enter_context(closing(SimulatedTime()))
        arm = entered.enter_context(closing(Arm(tmp_path, *request.param)))
        text = share_path("config/controllers/ros2_control.yaml").read_text(encoding="utf-8")
        if arm.route == "trajectory":
            text = text.replace("command_interfaces: [position]", "command_interfaces: [position, effort]")
        (tmp_path / "controllers.yaml").write_text(text, encoding="utf-8")
        arm.launch("simulate", controller="ros2_control", controllers_file=str(tmp_path / "controllers.yaml"))
        arm.launch("identify", motion="poses", tip_link="tool", acceleration_limits="6.0")
        wait(lambda: arm.latest is not None and "excitation/state" in arm.said, START_TIME)
        yield arm


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_arm_is_excited_recorded_identified_and_compensated(arm):
    assert EPOCH <= arm.stamp < EPOCH + 600.0, "joint states have the time of /clock"
    arm.does("excitation/design")
    how = "topic" if arm.interface == "topic" else "action"
    assert (how == "action") == arm.does("excitation/start").endswith(
        f"by action /left/{TRAJECTORY}/follow_joint_trajectory"
    )
    arm.is_running()
    arm.does("excitation/stop")
    arm.says("excitation", "idle")
    arm.rests()

    arm.does("excitation/start")
    arm.is_running()
    arm.switch(deactivate=[TRAJECTORY])  # in full motion
    arm.says("excitation", "stopped: ")
    assert TRAJECTORY in arm.said["excitation/state"]
    answer = arm.ask("excitation/start")
    assert not answer.success, "nobody carries it out"
    arm.switch(activate=[TRAJECTORY])
    arm.rests()

    arm.does("excitation/start")
    arm.is_running()
    arm.goal()  # of another client
    if how == "action":
        arm.says("excitation", "stopped: another client's goal took the place of ours")
    else:
        arm.says("excitation", "stopped: ")
    time.sleep(3.0)  # until that goal has ended
    arm.rests()

    arm.does("recorder/start")
    arm.does("excitation/start")
    arm.says("excitation", "done")
    arm.does("recorder/stop")
    arm.does("gravity_identification/identify")

    arm.launch("controller_stack", route=arm.route, model_file=str(arm.folder / "identified.yaml"))
    if arm.route == "feedforward":
        arm.switch(activate=[FORWARD])
    arm.says("gravity_compensation", "disabled")
    wait(lambda: "no joint state" not in arm.ask("gravity_compensation/enable", SetBool, data=False).message)
    # on route trajectory too: our goals have replaced the tolerances that the other client's left behind
    arm.does("gravity_compensation/enable", SetBool, data=True)
    arm.says("gravity_compensation", "active")
    if arm.route == "effort":
        arm.switch(activate=[FORWARD], deactivate=[TRAJECTORY])
    pose = arm.latest
    time.sleep(2.0)
    assert np.abs(arm.latest - pose).max() < HELD, "it falls"
    assert arm.said["gravity_compensation/state"] == "active"
    if arm.route == "effort":
        arm.switch(activate=[TRAJECTORY], deactivate=[FORWARD])
    elif arm.route == "trajectory":
        arm.goal()
    if arm.route != "feedforward":
        arm.says("gravity_compensation", "fault: ")
    arm.does("gravity_compensation/enable", SetBool, data=False)
    if arm.route == "trajectory":
        answer = arm.ask("gravity_compensation/enable", SetBool, data=True)
        assert not answer.success
        assert "goal" in answer.message
