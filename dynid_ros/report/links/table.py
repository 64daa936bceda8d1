"""The links as they are exported, and how much of each is by the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model.base_parameters import COMBINED, IDENTIFIABLE, LINK_PARAMETERS
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, Body
from dynid_ros.report.formats import listed

DECIDED, IN_COMBINATION, OPEN = "decided", "in combination", "left open by this motion"
AS_URDF, ADJUSTED = "as in the URDF", "not shown, moved with the rest"
UNMOVED = 1e-3
"""Relative change of a parameter that counts as none."""


@dataclass(frozen=True)
class LinkRow:
    """A link as identified and as in the URDF; `sources` says of mass, centre and inertia what they rest on."""

    name: str
    identified: Body
    urdf: Body
    sources: tuple[str, str, str]


def link_rows(result: LinkResult) -> list[LinkRow]:
    """A row per link, base to tip."""
    origins = _origins(result)
    rows = []
    for k, name in enumerate(result.robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        own = origins[block]
        sources = (own[0], _grouped("xyz", own[1:4]), _grouped([label[1:] for label in LINK_PARAMETERS[4:]], own[4:]))
        rows.append(LinkRow(name, Body.of(result.parameters[block]), Body.of(result.robot.parameters[block]), sources))
    return rows


def _origins(result: LinkResult) -> list[str]:
    """What each of the 10 n parameters rests on."""
    words = {IDENTIFIABLE: DECIDED, COMBINED: IN_COMBINATION}
    kept = np.isclose(result.parameters, result.robot.parameters, rtol=UNMOVED, atol=1e-9)
    found = [
        words.get(category, AS_URDF if same else ADJUSTED)
        for category, same in zip(result.base.categories, kept, strict=False)
    ]
    for row, column in enumerate(result.base.columns):
        if column < len(found) and not np.isfinite(result.base_parameters.values[row]):
            found[column] = OPEN
    return found


def _grouped(labels: Sequence[str], origins: Sequence[str]) -> str:
    """As in "x, y decided; z in combination", or one word for all."""
    if len(set(origins)) == 1:
        return origins[0]
    parts = []
    for origin in (DECIDED, IN_COMBINATION, OPEN, AS_URDF, ADJUSTED):
        own = [label for label, other in zip(labels, origins, strict=True) if other == origin]
        if own:
            parts.append(f"{listed(own)} {origin}")
    return "; ".join(parts)


@dataclass(frozen=True)
class HiddenRow:
    """Parameters of one link without an effect on any torque."""

    link: str
    names: str


def hidden_rows(result: LinkResult) -> list[HiddenRow]:
    """Links with such parameters, base to tip."""
    rows = []
    for k, link in enumerate(result.robot.link_names):
        block = slice(PARAMETERS_PER_LINK * k, PARAMETERS_PER_LINK * (k + 1))
        own = [
            name
            for name, category in zip(result.base.names[block], result.base.categories[block], strict=True)
            if category not in (IDENTIFIABLE, COMBINED)
        ]
        if own:
            rows.append(HiddenRow(link, "all ten parameters" if len(own) == PARAMETERS_PER_LINK else listed(own)))
    return rows
