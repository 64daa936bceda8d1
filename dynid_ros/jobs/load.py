"""From recordings to `identified.yaml`, `report.html` and settings for drivers: what an arm carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.files import all_or_none, remove, writable_folder, write_atomically
from dynid_ros.identification import LinkIdentification, LoadIdentification, LoadResult
from dynid_ros.identification.load.driver_settings import SETTINGS, driver_settings
from dynid_ros.identification.load.load_identification import COMPENSATED
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.wrench_frame import Convention, Frame
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import KnownArm, known_arm
from dynid_ros.identified.load import load_estimate
from dynid_ros.jobs.identification import Job
from dynid_ros.jobs.inputs import checked
from dynid_ros.jobs.progress import progress
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import LOAD_NAMES
from dynid_ros.recording import Recording
from dynid_ros.report.load import LoadEvidence, write_load_report
from dynid_ros.settings import check, setting

# What a load identification takes from files: the arm as it was identified, and a tare.


ACTS_ON: dict[str, Convention] = {"sensor": "load_on_sensor", "load": "sensor_on_load"}
"""Who feels the wrench that a sensor reads."""


@dataclass(frozen=True)
class LoadSettings:
    """How a load is weighed, whatever asks for it."""

    source: str = setting(
        "torque",
        "what weighs the load: torque, of the joints; wrench, a sensor at the wrist, whose link is the tip, which "
        "needs no model of the arm",
        choices=("torque", "wrench"),
    )
    static: bool = setting(False, "from dwells: mass and centre, no inertia")
    torque_gain_error: float = setting(
        0.01,
        "standard deviation of the relative error of each joint's torque gain, which no residual shows",
        least=0,
        symbol="S",
    )
    wrench_topic: str = setting("", "of the sensor in the recording; default: the only one", symbol="T")
    wrench_frame: str = setting(
        "", "whose axes wrenches are in: sensor or base; default: by their frame_id", choices=("sensor", "base")
    )
    wrench_acts_on: str = setting(
        "sensor",
        "who feels the wrench: sensor, so that a load at rest reads its weight downward; or load, upward",
        choices=tuple(ACTS_ON),
    )
    wrench_gain_error: float = setting(
        0.005, "standard deviation of the relative error of each axis' gain", least=0, symbol="S"
    )
    joint_deflection: float = setting(
        0.001,
        "RMS over the joints of how far its torque twists each joint at most, rad; for source wrench",
        least=0,
        symbol="D",
    )

    def __post_init__(self) -> None:
        check(self, IdentificationError)

    def identification(
        self, robot: RobotModel, arm: KnownArm | None = None, tare: LoadResult | None = None
    ) -> LoadIdentification:
        """Return the identification of a load on this arm."""
        sensor = WrenchSource(
            topic=self.wrench_topic or None,
            frame=cast(Frame | None, self.wrench_frame or None),
            convention=ACTS_ON[self.wrench_acts_on],
            gain_error=self.wrench_gain_error,
            joint_deflection=self.joint_deflection,
        )
        return LoadIdentification(
            robot,
            arm,
            sensor=sensor if self.source == "wrench" else None,
            motion="static" if self.static else "dynamic",
            tare=tare,
            torque_gain_error=self.torque_gain_error,
        )


def read_arm(path: Path, robot: RobotModel) -> tuple[KnownArm, dict]:
    """The arm of an `identified.yaml`, and the file's content.

    Raises:
        IdentifiedFileError: of another robot, or not of a link identification.
    """
    document = load_identified(path)
    if "links" not in document:
        raise IdentifiedFileError(
            f"{path}: it has no links, which a load identification needs; give the file of `dynid identify links`"
        )
    return known_arm(document, robot), document


def read_tare(path: Path, robot: RobotModel) -> LoadResult:
    """The load of an `identified.yaml`, by the data alone, to subtract from another.

    Errors of its parameters are taken to be independent of each other, which the file does not say.

    Raises:
        IdentifiedFileError: of another robot, or without a load whose mass is known.
    """
    values, errors, dof, recordings = load_estimate(load_identified(path), robot)
    names, unknown = LOAD_NAMES[: len(values)], np.full(len(values), np.nan)
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
"""Folder of the settings, in that of the result."""


@all_or_none()
def identify_load(
    identification: LoadIdentification,
    recordings: Sequence[Recording],
    output: str | Path,
    unloaded: Sequence[Recording] = (),
    arm: dict | None = None,
) -> Job:
    """Check the recordings, fit, write all files into `output`.

    Args:
        identification: with the arm as it is known, or a sensor; without either the arm is identified from `unloaded`.
        recordings: of the arm with the load.
        output: folder; `identified.yaml` in it holds the arm too, so that controllers need one file.
        unloaded: recordings of the arm alone.
        arm: content of the arm's `identified.yaml`.

    Raises:
        RecordingError: the sanity check found an error in a recording.
        IdentificationError: the recordings hold too little, or contradict each other.
    """
    output, robot = writable_folder(output, "identified.yaml", "report.html"), identification.robot
    moving = identification.motion == "dynamic"
    arm_missing: tuple[str, ...] = ()
    with progress(4) as step:
        step("looking for faults in the recordings")
        findings = checked(unloaded, robot, motion=True) if unloaded else ()
        # Torques that a driver has taken the arm off say nothing of the arm.
        of_arm = identification.sensor is None and identification.arm != COMPENSATED
        findings += checked(recordings, robot, motion=moving, torque=of_arm)
        if identification.sensor is None and identification.arm is None and unloaded:
            step("identifying the arm without the load")
            links = LinkIdentification(robot, torque_gain_error=identification.torque_gain_error).fit(*unloaded)
            identification, arm = replace(identification, arm=links.known_arm), links.document()
            arm_missing = links.missing
        step("identifying the load")
        problem = identification.problem(*recordings)
        result = identification.solve(problem, tuple(recording.source for recording in recordings))
        step("writing the report")
        try:
            settings, none = driver_settings(result), []
        except IdentificationError as error:
            settings, none = {}, [str(error)]
        evidence = LoadEvidence.of(problem.equations, problem.columns, result, identification.tare)
        files = {
            "identified": result.save(output / "identified.yaml", arm),
            "report": write_load_report(output / "report.html", result, evidence, settings),
        }
        drivers = _write(settings, output / DRIVERS)
    names = ", ".join(path.name for path in drivers)
    remarks = [f"wrote settings for drivers into {output / DRIVERS}: {names}"] if drivers else []
    content = {**result.document(), "drivers": list(map(str, drivers))}
    missing = (*arm_missing, *result.missing)
    return Job(result, content, files, findings, missing=missing, remarks=remarks, warnings=none)


def _write(settings: dict[str, str], folder: Path) -> tuple[Path, ...]:
    # Those of an earlier run would be taken for this result's.
    for name in SETTINGS:
        remove(folder / name)
    return tuple(write_atomically(folder / name, text) for name, text in settings.items())
