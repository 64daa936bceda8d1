"""Test an experiment by launch files: real ros2_control in a namespace with the time of /clock."""

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

from helpers.controller_stack import FORWARD, LATCHED, NOISELESS, START, TRAJECTORY, missing_packages
from helpers.node_threads import NodeThreads, call
from helpers.waiting import START_TIMEOUT_S, wait
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.shared.process import own_domain

CLOCK_START_S = 1000.0
"""Start in s of a clock that differs from the computer's."""
TICK_S = 0.002
MAX_HELD_MOTION_RAD = 0.05
"""Largest motion in rad of an arm that is held."""
NAMES = [f"joint_{i}" for i in range(1, 7)]
PARAMETERS = {
    "simulator": {"start_position": START, **NOISELESS, "torque_offset": [0.0]},
    "excitation": {"count": 12, "dwell": 0.4, "speed_fraction": 0.8, "travel_speed_fraction": 0.8, "floor_height": 0.1}
    | {"stale_after": 2.0, "tracking_error_limit": [1.0], "effort_grace": 2.0},
    "gravity_compensation": {"scale": [1.0], "ramp_time": 0.5, "timeout": 1.0},
}


class SimulatedTime:
    """Publisher of /clock in real time."""

    def __init__(self):
        self.node = rclpy.create_node("clock")
        self.publisher = self.node.create_publisher(Clock, "/clock", 1)
        self.closed = False
        self.thread = threading.Thread(target=self._tick, daemon=True)
        self.thread.start()

    def _tick(self):
        start = time.monotonic()
        while not self.closed:
            message = Clock()
            seconds = CLOCK_START_S + time.monotonic() - start
            message.clock.sec = int(seconds)
            message.clock.nanosec = int(seconds % 1 * 1e9)
            self.publisher.publish(message)
            time.sleep(TICK_S)

    def close(self):
        self.closed = True
        self.thread.join()
        self.node.destroy_node()


class Arm:
    """Launch files in namespace `left`, and a listener of their nodes."""

    def __init__(self, folder: Path, route: str, interface: str):
        self.folder = folder
        self.route = route
        self.interface = interface
        self.launched = {}
        self.latest = None
        self.stamp = 0.0
        self.states = {}
        self.client = rclpy.create_node("client", namespace="left")
        self.client.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        for topic in ("excitation/state", "gravity_compensation/state", "recorder/bag"):
            self.client.create_subscription(
                String, topic, lambda m, topic=topic: self.states.update({topic: m.data}), LATCHED
            )
        self.threads = NodeThreads(self.client)
        parameters = PARAMETERS | {
            "recorder": {"output_folder": str(folder / "bags")},
            "gravity_identification": {"effort_convention": "torque", "output": str(folder)},
        }
        parameters["excitation"] = parameters["excitation"] | {"command_interface": interface}
        self.params_file = folder / "params.yaml"
        self.params_file.write_text(yaml.safe_dump({f"/**/{n}": {"ros__parameters": p} for n, p in parameters.items()}))

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

    def call_service(self, service, kind=Trigger, **request):
        return call(self.client, kind, f"/left/{service}", kind.Request(**request))

    def call_successfully(self, service, kind=Trigger, **request):
        answer = self.call_service(service, kind, **request)
        assert getattr(answer, "success", True), f"{service}: {answer.message}"
        return getattr(answer, "message", "")

    def wait_for_state(self, node, prefix, seconds=START_TIMEOUT_S):
        wait(lambda: self.states.get(f"{node}/state", "").startswith(prefix), seconds)

    def switch(self, activate=(), deactivate=()):
        kind = import_module("controller_manager_msgs.srv").SwitchController
        answer = self.call_service(
            "controller_manager/switch_controller",
            kind,
            activate_controllers=list(activate),
            deactivate_controllers=list(deactivate),
            strictness=kind.Request.STRICT,
        )
        assert answer.ok, answer.message

    def send_goal(self, **fields):
        """Send a goal of another client, which keeps the arm in place for 2 s; return the accepted goal."""
        action = import_module("control_msgs.action").FollowJointTrajectory
        client = ActionClient(self.client, action, f"{TRAJECTORY}/follow_joint_trajectory")
        wait(client.server_is_ready, START_TIMEOUT_S)
        point = JointTrajectoryPoint(positions=self.latest.tolist(), velocities=[0.0] * len(NAMES))
        point.time_from_start.sec = 2
        trajectory = JointTrajectory(joint_names=NAMES, points=[point])
        future = client.send_goal_async(action.Goal(trajectory=trajectory, **fields))
        wait(future.done)
        assert future.result().accepted
        return future.result()

    def wait_for_motion(self):
        self.wait_for_state("excitation", "running")
        before = self.latest
        wait(lambda: np.abs(self.latest - before).max() > 2 * MAX_HELD_MOTION_RAD)

    def wait_for_rest(self):
        def is_still():
            before = self.latest
            time.sleep(0.5)
            return np.abs(self.latest - before).max() < 1e-3

        wait(is_still)

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
    name="arm", params=[("effort", "topic"), ("feedforward", "action"), ("trajectory", "auto")], ids=":".join
)
def fixture_arm(request, monkeypatch, tmp_path):
    pytest.importorskip("ros2launch", reason="ros2launch is not installed")
    absent = missing_packages()
    if absent:
        pytest.skip(f"ros2_control is incomplete: not installed are {', '.join(absent)}")
    with ExitStack() as contexts:
        monkeypatch.setenv("ROS_DOMAIN_ID", contexts.enter_context(own_domain()))
        rclpy.init()
        contexts.callback(rclpy.shutdown)
        contexts.enter_context(closing(SimulatedTime()))
        arm = contexts.enter_context(closing(Arm(tmp_path, *request.param)))
        text = share_path("config/controllers/ros2_control.yaml").read_text(encoding="utf-8")
        if arm.route == "trajectory":
            text = text.replace("command_interfaces: [position]", "command_interfaces: [position, effort]")
        (tmp_path / "controllers.yaml").write_text(text, encoding="utf-8")
        arm.launch("simulate", controller="ros2_control", controllers_file=str(tmp_path / "controllers.yaml"))
        arm.launch("identify", motion="poses", tip_link="tool", acceleration_limits="6.0")
        wait(lambda: arm.latest is not None and "excitation/state" in arm.states, START_TIMEOUT_S)
        yield arm


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_arm_is_excited_recorded_identified_and_compensated(arm):
    assert CLOCK_START_S <= arm.stamp < CLOCK_START_S + 600.0, "joint states have the time of /clock"
    arm.call_successfully("excitation/design")
    interface = "topic" if arm.interface == "topic" else "action"
    assert (interface == "action") == arm.call_successfully("excitation/start").endswith(
        f"by action /left/{TRAJECTORY}/follow_joint_trajectory"
    )
    arm.wait_for_motion()
    arm.call_successfully("excitation/stop")
    arm.wait_for_state("excitation", "idle")
    arm.wait_for_rest()

    arm.call_successfully("excitation/start")
    arm.wait_for_motion()
    arm.switch(deactivate=[TRAJECTORY])  # during the motion
    arm.wait_for_state("excitation", "stopped: ")
    assert TRAJECTORY in arm.states["excitation/state"]
    answer = arm.call_service("excitation/start")
    assert not answer.success, "no controller is active"
    arm.switch(activate=[TRAJECTORY])
    arm.wait_for_rest()

    arm.call_successfully("excitation/start")
    arm.wait_for_motion()
    arm.send_goal()  # a goal of another client
    if interface == "action":
        arm.wait_for_state("excitation", "stopped: another client's goal took the place of ours")
    else:
        arm.wait_for_state("excitation", "stopped: ")
    time.sleep(3.0)  # until this goal has ended
    arm.wait_for_rest()

    arm.call_successfully("recorder/start")
    arm.call_successfully("excitation/start")
    arm.wait_for_state("excitation", "done")
    arm.call_successfully("recorder/stop")
    arm.call_successfully("gravity_identification/identify")

    arm.launch("controller_stack", route=arm.route, model_file=str(arm.folder / "identified.yaml"))
    if arm.route == "feedforward":
        arm.switch(activate=[FORWARD])
    arm.wait_for_state("gravity_compensation", "disabled")
    wait(lambda: "no joint state" not in arm.call_service("gravity_compensation/enable", SetBool, data=False).message)
    # Also on route trajectory: goals of the node have replaced the tolerances of the other client.
    arm.call_successfully("gravity_compensation/enable", SetBool, data=True)
    arm.wait_for_state("gravity_compensation", "active")
    if arm.route == "effort":
        arm.switch(activate=[FORWARD], deactivate=[TRAJECTORY])
    pose = arm.latest
    time.sleep(2.0)
    assert np.abs(arm.latest - pose).max() < MAX_HELD_MOTION_RAD, "the arm falls"
    assert arm.states["gravity_compensation/state"] == "active"
    if arm.route == "effort":
        arm.switch(activate=[TRAJECTORY], deactivate=[FORWARD])
    elif arm.route == "trajectory":
        arm.send_goal()
    if arm.route != "feedforward":
        arm.wait_for_state("gravity_compensation", "fault: ")
    arm.call_successfully("gravity_compensation/enable", SetBool, data=False)
    if arm.route == "trajectory":
        answer = arm.call_service("gravity_compensation/enable", SetBool, data=True)
        assert not answer.success
        assert "goal" in answer.message
