"""Judges an arm that floats and is led by the hand: it goes along, and stays where it is left."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model import RobotModel
from dynid_ros.report.demonstration.found import Found
from dynid_ros.report.demonstration.guiding_plot import guiding_plot, guiding_view
from dynid_ros.report.page import Tile

LEAST_WAY = 0.15
"""That the place the hand holds is moved by each time the hand leads it, m."""
LARGEST_DRIFT = 0.005
"""Of it afterwards, m."""
LEAST_TIME = 2.0
"""For which it is watched then, s."""
CENTI, MILLI = 100.0, 1000.0


@dataclass(frozen=True)
class Guided:
    """An arm under gravity compensation, and the hand.

    Attributes:
        link: that the hand holds, at the origin of its frame.
        time: (T,) s.
        position: (T, n) of the joints, rad or m.
        force: (T,) size of what the hand applies, N.
        led: from when to when the hand leads, s; then it lets go.

    """

    link: str
    time: NDArray
    position: NDArray
    force: NDArray
    led: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class GuidingVerdict:
    """What the act has shown.

    Attributes:
        robot: the arm.
        guided: what happened.

    """

    robot: RobotModel
    guided: Guided

    @property
    def held(self) -> NDArray:
        """(T, 3) where the place is that the hand holds, m."""
        return place_of(self.robot, self.guided.link, self.guided.position)

    @property
    def ways(self) -> NDArray:
        """Distance by which each lead has moved that place, m."""
        held, time = self.held, self.guided.time
        ends = [np.searchsorted(time, (start, end)).clip(0, len(time) - 1) for start, end in self.guided.led]
        return np.array([np.linalg.norm(held[end] - held[start]) for start, end in ends])

    @property
    def drifts(self) -> NDArray:
        """Farthest that it came after each lead from where it was left, m."""
        held = self.held
        return np.array([np.linalg.norm(held[rows] - held[rows.start], axis=1).max() for rows in self._left()])

    @property
    def watched(self) -> float:
        """Time after each lead, the shortest, s."""
        time = self.guided.time
        return float(min(time[rows.stop - 1] - time[rows.start] for rows in self._left()))

    @property
    def passed(self) -> bool:
        """Whether the arm went along, and stayed."""
        return bool(
            self.ways.min() >= LEAST_WAY and self.drifts.max() <= LARGEST_DRIFT and self.watched >= LEAST_TIME - 0.1
        )

    @property
    def rows(self) -> tuple[Found, ...]:
        """Nothing is identified."""
        return ()

    def sentences(self) -> list[str]:
        """The verdict."""
        ways = " and ".join(f"{CENTI * way:.0f} cm" for way in self.ways)
        return [
            "PASSED: the arm is led by the hand." if self.passed else "FAILED: the arm is not led by the hand.",
            f"Led: the wrist goes along by {ways} (at least {CENTI * LEAST_WAY:.0f} cm each time) with at most "
            f"{self.guided.force.max():.0f} N",
            f"Left: the wrist drifts by at most {MILLI * self.drifts.max():.1f} mm in {self.watched:.1f} s (allowed "
            f"{MILLI * LARGEST_DRIFT:g} mm in {LEAST_TIME:g} s)",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        return [
            Tile("Led by the hand", f"{CENTI * self.ways.sum():.0f} cm", f"the wrist, in {len(self.ways)} leads"),
            Tile("Largest force", f"{self.guided.force.max():.0f} N", "of the hand"),
            Tile("Drift when left", f"{MILLI * self.drifts.max():.1f} mm", f"the wrist, in {self.watched:.1f} s"),
        ]

    @property
    def pictures(self) -> dict[str, str]:
        """The arm where it was left, and the wrist's way over time."""
        guided, held = self.guided, self.held
        poses = guided.position[[0, *(rows.stop - 1 for rows in self._left())]]
        moved = np.linalg.norm(held - held[0], axis=1)
        return {
            "Grey: before; blue: where the hand left it": guiding_view(self.robot, poses),
            "Way of the wrist and force of the hand; the hand leads in the shaded times": guiding_plot(
                guided.time, moved, guided.force, guided.led
            ),
        }

    def _left(self) -> list[slice]:
        """Rows after each lead, up to the next one."""
        time = self.guided.time
        starts = [start for start, _ in self.guided.led[1:]] + [np.inf]
        return [
            slice(int(np.searchsorted(time, end)), int(np.searchsorted(time, start)))
            for (_, end), start in zip(self.guided.led, starts, strict=True)
        ]


def place_of(robot: RobotModel, link: str, position: NDArray) -> NDArray:
    """Where a link's origin is in the base frame, (T, 3) in m, for positions (T, n)."""
    return robot.forward_kinematics(position)[:, robot.link_names.index(link), :3, 3]
