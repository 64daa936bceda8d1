"""What an act of the demo has shown, as it is kept until all acts make one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynid_ros import __version__
from dynid_ros.errors import DynidError
from dynid_ros.files import write_atomically
from dynid_ros.report.drawing import LIGHT, svg
from dynid_ros.report.formats import as_fine_as, significant
from dynid_ros.report.page import Tile, write_page
from dynid_ros.report.plots import ROW_WIDTH, row_axes, rows_height

# Errors before and after, joint by joint.


def before_after_plot(names: Sequence[str], before: NDArray, after: NDArray, label: str) -> str:
    """SVG of two sizes (rows,) per joint, orange before, blue after; `label` names them and their unit."""

    def draw(figure: Figure) -> None:
        axes = row_axes(figure, [(name,) for name in names])
        rows = np.arange(len(names))
        axes.barh(rows - 0.2, before, height=0.36, color=LIGHT["uncompensated"])
        axes.barh(rows + 0.2, after, height=0.36, color=LIGHT["identified"])
        axes.set_xlim(0, 1.05 * max(np.max(before), np.max(after)))
        axes.set_xlabel(label)

    return svg(label, ROW_WIDTH, rows_height(len(names)), draw)


# A number that was identified, beside the truth.


@dataclass(frozen=True)
class Found:
    """One number that was identified, beside the truth.

    Attributes:
        name: of what.
        unit: of all numbers.
        true: value.
        value: as identified; NaN if the data do not determine it.
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
    def decided(self) -> bool:
        """Whether the data determine it."""
        return bool(np.isfinite(self.value))

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        return bool(abs(self.error) <= self.half)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """True and identified value, half interval and error as text."""
        if not self.decided:
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


class Verdict(Protocol):
    """What was measured of an act against the truth."""

    @property
    def passed(self) -> bool:
        """Whether all is as good as it must be."""

    def sentences(self) -> list[str]:
        """PASSED or FAILED, then each measured number beside what is allowed."""

    def tiles(self) -> list[Tile]:
        """The numbers that count."""

    @property
    def rows(self) -> Sequence[Found]:
        """All numbers that were identified."""

    @property
    def pictures(self) -> Mapping[str, str]:
        """SVG by caption."""


@dataclass(frozen=True)
class Act:
    """A section of the page.

    Attributes:
        title: of the act.
        story: what happened, for readers who know neither the package nor the words.
        passed: the verdict.
        sentences: the verdict in words; the first says whether it passed.
        tiles: the same in numbers.
        rows: all that was identified.
        pictures: SVG by caption.
        pages: title and address of pages with details, relative to the page.
        seconds: that it took; NaN: not known.

    """

    title: str
    story: tuple[str, ...]
    passed: bool
    sentences: tuple[str, ...]
    tiles: tuple[Tile, ...] = ()
    rows: tuple[Found, ...] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    pages: tuple[tuple[str, str], ...] = ()
    seconds: float = float("nan")

    @classmethod
    def of(cls, title: str, story: Sequence[str], verdict: Verdict, pages: Sequence[tuple[str, str]] = ()) -> Act:
        """The act of which this is the verdict."""
        return cls(
            title,
            tuple(story),
            verdict.passed,
            tuple(verdict.sentences()),
            tuple(verdict.tiles()),
            tuple(verdict.rows),
            dict(verdict.pictures),
            tuple(pages),
        )

    @property
    def covered(self) -> int:
        """Intervals that hold the truth."""
        return sum(row.covered for row in self.decided)

    @property
    def decided(self) -> list[Found]:
        """Numbers that the data determine."""
        return [row for row in self.rows if row.decided]

    def text(self) -> str:
        """For the terminal."""
        return "\n".join(self.sentences)

    def took(self, seconds: float) -> Act:
        """The same, with its time."""
        return replace(self, seconds=seconds)

    def save(self, path: str | Path) -> Path:
        """Write it as JSON; folders are made."""
        return write_atomically(path, json.dumps(asdict(self), default=float))

    @classmethod
    def load(cls, path: str | Path) -> Act:
        """What `save` wrote.

        Raises:
            DynidError: it was not written by this version.

        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            content["tiles"] = tuple(Tile(*tile) for tile in content["tiles"])
            content["rows"] = tuple(Found(**row) for row in content["rows"])
            content["pages"] = tuple((title, address) for title, address in content["pages"])
            return cls(**content | {name: tuple(content[name]) for name in ("story", "sentences")})
        except (ValueError, TypeError, KeyError) as error:
            raise DynidError(f"{path}: not an act of this version's demo ({error}); play that act again") from error


# The one page of the demo: what happened, act by act, held against what is true of the simulated arm.


TITLE = "An arm learns what it weighs"
SHORT_TABLE = 12
"""Rows up to which a table is open."""


def write_demonstration_report(path: str | Path, acts: Mapping[str, Act], missing: tuple[str, ...] = ()) -> Path:
    """Write the page.

    Args:
        path: of the HTML file; folders are made. Addresses of the acts' pages are relative to it.
        acts: by name, in the order of the story.
        missing: names of acts that did not come to their end.

    """
    failed = [act.title for act in acts.values() if not act.passed]
    return write_page(
        path,
        "demo.html.j2",
        robot={"name": TITLE},
        acts=acts,
        failed=failed,
        missing=missing,
        short=SHORT_TABLE,
        source={"version": __version__},
    )
