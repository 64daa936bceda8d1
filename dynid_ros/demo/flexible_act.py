"""Holds the springs and motors that the demo identified against what is true of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.demo.calls import spin_for
from dynid_ros.demo.page import Act, Found
from dynid_ros.demo.processes import DemoProcess, running
from dynid_ros.demo.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.section import dof_of
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.motion_pieces import LEAD_S, trajectory_message
from dynid_ros.recording import Recording
from dynid_ros.report.flexible_joints import spring_plot
from dynid_ros.report.page import Tile
from dynid_ros.signals import LowPass, filtered_motion
from dynid_ros.simulation.descriptions import demo_arm_urdf
from dynid_ros.trajectories.fourier import FourierSeries

LARGEST_STIFFNESS_ERROR = 0.05
"""Relative."""
LARGEST_INERTIA_ERROR = 0.15
"""Of the motors, relative: of all that a torque moves, near the resonance, they are the smaller part."""
LARGEST_FRICTION_ERROR = 0.15
"""Of dry friction, relative: MuJoCo's is softer around standstill than the model's, and intervals do not know that."""
CUTOFF = 15.0
"""Of what is drawn, Hz."""
TERMS = {
    "Stiffness": ("stiffness", "stiffness", "N m/rad"),
    "Motor inertia": ("motor_inertia", "rotor_inertia", "kg m²"),
    "Coulomb friction": ("link_coulomb", "coulomb", "N m"),
}
"""Keys of `identified.yaml` and of the truth, and units."""


@dataclass(frozen=True)
class FlexibleVerdict:
    """Springs, motors and friction as they were found.

    Attributes:
        found: of each joint, by term.
        pictures: SVG of each spring, by caption.
    """

    found: dict[str, tuple[Found, ...]]
    pictures: dict[str, str]

    @property
    def rows(self) -> tuple[Found, ...]:
        """All of them."""
        return tuple(row for rows in self.found.values() for row in rows)

    def worst(self, term: str) -> float:
        """Relative error of the worst joint; infinite if one was not determined."""
        errors = np.array([abs(row.error / row.true) for row in self.found[term]])
        return float(np.where(np.isfinite(errors), errors, np.inf).max())

    @property
    def decided(self) -> tuple[Found, ...]:
        """Those that the data determine."""
        return tuple(row for row in self.rows if np.isfinite(row.value))

    @property
    def covered(self) -> int:
        """Intervals that hold the truth."""
        return sum(row.covered for row in self.decided)

    @property
    def passed(self) -> bool:
        """Whether springs, motors and friction are as good as they must be."""
        return (
            self.worst("Stiffness") <= LARGEST_STIFFNESS_ERROR
            and self.worst("Motor inertia") <= LARGEST_INERTIA_ERROR
            and self.worst("Coulomb friction") <= LARGEST_FRICTION_ERROR
        )

    def sentences(self) -> list[str]:
        """The verdict."""
        return [
            "PASSED: the springs are found." if self.passed else "FAILED: the springs are not found well enough.",
            f"Stiffness: the worst joint is off by {self.worst('Stiffness'):.1%} (allowed "
            f"{LARGEST_STIFFNESS_ERROR:.0%})",
            f"Motor inertia: the worst joint is off by {self.worst('Motor inertia'):.1%} (allowed "
            f"{LARGEST_INERTIA_ERROR:.0%})",
            f"Coulomb friction: the worst joint is off by {self.worst('Coulomb friction'):.1%} (allowed "
            f"{LARGEST_FRICTION_ERROR:.0%})",
            f"True values within their 95 % intervals: {self.covered} of {len(self.decided)} (no condition: the "
            "simulated friction is not exactly the model's)",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        return [
            Tile("Stiffness, worst joint", f"{self.worst('Stiffness'):.1%}", "off"),
            Tile("Motor inertia, worst joint", f"{self.worst('Motor inertia'):.1%}", "off"),
            Tile("Intervals that hold the truth", f"{self.covered} of {len(self.decided)}", "of 95 %"),
        ]


def judge_flexible_joints(
    robot: RobotModel, truth: dict[str, Any], folder: Path, *, joint_states_topic: str, link_states_topic: str
) -> FlexibleVerdict:
    """Compare `identified.yaml` in `folder` with the truth of the simulation.

    Args:
        robot: the arm as its URDF has it.
        truth: of the simulated arm, see `truth_table`.
        folder: that the identification wrote into.
        joint_states_topic: of the bag.
        link_states_topic: likewise, with the links' positions by encoders that the identification has not seen.
    """
    document = load_identified(folder / "identified.yaml")
    joints, true = document["flexible_joints"], truth["joints"]

    def found(joint: str, label: str, key: str, of_truth: str, unit: str) -> Found:
        value, std = joints[joint][key], joints[joint]["std"][key]
        if not joints[joint]["decided"][key]:
            value = std = np.nan
        half = float(half_width(std, dof_of(document, joints[joint], key)))
        return Found(f"{label} of {joint}", unit, true[joint][of_truth], value, half)

    rows = {label: tuple(found(joint, label, *keys) for joint in robot.joint_names) for label, keys in TERMS.items()}
    (bag,) = document["source"]["recordings"]
    recording = Recording.read(
        bag,
        joint_names=robot.joint_names,
        joint_states_topic=joint_states_topic,
        link_states_topic=link_states_topic,
    )
    return FlexibleVerdict(rows, _pictures(recording, document, rows["Stiffness"]))


def _pictures(recording: Recording, document: dict, stiffness: Sequence[Found]) -> dict[str, str]:
    """Springs by link encoders that no identification has seen; torque without what moves the motor."""
    assert recording.link_position is not None
    recording = recording.slice(np.isfinite(recording.link_position).all(axis=1))
    assert recording.link_position is not None
    low_pass = LowPass(CUTOFF, 1 / float(np.median(np.diff(recording.time))))
    motion = filtered_motion(recording.position, low_pass)
    deflection = motion.position - low_pass.filter(recording.link_position)
    torque, inside = low_pass.filter(recording.torque), slice(low_pass.edge, -low_pass.edge)
    pictures = {}
    for i, (joint, row) in enumerate(zip(recording.joint_names, stiffness, strict=True)):
        motor = document["flexible_joints"][joint]
        spring = torque[:, i] - motor["motor_inertia"] * motion.acceleration[:, i]
        spring -= motor["motor_viscous"] * motion.velocity[:, i]
        across = np.array([deflection[inside, i].min(), deflection[inside, i].max()])
        picture = spring_plot(
            joint, deflection[inside, i], spring[inside], across, row.value * across, true=row.true * across
        )
        caption = f"Spring of {joint}: torque over deflection, by link encoders that were not used; green: the truth"
        pictures[caption] = picture
    return pictures


# Sixth act of the demo: an arm that is flexible in its joints, whose links a camera watches.


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
than the simulator can make up for breaks the period, and with it what the motors' harmonics are distinguished by."""
IDENTIFICATION = f"{SPACE}/flexible_joint_identification"


STORY = (
    "Beside the first arm stands another one, with a spring in each of its two joints, as gears have: what the "
    "motor does is not what the link does, and the arm swings. A camera sees markers on the links, by a clock "
    "of its own and from a place that is not given.",
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
        publisher.publish(trajectory_message(trajectory, robot.joint_names, LEAD_S))
        spin_for(stage, trajectory.duration + LEAD_S + SETTLING)
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
    return series.scaled(SPEED * robot.limits.velocity / series.peaks()[2]).shifted(np.array(START))
