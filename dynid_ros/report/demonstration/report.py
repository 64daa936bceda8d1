"""The one page of the demo: what happened, act by act, held against what is true of the simulated arm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dynid_ros import __version__
from dynid_ros.report.demonstration.act import Act
from dynid_ros.report.page import write_page

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
