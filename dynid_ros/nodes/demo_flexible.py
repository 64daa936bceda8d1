"""Fifth act of the demo: an arm that is flexible in its joints, whose links a camera watches."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import rclpy
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.jobs.flexible_demonstration import write_flexible_demonstration
from dynid_ros.model import RobotModel
from dynid_ros.nodes.demo_process import node_process
from dynid_ros.nodes.demo_stage import Stage, say
from dynid_ros.nodes.trajectory_message import LEAD, trajectory_message
from dynid_ros.simulation.demo_arm import demo_arm_urdf
from dynid_ros.trajectories.fourier import FourierSeries

JOINTS = ("joint_1", "joint_2")
"""Those that move; the others are held."""
SPACE = "/flexible"
"""Namespace of the arm, beside the one of the other acts."""
MARKERS, JOINT_STATES, LINK_STATES, COMMANDS = (
    f"{SPACE}/{name}" for name in ("markers", "joint_states", "link_states", "trajectory")
)
START = [0.0, 0.4]
ARM = {
    "start_position": START,
    "stiffness": [6400.0, 14400.0],
    "motor_viscous": [2.0, 3.0],
    "rotor_inertia": [0.8, 0.8],
    "torque_offset": [0.0],
    "description_error": 0.2,
}
"""Links resonate at 6 and 10 Hz with the motors held."""
CAMERA = {
    "markers_topic": MARKERS,
    "camera_rate": 100.0,
    "camera_clock_offset": 0.37,
    "base_in_camera": [0.4, -2.1, 0.3, 0.2, -0.1, 2.5],
}
BASE_FREQUENCY, HARMONICS, PERIODS, SEED, SPEED = 0.25, 40, 2, 0, 0.6
SLOW, NEAR, QUICK = 2, 20, 0.5
"""Harmonics up to the first move the markers far, those above the second are near the resonances and weigh less."""
BAND = 14.0
"""Hz; the motion ends at 10."""
SETTLING = 1.0
IDENTIFICATION_TIMEOUT = 600.0
IDENTIFICATION = f"{SPACE}/flexible_joint_identification"


def flexible_act(stage: Stage) -> bool:
    """Play it; True if springs and motors are found."""
    folder = stage.output / "flexible_joint"
    folder.mkdir(parents=True, exist_ok=True)
    urdf = folder / "arm.urdf"
    urdf.write_text(demo_arm_urdf(JOINTS), encoding="utf-8")
    robot = RobotModel.from_urdf(urdf)
    stage.announce("An arm with springs in its joints, markers on its links. Excitation: up to near its resonances.")
    with _nodes(folder, urdf, stage.output / "logs"):
        # Several programs start at once: they may take their time.
        stage.call.wait(
            f"{SPACE}/simulator/reset", f"{SPACE}/recorder/start", f"{IDENTIFICATION}/identify", timeout=60.0
        )
        truth = stage.truth(f"{SPACE}/simulator/true_parameters")
        _record(stage, robot)
        stage.announce("Springs, motors and links, from the motors' torques and what the camera saw.")
        say(stage.call.trigger(f"{IDENTIFICATION}/identify", timeout=IDENTIFICATION_TIMEOUT))
    stage.announce("Report.")
    verdict = write_flexible_demonstration(
        robot, truth, folder, joint_states_topic=JOINT_STATES, link_states_topic=LINK_STATES
    )
    say(verdict.text())
    return verdict.passed


@contextmanager
def _nodes(folder: Path, urdf: Path, logs: Path) -> Iterator[None]:
    """Simulator, recorder and identification, in a namespace of their own."""
    parameters: Mapping[str, Mapping[str, object]] = {
        "simulator": {
            "robot_description": urdf,
            "rate": 250.0,
            "trajectory_topic": COMMANDS,
            "link_states_topic": LINK_STATES,
            **ARM,
            **CAMERA,
        },
        "recorder": {"output_folder": folder / "bags", "pose_topics": [MARKERS], "extra_topics": [LINK_STATES]},
        "flexible_joint_identification": {
            "joint_states_topic": JOINT_STATES,
            "bag_topic": f"{SPACE}/recorder/bag",
            "effort_convention": "torque",
            "band": BAND,
            "output": folder,
        },
    }
    with ExitStack() as stack:
        for name, values in parameters.items():
            stack.enter_context(node_process(name, values, logs / f"flexible_{name}.log", SPACE))
        yield


def _record(stage: Stage, robot: RobotModel) -> None:
    """Move the arm and record it."""
    publisher = stage.create_publisher(JointTrajectory, COMMANDS, 10)
    try:
        _spin(stage, SETTLING)
        stage.call.trigger(f"{SPACE}/recorder/start")
        trajectory = excitation(robot).trajectory(PERIODS)
        publisher.publish(trajectory_message(trajectory, robot.joint_names, LEAD))
        _spin(stage, trajectory.duration + LEAD + SETTLING)
        say(stage.call.trigger(f"{SPACE}/recorder/stop"))
    finally:
        stage.destroy_publisher(publisher)


def excitation(robot: RobotModel) -> FourierSeries:
    """A motion from START and back, as quick as the joints' limits let it be, in part."""
    order = np.arange(1, HARMONICS + 1)
    weight = np.where(order <= SLOW, 1.0, np.where(order > NEAR, QUICK, 0.0)) / order
    sine, cosine = weight * np.random.default_rng(SEED).standard_normal((2, robot.n_joints, HARMONICS))
    series = FourierSeries.at_rest(robot.joint_names, BASE_FREQUENCY, sine, cosine)
    return series.scaled(SPEED * robot.limits.velocity / series.largest()[2]).shifted(np.array(START))


def _spin(stage: Stage, duration: float) -> None:
    end = time.monotonic() + duration
    while time.monotonic() < end:
        rclpy.spin_once(stage, timeout_sec=0.05)
