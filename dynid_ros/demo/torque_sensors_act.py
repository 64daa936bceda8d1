"""Fifth act of the demo: the torque sensors go wrong, and are calibrated by the weight of the arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.demo.page import Act, before_after_plot
from dynid_ros.demo.stage import COMPUTING_TIMEOUT_S, START_TIMEOUT_S, Stage, say
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.section import dof_of
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.report.comparison import Check, Comparison, coverage_check
from dynid_ros.report.formats import joint_units

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
