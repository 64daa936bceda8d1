"""Report of gravity parameters: the section `gravity` of `identified.yaml`, and the samples that were fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.gravity.gravity_result import GravityResult
from dynid_ros.identification.static_samples import Rotation, Samples, rotations
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.validation import Validation, read_validations, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import (
    LIGHT,
    PANEL_WIDTH,
    ROW_PLOT_WIDTH,
    Plot,
    draw_intervals,
    label_axes,
    panel,
    plot_area,
    residual_plot,
    row_axes,
    rows_height,
    spread_indices,
    svg,
)
from dynid_ros.report.formats import JointUnits, counted, joint_units, listed, percent, with_unit
from dynid_ros.report.link_quality import friction_section
from dynid_ros.report.page import Condition, Facts, Figures, Legend, Section, SideBySide, Table, Text, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    agreement_table,
    entries_of,
    half_width_of,
    number_of,
    result_page,
    units_of,
    with_interval,
)

TORQUE_PLOT_HEIGHT = 200
APPROACH_MARKERS = ((1, "^", "measured"), (-1, "v", "none"), (0, "o", "measured"))
"""Direction of approach, marker and fill."""
MIN_LOAD_FRACTION = 0.01
"""Smallest gravity torque of a joint over that of the arm; with less, friction dominates the torque of the joint."""
MAX_RESIDUAL_FRACTION = 0.05
"""Largest residual over the largest gravity torque of the arm that friction holds in an arm with compensation."""


def draw_moments(rows: Sequence[tuple[str, str]], units: Sequence[str], value: NDArray, half: NDArray) -> list[str]:
    """Draw parameters with their 95 % intervals, as one SVG for each unit.

    Args:
        rows: joint and label of each parameter.
        units: unit of each parameter.
        value: (k,) estimates.
        half: (k,) half widths of the intervals.
    """
    return [_draw_moments(rows, np.array(units) == unit, unit, value, half) for unit in dict.fromkeys(units)]


def _draw_moments(rows: Sequence[tuple[str, str]], mask: NDArray, unit: str, value: NDArray, half: NDArray) -> str:
    """Draw the parameters of a mask (k,) with their intervals as SVG."""
    joints, labels = zip(*(row for row, is_shown in zip(rows, mask, strict=True) if is_shown), strict=True)

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, joints, labels)
        axes.axvline(0, color=LIGHT["line"], linewidth=1)
        draw_intervals(axes, value[mask], half[mask])
        axes.set_xlabel(f"95 % interval ({unit})" if "%" in unit else f"estimate ({unit})")

    return svg(f"Gravity parameters in {unit}", ROW_PLOT_WIDTH, rows_height(len(joints)), draw)


def rotation_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> list[Plot]:
    """Return plots of measured torque over the angle of each joint that turns alone, with the curve of the model.

    Args:
        model: identified gravity.
        samples: M samples of the recordings.
        predicted: (M, n) predicted torque.
    """
    plots = []
    for joint in range(model.robot.n_joints):
        turns = [rotation for rotation in rotations(samples) if rotation.joint == joint]
        for number, rotation in enumerate(turns, start=1):
            plots.append(_draw_rotation(model, samples, predicted, rotation, f"rotation {number} of {len(turns)}"))
    return plots


def _draw_rotation(
    model: IdentifiedGravity, samples: Samples, predicted: NDArray, rotation: Rotation, note: str
) -> Plot:
    joint = rotation.joint
    rows = rotation.rows
    name = model.robot.joint_names[joint]
    unit = joint_units(model.robot)[joint]
    position = samples.position[rows]
    torque = samples.torque[rows, joint]
    low = position[:, joint].min()
    high = position[:, joint].max()
    margin = 0.03 * (high - low)
    # The curve is drawn in the mean pose of the other joints.
    grid = np.tile(position.mean(axis=0), (121, 1))
    grid[:, joint] = np.linspace(low - margin, high + margin, len(grid))
    angle = grid[:, joint] * unit.scale
    curve = model.sensor_torque(grid)[:, joint]
    coulomb = np.nan_to_num(abs(model.coulomb[joint]))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(angle, curve - coulomb, curve + coulomb, color=LIGHT["band"], linewidth=0)
        axes.plot(angle, curve, color=LIGHT["identified"], linewidth=1.6)
        for direction, marker, fill in APPROACH_MARKERS:
            mask = samples.direction[rows, joint] == direction
            _draw_points(axes, position[mask, joint] * unit.scale, torque[mask], marker, fill)
        label_axes(axes, f"{unit.noun} ({unit.position})", f"torque ({unit.effort})")

    label = f"Torque of {name} against its {unit.noun}, {note}"
    picture = svg(label, PANEL_WIDTH, TORQUE_PLOT_HEIGHT, draw)
    return panel(name, picture, torque - predicted[rows, joint], unit.effort, note)


def draw_scatter(model: IdentifiedGravity, measured: NDArray, predicted: NDArray, joint: int) -> Plot:
    """Return a plot of measured over predicted torque (M,) of a joint; NaN: not predicted."""
    name = model.robot.joint_names[joint]
    unit = joint_units(model.robot)[joint]
    known = np.flatnonzero(np.isfinite(predicted))
    shown = known[spread_indices(len(known))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        ends = np.array([predicted[known].min(), predicted[known].max()])
        axes.plot(ends, ends, color=LIGHT["identified"], linewidth=1.6)
        _draw_points(axes, predicted[shown], measured[shown], "o", "none")
        label_axes(axes, f"predicted ({unit.effort})", f"measured ({unit.effort})")

    label = f"Measured against predicted torque of {name}"
    picture = svg(label, PANEL_WIDTH, TORQUE_PLOT_HEIGHT, draw)
    note = f"{len(shown)} of {len(known)} samples" if len(shown) < len(known) else f"{len(known)} samples"
    return panel(name, picture, measured - predicted, unit.effort, note)


def _draw_points(axes: Axes, x: NDArray, y: NDArray, marker: str, fill: str) -> None:
    edge: dict[str, Any] = {"markersize": 4.5, "markeredgecolor": LIGHT["measured"], "markeredgewidth": 0.9}
    axes.plot(x, y, marker, markerfacecolor=LIGHT.get(fill, "none"), **edge)


@dataclass(frozen=True)
class PredictionError:
    """Largest residual of the predicted torque.

    Attributes:
        fraction: largest RMS residual of a joint over the largest gravity torque of the arm; NaN: not predicted.
        is_validated: whether the data were not fitted.
        evidence: description of the data.
        unloaded: RMS residual, N m or N, of each joint that gravity hardly loads; `fraction` excludes these joints.
    """

    fraction: float
    is_validated: bool
    evidence: str
    unloaded: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_samples(
        cls, model: IdentifiedGravity, samples: Samples, fit: Validation, validations: Sequence[Validation]
    ) -> PredictionError:
        """Return the error on recordings that were not fitted, or else on the fitted samples."""
        torque = np.abs(model.gravity.regressor(samples.position) @ np.nan_to_num(model.moments)).max(axis=0)
        efforts = np.array([unit.effort for unit in joint_units(model.robot)])
        arm_torque = np.array([torque[efforts == effort].max() for effort in efforts])
        rms = np.stack([validation.rms for validation in validations or [fit]])
        with np.errstate(divide="ignore", invalid="ignore"):
            is_loaded = torque / arm_torque > MIN_LOAD_FRACTION
            fraction = _largest((rms / arm_torque)[:, is_loaded])
        names = np.array(model.robot.joint_names)[~is_loaded]
        unloaded = {str(name): _largest(column) for name, column in zip(names, rms[:, ~is_loaded].T, strict=True)}
        unseen = f"{counted(len(validations), 'recording')} not used to fit"
        return cls(fraction, bool(validations), unseen if validations else "the fitted data", unloaded)


def gravity_part(
    document: Mapping[str, Any], robot: RobotModel | None = None, samples: Samples | None = None
) -> ResultPart:
    """Return the part of a page on gravity.

    Args:
        document: content of `identified.yaml` with a section `gravity`.
        robot: arm, required with samples.
        samples: fitted samples, whose torque the page shows; None: without plots of torque.

    Raises:
        IdentifiedFileError: the section is missing, malformed or of another robot.
        IdentificationError: there are no samples.
    """
    model = None if robot is None else IdentifiedGravity(robot, dict(document))
    entries = entries_of(document, "gravity")
    loaded = [joint for joint, entry in entries.items() if not entry.get("torque_free")]
    known = [joint for joint in loaded if entries[joint].get("observable") is True]
    what = f"Gravity parameters of {len(known)} of the {len(loaded)} joints that gravity loads were identified"
    units = units_of(document, robot)
    # The page of a link identification has a section on friction already.
    friction = None if "base_parameters" in document else friction_section(document, units)
    if model is None or samples is None:
        return ResultPart("Gravity", [f"{what}."], [], [_moment_section(document, entries, units, None), friction])
    if len(samples) == 0:
        raise IdentificationError("report: no samples; give the recordings that were identified from")
    robot = model.robot
    predicted = model.predict(samples.position, samples.velocity, samples.direction)
    fit = validate_torque("fit", robot.joint_names, samples.torque, predicted)
    error = PredictionError.from_samples(model, samples, fit, read_validations(document, robot.joint_names))
    free = [joint for joint in entries if joint not in loaded]
    tiles = [
        Tile(
            "Joints identified",
            f"{len(known)} of {len(loaded)}",
            f"gravity never loads {listed(free)}" if free else "gravity loads all joints",
        )
    ]
    if np.isfinite(error.fraction):
        note = f"of the largest gravity torque of the arm, on {error.evidence}"
        tiles.append(Tile("Residual, worst joint", percent(error.fraction), note))
    condition = Condition(model.condition_number)
    return ResultPart(
        "Gravity",
        [_verdict(loaded, known, error), f"{what} from {_pose_counts(samples)}.", *_error_sentences(error, units)],
        [*tiles, condition.tile],
        [
            _moment_section(document, entries, units, samples),
            friction,
            _torque_section(model, samples, predicted),
            _residual_section(model, samples, predicted, fit),
            condition.section(),
        ],
    )


def write_gravity_report(path: str | Path, robot: RobotModel, document: dict, samples: Samples) -> Path:
    """Write the report of a gravity identification; arguments and errors as for `gravity_part`."""
    return result_page(document, gravity_part(document, robot, samples)).write(path)


def write_result_report(
    path: str | Path, result: GravityResult, _recordings: object, validations: Sequence[Validation]
) -> Path:
    """Write the report of a result, with the validations on recordings that were not fitted."""
    return write_gravity_report(path, result.robot, result.content(validations), result.samples)


def _verdict(loaded: Sequence[str], known: Sequence[str], error: PredictionError) -> str:
    """Return a sentence that says whether the result is good enough to compensate gravity, and if not, why."""
    reasons = []
    if missing := [name for name in loaded if name not in known]:
        reasons.append(f"gravity of {listed(missing)} is not known")
    if error.fraction > MAX_RESIDUAL_FRACTION:
        reasons.append(f"the residual exceeds {percent(MAX_RESIDUAL_FRACTION)} of the largest gravity torque")
    if reasons:
        return f"Not good enough to compensate gravity: {' and '.join(reasons)}."
    if not loaded:
        return "Gravity loads none of the joints: there is nothing to compensate."
    if not error.is_validated:
        return "Good on the fitted data; validate it on another recording before it compensates gravity."
    return "Good enough to compensate gravity."


def _pose_counts(samples: Samples) -> str:
    """Return the numbers of poses at rest and of stretches of slow motion as text."""
    n_static = int(np.count_nonzero(samples.static))
    n_slow = len(samples) - n_static
    counts = {f"{counted(n_static, 'pose')} at rest": n_static, f"{counted(n_slow, 'stretch')} of slow motion": n_slow}
    return listed([text for text, count in counts.items() if count])


def _error_sentences(error: PredictionError, units: Mapping[str, JointUnits]) -> list[str]:
    sentences = []
    if np.isfinite(error.fraction):
        sentences.append(
            f"On {error.evidence}, the residual of the predicted torque is at most {percent(error.fraction)} of the "
            "largest gravity torque of the arm (RMS)."
        )
    if error.unloaded:
        residuals = [f"{joint} ({with_unit(rms, units[joint].effort, 2)})" for joint, rms in error.unloaded.items()]
        sentences.append(f"Gravity hardly loads {listed(residuals)}; in brackets the RMS residual of the friction.")
    return sentences


def _moment_section(
    document: Mapping[str, Any], entries: Mapping[str, dict], units: Mapping[str, JointUnits], samples: Samples | None
) -> Section:
    """Return the section with table and plots of the gravity parameters, and reasons for those not identified."""
    labels = {joint: ("mass",) if "mass" in entry else ("n_x", "n_y") for joint, entry in entries.items()}
    known = [joint for joint, entry in entries.items() if entry.get("observable") is True]
    # Prismatic joints have one parameter, the mass, so their cell in the second column is empty.
    cells = {joint: [with_interval(document, entries[joint], label) for label in labels[joint]] for joint in known}
    absent = {
        joint: "gravity never loads it" if entry.get("torque_free") else "not identified"
        for joint, entry in entries.items()
    }
    columns: dict[str | tuple[str, str], list[str]] = {
        ("n x", "prismatic: mass, kg" if any("mass" in entry for entry in entries.values()) else "kg m"): [
            cells[joint][0] if joint in known else absent[joint] for joint in entries
        ],
        ("n y", "kg m"): [cells[joint][1] if joint in known and len(cells[joint]) > 1 else "" for joint in entries],
    }
    rows = [(joint, label) for joint in known for label in labels[joint]]
    value = np.array([number_of(entries[joint], label) for joint, label in rows])
    half = np.array([half_width_of(document, entries[joint], label) for joint, label in rows])
    plots = draw_moments(rows, [units[joint].moment for joint, _ in rows], value, half)
    reasons = {
        joint: str(entry.get("reason", "no reason given"))
        for joint, entry in entries.items()
        if entry.get("observable") is not True and not entry.get("torque_free")
    }
    if samples is not None and rows:
        joints = list(entries)
        weight = _moment_weights(document, samples)[[joints.index(joint) for joint, _ in rows]]
        plots += draw_moments(rows, ["% of the largest torque"] * len(rows), 0 * value, 100 * weight * half)
    return Section(
        "Gravity parameters",
        [
            "The gravity torque of an arm depends on two parameters of each revolute joint: the mass that the joint "
            "carries times the distance of its centre of mass from the joint axis, along x and y of the joint frame. "
            "A prismatic joint has one, the mass that it carries. Intervals are 95 % intervals.",
            *([Legend({"interval": "estimate with 95 % interval"}), SideBySide([*map(Plot, plots)])] if plots else []),
            Table.by_column("Joint", list(entries), columns),
            *([Text("Not identified", "heading"), Facts(reasons)] if reasons else []),
        ],
    )


def _moment_weights(document: Mapping[str, Any], samples: Samples) -> NDArray:
    """Return the gravity torque of a unit moment over the largest measured torque of each joint (n,)."""
    largest = np.abs(samples.torque).max(axis=0)
    with np.errstate(divide="ignore"):
        return np.where(largest > 0, np.linalg.norm(document["robot"]["gravity"]) / largest, np.nan)


def _torque_section(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> Section | None:
    """Return the section with plots of torque: over the angle for joints that turn alone, else over the prediction."""
    turning = rotation_plots(model, samples, predicted)
    turned = {rotation.joint for rotation in rotations(samples)}
    others = [
        draw_scatter(model, samples.torque[:, joint], predicted[:, joint], joint)
        for joint, name in enumerate(model.robot.joint_names)
        if joint not in turned and name not in model.torque_free and np.isfinite(predicted[:, joint]).any()
    ]
    n_unknown = int(np.count_nonzero((samples.direction == 0) & samples.static[:, None]))
    legend = {"up": "measured, approached from below", "down": "approached from above"}
    legend |= {"dot measured": "approach not known"} if n_unknown else {}
    parts: list[Any] = []
    if turning:
        parts += [
            "One joint turns in steps while the others hold still; its torque is measured at standstill. Gravity "
            "torque is a sinusoid of the joint angle. Each pose is approached from below and from above, so that "
            "friction shifts the readings to both sides of the curve.",
            Legend(legend | {"band": "identified model ± Coulomb friction"}),
            Figures(turning),
        ]
    if others:
        which = "These joints do not turn alone" if turning else "No joint turns alone"
        parts += [f"{which} in the recordings: measured over predicted torque, friction included.", Figures(others)]
    return Section("Measured and predicted torque", parts) if parts else None


def _residual_section(model: IdentifiedGravity, samples: Samples, predicted: NDArray, fit: Validation) -> Section:
    efforts = " or ".join(sorted({unit.effort for unit in joint_units(model.robot)}))
    n_unknown = int(np.count_nonzero((samples.direction == 0) & samples.static[:, None]))
    friction = f", except in {counted(n_unknown, 'reading')} of unknown approach" if n_unknown else ""
    plot = residual_plot(
        model.robot.joint_names, samples.torque - predicted, f"measured − predicted torque ({efforts})"
    )
    return Section(
        "Residual analysis",
        [
            f"Measured minus predicted torque in the {counted(len(samples), 'fitted sample')}. The prediction includes "
            f"offset and friction{friction}.",
            SideBySide([Plot(plot), agreement_table(fit)]),
        ],
    )


def _largest(values: NDArray) -> float:
    """Return the largest finite value; NaN if there is none."""
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else float("nan")
