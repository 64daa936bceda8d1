"""A planned motion with all that is known of it, and what that comes to in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynid_ros.excitation import FourierPlan, Plan
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.model import RobotModel
from dynid_ros.report.conditioning import condition
from dynid_ros.report.formats import brief, counted, significant
from dynid_ros.report.motion.limit_sources import limit_sources
from dynid_ros.report.motion.motion_use import MotionUse
from dynid_ros.report.motion.not_checked import not_checked
from dynid_ros.report.page import Tile
from dynid_ros.trajectories import MotionLimits, Workspace

KINDS = {
    "fourier": "A periodic motion of all joints",
    "static_rotation": "Joint after joint turns in steps, while the others hold",
    "joint_by_joint": "Joint after joint moves, while the others hold",
    "payload": "The tool turns about each of its axes",
    "poses": "The arm rests in pose after pose",
    "flexible": "A periodic motion of the motors, with their links swinging behind springs",
}
TARGETS = {
    "links": "the base parameters of links and joints",
    "gravity": "the parameters that gravity acts on",
    "load": "the parameters of a load",
    "flexible": "links, friction and motors of flexible joints",
}


@dataclass(frozen=True, eq=False)
class DesignedMotion:
    """A motion, and what it was designed with.

    Attributes:
        robot: the arm.
        limits: what the joints may do.
        workspace: where the links may be.
        plan: the motion.
        kind: of motion, a key of `KINDS`.
        target: what it is to show, a key of `TARGETS`.
        settings: what was asked for, by name.
        quality: what the motion tells; None: not judged, for the reason in `not_judged`.
        not_judged: why not.
        recorded: what was recorded already and is added to.
        known_condition: condition number of that alone; infinite where parameters are open.

    """

    robot: RobotModel
    limits: MotionLimits
    workspace: Workspace
    plan: Plan
    kind: str
    target: str
    settings: Mapping[str, str] = field(default_factory=dict)
    quality: MotionQuality | None = None
    not_judged: str = ""
    recorded: tuple[str, ...] = ()
    known_condition: float = np.inf

    @cached_property
    def use(self) -> MotionUse:
        """What it uses of limits and workspace."""
        return MotionUse(self.robot, self.limits, self.workspace, self.plan.trajectory)

    @cached_property
    def not_checked(self) -> list[str]:
        """What was not looked at."""
        return not_checked(self.robot, self.limits, self.workspace)

    @cached_property
    def limit_sources(self) -> str:
        """Where the limits come from."""
        found = limit_sources(self.robot, self.limits)
        return "; ".join(f"{kind} {words}" for kind, words in found.items())

    @property
    def condition_number(self) -> float:
        """Of the regressor: of a Fourier motion with what was recorded, else of the motion alone; NaN: not known."""
        if isinstance(self.plan, FourierPlan):
            return self.plan.condition_number
        return np.nan if self.quality is None else self.quality.condition_number

    def sentences(self) -> list[str]:
        """What the motion is, what it shows and what it keeps to."""
        told = [f"{KINDS[self.kind]}, for {self.plan.duration:.1f} s: to show {TARGETS[self.target]}."]
        if self.quality is not None:
            told.append(self._shown(self.quality))
        if self.recorded:
            told.append(f"It adds to {counted(len(self.recorded), 'recording')}, and is judged by itself here.")
        told.append("It keeps to the limits of all joints and to the workspace that was described.")
        return told

    def tiles(self) -> list[Tile]:
        """The same in numbers."""
        found = [Tile("Duration", f"{self.plan.duration:.1f} s", counted(len(self.limits.joint_names), "joint"))]
        number = self.condition_number
        if not np.isnan(number):
            value = significant(number) if np.isfinite(number) else "∞"
            note = condition(number).word if np.isfinite(number) else "some parameters stay open"
            found.append(Tile("Condition number", value, note + (", with what was recorded" if self.recorded else "")))
        if self.use.approaches:
            nearest = self.use.approaches[0]
            found.append(Tile("Least room left", f"{1000 * nearest.room:.0f} mm", nearest.names))
        for kind, label in (("velocity", "Most of a velocity limit"), ("torque", "Most of a torque limit")):
            parts = self.use.parts.get(kind, np.array([np.nan]))
            if np.isfinite(parts).any():
                joint = int(np.nanargmax(parts))
                found.append(Tile(label, f"{100 * parts[joint]:.0f} %", self.limits.joint_names[joint]))
        return found

    def before(self) -> str:
        """What the recordings tell without this motion."""
        if np.isfinite(self.known_condition):
            return (
                f"condition number {brief(self.known_condition)} alone, {brief(self.condition_number)} with this motion"
            )
        return f"parameters open alone, condition number {brief(self.condition_number)} with this motion"

    def _shown(self, quality: MotionQuality) -> str:
        if quality.enough:
            return f"It shows all {quality.full_rank} of them well enough."
        told = f"It shows {quality.rank} of {quality.full_rank} combinations of them"
        return f"{told}, {counted(len(quality.weak), 'parameter')} weakly." if quality.weak else f"{told}."
