"""What a simulated arm does that floats on gravity compensation: over ROS, through faults, loads and wrong models.

    python -m benchmarks.floating_arm [--arm xarm7 ur5] [--only "stray message"]
    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --lockstep
    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --led 20

The node and the simulator run as processes of their own, on route effort; sensors have the simulator's default errors,
efforts an offset of 2 % of the range. The arms are public ones that nothing was tuned on. A row is a situation: how far
the farthest joint went within some seconds, its speed, the largest step of a command as a part of the joint's effort
limit, and what the node says. Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from geometry_msgs.msg import InertiaStamped
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from dynid_ros.control import State, Timing
from dynid_ros.nodes.shared.process import own_domain
from dynid_ros.nodes.shared.topics import LATCHED

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
import demo_arm_model
from helpers.floating_arm import RAMP_S, ROTOR_PER_EFFORT, STRANGERS, FloatingArm, lead

from dynid_ros.model import RobotModel

COMMANDS = "forward_effort_controller/commands"
COMPENSATION = {"autostart": True, "scale": "[1.0]", "effort_convention": "torque", "timeout": 1.0}


class Observer(Node):
    """Hears joint states, commands and the node's state, and calls services."""

    def __init__(self) -> None:
        super().__init__("observer")
        self.positions: list[tuple[float, np.ndarray]] = []
        self.commands: list[np.ndarray] = []
        self.state = ""
        self.silent_since = 0.0
        self.create_subscription(JointState, "joint_states", self._on_state, qos_profile_sensor_data)
        self.create_subscription(
            Float64MultiArray, COMMANDS, lambda m: self.commands.append(np.array(m.data)), QoSProfile(depth=2000)
        )
        self.create_subscription(String, "gravity_compensation/state", self._on_text, LATCHED)
        self.load = self.create_publisher(InertiaStamped, "load", LATCHED)

    def _on_state(self, message: JointState) -> None:
        self.positions.append((time.monotonic(), np.array(message.position)))

    def _on_text(self, message: String) -> None:
        self.state = message.data


class Session:
    """A simulator and the compensation of one arm.

    Args:
        name: of the arm in `STRANGERS`.
        factor: of the model's moments.
        options: parameters of the node.
    """

    def __init__(self, name: str, *, factor: float = 1.0, **options: object) -> None:
        stranger = STRANGERS[name]
        self.robot: RobotModel = stranger.robot()
        self.folder = Path(tempfile.mkdtemp(prefix="floating_"))
        self.urdf = self.folder / "arm.urdf"
        self.urdf.write_text(self.robot.urdf or "")
        self.model = self.folder / "identified.yaml"
        self.write_model(factor)
        self.options = {
            "robot_description": self.urdf,
            "model_file": self.model,
            "tip_link": self.robot.tip,
            "base_link": self.robot.base,
            **COMPENSATION,
            **options,
        }
        effort = np.asarray(self.robot.limits.effort)
        self.processes: dict[str, subprocess.Popen] = {}
        self.start(
            "simulator",
            {
                "robot_description": self.urdf,
                "tip_link": self.robot.tip,
                "base_link": self.robot.base,
                "start_position": list(stranger.pose),
                "coulomb_friction": (stranger.coulomb * effort).tolist(),
                "viscous_friction": (0.5 * stranger.coulomb * effort).tolist(),
                "rotor_inertia": (ROTOR_PER_EFFORT * effort).tolist(),
                "load_mass": 1.0,
                "load_center": "[0.0, 0.0, 0.1]",
                "set_last_command_interface_value_as_state_on_activation": False,
            },
        )
        self.observer = Observer()
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.observer)
        self._spins = True
        self.thread = threading.Thread(target=self._spin, daemon=True)
        self.thread.start()
        self.wait(lambda: len(self.observer.positions) > 10)
        self.start("gravity_compensation", self.options)
        self.wait(lambda: self.observer.state == "disabled")
        time.sleep(0.5)

    def write_model(self, factor: float) -> None:
        """Write the model with moments times `factor`."""
        demo_arm_model.write(self.model, self.robot, factor=factor)

    def start(self, node: str, parameters: dict) -> None:
        """Start a node."""
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        log = (self.folder / f"{node}.log").open("a")
        self.processes[node] = subprocess.Popen(
            [sys.executable, "-m", "dynid_ros", "node", node, "--ros-args", *words], stdout=log, stderr=log
        )

    def _spin(self) -> None:
        while self._spins:
            self.executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        """End everything."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self._spins = False
        self.thread.join()
        self.executor.shutdown()
        self.observer.destroy_node()

    def wait(self, condition: Callable[[], object], seconds: float = 40.0) -> bool:
        """Wait for a condition; whether it came."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if condition():
                return True
            time.sleep(0.01)
        return False

    def call(self, kind: type, name: str, request: object = None) -> object:
        """Call a service."""
        client = self.observer.create_client(kind, name)
        client.wait_for_service(20.0)
        future = client.call_async(kind.Request() if request is None else request)
        self.wait(future.done)
        return future.result()

    def enable(self, on: bool = True) -> object:
        """Call `~/enable`."""
        return self.call(SetBool, "gravity_compensation/enable", SetBool.Request(data=on))

    def set(self, **values: object) -> object:
        """Set parameters of the node."""
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=parameters)
        return self.call(SetParameters, "gravity_compensation/set_parameters", request).results[0]

    def let_float(self) -> "Session":
        """Enable while the position servo holds the arm, and leave it to the torque."""
        answer = self.enable()
        assert answer.success, answer.message
        self.wait(lambda: self.observer.state.startswith("active"))
        self.effort_mode()
        time.sleep(2.0)
        return self

    def effort_mode(self) -> None:
        """Leave the arm to the commanded torque."""
        self.call(SetBool, "simulator/effort_mode", SetBool.Request(data=True))

    def announce(self, mass: float, lever: float) -> None:
        """Announce a load at the tip."""
        message = InertiaStamped()
        message.header.frame_id = self.robot.tip
        message.inertia.m = mass
        message.inertia.com.z = lever
        self.observer.load.publish(message)

    def row(self, what: str, since: float, first_command: int, said: str = "") -> str:
        """Return a line of the table."""
        positions = [(t, q) for t, q in self.observer.positions if t >= since]
        times = np.array([t for t, _ in positions])
        q = np.array([q for _, q in positions])
        went = np.abs(q - q[0]).max()
        # Speeds over 50 ms: joint states arrive in bunches.
        grid = np.arange(times[0], times[-1], 0.05)
        speed = np.abs(np.diff([np.interp(grid, times, column) for column in q.T], axis=1)).max() / 0.05
        commands = np.array(self.observer.commands[max(first_command - 1, 0) :])
        effort = np.asarray(self.robot.limits.effort)
        step = (np.abs(np.diff(commands, axis=0)) / effort).max() if len(commands) > 1 else 0.0
        return f"| {what} | {went:.2f} | {speed:.2f} | {step:.3f} | {said or self.observer.state} |"


def stray_message(s: Session) -> str:
    """One message of somebody else while the arm floats."""
    s.let_float()
    other = s.observer.create_publisher(Float64MultiArray, COMMANDS, 1)
    s.wait(lambda: other.get_subscription_count() >= 1)
    time.sleep(1.0)
    since, count = time.monotonic(), len(s.observer.commands)
    other.publish(Float64MultiArray(data=[0.0] * s.robot.n_joints))
    time.sleep(4.0)
    held = s.row("stray message: the 4 s after it", since, count)
    since, count = time.monotonic(), len(s.observer.commands)
    time.sleep(20.0)
    return held + "\n" + s.row("… and the 20 s after that", since, count)


def load_taken_up(s: Session) -> str:
    """A load is announced and taken up, and put down again."""
    s.let_float()
    since, count = time.monotonic(), len(s.observer.commands)
    s.announce(1.0, 0.1)
    s.call(SetBool, "simulator/pick_up", SetBool.Request(data=True))
    time.sleep(3.0)
    first = s.row("load of 1 kg announced and taken up", since, count)
    since, count = time.monotonic(), len(s.observer.commands)
    s.call(SetBool, "simulator/pick_up", SetBool.Request(data=False))
    s.announce(0.0, 0.0)
    time.sleep(3.0)
    return first + "\n" + s.row("load put down (mass 0)", since, count)


def wrong_model(factor: float) -> Callable[[Session], str]:
    """A wrong model at enable, refused; then with the gate switched off, let go at full scale."""

    def play(s: Session) -> str:
        since, count = time.monotonic(), len(s.observer.commands)
        refusal = s.enable()
        time.sleep(1.0)
        first = s.row(f"moments times {factor:g} at ~/enable", since, count, refusal.message[:150])
        s.set(max_model_change=float("inf"))
        s.call(Trigger, "gravity_compensation/reload")
        answer = s.enable()
        s.wait(lambda: s.observer.state.startswith("active"))
        since, count = time.monotonic(), len(s.observer.commands)
        s.effort_mode()
        time.sleep(4.0)
        said = "" if answer.success else answer.message
        return first + "\n" + s.row("… with max_model_change .inf, let go", since, count, said)

    return play


def reload_too_heavy(s: Session) -> str:
    """A model that is 25 % too heavy at reload."""
    s.let_float()
    since, count = time.monotonic(), len(s.observer.commands)
    s.write_model(1.25)
    answer = s.call(Trigger, "gravity_compensation/reload")
    time.sleep(3.0)
    return s.row("moments times 1.25 at ~/reload", since, count, answer.message[:150])


def higher_scale(s: Session) -> str:
    """A scale that lifts the arm."""
    s.let_float()
    since, count = time.monotonic(), len(s.observer.commands)
    s.set(scale=[1.4] * s.robot.n_joints)
    time.sleep(5.0)
    return s.row("scale set to 1.4", since, count)


def killed(s: Session) -> str:
    """The process is killed while the arm floats, and another one is enabled."""
    s.let_float()
    since, count = time.monotonic(), len(s.observer.commands)
    s.processes["gravity_compensation"].send_signal(signal.SIGKILL)
    s.processes["gravity_compensation"].wait()
    s.observer.state = ""
    s.start("gravity_compensation", s.options)
    s.wait(lambda: s.observer.state == "disabled")
    answer = s.enable()
    for _ in range(30):
        if answer.success or "somebody else" not in answer.message:
            break
        time.sleep(1.0)
        answer = s.enable()
    time.sleep(5.0)
    return s.row("kill -9, new process, ~/enable", since, count, answer.message[:150])


def killed_without_convention(s: Session) -> str:
    """The same where nobody says what effort means."""
    s.options["effort_convention"] = "''"
    s.set(assume_no_effort=True)
    return killed(s)


def gap(s: Session) -> str:
    """The arm moves, and the simulator pauses for 0.17 s."""
    s.let_float()
    s.call(SetBool, "simulator/pick_up", SetBool.Request(data=False))
    count, since = len(s.observer.commands), time.monotonic()
    s.set(scale=[0.9] * s.robot.n_joints)
    time.sleep(0.3)
    s.processes["simulator"].send_signal(signal.SIGSTOP)
    time.sleep(0.15)
    s.processes["simulator"].send_signal(signal.SIGCONT)
    time.sleep(3.0)
    return s.row("joint states pause 0.15 s during a change", since, count)


def enabled_again(s: Session) -> str:
    """Disabled, led by 0.3 rad, enabled while it ramps out, with stiffness."""
    s.let_float()
    s.enable(on=False)
    time.sleep(0.3)
    answer = s.enable()
    since, count = time.monotonic(), len(s.observer.commands)
    time.sleep(3.0)
    return s.row("enabled again while it ramps out", since, count, answer.message[:150])


def ended(s: Session) -> str:
    """Ctrl-C while the arm floats."""
    s.let_float()
    since, count = time.monotonic(), len(s.observer.commands)
    s.processes["gravity_compensation"].send_signal(signal.SIGINT)
    begun = time.monotonic()
    s.processes["gravity_compensation"].wait(30.0)
    took = time.monotonic() - begun
    time.sleep(1.0)
    return s.row("Ctrl-C", since, count, f"process ended after {took:.1f} s")


def lockstep(name: str) -> None:
    """Print what an arm does in lockstep, with and without descent and watch."""
    stranger = STRANGERS[name]
    for new in (False, True):
        timing = Timing(ramp_time=RAMP_S, descent_time=2.0 if new else 0.0, watch_motion=new)

        def row(what: str, arm: FloatingArm, since: float, how: str = "now" if new else "before") -> None:
            numbers = f"{arm.motion(since):.2f} | {arm.speed(since):.2f} | {arm.step(since):.3f}"
            said = arm.compensator.fault_reason or arm.compensator.notice or arm.compensator.state.value
            print(f"| {what} | {how} | {numbers} | {said} |", flush=True)

        arm = FloatingArm(stranger, timing=timing).enable().let_go()
        since = arm.time
        arm.compensator.interrupt(arm.time, "a fault in which the pose is known")
        row("fault: the 2 s after it", arm.run(2.0), since)
        since = arm.time
        row("… and the 20 s after that", arm.run(20.0), since)
        for factor in (1.5, 0.5):
            arm = FloatingArm(stranger, factor=factor, timing=timing).enable()
            since = arm.time
            arm.let_go()
            arm.compensator.released()
            while arm.time < since + 8.0 and arm.compensator.state is State.ACTIVE:
                arm.run(0.1)
            row(f"moments times {factor:g}, let go: until it is noticed, or 8 s", arm, since)
        for what, load in (("model", False), ("load", True)):
            arm = FloatingArm(stranger, timing=timing).enable().let_go()
            since = arm.time
            arm.compensator.replace(arm.gravity(1.25), arm.settings(), load=load)
            row(f"{what} that adds a quarter of the weight: 4 s", arm.run(4.0), since)


SITUATIONS: dict[str, tuple[Callable[[Session], str], dict]] = {
    "stray message": (stray_message, {}),
    "load": (load_taken_up, {}),
    "model x 1.5": (wrong_model(1.5), {"factor": 1.5}),
    "model x 0.5": (wrong_model(0.5), {"factor": 0.5}),
    "reload": (reload_too_heavy, {}),
    "scale": (higher_scale, {}),
    "killed": (killed, {}),
    "killed, no convention": (killed_without_convention, {}),
    "gap": (gap, {}),
    "enabled again": (enabled_again, {}),
    "ended": (ended, {}),
}


def main() -> None:
    """Print the table of each arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", nargs="+", default=["xarm7", "ur5"], choices=STRANGERS, help="arms (default: two)")
    parser.add_argument("--only", nargs="+", default=list(SITUATIONS), choices=SITUATIONS, help="situations")
    parser.add_argument("--led", type=float, default=0.0, help="minutes of simulated time by hand (default: 0)")
    parser.add_argument("--lockstep", action="store_true", help="play without ROS, step by step")
    chosen = parser.parse_args()
    if chosen.lockstep:
        for arm in chosen.arm:
            print(
                f"\n{arm}\n\n| situation | | motion, rad | speed, rad/s | largest step | what the compensation says |"
            )
            print("|---|---|---|---|---|---|")
            lockstep(arm)
        return
    if chosen.led:
        for arm in chosen.arm:
            for watched in (True, False):
                led = lead(STRANGERS[arm], chosen.led, watched=watched)
                forces = f"{np.sqrt(np.mean(led.forces**2)):.1f} N RMS, {np.percentile(led.forces, 95.0):.1f} N (95 %)"
                print(
                    f"{arm}, {'watched' if watched else 'not watched'}: {forces}, {len(led.alarms)} alarms", flush=True
                )
        return
    for arm in chosen.arm:
        print(f"\n{arm}\n\n| situation | motion, rad | speed, rad/s | largest step | what the node says |")
        print("|---|---|---|---|---|")
        for name in chosen.only:
            play, options = SITUATIONS[name]
            with own_domain():
                rclpy.init()
                session = Session(arm, **options)
                try:
                    print(play(session), flush=True)
                finally:
                    session.close()
                    rclpy.try_shutdown()


if __name__ == "__main__":
    main()
