"""The report of a gravity identification: what `identified.yaml` says of gravity, and the samples behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.gravity.gravity_result import GravityResult
from dynid_ros.identification.static_samples import Rotation, Samples, rotations
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.section import file_of, mapping
from dynid_ros.identified.validation import Validation, read_validations, validate_torque, validated
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import LIGHT, WIDTH, label_axes, plot_area, svg, thinned
from dynid_ros.report.formats import (
    JointUnits,
    counted,
    joint_units,
    listed,
    percent,
    with_unit,
)
from dynid_ros.report.gravity_moments import Moments, moment_section
from dynid_ros.report.page import (
    UNKNOWN_VERSION,
    Beside,
    Figures,
    Legend,
    Page,
    Plot,
    Section,
    Text,
    Tile,
    agreement_table,
    condition,
    source_section,
)
from dynid_ros.report.plots import error_plot, panel

# Measured torque against what the model predicts: over the angle of a rotating joint, or plainly.


HEIGHT = 200
APPROACHES = ((1, "^", "measured"), (-1, "v", "none"), (0, "o", "measured"))
"""Direction, marker and fill."""


def rotation_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> list[Plot]:
    """Return each single-joint rotation with the model's curve in the mean pose of the other joints, base to tip."""
    found, plots = rotations(samples), []
    for joint in range(model.robot.n_joints):
        own = [rotation for rotation in found if rotation.joint == joint]
        for number, rotation in enumerate(own, start=1):
            plots.append(_rotation_plot(model, samples, predicted, rotation, f"rotation {number} of {len(own)}"))
    return plots


def _agreement_plots(model: IdentifiedGravity, samples: Samples, predicted: NDArray) -> list[Plot]:
    """Measured against predicted torque of each joint that gravity loads and that no single-joint rotation shows."""
    shown = {rotation.joint for rotation in rotations(samples)}
    return [
        _agreement_plot(model, samples.torque[:, joint], predicted[:, joint], joint)
        for joint, name in enumerate(model.robot.joint_names)
        if joint not in shown and name not in model.torque_free and np.isfinite(predicted[:, joint]).any()
    ]


def _rotation_plot(
    model: IdentifiedGravity, samples: Samples, predicted: NDArray, rotation: Rotation, note: str
) -> Plot:
    joint, rows = rotation.joint, rotation.rows
    name, unit = model.robot.joint_names[joint], joint_units(model.robot)[joint]
    position, torque = samples.position[rows], samples.torque[rows, joint]
    low, high = position[:, joint].min(), position[:, joint].max()
    margin = 0.03 * (high - low)
    grid = np.tile(position.mean(axis=0), (121, 1))
    grid[:, joint] = np.linspace(low - margin, high + margin, len(grid))
    shown, curve = grid[:, joint] * unit.scale, model.sensor_torque(grid)[:, joint]
    friction = np.nan_to_num(abs(model.coulomb[joint]))

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(shown, curve - friction, curve + friction, color=LIGHT["band"], linewidth=0)
        axes.plot(shown, curve, color=LIGHT["identified"], linewidth=1.6)
        for direction, marker, fill in APPROACHES:
            chosen = samples.direction[rows, joint] == direction
            _points(axes, position[chosen, joint] * unit.scale, torque[chosen], marker, fill)
        label_axes(axes, f"{unit.noun} ({unit.position})", f"torque ({unit.effort})")

    label = f"Torque of {name} against its {unit.noun}, {note}"
    rms = float(np.sqrt(np.mean((torque - predicted[rows, joint]) ** 2)))
    return panel(name, svg(label, WIDTH, HEIGHT, draw), rms, unit.effort, note)


def _agreement_plot(model: IdentifiedGravity, measured: NDArray, predicted: NDArray, joint: int) -> Plot:
    name, unit = model.robot.joint_names[joint], joint_units(model.robot)[joint]
    known = np.flatnonzero(np.isfinite(predicted))
    shown = known[thinned(len(known))]

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        ends = np.array([predicted[known].min(), predicted[known].max()])
        axes.plot(ends, ends, color=LIGHT["identified"], linewidth=1.6)
        _points(axes, predicted[shown], measured[shown], "o", "none")
        label_axes(axes, f"predicted ({unit.effort})", f"measured ({unit.effort})")

    label = f"Measured against predicted torque of {name}"
    rms = float(np.sqrt(np.mean((measured[known] - predicted[known]) ** 2)))
    note = f"{len(shown)} of {len(known)} samples" if len(shown) < len(known) else f"{len(known)} samples"
    return panel(name, svg(label, WIDTH, HEIGHT, draw), rms, unit.effort, note)


def _points(axes: Axes, x: NDArray, y: NDArray, marker: str, fill: str) -> None:
    axes.plot(
        x,
        y,
        marker,
        markersize=4.5,
        markeredgecolor=LIGHT["measured"],
        markeredgewidth=0.9,
        markerfacecolor=LIGHT.get(fill, "none"),
    )


def _torque_section(model: IdentifiedGravity, samples: Samples, predicted: NDArray, fit: Validation) -> Section:
    turning, plain = rotation_plots(model, samples, predicted), _agreement_plots(model, samples, predicted)
    unknown = int(np.count_nonzero((samples.direction == 0) & samples.static[:, None]))
    legend = {"up": "measured, reached from below", "down": "reached from above"}
    legend |= {"dot measured": "approach not known"} if unknown else {}
    units = joint_units(model.robot)
    efforts = " or ".join(sorted({unit.effort for unit in units}))
    friction = (
        f", but for {counted(unknown, 'reading')} of unknown approach, which keep their friction" if unknown else ""
    )
    which = "These joints do not turn alone" if turning else "No joint turns alone"
    return Section(
        "Measured torque and the identified model",
        [
            *(
                [
                    "One joint turns in steps while the others hold still, and its torque is read at standstill. Over "
                    "the joint's angle, gravity draws a sine wave. Each pose is reached from below and from above: "
                    "friction shifts the readings to one side of the curve and to the other.",
                    Legend(legend | {"band": "identified model ± Coulomb friction"}),
                    Figures(turning),
                ]
                if turning
                else []
            ),
            *(
                [
                    f"{which} in the recordings; measured torque is shown against the predicted one, friction "
                    "included. On the line, the two are equal.",
                    Figures(plain),
                ]
                if plain
                else []
            ),
            Text("Residuals", "heading"),
            f"Measured less predicted torque in the {counted(len(samples), 'sample')} that the model was fitted to. "
            f"Offset and friction are part of the prediction{friction}.",
            Beside(
                [
                    Plot(
                        error_plot(
                            model.robot.joint_names, samples.torque - predicted, f"measured − predicted ({efforts})"
                        )
                    ),
                    agreement_table(fit, units),
                ]
            ),
        ],
    )


# How good the predictions are, on the strictest data at hand, and whether that is good enough.


HARDLY = 0.01
"""Largest gravity torque of a joint that gravity hardly loads, over that of the arm: what it reads is friction."""
GOOD = 0.05
"""Largest error, over the arm's largest gravity torque, with which friction still holds a compensated arm."""


@dataclass(frozen=True)
class Quality:
    """Prediction error of the joint with the largest one.

    Attributes:
        error: RMS as a fraction of `reference`; NaN if nothing could be predicted.
        reference: which torque it is a fraction of.
        evidence: on what data.
        unseen: whether these were not used to identify.
        apart: RMS error, N m or N, by joint that gravity hardly loads; `error` leaves these out.
    """

    error: float
    reference: str
    evidence: str
    unseen: bool
    apart: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: IdentifiedGravity,
        samples: Samples,
        fit: Validation,
        validations: list[Validation],
    ) -> Quality:
        """Return that on other recordings, else that of the fit itself."""
        rms = np.stack([validation.rms for validation in validations or [fit]])
        own, arm = _largest_torques(model, samples)
        with np.errstate(divide="ignore", invalid="ignore"):
            loaded = own / arm > HARDLY
            error = _largest((rms / arm)[:, loaded])
        names = np.array(model.robot.joint_names)[~loaded]
        apart = {str(name): _largest(column) for name, column in zip(names, rms[:, ~loaded].T, strict=True)}
        evidence = (
            f"{counted(len(validations), 'recording')} not used to fit"
            if validations
            else "the data that it was fitted to"
        )
        return cls(error, "the arm's largest gravity torque", evidence, bool(validations), apart)


def _largest_torques(model: IdentifiedGravity, samples: Samples) -> tuple[NDArray, NDArray]:
    """(n,) gravity torque of each joint, and of all joints that have its unit: the largest in these poses."""
    torque = model.gravity.regressor(samples.position) @ np.nan_to_num(model.moments)
    own = np.abs(torque).max(axis=0)
    efforts = np.array([unit.effort for unit in joint_units(model.robot)])
    return own, np.array([own[efforts == effort].max() for effort in efforts])


def _largest(values: NDArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else float("nan")


# What was found and how good it is, for those who read nothing else.


def _sentences(model: IdentifiedGravity, samples: Samples, quality: Quality) -> list[str]:
    found = [_judged(model, quality), _identified(model, samples)]
    if np.isfinite(quality.error):
        found.append(
            f"On {quality.evidence}, the predicted torque is off by at most {percent(quality.error)} of "
            f"{quality.reference} (RMS)"
            + ("." if quality.unseen else "; another recording would show how well it predicts.")
        )
    if quality.apart:
        units = dict(zip(model.robot.joint_names, joint_units(model.robot), strict=True))
        each = [
            f"{name} ({with_unit(rms, units[name].effort, 2) if np.isfinite(rms) else 'not predicted'})"
            for name, rms in quality.apart.items()
        ]
        found.append(f"Gravity hardly loads {listed(each)}; in brackets the residual of their friction (RMS).")
    return found


def _tiles(model: IdentifiedGravity, quality: Quality) -> list[Tile]:
    loaded, known = _joints(model)
    free = f"gravity never loads {listed(model.torque_free)}" if model.torque_free else "gravity loads them all"
    found = [Tile("Joints identified", f"{len(known)} of {len(loaded)}", free)]
    if np.isfinite(quality.error):
        note = f"of {quality.reference}, on {quality.evidence}"
        found.append(Tile("Prediction error, worst joint", percent(quality.error), note))
    return [*found, condition(model.condition_number).tile]


def _judged(model: IdentifiedGravity, quality: Quality) -> str:
    """The one verdict, from all that speaks against it."""
    loaded, known = _joints(model)
    against = []
    if known != loaded:
        against.append(f"gravity of {listed([name for name in loaded if name not in known])} is not known")
    if quality.error > GOOD:
        against.append(f"the torque is off by more than {percent(GOOD)} of {quality.reference}")
    if against:
        return f"Not good enough to compensate gravity: {' and '.join(against)}."
    if not loaded:
        return "Nothing to compensate."
    if not quality.unseen:
        return "Good on the data that it was fitted to; try it on another recording before it compensates gravity."
    return "Good enough to compensate gravity."


def _joints(model: IdentifiedGravity) -> tuple[list[str], list[str]]:
    """Names of the joints that gravity loads, and of those that were identified."""
    loaded = [name for name in model.robot.joint_names if name not in model.torque_free]
    return loaded, [name for name in loaded if name not in model.reasons]


def _identified(model: IdentifiedGravity, samples: Samples) -> str:
    loaded, known = _joints(model)
    poses = _poses(samples)
    if not loaded:
        return "Gravity loads none of the joints: there is nothing to identify."
    if not known:
        return f"No joint's gravity parameters could be identified from {poses}."
    if known == loaded:
        joints = f"all {len(loaded)} joints that gravity loads" if len(loaded) > 1 else f"joint {loaded[0]}"
        return f"The gravity parameters of {joints} were identified from {poses}."
    return (
        f"The gravity parameters of {len(known)} of the {len(loaded)} joints that gravity loads were identified from "
        f"{poses}; those of {listed(list(model.reasons))} could not be."
    )


def _poses(samples: Samples) -> str:
    static = int(np.count_nonzero(samples.static))
    slow = len(samples) - static
    parts = {f"{counted(static, 'pose')} at rest": static, f"{counted(slow, 'stretch')} of slow motion": slow}
    return listed([text for text, count in parts.items() if count])


def gravity_page(
    robot: RobotModel,
    document: dict,
    samples: Samples,
    truth: NDArray | None = None,
    quality: Quality | None = None,
) -> Page:
    """Return the report of what `document`, the content of `identified.yaml`, says about `robot`.

    Args:
        robot: the arm that was identified.
        document: with a section `gravity`.
        samples: what was fitted.
        truth: (k,) true moments of a simulated arm in the order of `GravityModel.names`; NaN where there is none.
        quality: where there is better evidence than recordings.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.
        IdentificationError: no samples.
    """
    model = IdentifiedGravity(robot, document)
    if len(samples) == 0:
        raise IdentificationError("report: no samples; give the recordings that were identified from")
    predicted = model.predict(samples.position, samples.velocity, samples.direction)
    fit = validate_torque("fit", robot.joint_names, samples.torque, predicted)
    validations = read_validations(document, robot.joint_names)
    source = mapping(document, "source", file_of(document))
    settings = mapping(source, "settings", f"{file_of(document)}: source")
    direction = GravityDirection.of_document(document)
    quality = quality or Quality.of(model, samples, fit, validations)
    return Page(
        f"Gravity of {robot.name}",
        "Gravity identification",
        robot.name,
        [*_sentences(model, samples, quality), *([] if direction is None else [direction.sentence])],
        _tiles(model, quality),
        [
            moment_section(model, Moments.of(model, samples, truth)),
            _torque_section(model, samples, predicted, fit),
            _validation_section(validations, joint_units(robot)),
            condition(model.condition_number).section(),
            source_section(robot, source.get("recordings") or (), settings),
        ],
        source.get("version", UNKNOWN_VERSION),
    )


def _validation_section(validations: Sequence[Validation], units: Sequence[JointUnits]) -> Section | None:
    each = [[Text(one.recording, "heading"), agreement_table(one, units)] for one in validations]
    intro = "Predicted against measured torque in recordings that were not used to identify."
    return Section("Validation", [intro, *(part for parts in each for part in parts)]) if each else None


def write_result_report(
    path: str | Path,
    result: GravityResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result; its validations stand for the recordings that were not fitted."""
    del recordings
    return write_gravity_report(path, result.robot, validated(result.document(), validations), result.samples)


def write_gravity_report(path: str | Path, robot: RobotModel, document: dict, samples: Samples) -> Path:
    """Write the report, see `gravity_page`; the same input gives the same file."""
    return gravity_page(robot, document, samples).write(path)
