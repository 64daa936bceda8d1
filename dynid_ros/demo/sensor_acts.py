"""Last acts of the demo: torque sensors calibrated by weight, and joints with springs whose links a camera sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from dynid_ros.demo.arm import spin_for
from dynid_ros.demo.page import Act
from dynid_ros.demo.stage import COMPUTING_TIMEOUT_S, START_TIMEOUT_S, Stage, say
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import dof_of, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.nodes.experiment.trajectory_action import LEAD_S, trajectory_message
from dynid_ros.nodes.shared.child_process import NodeProcess, running
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.truth_comparison import Check, Comparison, coverage_check
from dynid_ros.report.drawing import before_after_plot
from dynid_ros.report.flexible_joints import spring_plot
from dynid_ros.report.formats import joint_units
from dynid_ros.signals import LowPass, filtered_motion
from dynid_ros.simulation.descriptions import demo_arm_urdf
from dynid_ros.trajectories.fourier import FourierSeries

MAX_GAIN_ERROR_PERCENT = 1.0
"""Errors in 30 repetitions of the demo's motion: the sensor at the tip, which gravity loads to a seventh of its range,
was off by at most 0.6 %, the others by at most 0.4 %."""
MAX_OFFSET_ERROR_PERCENT = 0.2
"""Per cent of the range; at most 0.05 % in the same repetitions."""
MIN_COVERED_PERCENT = 70.0
"""Share of about 11 intervals of 95 %, which err together: they share the errors of the gravity parameters."""
WRONG_SENSORS = {"torque_gain_error": [0.1], "torque_offset": [0.05]}
SENSORS_MOTION = {"motion": "poses", "target": "gravity", "count": 6, "dwell": 0.8, "approach": [0.03]}
SENSORS_NODE = "/torque_sensor_calibration"
SENSORS_STORY = (
    "The torque sensors of the arm go wrong: gains by 10 %, offsets by 5 % of the range. But by now the weight of the "
    "arm is known. The arm dwells in a few poses, and the readings are compared with the gravity torque there: gain "
    "and offset of each sensor follow, without taking the arm apart.",
)


def torque_sensor_act(stage: Stage) -> None:
    """Play the act."""
    folder = stage.output / "torque_sensors"
    robot = stage.arm.robot
    stage.call.trigger("/simulator/reset")
    stage.announce("The torque sensors go wrong. Excitation: a few poses, from both sides.")
    stage.call.set_parameters("/simulator", WRONG_SENSORS)
    truth = stage.truth()
    parameters = {"model_file": stage.output / "gravity" / "identified.yaml", "output": folder}
    with stage.node("torque_sensor_calibration", parameters):
        stage.excitation.record()
        stage.announce("Gains and offsets, by the gravity that was identified before.")
        stage.call.wait(f"{SENSORS_NODE}/identify", timeout=START_TIMEOUT_S)
        say(stage.call.trigger(f"{SENSORS_NODE}/identify", timeout=COMPUTING_TIMEOUT_S))
    stage.judge_later("torque_sensors", lambda: judge_torque_sensors(robot, truth, folder))


def judge_torque_sensors(robot: RobotModel, truth: dict[str, Any], folder: Path) -> Act:
    """Compare `identified.yaml` in `folder` with the truth of the simulation.

    Args:
        robot: arm of the URDF.
        truth: truth of the simulated arm with the wrong sensors, see `truth_table`.
        folder: folder of the calibration.
    """
    document = load_identified(folder / "identified.yaml")
    sensors = document["torque_sensors"]
    true = truth["joints"]
    wide = float(half_width(1.0, dof_of(document["torque_sensor_calibration"])))

    def compare(joint: str, label: str, unit: str, true_value: float) -> Comparison:
        value = sensors[joint][label]
        error = sensors[joint]["std"][label]
        is_known = value is not None and error is not None
        half = wide * error if is_known else np.nan
        return Comparison(f"{label.capitalize()} of {joint}", unit, true_value, value if is_known else np.nan, half)

    is_unloaded = GravityModel(robot).unobservable_axes()
    loaded = [joint for joint, unloaded in zip(robot.joint_names, is_unloaded, strict=True) if not unloaded]
    gains = [compare(joint, "gain", "", 1 / (1 + true[joint]["torque_gain_error"])) for joint in loaded]
    offsets = [
        compare(joint, "offset", unit.effort, true[joint]["torque_offset"])
        for joint, unit in zip(robot.joint_names, joint_units(robot), strict=True)
    ]
    before = 100 * np.array([abs(1 / gain.true - 1) for gain in gains])
    after = 100 * np.array([gain.relative_error for gain in gains])
    offset_errors = np.abs([offset.error for offset in offsets]) / robot.limits.effort
    picture = before_after_plot(loaded, before, after, "error of the gain (%)")
    comparisons = [*gains, *offsets]
    return Act(
        "Torque sensors: calibrated in place",
        SENSORS_STORY,
        [
            Check("Gain, worst joint: relative error", float(after.max()), MAX_GAIN_ERROR_PERCENT, "%"),
            Check(
                "Offset, worst joint: error over the range",
                100 * float(offset_errors.max()),
                MAX_OFFSET_ERROR_PERCENT,
                "%",
            ),
            coverage_check(comparisons, MIN_COVERED_PERCENT),
        ],
        comparisons,
        {"Orange: the wrong sensors; blue: error after the calibration": picture},
        [("the report of the calibration", "torque_sensors/report.html")],
    )


CUTOFF_HZ = 15.0
"""Cutoff frequency of the signals in the pictures."""
TERMS = {
    "Stiffness": ("stiffness", "stiffness", "N m/rad", 5.0),
    "Motor inertia": ("motor_inertia", "rotor_inertia", "kg m²", 15.0),
    "Coulomb friction": ("link_coulomb", "coulomb", "N m", 15.0),
}
"""Keys of `identified.yaml` and of the truth, unit, and largest relative error in per cent. Motor inertia is
the smaller part of the moving inertia near the resonance. MuJoCo's dry friction is softer around standstill than the
model's, so the coverage of the intervals is not checked."""
JOINTS = ("joint_1", "joint_2")
"""Joints that move; the others are held."""
NAMESPACE = "/flexible"
MARKERS, JOINT_STATES, LINK_STATES, COMMAND_TOPIC = (
    f"{NAMESPACE}/{name}" for name in ("markers", "joint_states", "link_states", "trajectory")
)
START_POSE = [0.0, 0.4]
ARM = {
    "start_position": START_POSE,
    "stiffness": [6400.0, 14400.0],
    "motor_viscous": [2.0, 3.0],
    "rotor_inertia": [0.8, 0.8],
    "torque_offset": [0.0],
    "description_error": 0.2,
}
"""The links resonate at 6 and 10 Hz while the motors are held."""
CAMERA = {
    "markers_topic": MARKERS,
    "camera_rate": 100.0,
    "camera_clock_offset": 0.37,
    "base_in_camera": [0.4, -2.1, 0.3, 0.2, -0.1, 2.5],
}
BASE_FREQUENCY_HZ = 0.25
N_HARMONICS = 40
N_PERIODS = 4
SEED = 0
SPEED_FRACTION = 0.6
LAST_SLOW_HARMONIC = 2
"""Harmonics up to this one move the markers far."""
FIRST_NEAR_HARMONIC = 21
NEAR_WEIGHT = 0.5
"""Harmonics from this one on are near the resonances, and have this weight."""
BAND_HZ = 14.0
"""Band of the identification; the motion ends at 10 Hz."""
SETTLING_TIME_S = 1.0
MAX_GAP_S = 0.1
"""Largest time between joint states. A longer gap breaks the period, which separates the harmonics of the motors."""
MAX_TRIES = 3
IDENTIFICATION = f"{NAMESPACE}/flexible_joint_identification"
FLEXIBLE_STORY = (
    "Another arm has a spring in each of its two joints, as gears have: the link does not follow its motor, and the "
    "arm swings. A camera sees markers on the links, by a clock of its own and from an unknown place.",
    "The motors shake the arm up to near its resonances. Motor torques, motor angles and markers determine the "
    "stiffness of the springs, the inertia of the motors and the friction of the joints.",
)


def flexible_act(stage: Stage) -> None:
    """Play the act."""
    folder = stage.output / "flexible_joint"
    folder.mkdir(parents=True, exist_ok=True)
    urdf = folder / "arm.urdf"
    urdf.write_text(demo_arm_urdf(JOINTS), encoding="utf-8")
    robot = RobotModel.from_urdf(urdf)
    stage.announce("An arm with springs in its joints, markers on its links. Excitation: up to near its resonances.")
    with running(stage.processes, *_start_nodes(folder, urdf, stage.logs)):
        services = (f"{NAMESPACE}/simulator/reset", f"{NAMESPACE}/recorder/start", f"{IDENTIFICATION}/identify")
        stage.call.wait(*services, timeout=START_TIMEOUT_S)
        truth = stage.truth(f"{NAMESPACE}/simulator/true_parameters")
        for n_left in reversed(range(MAX_TRIES)):
            gap = _record(stage, robot)
            if gap <= MAX_GAP_S:
                break
            say(f"busy machine: a gap of {gap:.2f} s in the recording{'; once more' if n_left else ''}")
        stage.announce("Springs, motors and links, from the torques of the motors and the markers.")
        say(stage.call.trigger(f"{IDENTIFICATION}/identify", timeout=COMPUTING_TIMEOUT_S))
    stage.judge_later("flexible_joint", lambda: judge_flexible_joints(robot, truth, folder))


def _start_nodes(folder: Path, urdf: Path, logs: Path) -> list[NodeProcess]:
    """Start simulator, recorder and identification in their own namespace."""
    parameters: Mapping[str, Mapping[str, object]] = {
        "simulator": {
            "robot_description": urdf,
            "rate": 250.0,
            "trajectory_topic": COMMAND_TOPIC,
            "link_states_topic": LINK_STATES,
            **ARM,
            **CAMERA,
        },
        "recorder": {"output_folder": folder / "bags", "pose_topics": [MARKERS], "extra_topics": [LINK_STATES]},
        "flexible_joint_identification": {
            "joint_states_topic": JOINT_STATES,
            "effort_convention": "torque",
            "band": BAND_HZ,
            "output": folder,
        },
    }
    return [
        NodeProcess(name, values, logs / f"flexible_{name}.log", namespace=NAMESPACE)
        for name, values in parameters.items()
    ]


def _record(stage: Stage, robot: RobotModel) -> float:
    """Move the arm, record it, and return the longest gap between joint states, s."""
    publisher = stage.create_publisher(JointTrajectory, COMMAND_TOPIC, 10)
    stamps: list[float] = []

    def on_state(message: JointState) -> None:
        stamps.append(Time.from_msg(message.header.stamp).nanoseconds * 1e-9)

    states = stage.create_subscription(JointState, JOINT_STATES, on_state, 1000)
    try:
        spin_for(stage, SETTLING_TIME_S)
        stage.call.trigger(f"{NAMESPACE}/recorder/start")
        trajectory = excitation(robot).trajectory(N_PERIODS)
        publisher.publish(trajectory_message(trajectory, robot.joint_names, LEAD_S))
        spin_for(stage, trajectory.duration + LEAD_S + SETTLING_TIME_S)
        say(stage.call.trigger(f"{NAMESPACE}/recorder/stop"))
    finally:
        stage.destroy_publisher(publisher)
        stage.destroy_subscription(states)
    return float(np.diff(stamps).max(initial=0.0)) if stamps else np.inf


def excitation(robot: RobotModel) -> FourierSeries:
    """Return a motion from the start pose and back, at a fraction of the velocity limits."""
    order = np.arange(1, N_HARMONICS + 1)
    far = np.where(order >= FIRST_NEAR_HARMONIC, NEAR_WEIGHT, 0.0)
    weight = np.where(order <= LAST_SLOW_HARMONIC, 1.0, far) / order
    sine, cosine = weight * np.random.default_rng(SEED).standard_normal((2, robot.n_joints, N_HARMONICS))
    series = FourierSeries.at_rest(robot.joint_names, BASE_FREQUENCY_HZ, sine, cosine)
    scaled = series.scaled(SPEED_FRACTION * robot.limits.velocity / series.peaks()[2])
    return scaled.shifted(np.array(START_POSE))


def judge_flexible_joints(robot: RobotModel, truth: dict[str, Any], folder: Path) -> Act:
    """Compare `identified.yaml` in `folder` with the truth of the simulation."""
    document = load_identified(folder / "identified.yaml")
    joints = document["flexible_joints"]
    true = truth["joints"]

    def compare(joint: str, label: str, key: str, true_key: str, unit: str) -> Comparison:
        entry = joints[joint]
        value, error = (entry[key], entry["std"][key]) if entry["decided"][key] else (np.nan, np.nan)
        half = float(half_width(error, dof_of(document, entry, key)))
        return Comparison(f"{label} of {joint}", unit, true[joint][true_key], value, half)

    comparisons: dict[str, list[Comparison]] = {}
    checks = []
    for label, (key, true_key, unit, largest) in TERMS.items():
        comparisons[label] = [compare(joint, label, key, true_key, unit) for joint in robot.joint_names]
        error = max(comparison.relative_error for comparison in comparisons[label])
        checks.append(Check(f"{label}, worst joint: relative error", 100 * error, largest, "%"))
    return Act(
        "Flexible joints: springs, seen by a camera",
        FLEXIBLE_STORY,
        checks,
        [comparison for of_term in comparisons.values() for comparison in of_term],
        _draw_springs(document, robot, comparisons["Stiffness"]),
        [("the report of the identification", "flexible_joint/report.html")],
    )


def _draw_springs(document: dict, robot: RobotModel, stiffness: Sequence[Comparison]) -> dict[str, str]:
    """Draw the springs by link encoders, which the identification did not use."""
    (bag,) = document["source"]["recordings"]
    recording = Recording.read(
        bag, joint_names=robot.joint_names, joint_states_topic=JOINT_STATES, link_states_topic=LINK_STATES
    )
    assert recording.link_position is not None
    recording = recording.slice(np.isfinite(recording.link_position).all(axis=1))
    assert recording.link_position is not None
    low_pass = LowPass(CUTOFF_HZ, 1 / float(np.median(np.diff(recording.time))))
    motion = filtered_motion(recording.position, low_pass)
    deflection = motion.position - low_pass.filter(recording.link_position)
    torque = low_pass.filter(recording.torque)
    inside = slice(low_pass.edge, -low_pass.edge)
    pictures = {}
    for i, (joint, compared) in enumerate(zip(recording.joint_names, stiffness, strict=True)):
        motor = document["flexible_joints"][joint]
        # torque of the spring: the motor's, minus what accelerates and brakes the motor
        spring = torque[:, i] - motor["motor_inertia"] * motion.acceleration[:, i]
        spring -= motor["motor_viscous"] * motion.velocity[:, i]
        ends = np.array([deflection[inside, i].min(), deflection[inside, i].max()])
        lines: dict[str, Any] = {"identified": compared.value * ends, "true": compared.true * ends}
        caption = f"Torque over deflection of {joint}, by link encoders that were not used; green: the truth"
        pictures[caption] = spring_plot(joint, deflection[inside, i], spring[inside], ends, **lines)
    return pictures
