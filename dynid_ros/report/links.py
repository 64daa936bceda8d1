"""Report of links and friction: sections of `identified.yaml`, and measured and predicted torque of recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError, IdentifiedFileError
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identified.links import KnownArm, LinkModel, known_arm, link_model
from dynid_ros.identified.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import is_possible
from dynid_ros.recording import Recording
from dynid_ros.report.drawing import Plot, prediction_panels, rows_to_plot
from dynid_ros.report.formats import (
    JointUnits,
    brief,
    counted,
    fixed,
    joint_units,
    listed,
    percent,
    share,
    significant,
    with_unit,
)
from dynid_ros.report.gravity import gravity_part
from dynid_ros.report.link_parameters import (
    BaseParameter,
    base_section,
    draw_prior_weights,
    is_weak,
    link_section,
    read_base_parameters,
    read_links,
    weak_table,
)
from dynid_ros.report.link_quality import (
    LinkQuality,
    ResidualCorrelation,
    TorqueComparison,
    friction_section,
    mean_r2,
    validate_comparisons,
)
from dynid_ros.report.page import Condition, Figures, Folded, Legend, Section, SideBySide, Table, Text, Tile
from dynid_ros.report.result_page import (
    ResultPart,
    agreement_table,
    number_of,
    repeatability_tile,
    result_page,
    units_of,
)

MAX_LISTED_PARAMETERS = 7
"""Largest number of parameters that a sentence names."""


@dataclass(frozen=True, eq=False)
class LinkEvidence:
    """Recordings whose torque a page compares with the identified model, in addition to the document.

    Attributes:
        model: identified model.
        fitted: comparisons on the fitted recordings.
        unseen: comparisons on recordings that were not fitted.
        given: comparisons that replace both, if it is unknown whether the recordings were fitted.
        base_values: (k,) base parameters of the model; None: unknown.
        covariance: (k, k) covariance of the base parameters; None: unknown.
        scores: mean logarithm of the cross-validated squared error by weight of the URDF; empty: the weight was given.
    """

    model: LinkModel
    fitted: Sequence[TorqueComparison] = ()
    unseen: Sequence[TorqueComparison] = ()
    given: Sequence[TorqueComparison] = ()
    base_values: NDArray | None = None
    covariance: NDArray | None = None
    scores: Mapping[float, float] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        """Duration of the fitted recordings, s; NaN: unknown."""
        return sum(len(one.time) * one.period for one in self.fitted) if self.fitted else float("nan")


def link_part(
    document: Mapping[str, Any], robot: RobotModel | None = None, evidence: LinkEvidence | None = None
) -> ResultPart:
    """Return the part of a page on links and friction.

    Args:
        document: content of `identified.yaml` of a link identification.
        robot: arm with the nominal parameters of its URDF, for comparison; None: unknown.
        evidence: recordings; they require the robot.
    """
    has_links = bool(document.get("links"))
    base_values, covariance = (None, None) if evidence is None else (evidence.base_values, evidence.covariance)
    if base_values is None:
        base_values, covariance = _read_model(document, robot if has_links else None)
    parameters = read_base_parameters(document, base_values)
    links = read_links(document) if has_links else {}
    is_consistent = bool(links) and all(is_possible(values) for values in links.values())
    n_weak = sum(map(is_weak, parameters))
    number = number_of(document, "condition_number")
    if np.isnan(number) and not all(parameter.is_determined for parameter in parameters):
        number = np.inf  # the document has null for an infinite number
    condition = Condition(number, n_weak, "Move all joints at once, faster and further.")
    quality = None
    if robot is not None and evidence is not None:
        quality = LinkQuality.from_comparisons(robot.joint_names, evidence.fitted, evidence.unseen, evidence.given)
    sentences = [_identified_sentence(parameters, evidence)]
    if links:
        total = sum(values[0] for values in links.values())
        sentences.append(f"The {counted(len(links), 'link')} of the identified model weigh {significant(total)} kg.")
    tiles = [_parameter_tile(parameters, n_weak), condition.tile]
    sections: list[Section | None] = []
    units = units_of(document, robot)
    if quality is not None and evidence is not None:
        joint_unit_list = [units[joint] for joint in evidence.model.robot.joint_names]
        sentences += _quality_sentences(evidence.model.robot, quality, joint_unit_list)
        tiles = [*_quality_tiles(evidence.model.robot, quality, joint_unit_list), *tiles]
        sections += [
            _torque_section(evidence.model, quality),
            _residual_section(document, evidence, quality),
            _agreement_section(evidence.model.robot, quality),
        ]
    tiles = [*repeatability_tile(document), *tiles]
    sentences += _urdf_sentences(parameters)
    fitted = () if evidence is None else evidence.fitted or evidence.given
    names = list(links) if robot is None else list(robot.link_names)
    sections += [
        friction_section(document, units, None if evidence is None else evidence.model, fitted),
        base_section(parameters, names or _link_labels(parameters), is_consistent=is_consistent),
        link_section(document, links, robot) if links else None,
        condition.section(*weak_table(parameters, covariance)),
        _weight_section(document, evidence.scores) if evidence is not None and evidence.scores else None,
    ]
    return ResultPart("Links", sentences, tiles, sections)


def write_result_report(
    path: str | Path,
    result: LinkResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result; see `write_link_report`."""
    return write_link_report(path, result, recordings["recordings"], recordings.get("validate", ()), validations)


def write_link_report(
    path: str | Path,
    result: LinkResult,
    fitted: Sequence[Recording],
    unseen: Sequence[Recording] = (),
    validations: Sequence[Validation] = (),
) -> Path:
    """Write the report of a link identification.

    Args:
        path: path of the HTML file, whose folders are created.
        result: result of the identification.
        fitted: recordings that were fitted.
        unseen: recordings that were not fitted; without any, the page evaluates the model on the fitted ones.
        validations: agreement on the unseen recordings.

    Raises:
        IdentificationError: there are no recordings, one has no torque, or one is both fitted and unseen.
        RecordingError: a recording lacks a joint of the robot.
    """
    if not fitted:
        raise IdentificationError("report: no recordings; give those that the links were identified from")
    for other in unseen:
        if any(np.array_equal(other.position, one.position) for one in fitted):
            raise IdentificationError(
                f"report: {other.source} is among the fitted and among the unseen recordings; leave it out of one"
            )
    document = result.content(validations)
    evidence = None
    if not result.missing:  # with missing parameters, the model does not predict torque
        fitted_comparisons, unseen_comparisons = (
            [TorqueComparison.from_recording(result.model, one, result.urdf_model) for one in recordings]
            for recordings in (fitted, unseen)
        )
        evidence = LinkEvidence(
            result.model,
            fitted_comparisons,
            unseen_comparisons,
            base_values=result.base.project(np.concatenate([result.parameters, result.model.coefficients])),
            covariance=result.base_parameters.covariance,
            scores=result.scores,
        )
    parts = [link_part(document, result.robot, evidence), gravity_part(document, result.robot)]
    signals = result.model.signals
    cutoffs = {
        "low-pass of torque and model": f"{brief(signals.cutoff)} Hz",
        "low-pass of positions": f"{brief(signals.motion_cutoff)} Hz",
    }
    return result_page(document, *parts, settings=cutoffs).write(path)


def _read_model(document: Mapping[str, Any], robot: RobotModel | None) -> tuple[NDArray | None, NDArray | None]:
    """Return base parameters (k,) of the model and their covariance (k, k); None for what the document lacks."""
    if robot is None:
        return None, None
    arm = KnownArm(link_model(dict(document), robot))
    with suppress(IdentifiedFileError):  # the covariance in the file is for another set of base parameters
        arm = known_arm(dict(document), robot)
    base = arm.columns.whole_base(arm.columns.first)
    return base.project(np.concatenate([arm.model.parameters, arm.model.coefficients])), arm.covariance


def _identified_sentence(parameters: Sequence[BaseParameter], evidence: LinkEvidence | None) -> str:
    n_links = sum(parameter.link is not None for parameter in parameters)
    n_friction = len(parameters) - n_links
    n_undetermined = sum(not parameter.is_determined for parameter in parameters)
    friction = f" and {counted(n_friction, 'friction coefficient')}" if n_friction else ""
    source = ""
    if evidence is not None and evidence.fitted:
        source = f" from {counted(len(evidence.fitted), 'recording')}, {brief(evidence.duration)} s"
    missing = f"; this motion does not determine {n_undetermined} of them" if n_undetermined else ""
    return f"{counted(n_links, 'base parameter')} of the links{friction} were identified{source}{missing}."


def _parameter_tile(parameters: Sequence[BaseParameter], n_weak: int) -> Tile:
    n_known = sum(parameter.is_determined for parameter in parameters) - n_weak
    note = f"to a standard error of {percent(MAX_RELATIVE_ERROR)} of the value or better, friction included"
    return Tile("Parameters known", f"{n_known} of {len(parameters)}", note)


def _quality_sentences(robot: RobotModel, quality: LinkQuality, units: Sequence[JointUnits]) -> list[str]:
    """Return sentences on R² of the identified model and of the URDF, and on the joint with the lowest R²."""
    urdf = "" if quality.urdf is None else f", and {share(mean_r2(quality.urdf))} with the URDF, its friction fitted"
    sentences = [
        f"On {quality.evidence}, R² of the torque is {share(mean_r2(quality.model))} with the identified model{urdf} "
        "(mean of the joints)."
    ]
    if quality.is_validated is False:
        sentences.append("Validate on another recording to see how well the model predicts.")
    if quality.repeats_fit:
        sentences.append(
            "The recordings not used to fit repeat the fitted motion: they show that the result is repeatable, not how "
            "well it predicts another motion."
        )
    if quality.worst is not None:
        i = quality.worst
        torque, residual = (with_unit(rms[i], units[i].effort, 2) for rms in (quality.torque_rms, quality.model.rms))
        sentences.append(
            f"R² is lowest at {robot.joint_names[i]}, {share(quality.model.r2[i])}: the residual is {residual} of "
            f"{torque} (RMS)."
        )
    return sentences


def _quality_tiles(robot: RobotModel, quality: LinkQuality, units: Sequence[JointUnits]) -> list[Tile]:
    urdf = "" if quality.urdf is None else f"URDF: {share(mean_r2(quality.urdf))}; "
    tiles = [
        Tile("R² of the torque", share(mean_r2(quality.model)), f"{urdf}mean of the joints, on {quality.evidence}")
    ]
    if quality.worst is not None:
        i = quality.worst
        note = f"R² of {robot.joint_names[i]}; residual {with_unit(quality.model.rms[i], units[i].effort, 2)} RMS"
        tiles.append(Tile("Worst joint", share(quality.model.r2[i]), note))
    return tiles


def _urdf_sentences(parameters: Sequence[BaseParameter]) -> list[str]:
    """Return a sentence on the number of base parameters that show that the URDF is wrong."""
    n_compared = sum(parameter.is_compared for parameter in parameters)
    if not n_compared:
        return []
    wrong = [parameter.name for parameter in parameters if parameter.is_urdf_wrong]
    n_doubtful = sum(parameter.is_doubtful for parameter in parameters)
    text = f"None of {counted(n_compared, 'base parameter')} shows that the URDF is wrong."
    if wrong:
        n_more = len(wrong) - MAX_LISTED_PARAMETERS + 1
        shown = [*wrong[: MAX_LISTED_PARAMETERS - 1], f"{n_more} more"] if n_more > 1 else wrong
        text = (
            f"The URDF is wrong in {len(wrong)} of {counted(n_compared, 'base parameter')} ({listed(shown)}): its "
            "value lies outside the 95 % interval, and the value of the identified model inside. With a correct URDF, "
            f"about {0.05 * n_compared:.0f} values would lie outside by chance."
        )
    doubt = (
        f" In {n_doubtful}{' more' if wrong else ''}, neither value lies inside: these intervals are in doubt, "
        "probably because of unmodelled friction."
    )
    return [text + doubt if n_doubtful else text]


def _torque_section(model: LinkModel, quality: LinkQuality) -> Section:
    longest = max(quality.shown, key=lambda one: len(one.time))
    rows = rows_to_plot(longest.time)
    seconds = brief(longest.time[rows][-1] - longest.time[rows][0])
    unseen = ", which was not used to fit" if quality.is_validated else ""
    fitted = Text("No recording was kept back: these data were fitted.", "bold")
    legend = {"measured": "measured", "identified": "identified model"}
    legend |= {} if longest.urdf is None else {"urdf": "URDF"}
    urdf = "" if longest.urdf is None else " The URDF keeps its links, and its friction is fitted too."
    return Section(
        "Measured and predicted torque",
        [
            *([fitted] if quality.is_validated is False else []),
            f"{seconds} s from the middle of {longest.recording}{unseen}. Torque and predictions are filtered by the "
            f"same low-pass at {brief(model.signals.cutoff)} Hz. The lower plot shows the residuals, measured minus "
            f"predicted torque.{urdf} Residuals in the captions are RMS over the whole recording.",
            Legend(legend),
            Figures(
                prediction_panels(
                    model.robot.joint_names,
                    [unit.effort for unit in joint_units(model.robot)],
                    longest.time,
                    longest.measured,
                    longest.identified,
                    rows=rows,
                    urdf=longest.urdf,
                )
            ),
        ],
    )


def _residual_section(document: Mapping[str, Any], evidence: LinkEvidence, quality: LinkQuality) -> Section:
    names = evidence.model.robot.joint_names
    correlation = ResidualCorrelation.from_comparisons(evidence.model.signals.cutoff, quality.shown)
    # The standard errors come from blocks of the fitted data; their number is the degrees of freedom plus one.
    block = evidence.duration / (number_of(document, "degrees_of_freedom") + 1)
    return Section(
        "Residual analysis",
        [
            f"Autocorrelation of the residuals on {quality.evidence}, over the lag. White noise of the sensors, after "
            "the same low-pass, stays within the band.",
            Figures([Plot(correlation.draw(i, name), name) for i, name in enumerate(names)], size="small"),
            *map(Text, correlation.sentences(names, block)),
        ],
    )


def _agreement_section(robot: RobotModel, quality: LinkQuality) -> Section:
    efforts = [unit.effort for unit in joint_units(robot)]

    def with_efforts(values: NDArray) -> list[str]:
        return [with_unit(value, effort) for value, effort in zip(values, efforts, strict=True)]

    shown = {True: "validation", False: "fit", None: "given recordings"}[quality.is_validated]
    columns = {
        ("Torque", "RMS"): with_efforts(quality.torque_rms),
        ("Residual", "RMS"): with_efforts(quality.model.rms),
        ("Relative residual", "over the torque"): [percent(value) for value in quality.model.relative_rms],
        ("R²", shown): [fixed(value, 4) for value in quality.model.r2],
    }
    if quality.is_validated and quality.fit is not None:
        columns["R²", "fit"] = [fixed(value, 4) for value in quality.fit.r2]
    if quality.urdf is not None:
        columns["R² of the URDF", shown] = [fixed(value, 4) for value in quality.urdf.r2]
        columns["Residual of the URDF", "RMS"] = with_efforts(quality.urdf.rms)
    parts: list[Any] = []
    for one in quality.shown if len(quality.shown) > 1 else ():
        table = agreement_table(validate_comparisons(robot.joint_names, [one], lambda each: each.identified))
        parts += [Text(one.recording, "heading"), table]
    return Section(
        "Agreement by joint",
        [
            f"RMS over {quality.evidence}. R² is the fraction of the variance of the torque that the model explains; "
            "if it is negative, the mean torque would be a better prediction.",
            Table.by_column("Joint", robot.joint_names, columns),
            *([Folded("Each recording by itself", parts)] if parts else []),
        ],
    )


def _weight_section(document: Mapping[str, Any], scores: Mapping[float, float]) -> Section:
    weight = document["source"]["settings"]["prior_weight"]
    return Section(
        "Regularization towards the URDF",
        [
            f"Weight of the URDF: {weight:g}. The plot shows the cross-validated prediction error, over the noise of "
            "each joint, by the weight of the regularization towards the URDF. Several weights predict as well as the "
            "best one within the accuracy of the cross-validation; the middle one of these is used.",
            SideBySide([Plot(draw_prior_weights(scores, weight))]),
        ],
    )


def _link_labels(parameters: Sequence[BaseParameter]) -> list[str]:
    """Return names for the links of a document without names of links."""
    return [f"link {k + 1}" for k in range(max((one.link or 0) + 1 for one in parameters))]
