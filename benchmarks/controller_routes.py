"""Gravity compensation beside controllers: what each step of each route does to the arm.

    python -m benchmarks.controller_routes                               # simulated controllers
    python -m benchmarks.controller_routes --controllers ros2_control    # real ones, where they are installed

The demo arm (MuJoCo, 250 Hz) is the hardware of both. A row is a step that a user takes or a fault that comes about:
the largest step of a joint's torque from one joint state to the next, as part of its limit; how far a joint went, and
how far it is from where the row began; what our node says then.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import rclpy
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from benchmarks.controller_stack import FORWARD, START, TRAJECTORY, ControllerStack, missing_packages
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.nodes.shared.process import own_domain
from dynid_ros.simulation import demo_arm_urdf

ROUTES = ("effort", "feedforward", "trajectory", "excitation")
COMPENSATION = {"autostart": True, "ramp_time": 1.0, "timeout": 0.5, "scale": "[1.0]"}
GAINS = {"stiffness": "[800.0,800.0,400.0,60.0,60.0,30.0]", "damping": "[80.0,80.0,40.0,6.0,6.0,3.0]"}
SET = {"set_last_command_interface_value_as_state_on_activation": False, "interpolate_from_desired_state": True}
"""As the files of config/controllers/ set them."""
LARGEST = 0.1
"""Part of a joint's limit that no step of its torque may pass."""


@dataclass(frozen=True)
class Row:
    """What a step did.

    Attributes:
        route, what: in words.
        step: largest change of a torque from one joint state to the next, N m.
        part: the same as part of the joint's effort limit.
        went, stayed: farthest that a joint went from where it was at the beginning, and at the end, rad.
        said: by our node.
        own: it is what the controller does by itself.
    """

    route: str
    what: str
    step: float
    part: float
    went: float
    stayed: float
    said: str
    own: bool = False

    @property
    def is_blow(self) -> bool:
        """Whether a torque changed by more than may be, and not by the controller itself."""
        return self.part > LARGEST and not self.own


class Routes:
    """Plays the routes on one kind of controllers.

    Args:
        kind: `simulated` or `ros2_control`.
        folder: for logs.
    """

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.robot = RobotModel.from_urdf(demo_arm_urdf())
        self.rows: list[Row] = []
        self.model_file = _write_model(self.robot, folder / "identified.yaml")

    def play(self, route: str) -> None:
        """One route, from processes that start to their end."""
        folder = self.folder / route
        folder.mkdir()
        if route == "excitation":
            for interpolates in (True, False):
                inner = folder / str(interpolates)
                inner.mkdir()
                given = SET | {"interpolate_from_desired_state": interpolates}
                with closing(ControllerStack(inner, self.kind, "feedforward", **given)) as arm:
                    self._excitation(arm, interpolates)
            return
        more = {"cmd_timeout": 0.5} if route == "trajectory" else {}
        with closing(ControllerStack(folder, self.kind, route, **SET, **more)) as arm:
            getattr(self, f"_{route}")(arm)

    def _row(
        self, arm: ControllerStack, what: str, act: Callable[[], object], seconds: float = 2.0, own: bool = False
    ) -> str:
        """Act, wait, and note what the arm did; what our node says then."""
        arm.spin(0.3)
        first = len(arm.times) - 1
        answer = act()
        arm.spin(max(seconds, 0.1))
        _, position, effort = arm.since(first)
        steps = np.abs(np.diff(effort, axis=0)).max(axis=0)
        worst = int(np.argmax(steps / self.robot.limits.effort))
        away = np.abs(position - position[0]).max(axis=1)
        said = answer if isinstance(answer, str) and answer else arm.said.get("gravity_compensation", "")
        part = float(steps[worst] / self.robot.limits.effort[worst])
        row = Row(arm.route, what, float(steps[worst]), part, float(away.max()), float(away[-1]), said, own)
        self.rows.append(row)
        line = f"{row.route:12s} {row.what:52s} {row.step:8.2f} {row.part:7.1%} {row.went:8.4f} {row.stayed:8.4f}"
        print(f"{line}{'*' * own:2s}{said}")
        return said

    def _compensate(self, arm: ControllerStack, **parameters: object) -> None:
        output = {"output": "trajectory"} if arm.route == "trajectory" else {"controller": FORWARD}
        if arm.route == "feedforward":
            output["position_controller"] = "''"
        arm.said.pop("gravity_compensation", None)
        arm.start("gravity_compensation", COMPENSATION | {"model_file": self.model_file} | output | parameters)
        arm.until(lambda: arm.said.get("gravity_compensation") == "disabled", "the compensation")
        arm.spin(1.0)

    def _enable(self, arm: ControllerStack, on: bool = True) -> str:
        answer = arm.call(SetBool, "/gravity_compensation/enable", data=on)
        return "" if answer.success else f"refused: {answer.message}"

    def _second_writer(self, arm: ControllerStack) -> str:
        """Publish what acts and a little more, time after time."""
        effort = [1.01 * value for value in arm.effort[-1]]
        if arm.route == "trajectory":
            other = arm.node.create_publisher(JointTrajectory, f"/{TRAJECTORY}/joint_trajectory", 1)
            point = JointTrajectoryPoint(positions=arm.position[-1], effort=effort)
            message = JointTrajectory(joint_names=arm.names, points=[point])
        else:
            other = arm.node.create_publisher(Float64MultiArray, f"/{FORWARD}/commands", 1)
            message = Float64MultiArray(data=effort)
        arm.until(other.get_subscription_count, "who takes commands")
        for _ in range(10):
            other.publish(message)
            arm.spin(0.1)
        arm.node.destroy_publisher(other)
        return ""

    def _set_point(self, arm: ControllerStack) -> str:
        publisher = arm.node.create_publisher(JointState, "/gravity_compensation/setpoint", 1)
        arm.until(publisher.get_subscription_count, "who takes set-points")
        position = arm.position[-1][1] + 0.1
        publisher.publish(JointState(name=["joint_2"], position=[position]))
        arm.spin(2.0)
        arm.node.destroy_publisher(publisher)
        return ""

    def _move(self, arm: ControllerStack) -> str:
        """A motion by the position controller."""
        publisher = arm.node.create_publisher(JointTrajectory, f"/{TRAJECTORY}/joint_trajectory", 1)
        arm.until(publisher.get_subscription_count, "the trajectory controller")
        arm.spin(0.3)
        point = JointTrajectoryPoint(positions=[q + 0.1 for q in START], velocities=[0.0] * 6, accelerations=[0.0] * 6)
        point.time_from_start.sec = 3
        publisher.publish(JointTrajectory(joint_names=arm.names, points=[point]))
        arm.spin(3.5)
        arm.node.destroy_publisher(publisher)
        return ""

    def _effort(self, arm: ControllerStack) -> None:
        at_once = {"activate": [FORWARD], "deactivate": [TRAJECTORY]}
        back = {"activate": [TRAJECTORY], "deactivate": [FORWARD]}

        def one_by_one() -> str:
            return arm.switch(activate=[FORWARD]) or arm.switch(deactivate=[TRAJECTORY])

        self._compensate(arm, effort_convention="torque", **GAINS)
        self._row(arm, "enable, effort controller inactive", lambda: self._enable(arm))
        self._row(arm, "switch to the effort controller", lambda: arm.switch(**at_once), own=True)
        self._row(arm, "set-point, joint 2 by 0.1 rad", lambda: self._set_point(arm))
        self._row(arm, "back to the position controller, enabled", lambda: arm.switch(**back))
        self._row(arm, "disable", lambda: self._enable(arm, False))
        self._row(arm, "enable once more", lambda: self._enable(arm))
        self._row(arm, "switch there one by one: both act for a while", one_by_one)
        self._row(arm, "kill -9: the last torque stays", lambda: str(arm.end("gravity_compensation", 9)), 1.0)
        arm.spin(22.0)  # until the middleware knows that the dead one is gone
        self._compensate(arm, effort_convention="torque", **GAINS)
        self._row(arm, "restarted, enable on the active controller", lambda: self._enable(arm))
        self._row(arm, "fault: a second writer, the torque fades", lambda: self._second_writer(arm), 8.0)
        self._row(arm, "the position controller takes the hanging arm", lambda: arm.switch(**back), own=True)
        arm.end("gravity_compensation")
        self._compensate(arm)
        self._row(arm, "enable, inactive, effort not known to be torque", lambda: self._enable(arm))
        self._row(arm, "switch to the effort controller", lambda: arm.switch(**at_once), own=True)
        self._row(arm, "kill -9: the last torque stays", lambda: str(arm.end("gravity_compensation", 9)), 1.0)
        arm.spin(22.0)
        self._compensate(arm)
        self._row(arm, "restarted, enable, effort not known to be torque", lambda: self._enable(arm))
        self._row(arm, "the position controller takes the arm", lambda: arm.switch(**back))
        self._row(arm, "activated while disabled: the last torque acts", lambda: arm.switch(**at_once), 0.3, own=True)
        self._row(arm, "the position controller takes the arm", lambda: arm.switch(**back))

    def _feedforward(self, arm: ControllerStack) -> None:
        beside = {"assume_no_effort": True}  # as controller_stack.launch.py has it
        self._compensate(arm, **beside)
        self._row(arm, "enable", lambda: self._enable(arm))
        self._row(arm, "a motion by the position controller", lambda: self._move(arm))
        self._row(arm, "fault: a second writer, the torque fades", lambda: self._second_writer(arm))
        self._row(arm, "enable once more", lambda: self._enable(arm))
        self._row(arm, "kill -9: the last torque stays", lambda: str(arm.end("gravity_compensation", 9)), 1.0)
        arm.spin(22.0)
        self._compensate(arm, **beside)
        self._row(arm, "restarted, enable: replaces that torque", lambda: self._enable(arm), own=True)
        self._row(arm, "the effort controller deactivated", lambda: arm.switch(deactivate=[FORWARD]))
        self._row(arm, "and activated", lambda: arm.switch(activate=[FORWARD]))
        self._row(arm, "enable: replaces that torque again", lambda: self._enable(arm), own=True)
        self._row(arm, "disable", lambda: self._enable(arm, False))

    def _trajectory(self, arm: ControllerStack) -> None:
        self._compensate(arm)
        self._row(arm, "enable", lambda: self._enable(arm))
        self._row(arm, "disable", lambda: self._enable(arm, False))
        self._row(arm, "enable and disable, three times", lambda: self._cycles(arm))
        self._row(arm, "enable once more", lambda: self._enable(arm))
        self._row(arm, "set-point, joint 2 by 0.1 rad", lambda: self._set_point(arm))
        self._row(arm, "fault: a second writer, the torque fades", lambda: self._second_writer(arm))
        self._row(arm, "enable once more", lambda: self._enable(arm))
        self._row(
            arm, "kill -9: cmd_timeout drops the torque", lambda: str(arm.end("gravity_compensation", 9)), own=True
        )
        arm.spin(22.0)
        self._compensate(arm)
        self._row(arm, "restarted, enable on the active controller", lambda: self._enable(arm))
        self._row(arm, "the controller deactivated", lambda: arm.switch(deactivate=[TRAJECTORY]), own=True)
        self._row(arm, "and activated", lambda: arm.switch(activate=[TRAJECTORY]), own=True)
        self._row(arm, "enable after that", lambda: self._enable(arm))
        self._row(arm, "an action goal while enabled is a fault", lambda: self._goal(arm))
        self._row(arm, "enable after the goal", lambda: self._enable(arm), 0.0)
        self._row(arm, "the controller configured anew", lambda: self._configure(arm), own=True)
        self._row(arm, "enable after that", lambda: self._enable(arm))
        self._row(arm, "disable", lambda: self._enable(arm, False))

    def _cycles(self, arm: ControllerStack) -> str:
        for on in (True, False) * 3:
            self._enable(arm, on)
            arm.spin(2.0)
        return ""

    def _goal(self, arm: ControllerStack) -> str:
        """A goal with tolerances and an effort, that succeeds."""
        point = JointTrajectoryPoint(positions=list(arm.position[-1]), velocities=[0.0] * 6, effort=[0.0] * 6)
        point.time_from_start.sec = 1
        trajectory = JointTrajectory(joint_names=arm.names, points=[point])
        if self.kind == "simulated":
            publisher = arm.node.create_publisher(JointTrajectory, "/simulator/goal", 1)
            arm.until(publisher.get_subscription_count, "the action")
            publisher.publish(trajectory)
            arm.spin(2.0)
            arm.node.destroy_publisher(publisher)
            return ""
        action = import_module("control_msgs.action").FollowJointTrajectory
        client = ActionClient(arm.node, action, f"/{TRAJECTORY}/follow_joint_trajectory")
        arm.until(client.server_is_ready, "the action")
        future = client.send_goal_async(action.Goal(trajectory=trajectory))
        arm.until(future.done, "the answer to the goal")
        arm.spin(2.0)
        client.destroy()
        return ""

    def _configure(self, arm: ControllerStack) -> str:
        if self.kind == "ros2_control":
            arm.reload(TRAJECTORY)
            return ""
        arm.switch(deactivate=[TRAJECTORY])
        arm.call(Trigger, "/simulator/configure_trajectory_controller")
        return arm.switch(activate=[TRAJECTORY])

    def _excitation(self, arm: ControllerStack, interpolates: bool) -> None:
        motion = {"motion": "fourier", "design_time": 1.0, "acceleration_limits": "[5.0]", "floor_height": 0.1}
        motion |= {"speed_fraction": 0.4, "base_frequency": 0.2, "harmonics": 3, "stale_after": 1.0}
        words = f"interpolate_from_desired_state {str(interpolates).lower()}"
        own = not interpolates
        arm.route = "excitation"
        arm.start("excitation", motion)
        self._row(arm, f"~/start, {words}", lambda: self._started(arm), 0.0, own)
        if not interpolates:
            arm.end("excitation")
            arm.start("excitation", motion | {"accept_jerk": True})
            self._row(arm, f"the same with accept_jerk, {words}", lambda: self._started(arm), 0.0, own)
        for seconds in (2.0, 3.1, 4.3):
            arm.until(lambda: arm.said.get("excitation") == "running", "the motion")
            arm.spin(seconds - 1.3)
            self._row(arm, f"the motion itself, {words}", lambda: "", 1.0, own=True)
            self._row(arm, f"~/stop after {seconds} s, {words}", lambda: self._stopped(arm), own=own)
            self._row(arm, f"~/start, {words}", lambda: self._started(arm), 0.0, own)
        arm.end("excitation")

    def _started(self, arm: ControllerStack) -> str:
        answer = arm.call(Trigger, "/excitation/start")
        return answer.message

    def _stopped(self, arm: ControllerStack) -> str:
        arm.call(Trigger, "/excitation/stop")
        arm.spin(1.5)
        return arm.said["excitation"]


def _write_model(robot: RobotModel, path: Path) -> Path:
    """`identified.yaml` that says of the arm's gravity what its URDF says."""
    gravity = GravityModel(robot)
    moments = gravity.project(robot.parameters)
    document = new_document(robot, [], {})
    document["gravity"] = {
        joint: {"observable": True}
        | {gravity.names[c].split()[0]: float(moments[c]) for c in range(len(moments))[gravity.columns(i)]}
        for i, joint in enumerate(robot.joint_names)
    }
    return save_identified(path, document)


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controllers", choices=("simulated", "ros2_control"), default="simulated")
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    parser.add_argument("--json", type=Path, help="file for the rows")
    arguments = parser.parse_args()
    if arguments.controllers == "ros2_control" and (absent := missing_packages()):
        raise SystemExit(f"these packages are not installed: {', '.join(absent)}")
    folder = Path(tempfile.mkdtemp(prefix="controller_routes_"))
    print(f"logs in {folder}")
    routes = Routes(arguments.controllers, folder)
    with own_domain() as domain:
        os.environ["ROS_DOMAIN_ID"] = domain
        rclpy.init()
        _play(routes, arguments.routes, arguments.json)
        rclpy.shutdown()


def _play(routes: Routes, names: list[str], file: Path | None) -> None:
    print(f"{'route':12s} {'step':52s} {'N m':>8s} {'limit':>7s} {'rad':>8s} {'stays':>8s}  our node")
    try:
        for route in names:
            routes.play(route)
    finally:
        if file:
            file.write_text(json.dumps([asdict(row) for row in routes.rows], indent=1), encoding="utf-8")
    print("* what the controller does by itself")
    blows = [row for row in routes.rows if row.is_blow]
    print(f"{len(routes.rows)} steps, {len(blows)} others with a change of torque above {LARGEST:.0%} of a limit")


if __name__ == "__main__":
    main()
