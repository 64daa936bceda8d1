"""From an arm and its limits to a motion that shows its parameters: the files of the motion and its report."""

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
    FLEXIBLE,
    KINDS,
    flexible_motion,
    make_experiment,
    recorded_information,
    with_friction,
)
from dynid_ros.jobs.inputs import checked
from dynid_ros.jobs.judging import judge
from dynid_ros.jobs.progress import progress, search_progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.report.motion import DesignedMotion, write_design_report
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace
from dynid_ros.trajectories.limits import describe_weak_joints

WRITTEN_FILES = ("trajectory.yaml", "trajectory.csv", "plan.yaml", "report.html")

MOST_RATE_HZ = 10_000.0


@dataclass(frozen=True)
class ExciteJob:
    """What the job leaves: the motion, its files and what the sanity check found in what is recorded.

    Attributes:
        design: the motion and what is known of it.
        findings: in the recordings that it adds to.
        files: as they were written.
        hints: what keeps the arm from moving far, where the motion is not enough.
    """

    design: DesignedMotion
    findings: tuple[Finding, ...]
    files: tuple[Path, ...]
    hints: tuple[str, ...] = ()

    def summary(self) -> str:
        """The plan, what it uses of its limits, what it determines, what was not checked, and where the files are."""
        design = self.design
        lines = [design.plan.summary(), f"limits: {design.limit_sources}", *design.use.lines()]
        if design.recorded:
            lines.append(f"recorded before: {', '.join(design.recorded)}; {design.before()}")
        if design.quality is None:
            lines.append(f"not judged: {design.not_judged}")
        else:
            own = "by itself it determines" if design.recorded else "it determines"
            lines += [f"{own}: {line}" for line in design.quality.summary().splitlines()[:2]]
            if not design.quality.enough:
                lines.append(f"what is weak and what would help: {self.files[-1]}")
        lines += [f"warning: {sentence}" for sentence in self._warnings()]
        lines += [f"not checked: {sentence}" for sentence in design.not_checked]
        lines.append(f"wrote {', '.join(map(str, self.files))}")
        return "\n".join(lines)

    def document(self) -> dict:
        """The plan, how well it shows its target, and what was not checked."""
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
        said = self.design.plan.summary()
        return [*map(str, self.findings), *(hint for hint in self.hints if hint not in said)]


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
    """Plan a motion and write trajectory.yaml, trajectory.csv, plan.yaml and report.html into `output`.

    Args:
        kind: of motion, key of `experiments.KINDS`, or "flexible".
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be.
        output: the folder.
        target: what it is to show; None: what that kind usually shows.
        recorded: what the motion is to add to.
        joints: of a flexible motion: what is known of them.
        held: of a flexible motion: (n,) positions of joints that brakes hold, NaN for the others; None: all move.
        friction: of a Fourier motion: terms of all joints, which a second part shows; None: there is none.
        rate: of the samples in trajectory.csv, Hz; None: the knots, at uneven times, to be joined by quintics.
        settings: of the experiment, see `make_experiment`; of a flexible motion those of a Fourier motion.

    Raises:
        RecordingError: the sanity check found an error in a recording.
        TrajectoryError: a setting makes no sense, or no motion keeps to limits and workspace.
    """
    output = writable_folder(output, *WRITTEN_FILES)
    if rate is not None and not 0 < rate <= MOST_RATE_HZ:
        raise TrajectoryError(f"rate is {rate:g} Hz; expected more than 0 and at most {MOST_RATE_HZ:g}")
    findings = checked(recorded, robot, motion=True) if recorded else ()
    experiment: Experiment
    if kind == FLEXIBLE:
        _check_flexible(joints, target, settings)
        assert joints is not None
        experiment = flexible_motion(robot, limits, workspace, joints, held, **settings)
    else:
        experiment = make_experiment(kind, robot, limits, workspace, target, **settings)
    known = None
    if recorded:
        source = experiment.information if isinstance(experiment, FourierExcitation) else None
        if not isinstance(source, TorqueInformation):
            raise TrajectoryError(f"only a fourier motion adds to what is recorded, not {kind}")
        known = recorded_information(source, recorded)
        experiment = make_experiment(kind, robot, limits, workspace, target, known=known, **settings)
    if friction is not None and kind != "fourier":
        raise TrajectoryError(f"friction is shown after a fourier motion, not {kind}")
    plan = _planned(experiment)
    if friction is not None:
        plan = with_friction(plan, experiment, robot, friction, **settings)
    if kind == FLEXIBLE:
        target, quality, not_judged = FLEXIBLE, None, "quality is that of rigid arms; see the condition number above"
    else:
        target = target or KINDS[kind].target
        bounds = {"limits": limits, "allowed": workspace.allowed}
        quality, not_judged = _judged(robot, plan, target, settings.get("noise"), **bounds)
    design = DesignedMotion(
        robot,
        limits,
        workspace,
        plan,
        kind,
        target,
        _said({"motion": kind, "target": target, **settings}),
        quality,
        not_judged,
        tuple(recording.source for recording in recorded),
        np.inf if known is None else Condition().value(known),
    )
    weak = quality is not None and not quality.enough
    hints = experiment.hints() if weak else [*describe_weak_joints(robot, limits), *workspace.crowded]
    return ExciteJob(design, findings, _written(design, output, rate), tuple(hints))


def _check_flexible(joints: FlexibleJoints | None, target: str | None, settings: Mapping[str, Any]) -> None:
    if joints is None or target is not None:
        raise TrajectoryError(
            f"a flexible motion shows flexible joints, not {target}"
            if target
            else "a flexible motion needs to know about the joints; give their stiffness and motor_inertia"
        )
    for name, value in settings.items():
        if value is not None and name not in KINDS["fourier"].settings:
            raise TrajectoryError(f"motion {FLEXIBLE} has no setting {name}")


def _planned(experiment: Experiment) -> Plan:
    if isinstance(experiment, FourierExcitation):
        with search_progress() as report:
            return experiment.plan(report)
    with progress(1) as step:
        step("planning the motion")
        return experiment.plan()


def _judged(
    robot: RobotModel, plan: Plan, target: str, noise: ArrayLike | None, **bounds: Any
) -> tuple[MotionQuality | None, str]:
    """What the motion excites, or why that is not known."""
    with progress(1) as step:
        step("judging the motion")
        try:
            return judge(robot, plan.trajectory, target, noise=noise, **bounds), ""
        except DynidError as error:
            return None, str(error)


@all_or_none()
def _written(design: DesignedMotion, output: Path, rate: float | None) -> tuple[Path, ...]:
    trajectory = design.plan.trajectory
    table = trajectory
    if rate is not None:
        # After the end the arm rests, so that the last sample may be later than the end.
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


def _said(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings that were given, as text."""
    return {
        name: ", ".join(f"{entry:g}" for entry in np.ravel(value)) if isinstance(value, np.ndarray) else str(value)
        for name, value in settings.items()
        if value is not None and not isinstance(value, Executor)
    }
