"""A page that holds what was identified of a simulated arm against what is true of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid_ros.identification.identified_file import new_document
from dynid_ros.model import RobotModel
from dynid_ros.report.formats import as_fine_as, significant
from dynid_ros.report.page import Tile, write_page


@dataclass(frozen=True)
class Found:
    """One number that was identified, beside the truth.

    Attributes:
        name: of what.
        unit: of all numbers.
        true: value.
        value: as identified; NaN if the data do not decide it.
        half: half of the 95 % interval.

    """

    name: str
    unit: str
    true: float
    value: float
    half: float

    @property
    def error(self) -> float:
        """Identified less true."""
        return self.value - self.true

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return bool(abs(self.error) <= self.half)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """True and identified value, half interval and error as text."""
        if np.isnan(self.value):
            return significant(self.true), "–", "–", "–"
        finer = self.half / 10
        # not a zero with a sign
        true = self.true if abs(self.true) > finer / 100 else 0.0
        return (
            as_fine_as(true, finer),
            as_fine_as(self.value, finer),
            significant(self.half, 2),
            significant(self.error, 2),
        )


def write_demonstration_page(
    path: str | Path,
    robot: RobotModel,
    kind: str,
    *,
    sentences: Sequence[str],
    tiles: Sequence[Tile],
    rows: Sequence[Found],
    pictures: Mapping[str, str] | None = None,
) -> Path:
    """Write the page; `report.html` beside it is the identification's own.

    Args:
        path: of the HTML file; folders are made.
        robot: the arm as its URDF has it.
        kind: what was shown.
        sentences: the verdict.
        tiles: the same in numbers.
        rows: all that was identified.
        pictures: SVG by caption.

    """
    return write_page(
        path,
        "demonstration.html.j2",
        robot=robot,
        kind=kind,
        source=new_document(robot, (), {})["source"],
        sentences=sentences,
        tiles=tiles,
        rows=rows,
        pictures=dict(pictures or {}),
    )
