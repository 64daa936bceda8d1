"""HTML page of a report: sections of sentences, tables and figures, in one self-contained file.

A report is a `Page` of sections. A section consists of the parts below; a plain string in it is an explanation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dynid_ros import __version__
from dynid_ros.estimation.estimate import ILL_CONDITIONED, WELL_CONDITIONED
from dynid_ros.files import write_atomically
from dynid_ros.report.drawing import DARK, LIGHT, Plot
from dynid_ros.report.formats import counted, significant, unbroken


class Tile(NamedTuple):
    """An important number at the top of the page, with its label and a note."""

    label: str
    value: str
    note: str


class Cell(NamedTuple):
    """A table cell with smaller lines below its text."""

    text: str
    below: Sequence[str] = ()


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is "plain", "bold" or "heading"."""

    text: str
    style: str = "plain"
    kind = "text"


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        columns: headings, each with an optional second line such as the unit.
        rows: one cell for each column; the first cell names the row.
        words: indices of the columns of text whose lines may wrap.
        folded: label that unfolds the table on a click; empty: the table is always visible.
        unfolded: whether a folded table starts unfolded.
    """

    columns: Sequence[str | tuple[str, str]]
    rows: Sequence[Sequence[str | Cell]]
    words: Collection[int] = ()
    folded: str = ""
    unfolded: bool = False
    kind = "table"

    @classmethod
    def by_column(
        cls,
        heading: str,
        names: Sequence[str],
        columns: Mapping[Any, Sequence[Any]],
        words: Collection[int] = (),
        folded: str = "",
    ) -> Table:
        """Return a table from its columns.

        Args:
            heading: heading of the names.
            names: first cells of the rows.
            columns: cells of each further column by its heading; a heading is as in the attributes of the class.
            words: indices of the columns of text whose lines may wrap.
            folded: label that unfolds the table on a click.
        """
        return cls((heading, *columns), list(zip(names, *columns.values(), strict=True)), words, folded)


@dataclass(frozen=True)
class Figures:
    """Figures in rows; `size` is "panel", "small", or "wide" for one figure over the whole width."""

    figures: Sequence[Plot]
    size: str = "panel"
    kind = "figures"


@dataclass(frozen=True)
class SideBySide:
    """Figures and tables of different width in one row."""

    parts: Sequence[Any]
    kind = "side_by_side"


@dataclass(frozen=True)
class Legend:
    """Labels of the symbols and lines in the figures, by the keys of `marks` in the template."""

    labels: Mapping[str, str]
    kind = "legend"


@dataclass(frozen=True)
class Bullets:
    """A list of items; an item may have a list below it."""

    items: Sequence[str | tuple[str, Sequence[str]]]
    kind = "bullets"


@dataclass(frozen=True)
class Facts:
    """A list of names with values, such as settings."""

    facts: Mapping[str, str]
    kind = "facts"


@dataclass(frozen=True)
class Folded:
    """Parts of a section that are hidden until the reader clicks on their summary."""

    summary: str
    parts: Sequence[Any]
    kind = "folded"


@dataclass(frozen=True)
class Code:
    """Source text, such as settings of a driver."""

    text: str
    kind = "code"


@dataclass(frozen=True)
class Tiles:
    """Important numbers within a section."""

    tiles: Sequence[Tile]
    kind = "tiles"


@dataclass(frozen=True)
class Links:
    """Titles and addresses of other pages."""

    pages: Sequence[tuple[str, str]]
    kind = "links"


@dataclass(frozen=True)
class Section:
    """A titled section.

    Attributes:
        parts: objects of the classes above, or explanations as strings.
        passed: result of a test, which the top of the page lists; None: no test.
        anchor: HTML id for links to the section.
    """

    title: str
    parts: Sequence[Any]
    passed: bool | None = None
    anchor: str = ""


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: title of the window.
        kind: kind of report, above the heading.
        heading: name of the robot.
        sentences: summary at the top.
        tiles: important numbers at the top.
        sections: sections in order; None is skipped.
        version: version of the program that made the results.
        verdict: bold sentence before the summary; empty: no verdict.
        made: participle in the footer "… with dynid_ros".
    """

    title: str
    kind: str
    heading: str
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    sections: Sequence[Section | None]
    version: str = __version__
    verdict: str = ""
    made: str = "Identified"

    def write(self, path: str | Path) -> Path:
        """Write the HTML file and create its folders; it contains no date, so equal pages give equal files."""
        shown = [section for section in self.sections if section is not None]
        return write_atomically(path, TEMPLATE.render(page=self, sections=shown).lstrip())


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.globals.update(light=LIGHT, dark=DARK)
ENVIRONMENT.filters["unbroken"] = unbroken
TEMPLATE = ENVIRONMENT.get_template("page.html.j2")


@dataclass(frozen=True)
class Condition:
    """Condition number of an experiment and its grade.

    Attributes:
        number: condition number; NaN: not known, infinite: some parameters are undetermined.
        n_weak: number of parameters with a large standard error; None: not known.
        remedy: sentence on motion that lowers the condition number; printed if the number is not good.
    """

    number: float
    n_weak: int | None = None
    remedy: str = "Let the joints turn further, in more varied poses of the other joints."

    @property
    def grade(self) -> str:
        """Grade in words; the number of weak parameters follows."""
        if np.isnan(self.number):
            return "not known"
        if np.isinf(self.number):
            return "some parameters are undetermined"
        is_good = self.number < WELL_CONDITIONED
        grade = "good" if is_good else "moderate" if self.number < ILL_CONDITIONED else "poor"
        return f"{grade}; {counted(self.n_weak, 'parameter')} weakly determined" if self.n_weak else grade

    @property
    def tile(self) -> Tile:
        """Tile with the number and its grade."""
        return Tile("Condition number", "∞" if np.isinf(self.number) else significant(self.number), self.grade)

    def section(self, *parts: Any) -> Section:
        """Return the section that explains the number, followed by further parts."""
        remedy = f" {self.remedy}" if self.number >= WELL_CONDITIONED else ""
        explanation = (
            "The condition number is the largest over the smallest singular value of the weighted regressor with "
            "columns of unit norm. This is the standard error of the least certain combination of parameters over that "
            f"of the most certain one. 1 is ideal, up to {WELL_CONDITIONED:.0f} is good, above {ILL_CONDITIONED:.0f} "
            "is poor. It does not describe single parameters: a small parameter can be weakly determined at any "
            f"condition number.{remedy}"
        )
        return Section("Condition number", [Text(f"{self.tile.value}: {self.grade}."), explanation, *parts])
