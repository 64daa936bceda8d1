"""From recordings to `identified.yaml` and `report.html`: links, springs and motors of an arm with flexible joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dynid_ros.errors import IdentificationError, MocapError, RecordingError
from dynid_ros.files import all_or_none, writable_folder
from dynid_ros.identification.flexible import (
    FlexibleJointIdentification,
    FlexibleResult,
    MocapLinks,
    TorsionIdentification,
    mocap_links,
)
from dynid_ros.identification.flexible.flexible_identification import AUTO
from dynid_ros.identification.flexible.flexible_result import (
    MeasuredSpring,
    link_noise,
    measured_springs,
)
from dynid_ros.identified.identified_file import save_identified
from dynid_ros.identified.section import as_number
from dynid_ros.jobs.identification import Job, validation_lines
from dynid_ros.jobs.inputs import check_apart, checked
from dynid_ros.jobs.progress import progress
from dynid_ros.jobs.torsion import identify_torsion
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import locked
from dynid_ros.model.spring import SPRINGS
from dynid_ros.recording import Recording
from dynid_ros.recording.mocap_exports import read_mocap
from dynid_ros.recording.recording import add_poses
from dynid_ros.report.flexible_joints import write_flexible_report
from dynid_ros.settings import setting

# What cameras saw of the links, from recordings, files and what a user says of the markers.


class CameraFiles(NamedTuple):
    """Exports of a camera system.

    Attributes:
        paths: one for each recording, in the same order.
        unit: of length, where a file names none.
        rate: Hz, in place of a file's.
    """

    paths: Sequence[Path]
    unit: str | None = None
    rate: float | None = None


def with_camera_files(recordings: Sequence[Recording], files: CameraFiles) -> list[Recording]:
    """The recordings with what the files hold.

    Raises:
        MocapError: not one file for each recording.
        RecordingError: a file cannot be read.
    """
    if len(files.paths) != len(recordings):
        raise MocapError(
            f"{len(files.paths)} files of the camera for {len(recordings)} recordings; give one for each, in the same "
            "order"
        )
    tracks = [read_mocap(path, files.unit, files.rate) for path in files.paths]
    return [add_poses(recording, poses) for recording, poses in zip(recordings, tracks, strict=True)]


def marker_links(texts: Sequence[str]) -> dict[str, str | None] | None:
    """Links by marker or body, from texts such as "/hand/pose=link_6"; without a link: to be found. None: no texts.

    Raises:
        MocapError: a text without a name, or a name that stands twice.
    """
    found: dict[str, str | None] = {}
    for text in texts:
        name, _, link = text.partition("=")
        if not name or name in found:
            raise MocapError(f"markers: '{text}' {'names nothing' if not name else 'comes twice'}; expected TOPIC=LINK")
        found[name] = link or None
    return found or None


# One joint of an arm, the others held by their brakes, as recordings show it.


HELD = {"revolute": float(np.deg2rad(1.0)), "prismatic": 1e-3}
"""Way up to which a joint counts as held, rad or m."""


def single_joint(robot: RobotModel, joint: str, recordings: Sequence[Recording]) -> RobotModel:
    """The arm with all joints but one held where the recordings have them.

    Args:
        robot: the arm.
        joint: that moves.
        recordings: with all joints of the arm.

    Raises:
        ModelError: the arm has no such joint.
        RecordingError: a joint is missing, or moved though it is to be held.
    """
    positions = np.concatenate([recording.select(robot.joint_names).position for recording in recordings])
    held = locked(robot, [joint], positions.mean(axis=0))
    for name, kind, way in zip(robot.joint_names, robot.joint_types, np.ptp(positions, axis=0), strict=True):
        if name != joint and way > HELD[kind]:
            shown = f"{np.rad2deg(way):.2g}°" if kind == "revolute" else f"{1e3 * way:.2g} mm"
            raise RecordingError(
                f"{', '.join(recording.source for recording in recordings)}: joint '{name}' moves by {shown} while "
                f"only '{joint}' should; hold it with its brake, or identify all joints together"
            )
    return held


Markers = dict[str, str | None] | None


def repeated(repeats: Sequence[FlexibleResult]) -> list[tuple[str, float, float]]:
    """Name, mean and coefficient of variation of each parameter (Lightcap and Banks 2007, table I)."""
    table = np.array([result.parameters for result in repeats])
    mean = table.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variation = table.std(axis=0, ddof=1) / np.abs(mean)
    return list(zip(repeats[0].names, mean.tolist(), variation.tolist(), strict=True))


@all_or_none()
def identify_flexible(
    identification: FlexibleJointIdentification,
    recordings: Sequence[Recording],
    output: str | Path,
    validate: Sequence[Recording] = (),
    *,
    spring: str = "linear",
    mocap: bool = False,
    markers: Markers = None,
    repeats: bool = False,
) -> Job:
    """Check the recordings, find the links in the camera's, fit, validate, write all files into `output`.

    Args:
        identification: with the arm, or one joint of it; its springs are overruled by `spring`.
        recordings: of the same arm; links by `link_position`, or by `poses` with `mocap`.
        output: folder.
        validate: recordings to predict, not to fit; they need no links.
        spring: law of all springs; "auto": for each joint the one that predicts best what was left out.
        mocap: links are seen by cameras.
        markers: links by marker or body, see `mocap_links`.
        repeats: identify from each recording alone too.

    Raises:
        RecordingError: the sanity check found an error in a recording, or clocks cannot be aligned.
        MocapError: markers that do not do.
        IdentificationError: the recordings hold too little.
    """
    if repeats and len(recordings) < 2:
        raise IdentificationError("repeats: there is only one recording; give each repetition as one of its own")
    check_apart(recordings, validate)
    robot, output = identification.robot, writable_folder(output, "identified.yaml", "report.html")
    with progress(5) as step:
        step("looking for faults in the recordings")
        # A rigid model would report all that springs do, so that none is given.
        findings = checked(
            [recording.select(robot.joint_names) for recording in (*recordings, *validate)], None, motion=True
        )
        step("finding the links")
        cameras = [_camera(robot, recording, markers, mocap=mocap) for recording in recordings]
        links = [None if camera is None else camera.angles for camera in cameras]
        step("identifying springs, motors and links")
        noise = link_noise(robot.joint_names, recordings, links)
        laws = list(SPRINGS) if spring == AUTO else [spring]
        identification, result = _first_fit(identification, recordings, links, laws)
        springs = measured_springs(result, [laws] * robot.n_joints, noise)
        if spring == AUTO:
            identification, result, springs = _by_law(
                identification, recordings, links, result, springs=springs, noise=noise
            )
        alone = identification.repeat(*recordings, links=links) if repeats else ()
        step("validating")
        result = replace(
            result,
            validations=tuple(result.validate(*validate)),
            remarks=(*result.remarks, *(remark for camera in cameras if camera for remark in camera.angles.remarks)),
        )
        step("writing the report")
        means = repeated(alone) if alone else []
        document = {**result.document(), "remarks": list(result.remarks)}
        if means:
            document["repeats"] = [
                {"parameter": name, "mean": mean, "variation": as_number(variation)} for name, mean, variation in means
            ]
        files = {
            "identified": save_identified(output / "identified.yaml", document),
            "report": write_flexible_report(
                output / "report.html",
                result,
                springs,
                predictions=[result.predict(recording) for recording in validate],
                cameras=[camera for camera in cameras if camera],
                repeats=means,
            ),
        }
    lines = validation_lines(result.validations)
    lines += [f"{len(alone)} recordings, each alone: mean and coefficient of variation"] if means else []
    lines += [f"  {name:<32}{mean:>12.5g}{cv:>10.2%}" for name, mean, cv in means]
    return Job(result, document, files, findings, lines, missing=result.missing)


def _camera(robot: RobotModel, recording: Recording, markers: Markers, *, mocap: bool) -> MocapLinks | None:
    if mocap:
        return mocap_links(robot, recording, markers)
    if recording.link_position is None or np.isnan(recording.link_position).all():
        seen = f"it has poses of {', '.join(recording.poses)}: " if recording.poses else ""
        raise MocapError(
            f"{recording.source}: nothing determines where the links are; {seen}give them with --mocap, a camera's "
            "file with --mocap-file, or record encoders behind the gears as link_position"
        )
    return None


def _first_fit(
    identification: FlexibleJointIdentification, recordings: Sequence[Recording], links: list, laws: Sequence[str]
) -> tuple[FlexibleJointIdentification, FlexibleResult]:
    """Return the fit with the first of the laws that explains the torques: a linear one may not, where springs stiffen.

    Raises:
        IdentificationError: no law explains them; the error is that of the first.
    """
    first = None
    for law in laws:
        chosen = replace(identification, spring=law)
        try:
            return chosen, chosen.fit(*recordings, links=links)
        except IdentificationError as error:
            first = first or error
    assert first is not None
    if len(laws) > 1:
        raise IdentificationError(f"no law of {', '.join(laws)} fits; with {laws[0]} springs: {first}") from first
    raise first


def _by_law(
    identification: FlexibleJointIdentification,
    recordings: Sequence[Recording],
    links: list,
    result: FlexibleResult,
    *,
    springs: list[MeasuredSpring],
    noise: np.ndarray,
) -> tuple[FlexibleJointIdentification, FlexibleResult, list[MeasuredSpring]]:
    """Return the fit with the law that suits each joint, and why it does."""
    fitted = str(identification.spring)
    laws = {spring.joint: fitted if spring.fit is None else spring.fit.law for spring in springs}
    reasons = tuple(_reason(spring) for spring in springs)
    if set(laws.values()) != {fitted}:
        chosen = replace(identification, spring=laws)
        try:
            again = chosen.fit(*recordings, links=links)
        except IdentificationError as error:
            reasons = (*reasons, f"springs are {fitted} nevertheless: the fit with other laws fails ({error})")
        else:
            springs = measured_springs(again, [[laws[joint]] for joint in again.joint_names], noise)
            identification, result = chosen, again
    return identification, replace(result, remarks=(*result.remarks, *reasons)), springs


def _reason(spring: MeasuredSpring) -> str:
    if spring.fit is None:
        return f"{spring.joint}: spring linear, other laws could not be compared: {spring.reason}"
    errors = ", ".join(f"{rms:.3g} N m with {law}" for law, rms in spring.fit.held_out_rms.items())
    return f"{spring.joint}: spring {spring.fit.law}: torque of parts left out is off by {errors}, beyond noise"


@dataclass(frozen=True)
class FlexibleSettings:
    """What is found in recordings of flexible joints, besides the settings of `FlexibleJointIdentification`."""

    joint: str = setting("", "this one alone, the others held by their brakes; default: all", symbol="J")
    repeats: bool = setting(False, "each recording alone too: mean and variation")
    torsion: bool = setting(
        False,
        "torsion and stiffness alone, from link encoders on the motors' clock: without a URDF, or for a motion too "
        "slow to distinguish motor from link; needs no dynamics, determines none",
    )

    def identify(
        self,
        identification: FlexibleJointIdentification | None,
        recordings: Sequence[Recording],
        output: str | Path,
        validate: Sequence[Recording] = (),
        *,
        spring: str,
        mocap: bool = False,
        markers: Markers = None,
    ) -> Job:
        """Identify as the settings say; arguments and errors as of `identify_flexible` and `identify_torsion`.

        Without an identification, and so without a URDF, torsion alone is identified.
        """
        if self.torsion:
            others = {"mocap": mocap, "markers": markers, "joint": self.joint, "repeats": self.repeats}
            if given := [name for name, value in others.items() if value]:
                raise IdentificationError(
                    f"torsion does not go with {', '.join(given)}: it takes link encoders of all joints, on the "
                    "motors' clock"
                )
            robot = identification.robot if identification else None
            return identify_torsion(TorsionIdentification(), robot, recordings, output, validate)
        if identification is None:
            raise IdentificationError(
                "links, springs and motors need the arm: give its URDF; torsion alone does without it"
            )
        robot = identification.robot
        arm = single_joint(robot, self.joint, recordings) if self.joint else robot
        return identify_flexible(
            replace(identification, robot=arm),
            recordings,
            output,
            validate,
            spring=spring,
            mocap=mocap,
            markers=_on_links(markers, robot, arm),
            repeats=self.repeats,
        )


def _on_links(found: Markers, robot: RobotModel, arm: RobotModel) -> Markers:
    """Links by marker; a link that a held joint moves is part of the one before it."""
    if found is None or arm is robot:
        return found
    part, carrier = {}, arm.base
    for name in (robot.base, *robot.link_names):
        carrier = name if name in (arm.base, *arm.link_names) else carrier
        part[name] = carrier
    return {marker: None if link is None else part.get(link, link) for marker, link in found.items()}
