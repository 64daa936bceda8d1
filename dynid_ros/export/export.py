"""One export: from `identified.yaml` and a URDF to files that another program reads, and what these cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.model import RobotModel

TARGETS = {"c": "c_files"}
"""Modules of this room, whose `write` writes the files; loaded when chosen."""


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes:
        target: key of `TARGETS`.
        files: by what they are.
        holds: what the files hold, a line each.
        remarks: what they do not hold, and what that makes of torques.
        numbers: the same for programs.
    """

    target: str
    files: Mapping[str, Path]
    holds: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def summary(self) -> str:
        """Lines of text."""
        wrote = f"wrote {', '.join(map(str, self.files.values()))}"
        return "\n".join([*(f"holds {line}" for line in self.holds), *self.remarks, wrote])

    def document(self) -> dict:
        """Plain data."""
        return {"target": self.target, "holds": list(self.holds), "remarks": list(self.remarks), **self.numbers}


def export(model: str | Path, robot: RobotModel, target: str, output: str | Path) -> Export:
    """Write what an `identified.yaml` knows of an arm for another program.

    Args:
        model: `identified.yaml`.
        robot: the arm, of its URDF.
        target: key of `TARGETS`.
        output: the file, or where there are several the name that they share.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or holds too little for the target.
        ModelError: no such file can describe the arm.
    """
    write: Callable[[ExportedArm, Path], Export] = import_module(f"dynid_ros.export.{TARGETS[target]}").write
    return write(ExportedArm.read(model, robot), Path(output))
