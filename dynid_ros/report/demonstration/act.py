"""What an act of the demo has shown, as it is kept until all acts make one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dynid_ros.errors import DynidError
from dynid_ros.files import write_atomically
from dynid_ros.report.demonstration.found import Found
from dynid_ros.report.page import Tile


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
        """Numbers that the data decide."""
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
