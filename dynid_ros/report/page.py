"""The one page: sections of sentences, tables and figures, in a file that needs nothing else.

A report is a `Page`; what stands in its sections is one of the parts below, or a text, which explains.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dynid_ros import __version__
from dynid_ros.estimation.estimate import ILL_CONDITIONED, WELL_CONDITIONED
from dynid_ros.files import write_atomically
from dynid_ros.identified.identified_file import RecordedJoints
from dynid_ros.identified.validation import Validation
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import DARK, LIGHT
from dynid_ros.report.formats import JointUnits, fixed, percent, significant, unbroken, with_unit

UNKNOWN_VERSION = "of unknown version"


class Tile(NamedTuple):
    """One number that counts, at the top of the page."""

    label: str
    value: str
    note: str


class Cell(NamedTuple):
    """A cell of a table with smaller lines below it; `truth` is the last of them."""

    text: str
    below: Sequence[str] = ()
    truth: str = ""


class Plot(NamedTuple):
    """A picture (SVG) with a caption above, its name in bold, and one below; `rms` of the error that it shows."""

    picture: str
    name: str = ""
    note: str = ""
    below: str = ""
    rms: float = np.nan


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` is "plain", "bold" or "heading". A text that explains needs no `Text`."""

    text: str
    style: str = "plain"
    kind = "text"


@dataclass(frozen=True)
class Table:
    """Rows of text.

    Attributes:
        columns: heading of each, with what stands small below it, as its unit.
        rows: a cell for each column; the first names the row.
        words: numbers of columns that hold words.
        folded: what to open it by; empty: it is open.
        unfolded: whether it is open at first all the same.
    """

    columns: Sequence[str | tuple[str, str]]
    rows: Sequence[Sequence[str | Cell]]
    words: Collection[int] = ()
    folded: str = ""
    unfolded: bool = False
    kind = "table"


@dataclass(frozen=True)
class Figures:
    """Figures side by side, as many as fit."""

    figures: Sequence[Plot]
    small: bool = False
    kind = "figures"


@dataclass(frozen=True)
class Beside:
    """Figures and tables of different width side by side."""

    parts: Sequence[Any]
    kind = "beside"


@dataclass(frozen=True)
class Legend:
    """Meaning of each mark of the figures, by keys of `marks` in the template, and labels."""

    labels: Mapping[str, str]
    kind = "legend"


@dataclass(frozen=True)
class Bullets:
    """A list; an item may have a list below it."""

    items: Sequence[str | tuple[str, Sequence[str]]]
    kind = "bullets"


@dataclass(frozen=True)
class Facts:
    """Names and what is said of them."""

    facts: Mapping[str, str]
    kind = "facts"


@dataclass(frozen=True)
class Folded:
    """Parts that open on request."""

    summary: str
    parts: Sequence[Any]
    kind = "folded"


@dataclass(frozen=True)
class Code:
    """A text for a program."""

    text: str
    kind = "code"


@dataclass(frozen=True)
class Tiles:
    """Numbers that count, within a section."""

    tiles: Sequence[Tile]
    kind = "tiles"


@dataclass(frozen=True)
class Links:
    """Titles and addresses of other pages."""

    pages: Sequence[tuple[str, str]]
    kind = "links"


@dataclass(frozen=True)
class Section:
    """Title and parts; `said` is its sentence at the top of the page, `passed` the verdict of a test, listed there.

    `anchor` is what links to it name.
    """

    title: str
    parts: Sequence[Any]
    said: str = ""
    passed: bool | None = None
    anchor: str = ""


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: of the window.
        kind: of report, above the heading.
        heading: name of the robot.
        sentences: what to know if nothing else is read.
        tiles: the same in numbers.
        sections: in order; None are left out.
        version: of the program.
        verdict: sentences in bold, before all others.
        made: what was done.
    """

    title: str
    kind: str
    heading: str
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    sections: Sequence[Section | None]
    version: str = __version__
    verdict: Sequence[str] = ()
    made: str = "Identified"

    def write(self, path: str | Path) -> Path:
        """Write the HTML file; folders are made. The same page gives the same file."""
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


# Sections that several reports have.


SETTINGS = {"True": "yes", "False": "no", "None": "none"}


def source_section(
    robot: RobotModel | RecordedJoints | SimpleNamespace, recordings: Sequence[str], settings: Mapping[str, Any]
) -> Section:
    """Robot, recordings and settings, as `identified.yaml` names them."""
    given = [f"{name}: {SETTINGS.get(str(value), value)}" for name, value in settings.items()]
    return Section(
        "Robot and source",
        [
            Facts(
                {
                    **robot_facts(robot),
                    "Joints": ", ".join(robot.joint_names),
                    "Recordings": ", ".join(map(str, recordings)) or "not named",
                    "Settings": ", ".join(given),
                    "Fingerprints": fingerprints(robot),
                }
            )
        ],
    )


def result_page(
    what: str,
    kind: str,
    robot: RobotModel | RecordedJoints,
    *,
    sentences: Sequence[str],
    tiles: Sequence[Tile],
    sections: Sequence[Section | None],
    sources: Sequence[str],
    settings: Mapping[str, Any],
    shown: Mapping[str, str] | None = None,
) -> Page:
    """Return the page of a result that was identified from `sources`; `shown` are settings in other words."""
    own = source_section(robot, sources, {**settings, **(shown or {})})
    return Page(f"{what} of {robot.name}", kind, robot.name, sentences, tiles, [*sections, own])


def robot_facts(robot: RobotModel | RecordedJoints | SimpleNamespace) -> dict[str, str]:
    """Return what the robot is, and where gravity acts on it; the name alone where there was no URDF."""
    if not len(robot.gravity):
        return {"Robot": f"{robot.name}, without URDF"}
    gravity = ", ".join(significant(value, 6) for value in robot.gravity)
    return {
        "Robot": f"{robot.name}, from {robot.base} to {robot.tip}",
        "Gravity": f"{gravity} m/s² along x, y, z of {robot.base}",
    }


def fingerprints(robot: RobotModel | RecordedJoints | SimpleNamespace) -> str:
    """Return the first digits of its digests."""
    if not robot.kinematics_sha256:
        return "none"
    urdf = f"URDF {robot.urdf_sha256[:16]}, " if robot.urdf_sha256 else ""
    return f"{urdf}kinematics {robot.kinematics_sha256[:16]} (first digits of SHA-256)"


def agreement_table(validation: Validation, units: Sequence[JointUnits] | None = None) -> Table:
    """Return errors of predicted torque by joint; without units the heading names both."""
    efforts = [unit.effort for unit in units] if units else [""] * len(validation.joint_names)
    return Table(
        (
            "Joint",
            ("Error", "RMS" if units else "RMS, N m or N"),
            ("Error ÷ measured", "both RMS"),
            ("R²", "1: all of it"),
        ),
        [
            (name, with_unit(rms, effort).strip(), percent(relative), fixed(r2, 4))
            for name, effort, rms, relative, r2 in zip(
                validation.joint_names, efforts, validation.rms, validation.relative_rms, validation.r2, strict=True
            )
        ],
    )


def remarks_section(remarks: Sequence[str]) -> Section | None:
    """Return the list, or nothing."""
    return Section("Remarks of the identification", [Bullets(list(remarks))]) if remarks else None


class Condition(NamedTuple):
    """Grade of an experiment by its condition number, in a few words, in a paragraph, and as tile and section."""

    number: float
    word: str
    explanation: str

    @property
    def tile(self) -> Tile:
        """The number with the grade."""
        return Tile("Condition number", significant(self.number), self.word)

    def section(self, *more: Any) -> Section:
        """The number explained, and more parts."""
        return Section(f"Condition number: {significant(self.number)}", [Text(self.explanation), *more])


def condition(
    number: float,
    more: str = "more varied poses",
    remedy: str = "Let the joints turn further, in more varied poses of the others.",
) -> Condition:
    """Grade the condition number of an experiment; `more` of what would help, and a sentence on what must be done."""
    if not np.isfinite(number):
        word, meaning = "not known", "The file holds no condition number."
    elif number < WELL_CONDITIONED:
        word = "the experiment distinguishes unknowns well"
        meaning = "This experiment distinguishes all unknowns well."
    elif number < ILL_CONDITIONED:
        word = "the experiment distinguishes unknowns"
        meaning = f"This experiment distinguishes the unknowns; {more} would narrow the intervals."
    else:
        word = "the experiment barely distinguishes unknowns"
        meaning = f"This experiment barely distinguishes some unknowns: small sensor errors become large ones. {remedy}"
    return Condition(
        number,
        word,
        "The condition number is the standard error of the least certain combination of unknowns over that of the most "
        f"certain one: 1 is ideal, up to {WELL_CONDITIONED:.0f} is good, above {ILL_CONDITIONED:.0f} is poor. "
        f"{meaning}",
    )
