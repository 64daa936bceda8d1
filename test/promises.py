"""Read the table rows of docs/promises.md."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TEST = re.compile(r"^`(?P<file>(\w+/)?test_\w+\.py)::(?P<name>test_\w+)(\[(?P<case>.+)\])?`$")


class Promise(NamedTuple):
    """Row of a table.

    Attributes:
        fault: the fault.
        answers: reaction of the node, and of the arm if the table has a column for it.
        within: time limit.
        tests: `file::name` or `file::name[case]`, with a folder if several files have the name.
    """

    fault: str
    answers: tuple[str, ...]
    within: str
    tests: tuple[str, ...]


def promises() -> list[Promise]:
    """Return all rows of all tables."""
    lines = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and not line.startswith(("|---", "| fault |"))]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [Promise(row[0], tuple(row[1:-2]), row[-2], tuple(row[-1].split(", "))) for row in cells]
