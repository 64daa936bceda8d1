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

from dynid_ros.errors import DynidError
from dynid_ros.files import write_atomically
from dynid_ros.report.drawing import LIGHT, svg
from dynid_ros.report.formats import as_fine_as, counted, fixed, significant
from dynid_ros.report.page import Bullets, Figures, Links, Page, Plot, Section, Table, Text, Tile, Tiles
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


# A number that was identified, compared with the truth.


@dataclass(frozen=True)
class Found:
    """One number that was identified, compared with the truth.

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
        """PASSED or FAILED, then each measured number and what is allowed."""

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


INTRODUCTION = (
    "An arm that does not know its own weight falls when its motors let go, and a controller that does not know it "
    "takes a hand's push for gravity. Here the nodes of dynid_ros find out what an arm weighs, how it rubs and "
    "springs, and what it carries: they move it, record its joint angles and motor torques, and compute.",
    "The arm is simulated, so that the truth is known. The nodes are those that run on a robot. They see noisy "
    "sensors and a description of the arm whose masses and extents are wrong by up to a fifth on purpose; the truth "
    "is used by this page alone, to judge.",
)
HOW_TO_READ = (
    "A 95 % interval is the range that the identification itself claims from its data: of a hundred such ranges "
    "ninety-five are meant to hold the true value. So one in twenty misses by chance. “RMS” is the root of the mean "
    "square, a typical size. The truth is what the physics engine, MuJoCo, computes with; no identification has seen "
    "it."
)
SHORT_TABLE = 12
"""Rows up to which a table is open."""


def write_demonstration_report(path: str | Path, acts: Mapping[str, Act], missing: tuple[str, ...] = ()) -> Path:
    """Write the page of all acts, held against what is true of the simulated arm.

    Args:
        path: of the HTML file; folders are made. Addresses of the acts' pages are relative to it.
        acts: by name, in the order of the story.
        missing: names of acts that did not come to their end.
    """
    failed = [act.title for act in acts.values() if not act.passed]
    verdict = "The act passed." if len(acts) == 1 else f"All {len(acts)} acts passed."
    if missing or failed:
        verdict = f"{len(acts) - len(failed)} of {len(acts) + len(missing)} acts passed"
        verdict += f"; failed: {', '.join(failed)}" if failed else ""
        verdict += f"; not played to their end: {', '.join(missing)}." if missing else "."
    return Page(
        "Demo of dynid_ros",
        "Demo of dynid_ros: a simulated arm and real ROS 2 nodes",
        "An arm learns what it weighs",
        INTRODUCTION,
        (),
        [
            *(_section(name, f"{number}. {act.title}", act) for number, (name, act) in enumerate(acts.items(), 1)),
            Section("How to read the numbers", [Text(HOW_TO_READ)]),
        ],
        verdict=[verdict],
        made="Made",
    ).write(path)


def _section(name: str, title: str, act: Act) -> Section:
    held = {True: "holds the truth", False: "misses the truth"}
    rows = [
        (
            f"{row.name}{', ' * bool(row.unit)}{row.unit}",
            *row.cells,
            held[row.covered] if row.decided else "not determined by the data",
        )
        for row in act.rows
    ]
    covered = f"{act.covered} of {len(act.decided)} intervals hold it"
    table = Table(
        ("", "True", "Identified", ("95 % interval", "half of it"), "Error", "Interval"),
        rows,
        words=[5],
        folded=f"{counted(len(rows), 'number')} against the truth; {covered}",
        unfolded=len(rows) <= SHORT_TABLE,
    )
    parts = [
        *map(Text, act.story),
        Tiles(act.tiles),
        Figures([Plot(picture, below=caption) for caption, picture in act.pictures.items()]),
        Text("Measured, and what was allowed", "heading"),
        Bullets(act.sentences[1:]),
        *([table] if rows else []),
        *([Links(act.pages)] if act.pages else []),
        *([f"Took {fixed(act.seconds, 0)} s."] if np.isfinite(act.seconds) else []),
    ]
    return Section(title, parts, passed=act.passed, anchor=name)
