"""Estimator of a payload for `run`, with its settings, its inputs from files, and the files for robot drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.files import remove, write_atomically
from dynid_ros.identification import LinkIdentification, LoadIdentification, LoadResult
from dynid_ros.identification.load.driver_settings import DRIVER_FILES, driver_settings
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.wrench_frame import WRENCH_UNITS, Convention, Frame
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import KnownArm, known_arm
from dynid_ros.identified.load import load_estimate
from dynid_ros.identified.validation import Validation, unit_of_joints, validate_torque
from dynid_ros.jobs.kinds import Checks
from dynid_ros.jobs.run import Extras
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES
from dynid_ros.recording import Recording
from dynid_ros.report.load import LoadEvidence
from dynid_ros.settings import check, setting

WRENCH_CONVENTIONS: dict[str, Convention] = {"sensor": "load_on_sensor", "load": "sensor_on_load"}
"""Convention of the wrenches, by the body on which the measured wrench acts."""


@dataclass(frozen=True)
class LoadSettings:
    """Settings of a load identification that commands and nodes offer."""

    source: str = setting(
        "torque",
        "source of the weight: torque, of the joints; wrench, of a sensor at the wrist, whose link is the tip; needs "
        "no model of the arm",
        choices=("torque", "wrench"),
    )
    static: bool = setting(False, "use dwells only: mass and centre of mass, no inertia")
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    wrench_topic: str = setting("", "topic of the wrench sensor; default: the only one", symbol="T")
    wrench_frame: str = setting(
        "", "axes of the wrenches: sensor or base; default: by their frame_id", choices=("sensor", "base")
    )
    wrench_acts_on: str = setting(
        "sensor",
        "body that the wrench acts on: sensor, so that a load at rest reads its weight downward; or load, upward",
        choices=tuple(WRENCH_CONVENTIONS),
    )
    wrench_gain_error: float = setting(
        0.005, "standard deviation of the relative error of the gain of each axis", least=0, symbol="S"
    )
    joint_deflection: float = setting(
        0.001,
        "deflection of a joint by its largest torque, RMS over the joints, rad; for source wrench",
        least=0,
        symbol="D",
    )

    def __post_init__(self) -> None:
        check(self, IdentificationError)


@dataclass
class LoadRun:
    """Estimator of a load for `run`, from settings and files.

    Attributes:
        robot: the arm, whose tip carries the load.
        settings: settings of the identification.
        model: `identified.yaml` of the arm's links; None: they are identified from unloaded recordings, if needed.
        tare: `identified.yaml` of a load that is subtracted, such as a tool; None: nothing is subtracted.
        declared: payload that is set in a gravity-compensating driver, empty for no payload; None: torques are not
            compensated.
    """

    robot: RobotModel
    settings: LoadSettings = LoadSettings()
    model: Path | None = None
    tare: Path | None = None
    declared: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._identification: LoadIdentification | None = None

    @classmethod
    def build(cls, robot: RobotModel, values: Mapping[str, Any], **inputs: Any) -> LoadRun:
        """Return the estimator from values of `LoadSettings` by name, and from its other attributes."""
        run = cls(robot, LoadSettings(**values), **inputs)
        run.identification()  # refuses invalid settings and payloads
        return run

    @property
    def checks(self) -> Checks:
        """Sanity check of the loaded recordings; gravity-compensated torques are not compared with the arm's model."""
        is_of_arm = self.settings.source == "torque" and self.declared is None
        return Checks(motion=not self.settings.static, torque=is_of_arm)

    def check_inputs(self, given: Mapping[str, Sequence]) -> None:
        """Refuse recordings that contradict the files and settings.

        Args:
            given: recordings, or their paths, by role.

        Raises:
            IdentificationError: inputs contradict each other, or a model of the arm is missing.
        """
        has_model = self.model is not None
        has_unloaded = bool(given.get("unloaded"))
        if self.settings.source == "wrench":
            if has_unloaded:
                raise IdentificationError(
                    "recordings without the load (--unloaded, unloaded_recording) are for joint torques; weigh a tool "
                    "on the sensor by itself and subtract it (--tare, tare_file)"
                )
        elif self.settings.wrench_topic or self.settings.wrench_frame:
            raise IdentificationError("--wrench-topic and --wrench-frame are for --source wrench")
        elif self.declared is not None:
            if has_model or has_unloaded:
                raise IdentificationError(
                    "effort convention gravity_compensated: the driver has subtracted the torques of the arm; leave "
                    "out its model (--model, model_file) and recordings without the load (--unloaded, "
                    "unloaded_recording)"
                )
        elif not (has_model or has_unloaded):
            raise IdentificationError(
                "the torques of the arm alone are not known: give the identified.yaml of its links (--model, "
                "model_file), or recordings of the arm without the load (--unloaded, unloaded_recording)"
            )

    def fit(self, recordings: Sequence[Recording], unloaded: Sequence[Recording] = ()) -> LoadResult:
        """Identify the load; if there are unloaded recordings, identify the arm from these first.

        Raises:
            IdentifiedFileError: a file is not of this robot, or lacks its links or load.
            IdentificationError: the recordings contain too little information, or contradict each other.
        """
        arm, document, arm_missing = self._arm(unloaded)
        tare = None if self.tare is None else read_tare(self.tare, self.robot)
        identification = self.identification(arm, tare)
        self._identification = identification
        problem = identification.problem(*recordings)
        result = identification.solve(problem, tuple(recording.source for recording in recordings))
        evidence = LoadEvidence.from_equations(problem.equations, problem.columns, result, tare)
        return replace(result, arm=document, arm_missing=arm_missing, fitted=evidence)

    def validate(self, result: LoadResult, recording: Recording) -> Validation:
        """Compare the measured torque or wrench of the load with the predicted one, in a recording not fitted."""
        assert self._identification is not None
        problem = self._identification.problem(recording)
        evidence = LoadEvidence.from_equations(problem.equations, problem.columns, result, self._identification.tare)
        unit = " or ".join(dict.fromkeys(WRENCH_UNITS))
        if self.settings.source == "torque":
            unit = unit_of_joints(self.robot.chain.prismatic, "N m", "N")
        return validate_torque(recording.source, result.channels, evidence.measured, evidence.load, unit)

    def identification(self, arm: KnownArm | None = None, tare: LoadResult | None = None) -> LoadIdentification:
        """Return the estimator for a known arm and a known tare; None: not known, or not needed."""
        settings = self.settings
        sensor = WrenchSource(
            topic=settings.wrench_topic or None,
            frame=cast(Frame | None, settings.wrench_frame or None),
            convention=WRENCH_CONVENTIONS[settings.wrench_acts_on],
            gain_error=settings.wrench_gain_error,
            joint_deflection=settings.joint_deflection,
        )
        identification = LoadIdentification(
            self.robot,
            arm,
            sensor=sensor if settings.source == "wrench" else None,
            motion="static" if settings.static else "dynamic",
            tare=tare,
            torque_gain_error=settings.torque_gain_error,
        )
        return identification if self.declared is None else identification.of_compensated(self.declared)

    def _arm(self, unloaded: Sequence[Recording]) -> tuple[KnownArm | None, dict | None, tuple[str, ...]]:
        """Return the arm, the content of its file, and sentences on its undetermined parameters."""
        if not unloaded:
            known = (None, None) if self.model is None else read_arm(self.model, self.robot)
            return *known, ()
        links = LinkIdentification(self.robot, torque_gain_error=self.settings.torque_gain_error).fit(*unloaded)
        return links.known_arm, links.document(), links.missing


def read_arm(path: Path, robot: RobotModel) -> tuple[KnownArm, dict]:
    """Read an `identified.yaml`, and return its arm and its content.

    Raises:
        IdentifiedFileError: the file is of another robot, or not from a link identification.
    """
    document = load_identified(path)
    if "links" not in document:
        raise IdentifiedFileError(
            f"{path}: it has no links, which a load identification needs; give the file of `dynid identify links`"
        )
    return known_arm(document, robot), document


def read_tare(path: Path, robot: RobotModel) -> LoadResult:
    """Read the unregularized estimate of a load from an `identified.yaml`, which is to be subtracted from another load.

    The errors of its parameters are assumed to be independent, as the file has no correlations.

    Raises:
        IdentifiedFileError: the file is of another robot, or has no load with a determined mass.
    """
    values, errors, dof, recordings = load_estimate(load_identified(path), robot)
    names = LOAD_NAMES[: len(values)]
    unknown = np.full(len(values), np.nan)
    return LoadResult(
        robot=robot,
        estimate=BaseEstimate(names, names, values, np.diag(np.nan_to_num(errors) ** 2), unknown, dof),
        solution=np.nan_to_num(values),
        condition_number=np.nan,
        channels=(),
        residual_rms=np.empty(0),
        signal_rms=np.empty(0),
        n_samples=0,
        sources=tuple(recordings),
        settings={},
    )


DRIVERS = "drivers"
"""Name of the folder with settings for drivers, inside the folder of the result."""


def write_driver_settings(result: LoadResult, output: Path) -> Extras:
    """Write the load as settings of drivers and controllers, and remove files of an earlier run."""
    folder = output / DRIVERS
    for name in DRIVER_FILES:
        remove(folder / name)
    try:
        texts = driver_settings(result)
    except IdentificationError as error:
        return Extras(content={"drivers": []}, warnings=(str(error),))
    paths = [write_atomically(folder / name, text) for name, text in texts.items()]
    names = ", ".join(path.name for path in paths)
    remark = f"wrote settings for drivers into {folder}: {names}"
    return Extras(content={"drivers": list(map(str, paths))}, remarks=(remark,))
