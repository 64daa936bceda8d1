"""Rehearsal of an experiment: design, simulate, check, identify, predict, export, and judge by the truth.

The identification sees the user's URDF and the files of the recordings, as it would see those of a robot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dynid_ros.errors import DynidError, IdentificationError, ModelError, RecordingError
from dynid_ros.excitation import Plan
from dynid_ros.export.export import export
from dynid_ros.export.simulated import SimulationDistance, simulate_recording
from dynid_ros.files import writable_folder, write_atomically
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identified.validation import Validation
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.judging import judge
from dynid_ros.jobs.load import LoadRun, LoadSettings
from dynid_ros.jobs.prediction import predict
from dynid_ros.jobs.run import IdentificationRun, run
from dynid_ros.jobs.screen import progress
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.rehearsal_settings import RehearsalSettings
from dynid_ros.rehearsal.simulated_robot import SimulatedRobot
from dynid_ros.simulation import KnownFriction
from dynid_ros.trajectories import MotionLimits, Workspace

WRITTEN_NAMES = ("report.html", "truth.yaml", "predicted.csv", "arm.xml")
SHORT_SEARCH = 0.25
"""Fraction of the design time that the motions for validation and for the load are given."""
MOTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gravity": ("poses", {"count": 8, "dwell": 0.6}),
    "links": ("fourier", {"periods": 2}),
    "unseen": ("fourier", {"periods": 1}),
    "load": ("fourier", {"target": "load", "periods": 1}),
}
"""Kind and settings of the motions; the unseen one is for validation."""


@dataclass(frozen=True)
class RehearsedExperiment:
    """Files and results of a rehearsed experiment.

    Attributes:
        robot: the arm as its user describes it.
        durations: duration of each motion, s.
        runs: identifications by kind.
        refused: reasons why kinds could not be identified.
        unseen: recording that was not fitted; its agreement by the URDF's links with fitted friction in `urdf`.
        urdf: see `unseen`; None: links were not identified.
        quality: parameters that the motion for links determines; None: not judged.
        replayed: distance of the exported model from the recording; None: not exported.
        files: written files by name.
        remarks: sentences on steps that were left out.
    """

    robot: RobotModel
    limits: MotionLimits
    settings: RehearsalSettings
    simulated: SimulatedRobot
    output: Path
    durations: Mapping[str, float]
    runs: Mapping[str, IdentificationRun]
    refused: Mapping[str, str]
    unseen: Recording
    urdf: Validation | None = None
    quality: MotionQuality | None = None
    replayed: SimulationDistance | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def perform_rehearsal(
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    output: str | Path,
    settings: RehearsalSettings,
    *,
    friction: KnownFriction | None = None,
) -> RehearsedExperiment:
    """Design the motions, record them on the simulated robot, identify gravity, links and a load, predict and export.

    Args:
        robot: the arm as its user describes it.
        limits: limits of the joints.
        workspace: space of the links.
        output: folder of all files.
        settings: settings.
        friction: friction of the simulated joints; None: drawn.

    Raises:
        ModelError: the arm cannot be simulated.
        TrajectoryError: no motion keeps to limits and workspace.
        DynidError: the simulation diverged.
    """
    output = writable_folder(output, *WRITTEN_NAMES)
    with progress(1) as step:
        step("drawing the simulated robot")
        simulated = SimulatedRobot(robot, limits, settings.truth, friction, int(settings.seed))
    is_loaded = not GravityModel(robot).unobservable_axes().all()
    names = [name for name in MOTIONS if (name != "gravity" or is_loaded) and (name != "load" or simulated.load.any())]
    durations: dict[str, float] = {}
    recordings: dict[str, Recording] = {}
    for name in names:
        plan = _design(name, settings, output, robot=robot, limits=limits, workspace=workspace)
        durations[name] = plan.duration
        with progress(1) as step:
            step(f"simulating the motion for {name}")
            path = simulated.record(plan.trajectory, output / f"{name}.npz", loaded=name == "load")
            recordings[name] = Recording.read(path, joint_names=robot.joint_names)
    runs, refused = _identify(robot, recordings, output, settings.truth.torque_gain_error)
    parts: dict[str, Any] = {"remarks": ()}
    if "links" in runs and not runs["links"].missing:
        parts |= _use(runs["links"], robot, recordings["unseen"], output)
    if not is_loaded:
        parts["remarks"] += ("gravity loads no joint of this arm, so no gravity was identified",)
    with progress(1) as step:
        step("judging the motion for links")
        try:
            parts["quality"] = judge(robot, [recordings["links"]], limits=limits)
        except DynidError as error:
            parts["remarks"] += (f"the motion for links could not be judged: {error}",)
    truth = yaml.safe_dump(simulated.truth_table(), sort_keys=False, allow_unicode=True)
    parts["files"] = {**parts.get("files", {}), "truth": write_atomically(output / "truth.yaml", truth)}
    return RehearsedExperiment(
        robot, limits, settings, simulated, output, durations, runs, refused, recordings["unseen"], **parts
    )


def _design(name: str, settings: RehearsalSettings, output: Path, **arm: Any) -> Plan:
    """Return the plan of a motion."""
    kind, given = MOTIONS[name]
    values = {"seed": int(settings.seed) + (name == "unseen"), **given}
    if kind == "fourier":
        values["design_time"] = settings.design_time * (1.0 if name == "links" else SHORT_SEARCH)
    return excite(kind, output=output / "motions" / name, **arm, **values).design.plan


def _identify(
    robot: RobotModel, recordings: Mapping[str, Recording], output: Path, gain_error: float
) -> tuple[dict[str, IdentificationRun], dict[str, str]]:
    """Return the runs by kind, and the reasons why others were refused; a load needs the links."""
    runs: dict[str, IdentificationRun] = {}
    refused: dict[str, str] = {}

    def attempt(kind: str, estimator: Any, roles: Mapping[str, Sequence[Recording]]) -> None:
        try:
            runs[kind] = run(kind, estimator, roles, output / kind)
        except (RecordingError, IdentificationError) as error:
            refused[kind] = str(error)

    if "gravity" in recordings:
        estimator = GravityIdentification(robot, torque_gain_error=gain_error)
        attempt("gravity", estimator, {"recordings": [recordings["gravity"]]})
    roles = {"recordings": [recordings["links"]], "validate": [recordings["unseen"]]}
    attempt("links", LinkIdentification(robot, torque_gain_error=gain_error), roles)
    if "load" not in recordings:
        return runs, refused
    if "links" not in runs or runs["links"].missing:
        refused["load"] = "the links, which a load needs, are not known"
        return runs, refused
    load = LoadRun(robot, LoadSettings(torque_gain_error=gain_error), runs["links"].identified)
    attempt("load", load, {"recordings": [recordings["load"]]})
    return runs, refused


def _use(links: IdentificationRun, robot: RobotModel, unseen: Recording, output: Path) -> dict[str, Any]:
    """Predict the unseen recording, export the arm and replay the recording in MuJoCo."""
    prediction = predict(links.identified, robot, unseen, output / "predicted.csv")
    files = {"predicted": prediction.predicted}
    parts: dict[str, Any] = {"urdf": validate(links.result.urdf_model, unseen), "remarks": ()}
    with progress(1) as step:
        step("exporting to MuJoCo")
        try:
            files |= export(links.identified, robot, "mjcf", output / "arm.xml", unseen).files
            parts["replayed"] = simulate_recording(links.identified, robot, unseen)
        except (ModelError, IdentificationError) as error:
            parts["remarks"] = (f"no export to MuJoCo: {error}",)
    return {**parts, "files": files}
