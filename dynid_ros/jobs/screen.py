"""Default output of a command: a verdict, one table, at most three remarks, the files; never more than one screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_LINES = 25
MAX_REMARKS = 3
MAX_LINE_WIDTH = 160
"""Characters of a remark or of a row: a wide terminal shows them in one line."""


@dataclass(frozen=True)
class Screen:
    """Lines of a command, the important ones first; `--verbose` prints all that a command knows instead.

    Attributes:
        verdict: one or two sentences: action, recordings, and whether the result is good enough.
        table: lines of a table, its heads first.
        remarks: sentences in order of importance; the first three are printed.
        files: files that were written.
        details: all lines for `--verbose`; empty: verdict, table, remarks and files are complete.
    """

    verdict: Sequence[str]
    table: Sequence[str] = ()
    remarks: Sequence[str] = ()
    files: Sequence[Path] = ()
    details: str = ""

    def full(self) -> str:
        """Return all lines, for `--verbose`."""
        if self.details:
            return self.details
        files = [f"wrote {', '.join(map(str, self.files))}"] if self.files else []
        return "\n".join([*self.verdict, *self.table, *self.remarks, *files])

    @classmethod
    def from_lines(cls, text: str) -> Screen:
        """Return the screen of a text whose last line names the files, or of any other text."""
        lines = text.splitlines()
        if lines and lines[-1].startswith("wrote "):
            return cls(lines[:1] if len(lines) > 1 else (), lines[1:-1], (), [Path(lines[-1].removeprefix("wrote "))])
        return cls(lines[:1], lines[1:])

    def text(self) -> str:
        """Return at most `MAX_LINES` lines; rows that do not fit are counted."""
        verdict = [line for sentence in self.verdict for line in _wrapped(sentence)]
        remarks = [f"  {shortened(remark)}" for remark in self.remarks[:MAX_REMARKS]]
        if len(self.remarks) > MAX_REMARKS:
            remarks.append(f"  {len(self.remarks) - MAX_REMARKS} more: --verbose")
        tail = ["Remarks", *remarks] if remarks else []
        files = ", ".join(map(str, self.files))
        tail += [f"wrote {files}"] if files else []
        table = _cut(self.table, MAX_LINES - len(verdict) - len(tail) - 2)
        return "\n".join([*verdict, *(["", *table, ""] if table else []), *tail])


def _wrapped(sentence: str) -> list[str]:
    """Return a sentence in one line, or in two where it is longer."""
    if len(sentence) <= MAX_LINE_WIDTH:
        return [sentence]
    middle = sentence.rfind(" ", 0, MAX_LINE_WIDTH)
    return [sentence[:middle], "  " + shortened(sentence[middle + 1 :])]


def _cut(table: Sequence[str], count: int) -> list[str]:
    """Return the first lines of a table, and how many more there are."""
    lines = [shortened(line) for line in table]
    return lines if len(lines) <= count else [*lines[: count - 1], f"… {len(lines) - count + 1} more rows: --verbose"]


def shortened(text: str) -> str:
    """Return a text that fits a line, cut in the middle: its end has the remedy."""
    if len(text) <= MAX_LINE_WIDTH:
        return text
    head, tail = MAX_LINE_WIDTH * 6 // 10, MAX_LINE_WIDTH * 4 // 10 - 3
    return f"{text[:head].rstrip()} … {text[-tail:].lstrip()}"
