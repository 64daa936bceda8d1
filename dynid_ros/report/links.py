"""The report of a link identification: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.links.link_result import WEAK, LinkResult
from dynid_ros.identified.identified_file import new_document
from dynid_ros.recording import Recording
from dynid_ros.report.formats import brief, counted, joint_units, listed, share, significant, with_unit
from dynid_ros.report.friction import FAMILIES, friction_rows
from dynid_ros.report.link_parameters import (
    BaseRow,
    base_plot,
    base_rows,
    hidden_rows,
    link_rows,
    weak_rows,
    weight_plot,
)
from dynid_ros.report.link_quality import (
    LONGEST_LAG,
    LinkQuality,
    ResidualCorrelation,
    TorqueComparison,
    agreement,
    explained,
    series_panels,
    window,
)
from dynid_ros.report.page import Condition, Tile, condition, write_page

# What was found of the links and how good it is, for those who read nothing else.


def sentences(result: LinkResult, quality: LinkQuality, rows: Sequence[BaseRow], duration: float) -> list[str]:
    """What was identified, what it explains, where it is worst, and where the URDF is wrong."""
    found = [_identified(result, duration), _explains(quality)]
    if quality.repeated:
        found.append(
            "The recordings not used to fit repeat the motion of those that were: they show that the result repeats, "
            "not how well it predicts another motion."
        )
    found += _worst(result, quality)
    return found + _urdf(rows) + _truth(rows)


def tiles(
    result: LinkResult, quality: LinkQuality, rows: Sequence[BaseRow], weak: int, conditioning: Condition
) -> list[Tile]:
    """The same in numbers."""
    names, units = result.robot.joint_names, joint_units(result.robot)
    errors = [with_unit(value, unit.effort, 2) for value, unit in zip(quality.model.rms, units, strict=True)]
    found = [
        Tile(
            "Torque explained",
            share(explained(quality.model)),
            f"URDF: {share(explained(quality.urdf))}; R², mean of the joints, on {quality.evidence}",
        )
    ]
    if quality.worst is not None:
        worst = quality.worst
        note = f"of the torque of {names[worst]} explained; off by {errors[worst]} RMS"
        found.append(Tile("Worst joint", share(quality.model.r2[worst]), note))
    largest = int(np.argmax(quality.model.rms))
    one_unit = len({unit.effort for unit in units}) == 1
    listing = ", ".join(error.removesuffix(f" {units[0].effort}") if one_unit else error for error in errors)
    value, effort = significant(quality.model.rms[largest], 2), units[largest].effort
    found.append(Tile(f"Largest RMS error, {effort}", value, f"by joint, base to tip: {listing}"))
    values = result.base_parameters.values
    decided = int(np.isfinite(values).sum())
    note = f"friction included; {weak} with a standard error above 30 %"
    found.append(Tile("Base parameters decided", f"{decided} of {len(values)}", note))
    known = [row for row in rows if row.known]
    if known:
        covered = sum(row.covered for row in known)
        found.append(Tile("95 % intervals that hold the truth", f"{covered} of {len(known)}", "of the links"))
    found.append(Tile("Condition number", significant(result.condition_number), conditioning.word))
    return found


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
        f"The errors of {whose} are not noise of the sensors: they stay alike for {longest}. They are what the "
        "model lacks, mostly friction, which changes with the motion. The standard errors allow for it: they come from "
        "how much stretches of different motion differ, not from how many samples there are."
    ]
    slow = [name for name, value in zip(joints, correlation.memory, strict=True) if value > stretch]
    if slow:
        found.append(
            f"These stretches are {significant(stretch, 2)} s long; errors of {listed(slow)} stay alike for longer, "
            "so that intervals there are too narrow. Record longer to widen the stretches."
        )
    return found


def _identified(result: LinkResult, duration: float) -> str:
    links = int(np.count_nonzero(result.base.columns < result.parameters.size))
    friction = result.base.rank - links
    what = f"{counted(links, 'base parameter')} of {counted(result.robot.n_joints, 'link')}"
    also = f" and {counted(friction, 'friction coefficient')}" if friction else ""
    open_ = int(np.count_nonzero(~np.isfinite(result.base_parameters.values)))
    but = f", but for {open_} that this motion does not decide" if open_ else ""
    return f"{what}{also} were identified from {counted(len(result.sources), 'recording')}, {brief(duration)} s{but}."


def _explains(quality: LinkQuality) -> str:
    text = (
        f"On {quality.evidence}, your URDF explains {share(explained(quality.urdf))} of the torque, the identified "
        f"model {share(explained(quality.model))} (R², mean of the joints; friction is fitted in both)"
    )
    return text + ("." if quality.unseen else "; another recording would show how well it predicts.")


def _worst(result: LinkResult, quality: LinkQuality) -> list[str]:
    if quality.worst is None:
        return []
    i = quality.worst
    unit = joint_units(result.robot)[i].effort
    torque, error = (with_unit(values[i], unit, 2) for values in (quality.torque_rms, quality.model.rms))
    return [
        f"Least is explained of {result.robot.joint_names[i]}, {share(quality.model.r2[i])}: of its {torque}, the "
        f"model is off by {error} (RMS)."
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
    longest = max(quality.shown, key=lambda one: len(one.time))
    correlation = ResidualCorrelation.of(signals.cutoff, quality.shown)
    rows = base_rows(result, truth)
    weak = list(weak_rows(result, WEAK))
    duration = sum(len(one.time) * one.step for one in seen)
    conditioning = condition(
        result.condition_number, "faster and more varied motion", "Move all joints at once, faster and further."
    )
    friction = friction_rows(result, seen)
    links = link_rows(result)
    source = new_document(robot, result.sources, result.settings)["source"]
    shown = longest.time[window(longest)]
    stretch = duration / (np.median(result.base_parameters.dof) + 1)
    return write_page(
        path,
        "links.html.j2",
        robot=robot,
        result=result,
        units=joint_units(robot),
        source=source,
        settings=source["settings"] | _cutoffs(result),
        quality=quality,
        sentences=sentences(result, quality, rows, duration),
        tiles=tiles(result, quality, rows, len(weak), conditioning),
        conditioning=conditioning,
        panels=list(series_panels(robot, longest)),
        panel_recording=longest.recording,
        panel_seconds=brief(shown[-1] - shown[0]),
        correlations=[correlation.picture(i, name) for i, name in enumerate(robot.joint_names)],
        correlation_meaning=correlation_meaning(correlation, robot.joint_names, stretch),
        validations=[agreement(robot.joint_names, [one], lambda own: own.identified) for one in quality.shown],
        friction=friction,
        families={key: label for key, label in FAMILIES.items() if any(row.of(key) for row in friction)},
        base_figures=_figures(result, rows),
        base_rows=rows,
        links=links,
        possible=all(link.identified.possible for link in links),
        hidden=hidden_rows(result),
        weak=weak,
        weak_limit=WEAK,
        weights=weight_plot(result.scores, result.settings["prior_weight"]) if result.scores else "",
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


def _figures(result: LinkResult, rows: list) -> dict[str, str]:
    """A plot per link that has base parameters, base to tip."""
    found = {}
    for k, name in enumerate(result.robot.link_names):
        own = [row for row in rows if row.link == k]
        if own:
            found[name] = base_plot(name, own)
    return found


def _cutoffs(result: LinkResult) -> dict[str, str]:
    signals = result.model.signals
    return {
        "low-pass of torque and model": f"{brief(signals.cutoff)} Hz",
        "low-pass of positions": f"{brief(signals.motion_cutoff)} Hz",
    }
