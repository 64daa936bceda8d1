"""Estimators of flexible joints and torsion for `run`, with inputs from cameras, for a whole arm or a single joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.errors import IdentificationError, MocapError, RecordingError
from dynid_ros.identification.flexible import (
    FlexibleJointIdentification,
    FlexibleResult,
    MocapLinks,
    TorsionIdentification,
    mocap_links,
)
from dynid_ros.identification.flexible.flexible_identification import CHOSEN_BY_DATA
from dynid_ros.identification.flexible.flexible_result import MeasuredSpring, link_noise, measured_springs
from dynid_ros.identification.flexible.torsion_identification import TorsionResult
from dynid_ros.model import RobotModel
from dynid_ros.model.robot import locked
from dynid_ros.model.spring import SPRINGS
from dynid_ros.recording import Recording
from dynid_ros.recording.mocap_exports import read_mocap
from dynid_ros.recording.recording import add_poses
from dynid_ros.settings import setting, settings_of

# Link positions that cameras recorded, and the links that carry the markers.


def with_camera_files(
    recordings: Sequence[Recording], paths: Sequence[Path], unit: str | None = None, rate: float | None = None
) -> list[Recording]:
    """Return the recordings with poses from files that a camera system exported.

    Args:
        recordings: N recordings.
        paths: N exported files, in the same order.
        unit: unit of length in files that do not name it.
        rate: frame rate, Hz, which replaces that in the file; None: that of the file.

    Raises:
        MocapError: the numbers of files and recordings differ.
        RecordingError: a file cannot be read.
    """
    if len(paths) != len(recordings):
        raise MocapError(
            f"{len(paths)} files of the camera for {len(recordings)} recordings; give one for each, in the same order"
        )
    tracks = [read_mocap(path, unit, rate) for path in paths]
    return [add_poses(recording, poses) for recording, poses in zip(recordings, tracks, strict=True)]


def marker_links(texts: Sequence[str]) -> dict[str, str | None] | None:
    """Return the link of each marker or body from texts such as "/hand/pose=link_6"; None: it is estimated.

    Without texts, the result is None.

    Raises:
        MocapError: a text has no name, or repeats a name.
    """
    links: dict[str, str | None] = {}
    for text in texts:
        name, _, link = text.partition("=")
        if not name or name in links:
            raise MocapError(f"markers: '{text}' {'names nothing' if not name else 'comes twice'}; expected TOPIC=LINK")
        links[name] = link or None
    return links or None


MAX_HELD_TRAVEL = {"revolute": float(np.deg2rad(1.0)), "prismatic": 1e-3}
"""Largest travel of a held joint, rad or m."""


def single_joint(robot: RobotModel, joint: str, recordings: Sequence[Recording]) -> RobotModel:
    """Return the arm with all joints but one held at their mean recorded positions.

    Raises:
        ModelError: the arm has no such joint.
        RecordingError: a recording lacks a joint, or a joint moves that should be held.
    """
    positions = np.concatenate([recording.select(robot.joint_names).position for recording in recordings])
    held = locked(robot, [joint], positions.mean(axis=0))
    for name, kind, travel in zip(robot.joint_names, robot.joint_types, np.ptp(positions, axis=0), strict=True):
        if name != joint and travel > MAX_HELD_TRAVEL[kind]:
            shown = f"{np.rad2deg(travel):.2g}°" if kind == "revolute" else f"{1e3 * travel:.2g} mm"
            raise RecordingError(
                f"{', '.join(recording.source for recording in recordings)}: joint '{name}' moves by {shown} while "
                f"only '{joint}' should; hold it with its brake, or identify all joints together"
            )
    return held


Markers = dict[str, str | None] | None
"""Link of each marker or body by name; a link of None is estimated. None: all markers, with estimated links."""


@dataclass(frozen=True)
class FlexibleSettings:
    """Settings of a run for flexible joints, in addition to those of `FlexibleJointIdentification`."""

    joint: str = setting("", "joint that alone moves, the others held by their brakes; default: all", symbol="J")
    repeats: bool = setting(False, "fit each recording alone too, for mean and variation")
    torsion: bool = setting(
        False,
        "identify torsion and stiffness alone, from link encoders on the motors' clock: without a URDF, or for a "
        "motion too slow to distinguish motor from link",
    )


@dataclass
class FlexibleRun:
    """Estimator of flexible joints for `run`, with link positions from cameras or encoders.

    Attributes:
        robot: the arm.
        identification: estimator of springs, motors and links.
        spring: law of all springs; "auto": for each joint the law that predicts held-out samples best.
        settings: settings of the run.
        mocap: whether links are measured by cameras; None: if markers are given, or recordings have poses and no link
            positions.
        markers: link of each marker or body, see `mocap_links`; None: links are estimated.
    """

    robot: RobotModel
    identification: FlexibleJointIdentification
    spring: str = "linear"
    settings: FlexibleSettings = FlexibleSettings()
    mocap: bool | None = None
    markers: Markers = None

    @classmethod
    def build(cls, robot: RobotModel, values: Mapping[str, Any], **inputs: Any) -> FlexibleRun:
        """Return the estimator from values of its settings and of those of the identification, by name.

        `inputs` are values of the attributes `mocap` and `markers`.
        """
        run_names = {each.name for each in settings_of(FlexibleSettings)}
        fit = {name: value for name, value in values.items() if name not in run_names}
        spring = fit.pop("spring")
        identification = FlexibleJointIdentification(robot, **fit)
        if spring != CHOSEN_BY_DATA:
            identification = replace(identification, spring=spring)
        run = FlexibleSettings(**{name: values[name] for name in run_names})
        return cls(robot, identification, spring, run, **inputs)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that are identified: all, or one while brakes hold the others."""
        return (self.settings.joint,) if self.settings.joint else self.robot.joint_names

    def fit(self, recordings: Sequence[Recording]) -> FlexibleResult:
        """Measure the link angles, fit springs, motors and links, and compare the laws of the springs.

        Raises:
            RecordingError: clocks cannot be aligned, or a joint moves that brakes should hold.
            MocapError: link positions are missing, or markers do not fit the arm.
            IdentificationError: the recordings contain too little information.
        """
        if self.settings.repeats and len(recordings) < 2:
            raise IdentificationError("repeats: there is only one recording; give each repetition as one of its own")
        joint = self.settings.joint
        arm = single_joint(self.robot, joint, recordings) if joint else self.robot
        markers = _map_markers(self.markers, self.robot, arm)
        has_poses_only = all(recording.link_position is None and recording.poses for recording in recordings)
        mocap = markers is not None or has_poses_only if self.mocap is None else self.mocap
        cameras = [_camera(arm, recording, markers, mocap=mocap) for recording in recordings]
        links = [None if camera is None else camera.angles for camera in cameras]
        noise = link_noise(arm.joint_names, recordings, links)
        laws = list(SPRINGS) if self.spring == CHOSEN_BY_DATA else [self.spring]
        identification, result = _first_fit(replace(self.identification, robot=arm), recordings, links, laws)
        springs = measured_springs(result, [laws] * arm.n_joints, noise)
        if self.spring == CHOSEN_BY_DATA:
            identification, result, springs = _by_law(
                identification, recordings, links, result, springs=springs, noise=noise
            )
        alone = identification.repeat(*recordings, links=links) if self.settings.repeats else ()
        seen = tuple(camera for camera in cameras if camera)
        return replace(
            result,
            remarks=(*result.remarks, *(remark for camera in seen for remark in camera.angles.remarks)),
            springs=tuple(springs),
            cameras=seen,
            repeats=tuple(repeated(alone)) if alone else (),
        )


@dataclass
class TorsionRun:
    """Estimator of torsion for `run`, which needs no model of the arm.

    Attributes:
        robot: the arm, which is recorded in `identified.yaml`; None: the joints are those of the recordings.
    """

    robot: RobotModel | None = None

    def fit(self, recordings: Sequence[Recording]) -> TorsionResult:
        """Identify the torsion of all joints with link encoders."""
        if self.robot is None:
            return TorsionIdentification().fit(recordings)
        slides = zip(self.robot.joint_names, self.robot.chain.prismatic, strict=True)
        prismatic = [name for name, is_prismatic in slides if is_prismatic]
        return replace(TorsionIdentification().fit(recordings, prismatic=prismatic), robot=self.robot)


def choose_run(
    robot: RobotModel | None, values: Mapping[str, Any], *, mocap: bool | None = None, markers: Markers = None
) -> tuple[str, FlexibleRun | TorsionRun]:
    """Return the kind of identification, "flexible" or "torsion", and its estimator.

    Args:
        robot: the arm; None: there is no URDF, which only torsion allows.
        values: values of the settings by name.
        mocap: whether links are measured by cameras, see `FlexibleRun`.
        markers: link of each marker or body, see `FlexibleRun`.

    Raises:
        IdentificationError: torsion has settings of flexible joints, or flexible joints have no robot.
    """
    if values["torsion"]:
        others = {"mocap": mocap, "markers": markers, "joint": values["joint"], "repeats": values["repeats"]}
        if given := [name for name, value in others.items() if value]:
            raise IdentificationError(
                f"torsion does not go with {', '.join(given)}: it takes link encoders of all joints, on the motors' "
                "clock"
            )
        return "torsion", TorsionRun(robot)
    if robot is None:
        raise IdentificationError("--urdf is missing: links, springs and motors need the arm; only --torsion does not")
    return "flexible", FlexibleRun.build(robot, values, mocap=mocap, markers=markers)


def repeated(repeats: Sequence[FlexibleResult]) -> list[tuple[str, float, float]]:
    """Return name, mean and coefficient of variation of each parameter (Lightcap and Banks 2007, table I)."""
    table = np.array([result.parameters for result in repeats])
    mean = table.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variation = table.std(axis=0, ddof=1) / np.abs(mean)
    return list(zip(repeats[0].names, mean.tolist(), variation.tolist(), strict=True))


def _camera(robot: RobotModel, recording: Recording, markers: Markers, *, mocap: bool) -> MocapLinks | None:
    """Return the links that cameras measured; None if encoders measured them.

    Raises:
        MocapError: neither of them measured the links.
    """
    if mocap:
        return mocap_links(robot, recording, markers)
    if recording.link_position is None or np.isnan(recording.link_position).all():
        poses = f"it has poses of {', '.join(recording.poses)}: " if recording.poses else ""
        raise MocapError(
            f"{recording.source}: nothing determines where the links are; {poses}give them with --mocap, a camera's "
            "file with --mocap-file, or record encoders behind the gears as link_position"
        )
    return None


def _first_fit(
    identification: FlexibleJointIdentification, recordings: Sequence[Recording], links: list, laws: Sequence[str]
) -> tuple[FlexibleJointIdentification, FlexibleResult]:
    """Return the fit with the first law that explains the torques; a linear law may fail for stiffening springs.

    Raises:
        IdentificationError: no law explains the torques; the error is that of the first law.
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
    """Return the fit with the best law for each joint, with the reasons as remarks."""
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
    """Say why the law of a spring was chosen."""
    if spring.fit is None:
        return f"{spring.joint}: spring linear, other laws could not be compared: {spring.reason}"
    errors = ", ".join(f"{rms:.3g} N m with {law}" for law, rms in spring.fit.held_out_rms.items())
    return f"{spring.joint}: spring {spring.fit.law}: torque of parts left out is off by {errors}, beyond noise"


def _map_markers(markers: Markers, robot: RobotModel, arm: RobotModel) -> Markers:
    """Return the link of each marker in an arm with held joints, which merge a link with the one before it."""
    if markers is None or arm is robot:
        return markers
    part = {}
    carrier = arm.base
    for name in (robot.base, *robot.link_names):
        carrier = name if name in (arm.base, *arm.link_names) else carrier
        part[name] = carrier
    return {marker: None if link is None else part.get(link, link) for marker, link in markers.items()}
