"""Holds the torque sensors that the demo calibrated against what is true of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.demo.page import Act, Found, before_after_plot
from dynid_ros.demo.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.section import dof_of
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.report.formats import joint_units
from dynid_ros.report.page import Tile

LARGEST_GAIN_ERROR = 0.01
"""Relative. In 30 repetitions of the demo's motion the sensor at the tip, which gravity loads to a seventh of its
range, was off by at most 0.6 %, the others by at most 0.4 %."""
LARGEST_OFFSET_ERROR = 0.002
"""Of the range; at most 0.05 % in the same repetitions."""
LEAST_COVERED = 0.7
"""Of some 11 intervals of 95 %, which err together: they share the errors of the gravity parameters."""


@dataclass(frozen=True)
class TorqueSensorVerdict:
    """Sensors that went wrong, as they were found.

    Attributes:
        gains: of the joints that gravity loads.
        offsets: of all joints.
        ranges: (n,) full scale, N m.
    """

    gains: tuple[Found, ...]
    offsets: tuple[Found, ...]
    ranges: NDArray

    @property
    def gain_error(self) -> float:
        """Of the worst joint, relative; infinite if one was not found."""
        errors = [abs(row.error / row.true) for row in self.gains]
        return float(max(error if np.isfinite(error) else np.inf for error in errors))

    @property
    def offset_error(self) -> float:
        """Of the worst joint, over its range; infinite if one was not found."""
        errors = [abs(row.error) / size for row, size in zip(self.offsets, self.ranges, strict=True)]
        return float(max(error if np.isfinite(error) else np.inf for error in errors))

    @property
    def covered(self) -> NDArray:
        """Whether the interval of each number holds the truth."""
        return np.array([row.covered for row in self.rows])

    @property
    def rows(self) -> tuple[Found, ...]:
        """All numbers."""
        return (*self.gains, *self.offsets)

    @property
    def wrong(self) -> tuple[float, float]:
        """Largest true error of a gain, relative, and offset, over the range."""
        offsets = [abs(row.true) / size for row, size in zip(self.offsets, self.ranges, strict=True)]
        return max(abs(1 / row.true - 1) for row in self.gains), float(max(offsets))

    @property
    def passed(self) -> bool:
        """Whether gains, offsets and intervals are as good as they must be."""
        return bool(
            self.gain_error <= LARGEST_GAIN_ERROR
            and self.offset_error <= LARGEST_OFFSET_ERROR
            and self.covered.mean() >= LEAST_COVERED
        )

    def sentences(self) -> list[str]:
        """The verdict."""
        gain, offset = self.wrong
        return [
            "PASSED: the torque sensors are calibrated."
            if self.passed
            else "FAILED: the torque sensors are not calibrated well enough.",
            f"Gains, wrong by {gain:.0%}: the worst joint is off by {self.gain_error:.2%} (allowed "
            f"{LARGEST_GAIN_ERROR:.0%})",
            f"Offsets, wrong by {offset:.0%} of the range: the worst joint is off by {self.offset_error:.2%} of it "
            f"(allowed {LARGEST_OFFSET_ERROR:.1%})",
            f"True values within their 95 % intervals: {self.covered.sum()} of {len(self.covered)} (at least "
            f"{LEAST_COVERED:.0%})",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        gain, offset = self.wrong
        return [
            Tile("Gain, worst joint", f"{self.gain_error:.2%}", f"off; the sensors were by {gain:.0%}"),
            Tile("Offset, worst joint", f"{self.offset_error:.2%}", f"of the range; the sensors' were {offset:.0%}"),
            Tile("Intervals that hold the truth", f"{self.covered.sum()} of {len(self.covered)}", "of 95 %"),
        ]

    @property
    def pictures(self) -> dict[str, str]:
        """Errors of the gains before and after."""
        joints = [row.name.removeprefix("Gain of ") for row in self.gains]
        before = np.array([abs(1 / row.true - 1) for row in self.gains])
        after = np.array([abs(row.error / row.true) for row in self.gains])
        picture = before_after_plot(joints, 100 * before, 100 * after, "error of the gain (%)")
        return {"Orange: as the sensors went wrong; blue: what is left of it after the calibration": picture}


def judge_torque_sensors(robot: RobotModel, truth: dict[str, Any], folder: Path) -> TorqueSensorVerdict:
    """Compare `identified.yaml` in `folder` with the truth of the simulation.

    Args:
        robot: the arm as its URDF has it.
        truth: of the simulated arm with the sensors as they are, see `truth_table`.
        folder: that the calibration wrote into.
    """
    document = load_identified(folder / "identified.yaml")
    sensors, about = document["torque_sensors"], document["torque_sensor_calibration"]
    wide = float(half_width(1.0, dof_of(about)))

    def found(joint: str, label: str, unit: str, true: float) -> Found:
        value, std = sensors[joint][label], sensors[joint]["std"][label]
        if value is None or std is None:
            return Found(f"{label.capitalize()} of {joint}", unit, true, np.nan, np.nan)
        return Found(f"{label.capitalize()} of {joint}", unit, true, value, wide * std)

    free = GravityModel(robot).unobservable_axes()
    true = truth["joints"]
    return TorqueSensorVerdict(
        gains=tuple(
            found(joint, "gain", "", 1 / (1 + true[joint]["torque_gain_error"]))
            for joint, unloaded in zip(robot.joint_names, free, strict=True)
            if not unloaded
        ),
        offsets=tuple(
            found(joint, "offset", unit.effort, true[joint]["torque_offset"])
            for joint, unit in zip(robot.joint_names, joint_units(robot), strict=True)
        ),
        ranges=robot.limits.effort,
    )


# Fifth act of the demo: the torque sensors go wrong, and are calibrated by the arm's own weight.


WRONG = {"torque_gain_error": [0.1], "torque_offset": [0.05]}
MOTION = {"motion": "poses", "target": "gravity", "count": 6, "dwell": 0.8, "approach": [0.03]}
NODE = "/torque_sensor_calibration"
STORY = (
    "The arm's torque sensors go wrong: gains by 10 %, offsets by 5 % of the range. But by now the weight of "
    "the arm is known. The arm dwells in a few poses, and what each sensor reads there is held against what "
    "gravity makes: gain and offset of each sensor follow, without taking the arm apart.",
)


def torque_sensor_act(stage: Stage) -> None:
    """Play it; it is good if gains and offsets are found."""
    folder, robot = stage.output / "torque_sensors", stage.arm.robot
    stage.call.trigger("/simulator/reset")
    stage.announce("The torque sensors go wrong. Excitation: a few poses, from both sides.")
    stage.call.set_parameters("/simulator", WRONG)
    truth = stage.truth()
    parameters = {"model_file": stage.output / "gravity" / "identified.yaml", "output": folder}
    with stage.node("torque_sensor_calibration", parameters):
        stage.excitation.record()
        stage.announce("Gains and offsets, against the gravity that was identified before.")
        stage.call.wait(f"{NODE}/identify", timeout=START_TIMEOUT)
        say(stage.call.trigger(f"{NODE}/identify", timeout=COMPUTING_TIMEOUT))

    def judge() -> Act:
        title, pages = (
            "Torque sensors: calibrated in place",
            [("the calibration's report", "torque_sensors/report.html")],
        )
        return Act.of(title, STORY, judge_torque_sensors(robot, truth, folder), pages)

    stage.later("torque_sensors", judge)
