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
from dynid_ros.report.conditioning import condition
from dynid_ros.report.formats import brief
from dynid_ros.report.links.base_plots import base_plot
from dynid_ros.report.links.base_table import base_rows, weak_rows
from dynid_ros.report.links.comparison import TorqueComparison, agreement
from dynid_ros.report.links.friction import FAMILIES, friction_rows
from dynid_ros.report.links.quality import LinkQuality
from dynid_ros.report.links.residual_correlation import ResidualCorrelation
from dynid_ros.report.links.series_plots import series_panels, window
from dynid_ros.report.links.table import hidden_rows, link_rows
from dynid_ros.report.links.verdict import correlation_meaning, sentences, tiles
from dynid_ros.report.links.weight_plot import weight_plot
from dynid_ros.report.page import write_page
from dynid_ros.report.units import joint_units


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
    stretch = duration / (np.median(result.base_parameters.freedom) + 1)
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
