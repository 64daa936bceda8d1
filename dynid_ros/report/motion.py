"""The report of a designed motion: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros import __version__
from dynid_ros.excitation import FourierPlan, Plan
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.model import RobotModel
from dynid_ros.report.formats import brief, counted, listed, significant
from dynid_ros.report.motion_plots import COLORS, PathViews, distance_plot, search_plot, spectrum_plot
from dynid_ros.report.motion_use import MotionUse, use_panels, use_rows
from dynid_ros.report.page import Tile, condition, write_page
from dynid_ros.trajectories import MotionLimits, Workspace
from dynid_ros.trajectories.limits import unknown_torques

# Where the limits of a motion come from: the robot's description, or who asked for the motion.


URDF, GIVEN, NONE = "the description's", "given", "none"


def limit_sources(robot: RobotModel, limits: MotionLimits) -> dict[str, str]:
    """In words, by the kind of limit."""
    described = robot.limits
    nothing = np.full(len(limits.joint_names), np.nan)
    pairs = {
        "position": np.stack([limits.lower, limits.upper, described.lower, described.upper]),
        "velocity": np.stack([limits.velocity, described.velocity]),
        "acceleration": np.stack([limits.acceleration, nothing]),
        "jerk": np.stack([limits.jerk, nothing]),
        "torque": np.stack([limits.torque, described.effort]),
    }
    return {kind: _words(limits.joint_names, *np.split(values, 2)) for kind, values in pairs.items()}


def _words(joint_names: tuple[str, ...], used: NDArray, described: NDArray) -> str:
    """Source of the limits (1 or 2, n) in use; joints that differ from most are named."""
    from_urdf = np.all(used == described, axis=0)
    sources = np.where(np.isinf(used).all(axis=0), NONE, np.where(from_urdf, URDF, GIVEN))
    found, counts = np.unique(sources, return_counts=True)
    usual = found[np.argmax(counts)]
    others = [
        f"{source} for {listed([name for name, own in zip(joint_names, sources, strict=True) if own == source])}"
        for source in found
        if source != usual
    ]
    return ", ".join([str(usual), *others])


# What the checks of a planned motion leave undetermined, said so that nobody takes it for checked.


def not_checked(robot: RobotModel, limits: MotionLimits, workspace: Workspace) -> list[str]:
    """A sentence for each thing that was not looked at."""
    return [*_surroundings_not_checked(workspace), *_links(workspace), *_torques(robot, limits), *_jerk(limits)]


def _surroundings_not_checked(workspace: Workspace) -> Iterator[str]:
    if not workspace.obstacles:
        yield "No obstacles are known: tables, walls, fixtures and people are not looked at."
    if np.isneginf(workspace.floor_height):
        yield "No floor is known."
    yield "Cables, hoses and whatever else the description of the robot lacks are never looked at."


def _links(workspace: Workspace) -> Iterator[str]:
    bodies = workspace.bodies
    if len(bodies.without_shape) > 0:
        yield (
            f"No shape is known of {listed(list(bodies.without_shape))}: lines without thickness stand for them"
            + (", and with clearance 0 they are not kept apart." if not workspace.clearance else ".")
        )
    if bodies.left_out:
        yield f"Nothing tells where {listed(list(bodies.left_out))} are: they are not looked at."
    if workspace.exempt:
        yield f"These are too near in every pose, and not kept apart: {listed(list(workspace.exempt))}."


def _torques(robot: RobotModel, limits: MotionLimits) -> Iterator[str]:
    unknown = unknown_torques(limits, robot)
    if not np.any(robot.parameters):
        yield "No torque is predicted: the description of the robot has no masses."
    elif unknown:
        yield f"No torque is predicted for {listed(unknown)}: the description of the robot has no mass there."
    else:
        yield "Torques are predicted from the masses of the description, without friction, rotors and load."
    free = [name for name, limit in zip(limits.joint_names, limits.torque, strict=True) if not np.isfinite(limit)]
    if free:
        yield f"No torque limit is known of {listed(free)}."


def _jerk(limits: MotionLimits) -> Iterator[str]:
    if not np.isfinite(limits.jerk).any():
        yield "Jerk is not limited."


# A planned motion with all that is known of it, and what that comes to in words and numbers.


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
        quality: what the motion excites; None: not judged, for the reason in `not_judged`.
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


CRITERIA = {
    "condition": "condition number",
    "condition_unscaled": "condition number, unscaled",
    "determinant": "determinant criterion",
}
LISTED = 20
"""Pairs in the table of distances."""


def write_design_report(path: str | Path, design: DesignedMotion) -> Path:
    """Write the report of a motion: beside its limits, in its workspace, and what it tells.

    Args:
        path: of the HTML file; folders are made.
        design: the motion and what it was designed with.

    """
    use, plan = design.use, design.plan
    fourier = plan if isinstance(plan, FourierPlan) else None
    spectrum = _spectrum(design)
    return write_page(
        path,
        "design.html.j2",
        robot=design.robot,
        design=design,
        plan=plan,
        sentences=design.sentences(),
        tiles=design.tiles(),
        panels=list(use_panels(use)),
        rows=list(use_rows(use)),
        views=PathViews.of(use).pictures(),
        surroundings=_surroundings(design),
        distances=distance_plot(use.time, use.approaches) if use.approaches else "",
        colors=COLORS,
        approaches=use.approaches[:LISTED],
        further=max(len(use.approaches) - LISTED, 0),
        spectrum="" if spectrum is None else spectrum_plot(spectrum),
        search="" if fourier is None or not fourier.history else _search(fourier),
        criterion="" if fourier is None else CRITERIA[fourier.criterion],
        told=[] if design.quality is None else _grouped(design.quality.summary()),
        source={"version": __version__},
    )


def _grouped(summary: str) -> list[tuple[str, list[str]]]:
    """Lines of a summary, each with those that are indented below it."""
    found: list[tuple[str, list[str]]] = []
    for line in summary.splitlines():
        if line.startswith(" ") and found:
            found[-1][1].append(line.strip())
        else:
            found.append((line, []))
    return found


def _spectrum(design: DesignedMotion) -> np.ndarray | None:
    if isinstance(design.plan, FourierPlan):
        return np.array(design.plan.singular_values)
    return None if design.quality is None else design.quality.singular_values


def _search(plan: FourierPlan) -> str:
    return search_plot(plan.history, CRITERIA[plan.criterion])


def _surroundings(design: DesignedMotion) -> dict[str, str]:
    """What the workspace is, by name."""
    workspace = design.workspace
    found = {
        "Floor": "none" if np.isneginf(workspace.floor_height) else f"{workspace.floor_height:g} m",
        "Clearance": f"{workspace.clearance:g} m",
        "Links": "lines without thickness"
        if not np.any(workspace.bodies.radius)
        else f"{len(workspace.bodies.radius)} capsules around their shapes",
        "Obstacles": ", ".join(obstacle.name for obstacle in workspace.obstacles) or "none known",
    }
    if workspace.box is not None:
        lower, upper = (", ".join(f"{value:g}" for value in corner) for corner in workspace.box)
        found["Box"] = f"({lower}) to ({upper}) m"
    return found
