"""The lines of docs/promises.md."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TEST = re.compile(r"^`(?P<file>test_\w+\.py)::(?P<name>test_\w+)(\[(?P<case>.+)\])?`$")


class Promise(NamedTuple):
    """What happens, what the node does, within what time, and the tests (`file::name` or `file::name[case]`)."""

    fault: str
    answer: str
    within: str
    tests: tuple[str, ...]


def promises() -> list[Promise]:
    """All lines of all tables."""
    lines = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|") and not line.startswith(("|---", "| what happens |"))]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [Promise(*row[:-1], tuple(row[-1].split(", "))) for row in cells]
