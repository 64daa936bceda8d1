"""The report of a designed motion: one HTML file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid_ros import __version__
from dynid_ros.excitation import FourierPlan
from dynid_ros.report.motion.designed_motion import DesignedMotion
from dynid_ros.report.motion.joint_use_plots import use_panels, use_rows
from dynid_ros.report.motion.path_views import PathViews
from dynid_ros.report.motion.plots import COLORS, distance_plot, search_plot, spectrum_plot
from dynid_ros.report.page import write_page

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
