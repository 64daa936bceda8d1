"""The report of a link identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import MAX_RELATIVE_ERROR
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.identified.validation import Validation
from dynid_ros.recording import Recording
from dynid_ros.report.formats import (
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
from dynid_ros.report.friction import friction_section
from dynid_ros.report.link_parameters import (
    BaseRow,
    base_rows,
    base_section,
    hidden_section,
    link_rows,
    link_section,
    weak_table,
    weight_plot,
)
from dynid_ros.report.link_quality import (
    LONGEST_LAG,
    LinkQuality,
    ResidualCorrelation,
    TorqueComparison,
    agreement,
    explained,
)
from dynid_ros.report.page import (
    Beside,
    Condition,
    Figures,
    Folded,
    Legend,
    Plot,
    Section,
    Table,
    Text,
    Tile,
    agreement_table,
    condition,
    result_page,
)
from dynid_ros.report.plots import prediction_panels, shown_rows

# What was found of the links and how good it is, for those who read nothing else.


def _sentences(result: LinkResult, quality: LinkQuality, rows: Sequence[BaseRow], duration: float) -> list[str]:
    """What was identified, its R², where it is worst, and where the URDF is wrong."""
    found = [_identified(result, duration), _r2(quality)]
    if quality.repeated:
        found.append(
            "The recordings not used to fit repeat the motion of those that were: they show that the result repeats, "
            "not how well it predicts another motion."
        )
    found += _worst(result, quality)
    found += [] if result.direction is None else [result.direction.sentence]
    return found + _urdf(rows) + _truth(rows)


def _tiles(
    result: LinkResult, quality: LinkQuality, rows: Sequence[BaseRow], weak: int, conditioning: Condition
) -> list[Tile]:
    """The same in numbers."""
    names, units = result.robot.joint_names, joint_units(result.robot)
    errors = [with_unit(value, unit.effort, 2) for value, unit in zip(quality.model.rms, units, strict=True)]
    found = [
        Tile(
            "R² of the torque",
            share(explained(quality.model)),
            f"URDF: {share(explained(quality.urdf))}; mean of the joints, on {quality.evidence}",
        )
    ]
    if quality.worst is not None:
        worst = quality.worst
        note = f"R² of {names[worst]}; off by {errors[worst]} RMS"
        found.append(Tile("Worst joint", share(quality.model.r2[worst]), note))
    largest = int(np.argmax(quality.model.rms))
    one_unit = len({unit.effort for unit in units}) == 1
    listing = ", ".join(error.removesuffix(f" {units[0].effort}") if one_unit else error for error in errors)
    value, effort = significant(quality.model.rms[largest], 2), units[largest].effort
    found.append(Tile(f"Largest RMS error, {effort}", value, f"by joint, base to tip: {listing}"))
    values = result.base_parameters.values
    determined = int(np.isfinite(values).sum())
    note = f"friction included; {weak} with a standard error above {percent(MAX_RELATIVE_ERROR)}"
    found.append(Tile("Base parameters determined", f"{determined} of {len(values)}", note))
    known = [row for row in rows if row.known]
    if known:
        covered = sum(row.covered for row in known)
        found.append(Tile("95 % intervals that hold the truth", f"{covered} of {len(known)}", "of the links"))
    return [*found, conditioning.tile]


def correlation_meaning(correlation: ResidualCorrelation, joints: Sequence[str], stretch: float) -> list[str]:
    """Sentences on what the autocorrelation says.

    Args:
        correlation: of the errors.
        joints: names.
        stretch: duration, s, of the stretches whose differences give the standard errors; NaN if there were too few.
    """
    if correlation.like_noise.all():
        return ["The errors look like noise of the sensors: the model lacks nothing that this motion shows."]
    lasting = [name for name, noise in zip(joints, correlation.like_noise, strict=True) if not noise]
    memory = correlation.memory[~correlation.like_noise]
    longest = (
        f"up to {significant(memory.max(), 2)} s" if np.isfinite(memory).all() else f"more than {brief(LONGEST_LAG)} s"
    )
    whose = "all joints" if len(lasting) == len(joints) else listed(lasting)
    found = [
        f"The errors of {whose} are not noise of the sensors: they stay correlated for {longest}. They are what the "
        "model lacks, mostly friction, which changes with the motion. The standard errors allow for it: they come from "
        "how much stretches of different motion differ, not from how many samples there are."
    ]
    slow = [name for name, value in zip(joints, correlation.memory, strict=True) if value > stretch]
    if slow:
        found.append(
            f"These stretches are {significant(stretch, 2)} s long; errors of {listed(slow)} stay correlated for "
            "longer, so that intervals there are too narrow. Record longer to widen the stretches."
        )
    return found


def _identified(result: LinkResult, duration: float) -> str:
    links = int(np.count_nonzero(result.base.columns < result.parameters.size))
    friction = result.base.rank - links
    what = f"{counted(links, 'base parameter')} of {counted(result.robot.n_joints, 'link')}"
    also = f" and {counted(friction, 'friction coefficient')}" if friction else ""
    open_ = int(np.count_nonzero(~np.isfinite(result.base_parameters.values)))
    but = f", but for {open_} that this motion does not determine" if open_ else ""
    return f"{what}{also} were identified from {counted(len(result.sources), 'recording')}, {brief(duration)} s{but}."


def _r2(quality: LinkQuality) -> str:
    text = (
        f"On {quality.evidence}, R² of the torque is {share(explained(quality.urdf))} with your URDF and "
        f"{share(explained(quality.model))} with the identified model (mean of the joints; friction is fitted in both)"
    )
    return text + ("." if quality.unseen else "; another recording would show how well it predicts.")


def _worst(result: LinkResult, quality: LinkQuality) -> list[str]:
    if quality.worst is None:
        return []
    i = quality.worst
    unit = joint_units(result.robot)[i].effort
    torque, error = (with_unit(values[i], unit, 2) for values in (quality.torque_rms, quality.model.rms))
    return [
        f"R² is lowest at {result.robot.joint_names[i]}, {share(quality.model.r2[i])}: of its {torque}, the model is "
        f"off by {error} (RMS)."
    ]


def _urdf(rows: Sequence[BaseRow]) -> list[str]:
    compared = sum(row.compared for row in rows)
    if not compared:
        return []
    wrong = [row.name for row in rows if row.wrong]
    doubtful = sum(row.doubtful for row in rows)
    if wrong:
        shown = listed([*wrong[:6], f"{len(wrong) - 6} more"] if len(wrong) > 7 else wrong)
        found = (
            f"The URDF is wrong in {len(wrong)} of {counted(compared, 'base parameter')} ({shown}): its value lies "
            f"outside of the 95 % interval, that of the identified model within. By chance it would be so in about "
            f"{0.05 * compared:.0f}."
        )
    else:
        found = f"None of {counted(compared, 'base parameter')} shows the URDF to be wrong."
    if doubtful:
        found += (
            f" In {doubtful}{' more' if wrong else ''}, neither lies within: these intervals are in doubt, most "
            "likely by friction that the model lacks, and nothing follows for the URDF."
        )
    return [found]


def _truth(rows: Sequence[BaseRow]) -> list[str]:
    known = [row for row in rows if row.known]
    if not known:
        return []
    return [f"{sum(row.covered for row in known)} of {len(known)} intervals of 95 % hold the true value."]


def write_link_report(
    path: str | Path,
    result: LinkResult,
    fitted: Sequence[Recording],
    unseen: Sequence[Recording] = (),
    truth: NDArray | None = None,
) -> Path:
    """Write the report of what was identified and how well it predicts.

    The same input gives the same file: it holds no date.

    Args:
        path: of the HTML file; folders are made.
        result: of the identification.
        fitted: the recordings that it was fitted to.
        unseen: recordings that it was not fitted to; without any, the page says that it judges on the fitted ones.
        truth: (10 n,) true parameters of the links of a simulated arm.

    Raises:
        IdentificationError: no recordings, one without torque, one that was both fitted and not, or a truth of another
            shape.
        RecordingError: a joint of the robot is not in a recording.
    """
    _check(result, fitted, unseen, truth)
    robot, signals = result.robot, result.model.signals
    seen = [TorqueComparison.of(result, recording) for recording in fitted]
    fresh = [TorqueComparison.of(result, recording) for recording in unseen]
    quality = LinkQuality.of(robot.joint_names, seen, fresh)
    rows = base_rows(result, truth)
    weak = weak_table(result)
    duration = sum(len(one.time) * one.step for one in seen)
    conditioning = condition(
        result.condition_number, "faster and more varied motion", "Move all joints at once, faster and further."
    )
    cutoffs = {
        "low-pass of torque and model": f"{brief(signals.cutoff)} Hz",
        "low-pass of positions": f"{brief(signals.motion_cutoff)} Hz",
    }
    return result_page(
        "Links",
        "Link identification",
        robot,
        sentences=_sentences(result, quality, rows, duration),
        tiles=_tiles(result, quality, rows, len(weak.rows), conditioning),
        sections=[
            _torque_section(result, quality),
            _error_section(result, quality, duration),
            _agreement_section(result, quality),
            friction_section(result, seen),
            base_section(rows, robot.link_names, possible=all(row.identified.possible for row in link_rows(result))),
            link_section(result),
            conditioning.section(*_weak(weak)),
            hidden_section(result),
            _weight_section(result),
        ],
        sources=result.sources,
        settings=result.settings,
        shown=cutoffs,
    ).write(path)


def write_result_report(
    path: str | Path,
    result: LinkResult,
    recordings: Mapping[str, Sequence[Recording]],
    validations: Sequence[Validation],
) -> Path:
    """Write the report of a result; one that does not predict torque has the page of its file."""
    del validations  # the report makes them anew, and more
    if result.missing:
        from dynid_ros.report.identified_yaml import write_file_report  # noqa: PLC0415  # only here

        return write_file_report(path, result.document(), result.robot)
    return write_link_report(path, result, recordings["recordings"], recordings.get("validate", ()))


def _torque_section(result: LinkResult, quality: LinkQuality) -> Section:
    longest = max(quality.shown, key=lambda one: len(one.time))
    rows = shown_rows(longest.time)
    shown = longest.time[rows]
    kept = Text("No recording was kept back: these are the data that the model was fitted to.", "bold")
    unseen = ", which was not used to fit" if quality.unseen else ""
    return Section(
        "Measured and predicted torque",
        [
            *([] if quality.unseen else [kept]),
            f"{brief(shown[-1] - shown[0])} s from the middle of {longest.recording}{unseen}, all through the same "
            f"low-pass at {brief(result.model.signals.cutoff)} Hz. Below the torque is the error of both models, "
            "magnified. The URDF has its own links, and friction fitted as for the identified model. Errors in the "
            "captions are RMS over the whole recording.",
            Legend({"measured": "measured", "identified": "identified model", "urdf": "URDF"}),
            Figures(
                prediction_panels(
                    result.robot.joint_names,
                    [unit.effort for unit in joint_units(result.robot)],
                    longest.time,
                    longest.measured,
                    longest.identified,
                    rows=rows,
                    urdf=longest.urdf,
                )
            ),
        ],
    )


def _error_section(result: LinkResult, quality: LinkQuality, duration: float) -> Section:
    names = result.robot.joint_names
    correlation = ResidualCorrelation.of(result.model.signals.cutoff, quality.shown)
    stretch = duration / (np.median(result.base_parameters.dof) + 1)
    return Section(
        "What the errors are",
        [
            f"Autocorrelation of the errors on {quality.evidence}: how correlated two errors are that lie so far "
            "apart in time. White noise of the sensors, through the same low-pass, would stay within the band.",
            Figures([Plot(correlation.picture(i, name), name) for i, name in enumerate(names)], small=True),
            *map(Text, correlation_meaning(correlation, names, stretch)),
        ],
    )


def _agreement_section(result: LinkResult, quality: LinkQuality) -> Section:
    units = joint_units(result.robot)
    unseen = [("R²", "unseen")] * quality.unseen
    columns = [("Torque", "RMS"), ("Error", "RMS"), ("Relative", "error ÷ torque"), *unseen, ("R²", "fit")]
    others = [("R²", "URDF, unseen" if quality.unseen else "URDF"), ("Error of URDF", "RMS")]
    rows = [
        [
            name,
            with_unit(quality.torque_rms[i], units[i].effort),
            with_unit(quality.model.rms[i], units[i].effort),
            percent(quality.model.relative_rms[i]),
            *[fixed(quality.model.r2[i], 4)] * quality.unseen,
            fixed(quality.fit.r2[i], 4),
            fixed(quality.urdf.r2[i], 4),
            with_unit(quality.urdf.rms[i], units[i].effort),
        ]
        for i, name in enumerate(result.robot.joint_names)
    ]
    each = [agreement(result.robot.joint_names, [one], lambda own: own.identified) for one in quality.shown]
    parts = [part for one in each for part in (Text(one.recording, "heading"), agreement_table(one, units))]
    return Section(
        "Agreement by joint",
        [
            f"RMS over {quality.evidence}. R² is the model's share of the torque's variance: 1 is all of it, below 0 a "
            "constant would do better.",
            Table(["Joint", *columns, *others], rows),
            *([Folded("Each recording by itself", parts)] if len(each) > 1 else []),
        ],
    )


def _weak(table: Table) -> list[Folded]:
    if not table.rows:
        return []
    intro = (
        "Of its value; the weakest first. One that is nearly zero is weak by this measure even if its interval is "
        "narrow. The last column is the parameter whose error goes along with it most: motion that separates the two "
        "would help."
    )
    return [
        Folded(
            f"{counted(len(table.rows), 'parameter')} with a standard error above {percent(MAX_RELATIVE_ERROR)}",
            [intro, table],
        )
    ]


def _weight_section(result: LinkResult) -> Section | None:
    if not result.scores:
        return None
    weight = result.settings["prior_weight"]
    return Section(
        f"Weight of the URDF: {weight:g}",
        [
            Beside([Plot(weight_plot(result.scores, weight))]),
            "Prediction error on samples left out of the fit, over the noise of each joint, by how strongly the links "
            "are regularised towards the URDF. Of the weights that predict as well as the best, as far as the parts "
            "left out determine it, the middle is taken.",
        ],
    )


def _check(result: LinkResult, fitted: Sequence[Recording], unseen: Sequence[Recording], truth: NDArray | None) -> None:
    if not fitted:
        raise IdentificationError("report: no recordings; give those that the links were identified from")
    for other in unseen:
        if any(np.array_equal(other.position, own.position) for own in fitted):
            raise IdentificationError(
                f"report: {other.source} is among the fitted and among the unseen recordings; leave it out of one"
            )
    size = result.parameters.size
    if truth is not None and (np.shape(truth) != (size,) or not np.isfinite(truth).all()):
        raise IdentificationError(
            f"report: true parameters have shape {np.shape(truth)}; expected ({size},), all finite, ten for each link"
        )
