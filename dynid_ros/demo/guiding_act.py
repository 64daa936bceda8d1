"""Judges an arm that floats and is led by the hand: it goes along, and stays where it is left."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.demo.arm import Hand, place_of
from dynid_ros.demo.drop_test import SideView
from dynid_ros.demo.page import Act, Found
from dynid_ros.demo.stage import Stage
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, label_axes, plot_area, svg
from dynid_ros.report.page import Tile
from dynid_ros.report.plots import draw_stick

# An arm that is led by the hand: where it is over time, and the force that leads it.


WIDTH, HEIGHT, FORCES = 340, 300, 80
VIEW_WIDTH, VIEW_HEIGHT = 340, 300
GUIDING_PLOT_CENTI = 100.0


def guiding_plot(time: NDArray, moved: NDArray, force: NDArray, led: Sequence[tuple[float, float]]) -> str:
    """SVG of the way of the place that the hand holds, and the hand's force below.

    Args:
        time: (T,) s.
        moved: (T,) distance from where it was first, m.
        force: (T,) size of the hand's, N.
        led: from when to when the hand leads, s.
    """

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + FORCES)
        above.plot(time, GUIDING_PLOT_CENTI * moved, color=LIGHT["identified"], linewidth=1.8)
        label_axes(above, "", "way (cm)")
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=HEIGHT - 40 - FORCES)
        below.plot(time, force, color=LIGHT["measured"], linewidth=1.4)
        label_axes(below, "time (s)", "force (N)")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            for start, end in led:
                axes.axvspan(start, end, color=LIGHT["band"], linewidth=0, zorder=0)
            axes.margins(x=0)

    return svg("How far the arm has moved and the force of the hand, over time", WIDTH, HEIGHT, draw)


def guiding_view(robot: RobotModel, poses: NDArray) -> str:
    """SVG of the arm from the side, in the poses (P, n) in which it was left; the first in grey, the last in full."""
    view = SideView.of(robot, poses)
    sticks = view.sticks(poses)
    points = sticks.reshape(-1, 2)
    margin = 0.12 * (np.ptp(points, axis=0).max() or 1.0)
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, 0, 0, 0, 0)
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.axhline(0, color=LIGHT["line"], linewidth=1.5, zorder=0)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        for alpha, stick in zip(np.linspace(0.4, 1.0, len(sticks) - 1), sticks[1:], strict=True):
            draw_stick(axes, stick, LIGHT["identified"], alpha=float(alpha), width=3)

    return svg("Side view of the arm where the hand left it", VIEW_WIDTH, VIEW_HEIGHT, draw)


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


# Second act of the demo: a hand leads the arm that floats, and leaves it somewhere else.


WAYS = ([0.0, 0.2, 0.15], [-0.1, -0.15, 0.15])
"""By which the hand takes the wrist along, one after the other, in the base frame, m."""
HELD = "link_5"
"""Its origin is where the axes of the wrist meet: pushed there, the wrist's joints do not swing about."""
STORY = (
    "The arm floats, and a hand takes it by the wrist. No node knows of the hand: the motors apply the gravity "
    "torque of wherever the arm is, and the arm goes along. The hand has only friction and inertia to overcome.",
    "Where the hand lets go, the arm stays.",
)


def guiding_act(stage: Stage) -> None:
    """Play it; it is good if the arm goes along, and stays."""
    arm = stage.arm
    stage.announce("Hand guiding: a hand takes the floating arm along and lets go, twice.")
    stage.call.set_parameters("/simulator", {"push_link": HELD})
    with arm.compensation():
        arm.compensated()
        with arm.let_go():
            first, hand = len(arm.track) - 1, Hand(stage, arm, HELD)
            for way in WAYS:
                hand.lead(way)
                arm.wait(LEAST_TIME)
            track = arm.track[first:]
    time, position = (np.array(values) for values in zip(*track, strict=True))
    stamps, forces = (np.array(values) for values in zip(*hand.forces, strict=True))
    guided = Guided(
        HELD,
        time - time[0],
        position,
        np.interp(time, stamps, forces, left=0.0, right=0.0),
        [(float(start - time[0]), float(end - time[0])) for start, end in hand.led],
    )
    title = "Hand guiding: the arm is led, and stays where it is left"
    stage.later("hand_guiding", lambda: Act.of(title, STORY, GuidingVerdict(arm.robot, guided)))
