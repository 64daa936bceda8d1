"""Design of an exciting motion within limits and workspace, with its verdict, files and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from dynid_ros.checks.finding import Finding
from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.excitation import Experiment, FourierExcitation, Plan
from dynid_ros.files import all_or_none, writable_folder, write_atomically
from dynid_ros.information.criteria import Condition
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.information.torque_information import TorqueInformation
from dynid_ros.jobs.experiments import (
    EXPERIMENT_KINDS,
    FLEXIBLE,
    flexible_motion,
    make_experiment,
    recorded_information,
    with_friction,
)
from dynid_ros.jobs.inputs import checked
from dynid_ros.jobs.judging import judge
from dynid_ros.jobs.screen import Screen, progress, search_progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.report.motion import DesignedMotion, write_design_report
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import describe_weak_joints

WRITTEN_FILES = ("trajectory.yaml", "trajectory.csv", "plan.yaml", "report.html")
MAX_RATE_HZ = 10_000.0


@dataclass(frozen=True)
class ExciteJob:
    """Result of the design of a motion: the motion, findings, files.

    Attributes:
        design: motion with its use of the limits and its quality.
        findings: findings of the sanity check in the recordings that the motion complements.
        files: written files.
        hints: sentences on limits and obstacles that keep the arm from moving far.
    """

    design: DesignedMotion
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]
    hints: tuple[str, ...] = ()

    @property
    def is_enough(self) -> bool:
        """Whether the motion determines its parameters; true if it complements recordings, or if it is not judged."""
        quality = self.design.quality
        return quality is None or quality.enough or bool(self.design.recorded)

    def screen(self) -> Screen:
        """Return the plan and its verdict, the motion of each joint, and remarks on parameters and limits."""
        design = self.design
        head, *motion = design.plan.lines
        quality = design.quality
        prefix = "by itself it determines" if design.recorded else "it determines"
        verdict = [f"not judged: {design.not_judged}"]
        if quality is not None:
            enough, numbers, *_ = quality.summary().splitlines()
            verdict = [f"by itself {enough}" if design.recorded else enough, f"{prefix}: {numbers}"]
        before = [f"recorded before: {', '.join(design.recorded)}; {design.before()}"] if design.recorded else []
        weak = [] if quality is None or quality.enough else [f"missing and weak parameters: {self.files[-1]}"]
        warnings = [*(design.plan.warnings or ()), *self._warnings()]
        remarks = [*(f"warning: {warning}" for warning in warnings), *weak, *before]
        remarks += [f"not checked: {sentence}" for sentence in design.not_checked]
        remarks.append(f"limits: {design.limit_sources}")
        names = f"{design.robot.name}: {design.kind} motion for {design.target}, {head}"
        return Screen([names, *verdict], [*motion, *design.use.lines()], remarks, self.files)

    def document(self) -> dict:
        """Return the plan, its quality and the sources of its limits as plain data."""
        design = self.design
        return {
            "motion": design.kind,
            "target": design.target,
            "plan": design.plan.as_dict(),
            "quality": None if design.quality is None else design.quality.as_dict(),
            "not_judged": design.not_judged,
            "limits_from": design.limit_sources,
            "recorded": list(design.recorded),
            "not_checked": list(design.not_checked),
            "warnings": self._warnings(),
        }

    def _warnings(self) -> list[str]:
        summary = self.design.plan.summary()
        return [*map(str, self.findings), *(hint for hint in self.hints if hint not in summary)]


def excite(
    kind: str,
    robot: RobotModel,
    limits: MotionLimits,
    workspace: Workspace,
    output: str | Path,
    *,
    target: str | None = None,
    recorded: Sequence[Recording] = (),
    joints: FlexibleJoints | None = None,
    held: NDArray | None = None,
    friction: JointFriction | None = None,
    rate: float | None = None,
    **settings: Any,
) -> ExciteJob:
    """Plan a motion, and write trajectory.yaml, trajectory.csv, plan.yaml and report.html into `output`.

    Args:
        kind: kind of motion, key of `experiments.EXPERIMENT_KINDS`, or "flexible".
        robot: the arm.
        limits: limits of the joints.
        workspace: allowed space of the links.
        output: folder of the files.
        target: parameters to determine, such as "links"; None: the default of that kind.
        recorded: recordings that the motion complements.
        joints: prior values of flexible joints, for a flexible motion.
        held: positions (n,) of joints that brakes hold, NaN for the others, for a flexible motion; None: all move.
        friction: friction terms that a second part of a Fourier motion excites; None: there is no second part.
        rate: rate of the samples in trajectory.csv, Hz; None: the file has knots at uneven times, between which a
            controller interpolates by quintic polynomials.
        settings: settings of the experiment, see `make_experiment`; a flexible motion has those of a Fourier motion.

    Raises:
        RecordingError: the sanity check found an error in a recording.
        TrajectoryError: a setting is invalid, or no motion respects limits and workspace.
    """
    output = writable_folder(output, *WRITTEN_FILES)
    if rate is not None and not 0 < rate <= MAX_RATE_HZ:
        raise TrajectoryError(f"rate is {rate:g} Hz; expected more than 0 and at most {MAX_RATE_HZ:g}")
    findings = checked(recorded, robot, motion=True) if recorded else ()
    experiment: Experiment
    if kind == FLEXIBLE:
        _check_flexible(joints, target, settings)
        assert joints is not None
        experiment = flexible_motion(robot, limits, workspace, joints, held, **settings)
    else:
        experiment = make_experiment(kind, robot, limits, workspace, target, **settings)
    information = None
    if recorded:
        source = experiment.information if isinstance(experiment, FourierExcitation) else None
        if not isinstance(source, TorqueInformation):
            raise TrajectoryError(f"only a fourier motion adds to what is recorded, not {kind}")
        information = recorded_information(source, recorded)
        experiment = make_experiment(kind, robot, limits, workspace, target, known=information, **settings)
    if friction is not None and kind != "fourier":
        raise TrajectoryError(f"friction is shown after a fourier motion, not {kind}")
    plan = _plan(experiment)
    if friction is not None:
        plan = with_friction(plan, experiment, robot, friction, **settings)
    quality = None
    if kind == FLEXIBLE:
        target = FLEXIBLE
        not_judged = "quality is that of rigid arms; see the condition number above"
    else:
        target = target or EXPERIMENT_KINDS[kind].target
        quality, not_judged = _judge(robot, plan, target, settings.get("noise"), limits=limits)
    design = DesignedMotion(
        robot,
        limits,
        workspace,
        plan,
        kind,
        target,
        _as_text({"motion": kind, "target": target, **settings}),
        quality,
        not_judged,
        tuple(recording.source for recording in recorded),
        np.inf if information is None else Condition().value(information),
    )
    is_weak = quality is not None and not quality.enough
    hints = experiment.hints() if is_weak else [*describe_weak_joints(robot, limits), *workspace.crowded]
    return ExciteJob(design, findings, _write(design, output, rate), tuple(hints))


def _check_flexible(joints: FlexibleJoints | None, target: str | None, settings: Mapping[str, Any]) -> None:
    """Refuse a flexible motion without prior values of the joints, or with a target or settings of other motions."""
    if joints is None or target is not None:
        raise TrajectoryError(
            f"a flexible motion shows flexible joints, not {target}"
            if target
            else "a flexible motion needs prior values of the joints; give their stiffness and motor_inertia"
        )
    for name, value in settings.items():
        if value is not None and name not in EXPERIMENT_KINDS["fourier"].settings:
            raise TrajectoryError(f"motion {FLEXIBLE} has no setting {name}")


def _plan(experiment: Experiment) -> Plan:
    """Plan the motion, and show the progress."""
    if isinstance(experiment, FourierExcitation):
        with search_progress() as report:
            return experiment.plan(report)
    with progress(1) as step:
        step("planning the motion")
        return experiment.plan()


def _judge(
    robot: RobotModel, plan: Plan, target: str, noise: ArrayLike | None, **bounds: Any
) -> tuple[MotionQuality | None, str]:
    """Return the quality of the motion; or None, and the reason why it cannot be judged."""
    with progress(1) as step:
        step("judging the motion")
        try:
            return judge(robot, plan.trajectory, target, noise=noise, **bounds), ""
        except DynidError as error:
            return None, str(error)


@all_or_none()
def _write(design: DesignedMotion, output: Path, rate: float | None) -> tuple[Path, ...]:
    trajectory = design.plan.trajectory
    table = trajectory
    if rate is not None:
        # The arm rests at the end, so the last sample may be later than the end.
        time = np.arange(np.ceil(trajectory.duration * rate) + 1) / rate
        table = Trajectory(trajectory.joint_names, time, *trajectory.at(time))
    plan = {**design.plan.as_dict(), "not_checked": design.not_checked}
    with progress(1) as step:
        step("writing the report")
        return (
            trajectory.save(output / "trajectory.yaml"),
            table.write_csv(output / "trajectory.csv"),
            write_atomically(output / "plan.yaml", yaml.safe_dump(plan, sort_keys=False, allow_unicode=True)),
            write_design_report(output / "report.html", design),
        )


def _as_text(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that are not None as text."""
    return {
        name: ", ".join(f"{entry:g}" for entry in np.ravel(value)) if isinstance(value, np.ndarray) else str(value)
        for name, value in settings.items()
        if value is not None and not isinstance(value, Executor)
    }
