"""Cells, numbers, lengths and tracks of text exports of camera systems."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import RecordingError
from dynid_ros.files import MEGABYTE, read_bytes
from dynid_ros.recording.series import PoseSeries, require_increasing

METRES = {
    "m": 1.0,
    "meter": 1.0,
    "meters": 1.0,
    "metre": 1.0,
    "metres": 1.0,
    "cm": 1e-2,
    "centimeters": 1e-2,
    "mm": 1e-3,
    "millimeters": 1e-3,
}
"""Units of length by their spellings."""
MAX_FILE_BYTES = 500 * MEGABYTE
HIDDEN_CELLS = ("", "null", "none", "-")
"""Cells of markers that were not seen."""


@dataclass(frozen=True)
class MocapText:
    """Lines of a text file, counted from 0, with the options of the caller.

    Attributes:
        path: file, for messages.
        lines: unchanged lines.
        delimiter: delimiter of the cells.
        unit: unit of length if the file names none; None: the format's default.
        rate: frame rate, Hz, instead of the file's.
    """

    path: Path
    lines: list[str]
    delimiter: str
    unit: str | None = None
    rate: float | None = None

    @staticmethod
    def read(path: str | Path, unit: str | None, rate: float | None) -> "MocapText":
        """Read a file whose delimiter is the most frequent of tab, semicolon and comma in the first lines."""
        path = Path(path)
        try:
            data = read_bytes(path, MAX_FILE_BYTES)
        except OSError as error:
            raise RecordingError(f"cannot read {path} ({error.strerror or error}); give a text export") from error
        if b"\0" in data or not data.strip():
            kind = "no text" if data.strip() else "empty"
            raise RecordingError(f"{path} is {kind}; export the tracks as text: CSV, TSV or TRC")
        try:
            content = data.decode("utf-8-sig")
        except UnicodeDecodeError:  # names of markers, in whatever alphabet; any byte is a letter in this one
            content = data.decode("latin-1")
        lines = content.splitlines()
        delimiter = max("\t;,", key="\n".join(lines[:12]).count)  # between numbers with decimal commas, as many
        return MocapText(path, lines, delimiter, unit, rate)

    def error(self, line: int, problem: str) -> RecordingError:
        """Return the error of this file at a line."""
        return RecordingError(f"{self.path}, line {line + 1}: {problem}")

    def cells(self, line: int, width: int = 1, content: str = "more lines") -> list[str]:
        """Return the stripped cells of a line, with empty cells up to a width.

        Raises:
            RecordingError: the file ends before the line.
        """
        if line >= len(self.lines):
            raise self.error(len(self.lines) - 1, f"the file ends here; expected {content}: export it again")
        try:
            row = next(csv.reader([self.lines[line]], delimiter=self.delimiter), [])
        except csv.Error as error:
            raise self.error(line, f"{error}; export the file again") from error
        cells = [cell.strip() for cell in row]
        return cells + [""] * (width - len(cells))

    def first(self, line: int) -> str:
        """Return the first cell of a line; empty beyond the last line."""
        return self.lines[line].partition(self.delimiter)[0].strip(' "') if line < len(self.lines) else ""

    def find(self, word: str) -> int | None:
        """Return the first line whose first cell is this word, in upper or lower case."""
        return next((i for i in range(len(self.lines)) if self.first(i).lower() == word.lower()), None)

    def number(self, line: int, cell: str, content: str) -> float:
        """Parse a positive number.

        Raises:
            RecordingError: the cell is not a positive number.
        """
        try:
            value = float(cell.replace(",", "."))
        except ValueError:
            value = np.nan
        if not 0 < value < np.inf:
            raise self.error(line, f"'{cell}' is no {content}; expected a positive number: export the file again")
        return value

    def table(self, start: int, width: int, *, until_blank: bool = False) -> NDArray:
        """Read numbers (N, width) from a line to the end of the file or to a blank line; NaN for empty cells.

        Raises:
            RecordingError: no line follows, a line has another length, or a cell is not a number.
        """
        rows: list[NDArray] = []
        for line in range(start, len(self.lines)):
            cells = self.cells(line)
            if not any(cells):
                if until_blank and rows:
                    break
                continue
            if len(cells) > width and any(cells[width:]):
                raise self.error(line, f"{len(cells)} cells; expected {width}, as the header says: export it again")
            row = np.full(width, np.nan)
            row[: len(cells)] = [self._value(line, cell) for cell in cells[:width]]
            rows.append(row)
        if not rows:
            raise self.error(min(start, len(self.lines)) - 1, "no samples follow; expected a line for every frame")
        return np.array(rows)

    def metres(self, line: int, stated: str | None, typical: str | None = None) -> float:
        """Return the unit of length, m, that the file states, the caller gives, or the format uses typically.

        Raises:
            RecordingError: the unit is unknown, or the caller's differs from the file's.
        """
        if stated and self.unit and METRES.get(stated.lower()) != METRES.get(self.unit.lower()):
            raise self.error(line, f"the file is in {stated}, not in {self.unit}; leave the unit out")
        unit = stated or self.unit or typical
        if not unit or unit.lower() not in METRES:
            raise self.error(line, f"unit of length '{unit or ''}' is unknown; expected m, cm or mm: give the unit")
        return METRES[unit.lower()]

    def poses(
        self, line: int, time: NDArray, names: Sequence[str], positions: NDArray, quaternions: NDArray | None = None
    ) -> dict[str, PoseSeries]:
        """Return tracks by name from time (N,), s, positions (P, N, 3), m, and quaternions (P, N, 4), NaN if unknown.

        Raises:
            RecordingError: there is no track, two have one name, or time does not increase.
        """
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice or not names:
            what = f"tracks {', '.join(twice)} come twice" if twice else "no track of a marker or rigid body"
            raise self.error(line, f"{what}; name each marker once, and export markers or rigid bodies")
        require_increasing(time, str(self.path), "export the file again, with every frame once")
        if quaternions is None:
            quaternions = np.broadcast_to(np.nan, (len(names), len(time), 4))
        seen = np.isfinite(positions).all(axis=2)
        positions = np.where(seen[:, :, np.newaxis], positions, np.nan)
        turned = np.isfinite(quaternions).all(axis=2)
        quaternions = np.where(turned[:, :, np.newaxis], quaternions, np.nan)
        return {
            name: PoseSeries(time, position, quaternion)
            for name, position, quaternion in zip(names, positions, quaternions, strict=True)
        }

    def _value(self, line: int, cell: str) -> float:
        if cell.lower() in HIDDEN_CELLS:
            return np.nan
        try:
            return float(cell if self.delimiter == "," else cell.replace(",", "."))
        except ValueError:
            raise self.error(line, f"'{cell}' is not a number; mend or remove the line") from None
