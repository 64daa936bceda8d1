"""Holds the springs and motors that the demo identified against what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid_ros.estimation.estimate import freedom_of, half_width
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.report.demonstration.found import Found
from dynid_ros.report.flexible_joints import spring_plot
from dynid_ros.report.page import Tile
from dynid_ros.signals import LowPass, filtered_motion

LARGEST_STIFFNESS_ERROR = 0.05
"""Relative."""
LARGEST_INERTIA_ERROR = 0.15
"""Of the motors, relative: of all that a torque moves, near the resonance, they are the smaller part."""
LARGEST_FRICTION_ERROR = 0.15
"""Of dry friction, relative: MuJoCo's is softer around rest than the model's, and intervals do not know that."""
CUTOFF = 15.0
"""Of what is drawn, Hz."""
TERMS = {
    "Stiffness": ("stiffness", "stiffness", "N m/rad"),
    "Motor inertia": ("motor_inertia", "rotor_inertia", "kg m²"),
    "Coulomb friction": ("link_coulomb", "coulomb", "N m"),
}
"""Keys of `identified.yaml` and of the truth, and units."""


@dataclass(frozen=True)
class FlexibleVerdict:
    """Springs, motors and friction as they were found.

    Attributes:
        found: of each joint, by term.
        pictures: SVG of each spring, by caption.

    """

    found: dict[str, tuple[Found, ...]]
    pictures: dict[str, str]

    @property
    def rows(self) -> tuple[Found, ...]:
        """All of them."""
        return tuple(row for rows in self.found.values() for row in rows)

    def worst(self, term: str) -> float:
        """Relative error of the worst joint; infinite if one was not decided."""
        errors = np.array([abs(row.error / row.true) for row in self.found[term]])
        return float(np.where(np.isfinite(errors), errors, np.inf).max())

    @property
    def decided(self) -> tuple[Found, ...]:
        """Those that the data decide."""
        return tuple(row for row in self.rows if np.isfinite(row.value))

    @property
    def covered(self) -> int:
        """Intervals that hold the truth."""
        return sum(row.covered for row in self.decided)

    @property
    def passed(self) -> bool:
        """Whether springs, motors and friction are as good as they must be."""
        return (
            self.worst("Stiffness") <= LARGEST_STIFFNESS_ERROR
            and self.worst("Motor inertia") <= LARGEST_INERTIA_ERROR
            and self.worst("Coulomb friction") <= LARGEST_FRICTION_ERROR
        )

    def sentences(self) -> list[str]:
        """The verdict."""
        return [
            "PASSED: the springs are found." if self.passed else "FAILED: the springs are not found well enough.",
            f"Stiffness: the worst joint is off by {self.worst('Stiffness'):.1%} (allowed "
            f"{LARGEST_STIFFNESS_ERROR:.0%})",
            f"Motor inertia: the worst joint is off by {self.worst('Motor inertia'):.1%} (allowed "
            f"{LARGEST_INERTIA_ERROR:.0%})",
            f"Coulomb friction: the worst joint is off by {self.worst('Coulomb friction'):.1%} (allowed "
            f"{LARGEST_FRICTION_ERROR:.0%})",
            f"True values within their 95 % intervals: {self.covered} of {len(self.decided)} (no condition: the "
            "simulated friction is not exactly the model's)",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        return [
            Tile("Stiffness, worst joint", f"{self.worst('Stiffness'):.1%}", "off"),
            Tile("Motor inertia, worst joint", f"{self.worst('Motor inertia'):.1%}", "off"),
            Tile("Intervals that hold the truth", f"{self.covered} of {len(self.decided)}", "of 95 %"),
        ]


def judge_flexible_joints(
    robot: RobotModel, truth: dict[str, Any], folder: Path, *, joint_states_topic: str, link_states_topic: str
) -> FlexibleVerdict:
    """Compare `identified.yaml` in `folder` with the truth of the simulation.

    Args:
        robot: the arm as its URDF has it.
        truth: of the simulated arm, see `truth_table`.
        folder: that the identification wrote into.
        joint_states_topic: of the bag.
        link_states_topic: likewise, with the links' positions by encoders that the identification has not seen.

    """
    document = load_identified(folder / "identified.yaml")
    joints, true = document["flexible_joints"], truth["joints"]

    def found(joint: str, label: str, key: str, of_truth: str, unit: str) -> Found:
        value, std = joints[joint][key], joints[joint]["std"][key]
        if not joints[joint]["decided"][key]:
            value = std = np.nan
        half = float(half_width(std, freedom_of(document, joints[joint], key)))
        return Found(f"{label} of {joint}", unit, true[joint][of_truth], value, half)

    rows = {label: tuple(found(joint, label, *keys) for joint in robot.joint_names) for label, keys in TERMS.items()}
    (bag,) = document["source"]["recordings"]
    recording = Recording.read(
        bag,
        joint_names=robot.joint_names,
        joint_states_topic=joint_states_topic,
        link_states_topic=link_states_topic,
    )
    return FlexibleVerdict(rows, _pictures(recording, document, rows["Stiffness"]))


def _pictures(recording: Recording, document: dict, stiffness: Sequence[Found]) -> dict[str, str]:
    """Springs by link encoders that no identification has seen; torque without what moves the motor."""
    assert recording.link_position is not None
    recording = recording.slice(np.isfinite(recording.link_position).all(axis=1))
    assert recording.link_position is not None
    low_pass = LowPass(CUTOFF, 1 / float(np.median(np.diff(recording.time))))
    motion = filtered_motion(recording.position, low_pass)
    deflection = motion.position - low_pass.filter(recording.link_position)
    torque, inside = low_pass.filter(recording.torque), slice(low_pass.edge, -low_pass.edge)
    pictures = {}
    for i, (joint, row) in enumerate(zip(recording.joint_names, stiffness, strict=True)):
        motor = document["flexible_joints"][joint]
        spring = torque[:, i] - motor["motor_inertia"] * motion.acceleration[:, i]
        spring -= motor["motor_viscous"] * motion.velocity[:, i]
        across = np.array([deflection[inside, i].min(), deflection[inside, i].max()])
        picture = spring_plot(
            joint, deflection[inside, i], spring[inside], across, row.value * across, true=row.true * across
        )
        caption = f"Spring of {joint}: torque over deflection, by link encoders that were not used; green: the truth"
        pictures[caption] = picture
    return pictures
