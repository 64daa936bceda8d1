"""What was found of a load and how sure it is, for those who read nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid_ros.identification.load_result import LoadResult
from dynid_ros.model.inertia import STATIC
from dynid_ros.report.conditioning import Condition
from dynid_ros.report.formats import as_fine_as, fixed, listed, share, significant
from dynid_ros.report.load.evidence import LoadEvidence
from dynid_ros.report.load.table import inertia_is_a_guess, knows_inertia, load_rows
from dynid_ros.report.page import Tile

POOR = 0.5
"""Share explained, below which a channel is named."""


def sentences(result: LoadResult, evidence: LoadEvidence) -> list[str]:
    """Mass and centre, inertia, and what the load explains."""
    mass, *rest = load_rows(result)
    if np.isnan(mass.value):
        return [
            "These data do not show the mass of the load: the joints that gravity loads did not move, or did not turn "
            "against gravity. Nothing follows for a controller."
        ]
    low, high = (as_fine_as(value, mass.half) for value in result.confidence_intervals()[0])
    if not result.is_loaded:
        return [
            f"No load is shown at {result.frame}: the 95 % interval of its mass, {low} to {high} kg, holds zero. Up to "
            f"{high} kg may be there."
        ]
    centre = ", ".join(as_fine_as(row.value, row.half) for row in rest[:3])
    found = [
        f"The arm carries {as_fine_as(mass.value, mass.half)} kg (95 %: {low} to {high}) at {result.frame}, with the "
        f"centre of mass at ({centre}) mm in that link's frame."
    ]
    if not knows_inertia(result):
        found.append(
            "Its inertia is not known: the arm was at rest." if result.n_load == STATIC else "Its inertia is not shown."
        )
    elif inertia_is_a_guess(result):
        found.append(
            "The motion does not decide its inertia about the centre of mass: errors are larger than the moments, and "
            "what is given is near to a ball of this mass. Turn the wrist faster, or weigh with a wrist sensor."
        )
    return [*found, _explained(result.channels, evidence)]


def tiles(result: LoadResult, evidence: LoadEvidence, conditioning: Condition) -> list[Tile]:
    """The same in numbers."""
    mass, *rest = load_rows(result)
    half = f"± {significant(mass.half, 2)} kg, 95 % interval by the data alone"
    found = [Tile("Mass", f"{as_fine_as(mass.value, mass.half)} kg", half)]
    if result.is_loaded:
        spread = max(row.half for row in rest[:3])
        distance = 1e3 * np.linalg.norm(result.center)
        note = f"of the centre of mass from the origin of {result.frame}; each coordinate ± {significant(spread, 2)} mm"
        found.append(Tile("Distance", f"{fixed(distance, 0)} mm", f"{note} at most"))
        explained = evidence.explained
        note = f"of what is measured; worst {result.channels[int(np.argmin(explained))]}, {share(explained.min())}"
        found.append(Tile("Explained by the load", share(float(np.mean(explained))), note))
    found.append(Tile("Condition number", significant(result.condition_number), conditioning.word))
    return found


def _explained(channels: Sequence[str], evidence: LoadEvidence) -> str:
    shares = evidence.explained
    poor = [name for name, value in zip(channels, shares, strict=True) if value < POOR]
    text = (
        f"It explains {share(float(np.mean(shares)))} of what is measured beside the arm itself, offsets, bias and "
        "friction (R², mean of the channels)"
    )
    return f"{text}; of {listed(poor)} less than half." if poor else f"{text}."
