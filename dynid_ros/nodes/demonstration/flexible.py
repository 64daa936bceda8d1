"""Sixth act of the demo: an arm that is flexible in its joints, whose links a camera watches."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.jobs.demonstration.flexible import judge_flexible_joints
from dynid_ros.model import RobotModel
from dynid_ros.nodes.demonstration.process import DemoProcess, running
from dynid_ros.nodes.demonstration.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say
from dynid_ros.nodes.demonstration.waiting import spin_for
from dynid_ros.nodes.experiment.trajectory_execution import LEAD, trajectory_message
from dynid_ros.report.demonstration.act import Act
from dynid_ros.simulation.descriptions import demo_arm_urdf
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
BASE_FREQUENCY, HARMONICS, PERIODS, SEED, SPEED = 0.25, 40, 4, 0, 0.6
SLOW, NEAR, QUICK = 2, 20, 0.5
"""Harmonics up to the first move the markers far, those above the second are near the resonances and weigh less."""
BAND = 14.0
"""Hz; the motion ends at 10."""
SETTLING = 1.0
LARGEST_GAP, TRIES = 0.1, 3
"""s between joint states, and how often the motion is recorded until there is no gap. A machine that is busy for longer
than the simulator can make up for breaks the period, and with it what the motors' harmonics are told by."""
IDENTIFICATION = f"{SPACE}/flexible_joint_identification"


STORY = (
    "Beside the first arm stands another one, with a spring in each of its two joints, as gears have: what the "
    "motor does is not what the link does, and the arm swings. A camera sees markers on the links, by a clock "
    "of its own and from a place that nobody has told of.",
    "The motors shake the arm up to near its resonances. From motor torques, motor angles and markers follow "
    "the stiffness of the springs, the inertia of the motors and the friction of the joints.",
)


def flexible_act(stage: Stage) -> None:
    """Play it; it is good if springs and motors are found."""
    folder = stage.output / "flexible_joint"
    folder.mkdir(parents=True, exist_ok=True)
    urdf = folder / "arm.urdf"
    urdf.write_text(demo_arm_urdf(JOINTS), encoding="utf-8")
    robot = RobotModel.from_urdf(urdf)
    stage.announce("An arm with springs in its joints, markers on its links. Excitation: up to near its resonances.")
    with running(stage.processes, *_nodes(folder, urdf, stage.logs)):
        # Several programs start at once: they may take their time.
        stage.call.wait(
            f"{SPACE}/simulator/reset", f"{SPACE}/recorder/start", f"{IDENTIFICATION}/identify", timeout=START_TIMEOUT
        )
        truth = stage.truth(f"{SPACE}/simulator/true_parameters")
        for left in reversed(range(TRIES)):
            gap = _record(stage, robot)
            if gap <= LARGEST_GAP:
                break
            say(f"busy machine: a gap of {gap:.2f} s in the recording{'; once more' if left else ''}")
        stage.announce("Springs, motors and links, from the motors' torques and what the camera saw.")
        say(stage.call.trigger(f"{IDENTIFICATION}/identify", timeout=COMPUTING_TIMEOUT))

    def judge() -> Act:
        verdict = judge_flexible_joints(
            robot, truth, folder, joint_states_topic=JOINT_STATES, link_states_topic=LINK_STATES
        )
        pages = [("the identification's report", "flexible_joint/report.html")]
        return Act.of("Flexible joints: springs, seen by a camera", STORY, verdict, pages)

    stage.later("flexible_joint", judge)


def _nodes(folder: Path, urdf: Path, logs: Path) -> list[DemoProcess]:
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
            "effort_convention": "torque",
            "band": BAND,
            "output": folder,
        },
    }
    return [DemoProcess(name, values, logs / f"flexible_{name}.log", SPACE) for name, values in parameters.items()]


def _record(stage: Stage, robot: RobotModel) -> float:
    """Move the arm and record it; the longest gap between joint states, s."""
    publisher = stage.create_publisher(JointTrajectory, COMMANDS, 10)
    stamps: list[float] = []

    def on_state(message: JointState) -> None:
        stamps.append(Time.from_msg(message.header.stamp).nanoseconds * 1e-9)

    states = stage.create_subscription(JointState, JOINT_STATES, on_state, 1000)
    try:
        spin_for(stage, SETTLING)
        stage.call.trigger(f"{SPACE}/recorder/start")
        trajectory = excitation(robot).trajectory(PERIODS)
        publisher.publish(trajectory_message(trajectory, robot.joint_names, LEAD))
        spin_for(stage, trajectory.duration + LEAD + SETTLING)
        say(stage.call.trigger(f"{SPACE}/recorder/stop"))
    finally:
        stage.destroy_publisher(publisher)
        stage.destroy_subscription(states)
    return float(np.diff(stamps).max(initial=0.0)) if stamps else np.inf


def excitation(robot: RobotModel) -> FourierSeries:
    """A motion from START and back, as quick as the joints' limits let it be, in part."""
    order = np.arange(1, HARMONICS + 1)
    weight = np.where(order <= SLOW, 1.0, np.where(order > NEAR, QUICK, 0.0)) / order
    sine, cosine = weight * np.random.default_rng(SEED).standard_normal((2, robot.n_joints, HARMONICS))
    series = FourierSeries.at_rest(robot.joint_names, BASE_FREQUENCY, sine, cosine)
    return series.scaled(SPEED * robot.limits.velocity / series.largest()[2]).shifted(np.array(START))
