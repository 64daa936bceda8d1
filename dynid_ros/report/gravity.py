"""The report of a gravity identification: one HTML file that needs nothing else."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import IdentifiedGravity
from dynid_ros.identified.identified_file import file_of, mapping
from dynid_ros.identified.validation import Validation, read_validations, validate_torque
from dynid_ros.model import RobotModel
from dynid_ros.report.drop_test import STILL, Demonstration, DropPicture, drift_plot, relative
from dynid_ros.report.formats import (
    JointUnits,
    brief,
    counted,
    distance,
    joint_units,
    listed,
    percent,
    significant,
    with_unit,
)
from dynid_ros.report.gravity_plots import agreement_plots, interval_plot, rotation_plots, value_plot
from dynid_ros.report.page import Tile, condition, write_page
from dynid_ros.report.plots import error_plot

# The identified numbers, joint by joint.


@dataclass(frozen=True)
class Moment:
    """One gravity parameter with the half width of its 95 % interval.

    Attributes:
        label: "n_x", "n_y" or "mass".
        value, half: kg m, or kg.
        truth: likewise, NaN where it is not known.
        weight: largest torque that one unit of it makes, over the joint's largest measured torque.

    """

    label: str
    value: float
    half: float
    truth: float
    weight: float

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return abs(self.value - self.truth) <= self.half


@dataclass(frozen=True)
class JointRow:
    """What was identified of a joint; `absent` says why it has no moments.

    Torques besides gravity are of motion in the positive and in the negative direction.
    """

    joint: str
    unit: JointUnits
    moments: list[Moment]
    positive: float
    negative: float
    viscous: float
    absent: str


def joint_rows(model: IdentifiedGravity, samples: Samples, truth: NDArray | None) -> list[JointRow]:
    """One row per joint, base to tip; `truth` (k,) goes with the model's moments."""
    half = half_width(model.std, model.dof)
    truth = np.full(len(half), np.nan) if truth is None else truth
    largest = np.abs(samples.torque).max(axis=0)
    weight = relative(np.full(len(largest), np.linalg.norm(model.robot.gravity)), largest)
    rows = []
    for i, joint in enumerate(model.robot.joint_names):
        absent = "gravity never loads it" if joint in model.torque_free else "not identified" * (joint in model.reasons)
        columns = () if absent else range(len(half))[model.gravity.columns(i)]
        moments = [
            Moment(model.gravity.names[c].split()[0], model.moments[c], half[c], truth[c], weight[i]) for c in columns
        ]
        positive, negative = model.moving[i]
        unit = joint_units(model.robot)[i]
        rows.append(JointRow(joint, unit, moments, positive, negative, model.viscous[i], absent))
    return rows


def moment_figures(rows: list[JointRow]) -> list[str]:
    """Values of all moments, a figure per unit, and their intervals magnified."""
    figures = []
    for unit in dict.fromkeys(row.unit.moment for row in rows):
        names, moments = _listed([row for row in rows if row.unit.moment == unit])
        if moments:
            value, half, truth = (_column(moments, field) for field in ("value", "half", "truth"))
            figures.append(value_plot(names, value, half, truth, unit))
    names, moments = _listed(rows)
    if moments:
        value, half, truth, weight = (_column(moments, field) for field in ("value", "half", "truth", "weight"))
        known = np.isfinite(truth).all()
        error = weight * (value - truth) if known else np.zeros(len(moments))
        what, zero = ("identified − true", "truth") if known else ("95 % interval", "line")
        figures.append(interval_plot(names, error, weight * half, f"{what} (% of largest torque)", zero))
    return figures


def _listed(rows: list[JointRow]) -> tuple[list[tuple[str, str]], list[Moment]]:
    pairs = [(row.joint, moment) for row in rows for moment in row.moments]
    return [(joint, moment.label) for joint, moment in pairs], [moment for _, moment in pairs]


def _column(moments: list[Moment], field: str) -> NDArray:
    return np.array([getattr(moment, field) for moment in moments])


# How good the predictions are, on the strictest data at hand, and whether that is good enough.


HARDLY = 0.01
"""Largest gravity torque of a joint that gravity hardly loads, over that of the arm: what it reads is friction."""
GOOD = 0.05
"""Largest error, over the arm's largest gravity torque, with which friction still holds a compensated arm."""


@dataclass(frozen=True)
class Quality:
    """Prediction error of the joint that is predicted worst.

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
        demonstration: Demonstration | None,
    ) -> "Quality":
        """From true torques where there are some, else from other recordings, else from the fit itself."""
        if demonstration is not None:
            error = _largest(demonstration.relative_rms)
            evidence = counted(len(demonstration.poses), "fresh pose")
            return cls(error, "a joint's largest gravity torque", evidence, unseen=True)
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


def sentences(
    model: IdentifiedGravity, samples: Samples, quality: Quality, demonstration: Demonstration | None
) -> list[str]:
    """What was identified, how well it predicts, and what became of the arm that was let go."""
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
        found.append(f"Gravity hardly loads {listed(each)}; in brackets what their friction leaves unexplained (RMS).")
    if demonstration is not None:
        found.append(_drop(model, demonstration))
    return found


def tiles(model: IdentifiedGravity, quality: Quality, demonstration: Demonstration | None) -> list[Tile]:
    """The same in numbers."""
    loaded, known = _joints(model)
    free = f"gravity never loads {listed(model.torque_free)}" if model.torque_free else "gravity loads them all"
    found = [Tile("Joints identified", f"{len(known)} of {len(loaded)}", free)]
    if np.isfinite(quality.error):
        note = f"of {quality.reference}, on {quality.evidence}"
        found.append(Tile("Prediction error, worst joint", percent(quality.error), note))
    if demonstration is not None:
        unit = joint_units(model.robot)[_most_moved(demonstration)]
        found.append(
            Tile(
                f"Drift in {brief(demonstration.duration)} s",
                distance(demonstration.drift_with.max(), unit),
                f"with compensation; {distance(demonstration.drift_without.max(), unit)} without",
            )
        )
    found.append(Tile("Condition number", significant(model.condition_number), condition(model.condition_number).word))
    return found


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


def _most_moved(demonstration: Demonstration) -> int:
    return int(np.argmax(demonstration.drift_without))


def _drop(model: IdentifiedGravity, demonstration: Demonstration) -> str:
    unit = joint_units(model.robot)[_most_moved(demonstration)]
    seconds = f"{brief(demonstration.duration)} s"
    drift_with = distance(demonstration.drift_with.max(), unit)
    if demonstration.drift_without.max() < STILL:
        return (
            f"Let go, friction alone holds the arm; with gravity compensation it drifts by {drift_with} in {seconds}."
        )
    drift_without = distance(demonstration.drift_without.max(), unit)
    return (
        f"Let go, the arm's joints drift by up to {drift_without} in {seconds} without gravity compensation, and by "
        f"{drift_with} with it."
    )


def write_gravity_report(
    path: str | Path,
    robot: RobotModel,
    document: dict,
    samples: Samples,
    demonstration: Demonstration | None = None,
) -> Path:
    """Write the report of what `document`, the content of `identified.yaml`, says about `robot`.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        robot: the arm that was identified.
        document: with a section `gravity`.
        samples: what was fitted.
        demonstration: truth and drop test of a simulated arm.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.
        IdentificationError: no samples, or a demonstration of another robot.

    """
    model = IdentifiedGravity(robot, document)
    if len(samples) == 0:
        raise IdentificationError("report: no samples; give the recordings that were identified from")
    if demonstration is not None:
        _check_demonstration(model, demonstration)
    predicted = model.predict(samples.position, samples.velocity, samples.direction)
    fit = validate_torque("fit", robot.joint_names, samples.torque, predicted)
    validations = read_validations(document, robot.joint_names)
    source = mapping(document, "source", file_of(document))
    quality = Quality.of(model, samples, fit, validations, demonstration)
    efforts = " or ".join(sorted({unit.effort for unit in joint_units(robot)}))
    rows = joint_rows(model, samples, demonstration.moments if demonstration else None)
    return write_page(
        path,
        "gravity.html.j2",
        robot=robot,
        model=model,
        units=joint_units(robot),
        source=source,
        settings=mapping(source, "settings", f"{file_of(document)}: source"),
        samples=samples,
        sentences=sentences(model, samples, quality, demonstration),
        tiles=tiles(model, quality, demonstration),
        condition=condition(model.condition_number).explanation,
        rows=rows,
        known_moments=sum(len(row.moments) for row in rows),
        covered=sum(moment.covered for row in rows for moment in row.moments),
        moment_figures=moment_figures(rows),
        rotations=list(rotation_plots(model, samples, predicted)),
        agreements=list(agreement_plots(model, samples, predicted)),
        unknown_approaches=int(np.count_nonzero((samples.direction == 0) & samples.static[:, None])),
        has_viscous=bool(np.isfinite(model.viscous).any()),
        fit=fit,
        residuals=error_plot(robot.joint_names, samples.torque - predicted, f"measured − predicted ({efforts})"),
        validations=validations,
        **_demonstrated(model, demonstration),
    )


def _check_demonstration(model: IdentifiedGravity, demonstration: Demonstration) -> None:
    names, found = model.robot.joint_names, demonstration.joint_names
    if found != names or demonstration.moments.shape != model.moments.shape:
        raise IdentificationError(
            f"demonstration: joints {found} and {demonstration.moments.size} moments; expected {names} and "
            f"{model.moments.size}, of the robot in the report"
        )


def _demonstrated(model: IdentifiedGravity, demonstration: Demonstration | None) -> dict[str, object]:
    """What the sections on fresh poses and on the drop test show."""
    if demonstration is None:
        return {"demonstration": None}
    names = model.robot.joint_names
    loaded = np.flatnonzero(demonstration.largest_torque > 0)
    error = demonstration.torque_error[:, loaded] / demonstration.largest_torque[loaded]
    picture = DropPicture(model.robot, demonstration)
    units = joint_units(model.robot)
    return {
        "demonstration": demonstration,
        "fresh_errors": error_plot([names[i] for i in loaded], 100 * error, "error (% of largest torque)")
        if loaded.size
        else "",
        "drop_pictures": {case: picture.svg(case) for case in ("without", "with")},
        "drift_plots": [drift_plot(demonstration, i, unit) for i, unit in enumerate(units)],
    }
