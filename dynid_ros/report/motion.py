"""Report of a designed motion: use of the limits, path, distances, and identifiable parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.excitation import FourierPlan, Plan
from dynid_ros.identified.identified_file import new_document
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import Plot
from dynid_ros.report.formats import brief, counted, fixed, listed
from dynid_ros.report.motion_use import (
    DISTANCE_COLORS,
    MotionUse,
    PathViews,
    draw_distances,
    draw_search,
    draw_singular_values,
    limit_panels,
    limit_table,
)
from dynid_ros.report.page import (
    Bullets,
    Condition,
    Facts,
    Figures,
    Legend,
    Page,
    Section,
    SideBySide,
    Table,
    Text,
    Tile,
)
from dynid_ros.report.result_page import robot_facts
from dynid_ros.trajectories import MotionLimits, Workspace
from dynid_ros.trajectories.limits import joints_with_unknown_torque

MOTION_TITLES = {
    "fourier": "A periodic motion of all joints",
    "static_rotation": "One joint after another turns in steps, while the others hold",
    "joint_by_joint": "One joint after another moves, while the others hold",
    "payload": "The tool turns about each of its axes",
    "poses": "The arm dwells in a set of poses",
    "flexible": "A periodic motion of the motors, whose links oscillate on their springs",
}
TARGET_TITLES = {
    "links": "base parameters of links and joints",
    "gravity": "gravity parameters",
    "load": "parameters of a load",
    "flexible": "parameters of flexible joints and their links",
}
CRITERION_TITLES = {
    "condition": "condition number",
    "condition_unscaled": "condition number, unscaled",
    "determinant": "determinant criterion",
}
MAX_LISTED_PAIRS = 20


@dataclass(frozen=True, eq=False)
class DesignedMotion:
    """A motion and the inputs of its design.

    Attributes:
        limits: full limits of the joints, without the fraction that the design keeps free.
        workspace: floor, box, obstacles and distances that the motion keeps to.
        plan: the motion with its description.
        kind: kind of motion, a key of `MOTION_TITLES`.
        target: parameters that the motion is designed to determine, a key of `TARGET_TITLES`.
        settings: settings as text by name.
        quality: parameters that the motion determines; None: not assessed.
        not_judged: reason why the motion was not assessed.
        recorded: names of the earlier recordings that the motion complements.
        known_condition: condition number of these recordings alone; infinite if parameters are undetermined.
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
        """Used fractions of the limits, and distances between objects."""
        return MotionUse(self.robot, self.limits, self.workspace, self.plan.trajectory)

    @cached_property
    def not_checked(self) -> list[str]:
        """Sentences on conditions that were not checked."""
        return list(unchecked(self.robot, self.limits, self.workspace))

    @cached_property
    def limit_sources(self) -> str:
        """Description of the source of each kind of limit."""
        sources = limit_sources(self.robot, self.limits)
        return "; ".join(f"{kind} {source}" for kind, source in sources.items())

    @property
    def condition(self) -> Condition:
        """Condition number of the regressor: of this motion, or with `recorded` that of motion and recordings."""
        if self.quality is not None and not self.recorded:
            return Condition(self.quality.condition_number, len(self.quality.weak))
        return Condition(self.plan.condition_number if isinstance(self.plan, FourierPlan) else np.nan)

    def before(self) -> str:
        """Return a text with the condition numbers of the recordings without and with this motion."""
        with_motion = f"condition number {brief(self.condition.number)} with this motion"
        if np.isfinite(self.known_condition):
            return f"condition number {brief(self.known_condition)} alone, {with_motion.partition('number ')[2]}"
        return f"parameters undetermined alone, {with_motion}"


def write_design_report(path: str | Path, design: DesignedMotion) -> Path:
    """Write the report of a designed motion."""
    robot = design.robot
    settings = ", ".join(f"{name}: {value}" for name, value in design.settings.items())
    facts = robot_facts(new_document(robot, (), {})["robot"]) | _workspace_facts(design.workspace)
    facts["Limits"] = design.limit_sources
    facts |= {"Recorded before": ", ".join(design.recorded)} if design.recorded else {}
    facts["Settings"] = settings or "defaults"
    return Page(
        title=f"Motion of {robot.name}",
        kind="Designed motion",
        heading=robot.name,
        sentences=_sentences(design),
        tiles=_tiles(design),
        sections=[
            Section(
                "Not checked",
                [
                    Text("This motion was planned, but not tested. Check the following before it runs on the arm:"),
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


def limit_sources(robot: RobotModel, limits: MotionLimits) -> dict[str, str]:
    """Return a description of the source (URDF, given, none) of the limits by their kind, with exceptions by joint."""
    nominal = robot.limits
    pairs = {
        "position": (np.stack([limits.lower, limits.upper]), np.stack([nominal.lower, nominal.upper])),
        "velocity": (limits.velocity[None], nominal.velocity),
        "acceleration": (limits.acceleration[None], nominal.acceleration),
        "jerk": (limits.jerk[None], nominal.jerk),
        "torque": (limits.torque[None], nominal.effort),
    }
    return {kind: _describe_sources(limits.joint_names, *values) for kind, values in pairs.items()}


def _describe_sources(joint_names: tuple[str, ...], used: NDArray, nominal: NDArray) -> str:
    """Describe the most frequent source of the limits (k, n), then other sources with their joints."""
    is_nominal = np.all(used == nominal, axis=0)
    sources = np.where(np.isinf(used).all(axis=0), "none", np.where(is_nominal, "from the URDF", "given"))
    names, counts = np.unique(sources, return_counts=True)
    most = names[np.argmax(counts)]
    texts = [str(most)]
    for source in names[names != most]:
        joints = [joint for joint, joint_source in zip(joint_names, sources, strict=True) if joint_source == source]
        texts.append(f"{source} for {listed(joints)}")
    return ", ".join(texts)


def unchecked(robot: RobotModel, limits: MotionLimits, workspace: Workspace) -> Iterator[str]:
    """Yield a sentence for each condition of a planned motion that was not checked."""
    if not workspace.obstacles:
        yield "No obstacles are known: tables, walls, fixtures and people are not considered."
    if np.isneginf(workspace.floor_height):
        yield "No floor is known."
    yield "Cables, hoses and other objects that the URDF lacks are never considered."
    bodies = workspace.bodies
    if len(bodies.without_shape) > 0:
        apart = "." if workspace.clearance else ", and with clearance 0 they are not kept apart."
        shapeless = listed(list(bodies.without_shape))
        yield f"The shapes of {shapeless} are not known: they count as lines without thickness{apart}"
    if bodies.left_out:
        yield f"The places of {listed(list(bodies.left_out))} are not known: they are not considered."
    if workspace.exempt:
        yield f"These pairs are too near in every pose, and not kept apart: {listed(list(workspace.exempt))}."
    unknown = joints_with_unknown_torque(limits, robot)
    if not np.any(robot.parameters):
        yield "No torque is predicted: the URDF has no masses."
    elif unknown:
        yield f"No torque is predicted for {listed(unknown)}: the URDF has no mass there."
    else:
        yield "Torques are predicted from the masses of the URDF, without friction, rotor inertia and load."
    free = [name for name, limit in zip(limits.joint_names, limits.torque, strict=True) if not np.isfinite(limit)]
    if free:
        yield f"No torque limit is known of {listed(free)}."
    if not np.isfinite(limits.jerk).any():
        yield "Jerk is not limited."


def _sentences(design: DesignedMotion) -> list[str]:
    sentences = [
        f"{MOTION_TITLES[design.kind]}, {design.plan.duration:.1f} s long, to determine {TARGET_TITLES[design.target]}."
    ]
    quality = design.quality
    if quality is not None:
        weak = f", {len(quality.weak)} of them weakly" if quality.weak else ""
        sentences.append(f"It determines {quality.rank} of {counted(quality.full_rank, 'base parameter')}{weak}.")
    if design.recorded:
        sentences.append(f"It complements {counted(len(design.recorded), 'recording')}, but is assessed alone here.")
    sentences.append("It keeps to the limits of all joints and to the given workspace.")
    return sentences


def _tiles(design: DesignedMotion) -> list[Tile]:
    tiles = [Tile("Duration", f"{design.plan.duration:.1f} s", counted(len(design.limits.joint_names), "joint"))]
    condition = design.condition
    if not np.isnan(condition.number):
        recorded = ", with the recordings" if design.recorded else ""
        tiles.append(condition.tile._replace(note=condition.grade + recorded))
    if design.use.approaches:
        nearest = design.use.approaches[0]
        tiles.append(
            Tile("Smallest distance", f"{1000 * nearest.margin:.0f} mm", f"beyond the clearance: {nearest.names}")
        )
    most = design.use.most_used()
    for kind in ("velocity", "torque"):
        if kind in most:
            fraction, joint = most[kind]
            tiles.append(Tile(f"Largest fraction of a {kind} limit", f"{100 * fraction:.0f} %", joint))
    return tiles


def _limit_section(use: MotionUse) -> Section:
    torque = "No torque is predicted: the URDF has no masses."
    if use.torque is not None:
        torque = "Torques are predicted from the masses of the URDF, without friction and rotor inertia."
    return Section(
        "Joint limits",
        [
            "Dashed lines are the full limits of the joint, without the fraction that the design keeps free. The "
            f"caption names the limit of which the largest fraction is used. {torque}",
            Figures(limit_panels(use)),
            limit_table(use),
        ],
    )


def _path_section(design: DesignedMotion) -> Section:
    legend = {"identified": "path", "dot truth": "start", "floor": "floor"}
    legend |= {"obstacle": "obstacle"} if design.workspace.obstacles else {}
    legend |= {"dashed": "box that contains the links"} if design.workspace.box is not None else {}
    views = PathViews.from_use(design.use).draw()
    return Section(
        "Path of the tip",
        [
            f"Path of {design.robot.tip}, and the arm as lines in some of its poses.",
            Legend(legend),
            Figures([Plot(picture, name) for name, picture in views.items()]),
        ],
    )


def _distance_section(use: MotionUse) -> Section:
    approaches = use.approaches
    if not approaches:
        text = "Nothing was kept apart: no floor and no obstacles are known, and the links are lines without clearance."
        return Section("Distances", [Text(text, "bold")])
    listed_pairs = approaches[:MAX_LISTED_PAIRS]
    columns = {
        "Smallest distance − clearance": [f"{fixed(1000 * one.margin, 0)} mm" for one in listed_pairs],
        "At": ["any time" if one.is_constant else f"{fixed(one.time, 2)} s" for one in listed_pairs],
    }
    n_further = len(approaches) - MAX_LISTED_PAIRS
    return Section(
        "Distances",
        [
            "Distance minus the required clearance, which must not fall below zero, the dashed line. Distances above "
            "300 mm are not shown.",
            Legend({color: one.names for color, one in zip(DISTANCE_COLORS, approaches, strict=False)}),
            Figures([Plot(draw_distances(use.time, approaches))], size="wide"),
            Table.by_column("Pair", [one.names for one in listed_pairs], columns, folded="All pairs"),
            *([f"And {n_further} pairs further apart."] if n_further > 0 else []),
        ],
    )


def _quality_section(design: DesignedMotion) -> Section:
    fourier = design.plan if isinstance(design.plan, FourierPlan) else None
    spectrum = None if design.quality is None or design.recorded else design.quality.singular_values
    if spectrum is None and fourier is not None:
        spectrum = np.array(fourier.singular_values)
    plots = []
    if spectrum is not None:
        recorded = ", with the recordings" if design.recorded else ""
        below = (
            f"Singular values of the regressor with columns of unit norm{recorded}. The ratio of the largest to the "
            "smallest one is the condition number."
        )
        plots.append(Plot(draw_singular_values(spectrum), "Singular values", below=below))
    if fourier is not None and fourier.history:
        criterion = CRITERION_TITLES[fourier.criterion]
        below = f"{criterion.capitalize()} of the best motion so far that keeps to all limits."
        name = f"Search, {counted(fourier.starts, 'start')}"
        plots.append(Plot(draw_search(fourier.history, criterion), name, below=below))
    assessment: list[Any] = [Text(f"The motion was not judged: {design.not_judged}")]
    if design.quality is not None:
        assessment = [Text("Assessment", "heading"), Bullets(_group_lines(design.quality.summary()))]
    return Section(
        "Identifiability",
        [
            *([Text(f"Recorded before: {design.before()}.")] if design.recorded else []),
            SideBySide(plots),
            *assessment,
            Text("Plan", "heading"),
            *(
                ["The condition number of the plan is that of the search, which may weight the joints differently."]
                if fourier
                else []
            ),
            Bullets(design.plan.summary().splitlines()),
        ],
    )


def _group_lines(summary: str) -> list[tuple[str, list[str]]]:
    """Group the lines of a summary: each line with the indented lines below it."""
    groups: list[tuple[str, list[str]]] = []
    for line in summary.splitlines():
        if line.startswith(" ") and groups:
            groups[-1][1].append(line.strip())
        else:
            groups.append((line, []))
    return groups


def _workspace_facts(workspace: Workspace) -> dict[str, str]:
    has_shapes = np.any(workspace.bodies.radius)
    shapes = f"{len(workspace.bodies.radius)} capsules around their shapes" if has_shapes else "lines without thickness"
    facts = {
        "Floor": "none" if np.isneginf(workspace.floor_height) else f"{workspace.floor_height:g} m",
        "Clearance": f"{workspace.clearance:g} m",
        "Links": shapes,
        "Obstacles": ", ".join(obstacle.name for obstacle in workspace.obstacles) or "none known",
    }
    if workspace.box is not None:
        lower, upper = (", ".join(f"{value:g}" for value in corner) for corner in workspace.box)
        facts["Box"] = f"({lower}) to ({upper}) m"
    return facts
