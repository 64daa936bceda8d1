"""The report of a designed motion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.excitation import FourierPlan, Plan
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.model import RobotModel
from dynid_ros.report.formats import brief, counted, fixed, listed, significant
from dynid_ros.report.motion_plots import COLORS, PathViews, distance_plot, search_plot, spectrum_plot
from dynid_ros.report.motion_use import MotionUse, use_panels, use_rows
from dynid_ros.report.page import (
    Beside,
    Bullets,
    Facts,
    Figures,
    Legend,
    Page,
    Plot,
    Section,
    Table,
    Text,
    Tile,
    condition,
    fingerprints,
    robot_facts,
)
from dynid_ros.trajectories import MotionLimits, Workspace
from dynid_ros.trajectories.limits import joints_with_unknown_torque

# Where the limits of a motion come from: the robot's description, or who asked for the motion.


URDF, GIVEN, NONE = "the description's", "given", "none"


def limit_sources(robot: RobotModel, limits: MotionLimits) -> dict[str, str]:
    """In words, by the kind of limit."""
    described = robot.limits
    pairs = {
        "position": np.stack([limits.lower, limits.upper, described.lower, described.upper]),
        "velocity": np.stack([limits.velocity, described.velocity]),
        "acceleration": np.stack([limits.acceleration, described.acceleration]),
        "jerk": np.stack([limits.jerk, described.jerk]),
        "torque": np.stack([limits.torque, described.effort]),
    }
    return {kind: _words(limits.joint_names, *np.split(values, 2)) for kind, values in pairs.items()}


def _words(joint_names: tuple[str, ...], used: NDArray, described: NDArray) -> str:
    """Source of the limits (1 or 2, n) in use; joints that differ from most are named."""
    from_urdf = np.all(used == described, axis=0)
    sources = np.where(np.isinf(used).all(axis=0), NONE, np.where(from_urdf, URDF, GIVEN))
    found, counts = np.unique(sources, return_counts=True)
    most = found[np.argmax(counts)]
    others = [
        f"{source} for {listed([name for name, own in zip(joint_names, sources, strict=True) if own == source])}"
        for source in found
        if source != most
    ]
    return ", ".join([str(most), *others])


# What is not checked of a planned motion, said so that nobody takes it for checked.


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
        yield f"It is not known where {listed(list(bodies.left_out))} are: they are not looked at."
    if workspace.exempt:
        yield f"These are too near in every pose, and not kept apart: {listed(list(workspace.exempt))}."


def _torques(robot: RobotModel, limits: MotionLimits) -> Iterator[str]:
    unknown = joints_with_unknown_torque(limits, robot)
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
    "poses": "The arm dwells in pose after pose",
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
        quality: what the motion determines; None: not judged, for the reason in `not_judged`.
        not_judged: why not.
        recorded: what was recorded already and is added to.
        known_condition: condition number of that alone; infinite where parameters are undetermined.
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
        found = [f"{KINDS[self.kind]}, for {self.plan.duration:.1f} s: to show {TARGETS[self.target]}."]
        if self.quality is not None:
            found.append(self._shown(self.quality))
        if self.recorded:
            found.append(f"It adds to {counted(len(self.recorded), 'recording')}, and is judged by itself here.")
        found.append("It keeps to the limits of all joints and to the workspace that was described.")
        return found

    def tiles(self) -> list[Tile]:
        """The same in numbers."""
        found = [Tile("Duration", f"{self.plan.duration:.1f} s", counted(len(self.limits.joint_names), "joint"))]
        number = self.condition_number
        if not np.isnan(number):
            value = significant(number) if np.isfinite(number) else "∞"
            note = condition(number).word if np.isfinite(number) else "some parameters are undetermined"
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
        """What the recordings determine without this motion."""
        if np.isfinite(self.known_condition):
            return (
                f"condition number {brief(self.known_condition)} alone, {brief(self.condition_number)} with this motion"
            )
        return f"parameters undetermined alone, condition number {brief(self.condition_number)} with this motion"

    def _shown(self, quality: MotionQuality) -> str:
        if quality.enough:
            return f"It shows all {quality.full_rank} of them well enough."
        shown = f"It shows {quality.rank} of {quality.full_rank} combinations of them"
        return f"{shown}, {counted(len(quality.weak), 'parameter')} weakly." if quality.weak else f"{shown}."


CRITERIA = {
    "condition": "condition number",
    "condition_unscaled": "condition number, unscaled",
    "determinant": "determinant criterion",
}
LISTED = 20
"""Pairs in the table of distances."""


def write_design_report(path: str | Path, design: DesignedMotion) -> Path:
    """Write the report of a motion: compared with its limits, in its workspace, and what it determines."""
    robot = design.robot
    settings = ", ".join(f"{name}: {value}" for name, value in design.settings.items())
    facts = robot_facts(robot) | _surroundings(design) | {"Limits": design.limit_sources}
    facts |= {"Recorded before": ", ".join(design.recorded)} if design.recorded else {}
    facts |= {"Settings": settings or "as they are by default", "Fingerprints": fingerprints(robot)}
    return Page(
        f"Motion of {robot.name}",
        "Designed motion",
        robot.name,
        design.sentences(),
        design.tiles(),
        [
            Section(
                "What was not checked",
                [
                    Text("This motion was planned, not tried. Before it runs on the arm, see to these yourself:"),
                    Bullets(design.not_checked),
                ],
            ),
            _limit_section(design.use),
            _path_section(design),
            _distance_section(design.use),
            _quality_section(design),
            Section("Robot and settings", [Facts(facts)]),
        ],
        made="Designed",
    ).write(path)


def _limit_section(use: MotionUse) -> Section:
    torque = (
        "No torque is predicted: the robot's description has no masses."
        if use.torque is None
        else "Torques are predicted from the masses of the robot's description, without friction and rotors."
    )
    columns = ("Joint", "Position", "Velocity", "Acceleration", "Jerk", "Torque")
    return Section(
        "Joints within their limits",
        [
            "Dashed lines are the limits of the joint, all of them, before any fraction that the design keeps free; "
            f"in the caption stands what is used most. {torque}",
            Figures(use_panels(use)),
            Table(columns, list(use_rows(use)), folded="Largest values, and parts of the limits"),
        ],
    )


def _path_section(design: DesignedMotion) -> Section:
    legend = {"identified": "path", "dot truth": "start", "floor": "floor"}
    legend |= {"obstacle": "obstacle"} if design.workspace.obstacles else {}
    legend |= {"dashed": "box that the links stay in"} if design.workspace.box is not None else {}
    return Section(
        "Where the arm goes",
        [
            f"Path of {design.robot.tip}, and the arm as lines in a few of its poses.",
            Legend(legend),
            Figures([Plot(picture, name) for name, picture in PathViews.of(design.use).pictures().items()]),
        ],
    )


def _distance_section(use: MotionUse) -> Section:
    if not use.approaches:
        none = "Nothing was kept apart: no floor and no obstacles are known, and the links are lines without clearance."
        return Section("Distances", [Text(none, "bold")])
    rows = [
        (one.names, f"{fixed(1000 * one.room, 0)} mm", "any time" if one.steady else f"{fixed(one.time, 2)} s")
        for one in use.approaches[:LISTED]
    ]
    further = len(use.approaches) - LISTED
    return Section(
        "Distances",
        [
            "How much further things are apart than they must be. At the dashed line they would be too near; what is "
            "300 mm and more apart is not shown.",
            Legend({color: one.names for color, one in zip(COLORS, use.approaches, strict=False)}),
            Figures([Plot(distance_plot(use.time, use.approaches))]),
            Table(("Things", "Least room left", "At"), rows, folded="All that is kept apart"),
            *([f"And {further} further away."] if further > 0 else []),
        ],
    )


def _quality_section(design: DesignedMotion) -> Section:
    fourier = design.plan if isinstance(design.plan, FourierPlan) else None
    spectrum = None if design.quality is None else design.quality.singular_values
    spectrum = spectrum if fourier is None else np.array(fourier.singular_values)
    plots = []
    if spectrum is not None:
        also = ", with what was recorded" if design.recorded else ""
        below = (
            f"Of the regressor, its columns brought to unit norm{also}: how well each combination of parameters "
            "shows. The first over the last is the condition number."
        )
        plots.append(Plot(spectrum_plot(spectrum), "Singular values", below=below))
    if fourier is not None and fourier.history:
        criterion = CRITERIA[fourier.criterion]
        below = f"The best motion so far that keeps to all limits, by its {criterion}."
        name = f"Search, {counted(fourier.starts, 'start')}"
        plots.append(Plot(search_plot(fourier.history, criterion), name, below=below))
    judged = (
        [Text(f"It was not judged: {design.not_judged}")]
        if design.quality is None
        else [Text("Is it enough?", "heading"), Bullets(_grouped(design.quality.summary()))]
    )
    return Section(
        "What the motion determines",
        [
            *([Text(f"Recorded before: {design.before()}.")] if design.recorded else []),
            Beside(plots),
            *judged,
            Text("The plan", "heading"),
            Bullets(design.plan.summary().splitlines()),
        ],
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
