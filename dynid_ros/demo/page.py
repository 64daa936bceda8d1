"""Results of the demo's acts, checked against the truth of the simulation, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.files import write_atomically
from dynid_ros.rehearsal.truth_comparison import Check, Comparison, comparison_table
from dynid_ros.report.drawing import Plot
from dynid_ros.report.formats import fixed
from dynid_ros.report.page import Figures, Links, Page, Section, Text, Tile, Tiles

INTRODUCTION = (
    "A robot arm that does not know its own weight falls when its motors let go, and its controller takes a hand's "
    "push for gravity. Here the nodes of dynid_ros identify the gravity, inertia, friction, springs and load of an "
    "arm: they move it, record joint angles and motor torques, and estimate.",
    "The arm is simulated, so that the truth is known. The nodes are those that run on a robot. They see noisy sensors "
    "and a URDF whose masses and dimensions are wrong by up to a fifth on purpose. Only this page uses the truth, to "
    "check the results.",
)
HOW_TO_READ = (
    "A 95 % interval is the uncertainty that the identification itself derives from its data: of a hundred such "
    "intervals about ninety-five should contain the true value. RMS is the root of the mean square. The truth is what "
    "the physics engine, MuJoCo, computes with; no identification has seen it."
)


@dataclass(frozen=True)
class Act:
    """An act of the demo and its result.

    Attributes:
        story: paragraphs on what happened, for readers who know neither the package nor its words.
        checks: measured values and their bounds.
        comparisons: estimates with their true values.
        pictures: SVG by caption.
        pages: title and address of further pages, relative to the page of the demo.
        seconds: duration; NaN: not known.
    """

    title: str
    story: Sequence[str]
    checks: Sequence[Check]
    comparisons: Sequence[Comparison] = ()
    pictures: Mapping[str, str] = field(default_factory=dict)
    pages: Sequence[tuple[str, str]] = ()
    seconds: float = float("nan")

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    @property
    def sentences(self) -> list[str]:
        """Verdict and checks as lines of text."""
        return [f"{'PASSED' if self.passed else 'FAILED'}: {self.title}", *map(str, self.checks)]

    def save(self, path: str | Path) -> Path:
        """Write the act as JSON and make its folders."""
        content = asdict(self) | {"passed": self.passed, "sentences": self.sentences}
        return write_atomically(path, json.dumps(content, default=float))

    @classmethod
    def load(cls, path: str | Path) -> Act:
        """Read an act that `save` wrote."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            content = {key: value for key, value in content.items() if key not in ("passed", "sentences")}
            content["checks"] = [Check(**check) for check in content["checks"]]
            content["comparisons"] = [Comparison(**comparison) for comparison in content["comparisons"]]
            return cls(**content)
        except (AttributeError, ValueError, TypeError, KeyError) as error:
            raise DynidError(f"{path}: not an act of this version's demo ({error}); play that act again") from error


def write_demo_report(path: str | Path, acts: Mapping[str, Act], missing: Sequence[str] = ()) -> Path:
    """Write the page of all acts.

    Args:
        path: HTML file, whose folders are made; the pages of the acts are relative to it.
        acts: acts by name, in order.
        missing: names of acts that did not end.
    """
    failed = [act.title for act in acts.values() if not act.passed]
    verdict = "The act passed." if len(acts) == 1 else f"All {len(acts)} acts passed."
    if missing or failed:
        parts = [f"{len(acts) - len(failed)} of {len(acts) + len(missing)} acts passed"]
        parts += [f"failed: {', '.join(failed)}"] if failed else []
        parts += [f"not played to the end: {', '.join(missing)}"] if missing else []
        verdict = f"{'; '.join(parts)}."
    sections = [_act_section(name, f"{k}. {act.title}", act) for k, (name, act) in enumerate(acts.items(), 1)]
    return Page(
        title="Demo of dynid_ros",
        kind="Demo of dynid_ros: a simulated arm and real ROS 2 nodes",
        heading="An arm learns what it weighs",
        sentences=INTRODUCTION,
        tiles=(),
        sections=[*sections, Section("How to read the numbers", [Text(HOW_TO_READ)])],
        verdict=verdict,
        made="Made",
    ).write(path)


def _act_section(name: str, title: str, act: Act) -> Section:
    tiles = [
        Tile(check.label, check.measured, check.bound if check.passed else f"{check.bound}: failed")
        for check in act.checks
    ]
    parts = [
        *map(Text, act.story),
        Tiles(tiles),
        Figures([Plot(picture, below=caption) for caption, picture in act.pictures.items()]),
        *([comparison_table(act.comparisons)] if act.comparisons else []),
        *([Links(act.pages)] if act.pages else []),
        *([f"Duration: {fixed(act.seconds, 0)} s."] if np.isfinite(act.seconds) else []),
    ]
    return Section(title, parts, passed=act.passed, anchor=name)
