"""Second act of the demo: a hand leads the arm that floats, and leaves it somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.demo.drop_test import PICTURE_HEIGHT, PICTURE_WIDTH, SideView, prepare_axes
from dynid_ros.demo.hand import Hand, link_origins
from dynid_ros.demo.page import Act
from dynid_ros.demo.stage import Stage
from dynid_ros.model import RobotModel
from dynid_ros.report.comparison import Check
from dynid_ros.report.drawing import LIGHT, label_axes, plot_area, svg
from dynid_ros.report.plots import draw_stick

FORCE_HEIGHT = 80
MIN_LEAD_CM = 15.0
MAX_DRIFT_MM = 5.0
WATCH_TIME_S = 2.0
MIN_WATCH_TIME_S = 1.9
CM_PER_M = 100.0
MM_PER_M = 1000.0
LEADS = ([0.0, 0.2, 0.15], [-0.1, -0.15, 0.15])
"""Displacements of the wrist by the hand, one after the other, in the base frame, m."""
HELD_LINK = "link_5"
"""Link whose origin is where the axes of the wrist meet: a push there does not turn the wrist's joints."""
GUIDING_STORY = (
    "The arm floats, and a hand takes it by the wrist. No node knows of the hand: the motors apply the gravity torque "
    "of the present pose, and the arm follows. The hand overcomes only friction and inertia.",
    "Where the hand lets go, the arm stays.",
)


@dataclass(frozen=True)
class GuidedMotion:
    """Motion of an arm under gravity compensation, and the hand.

    Attributes:
        robot: arm.
        link: link that the hand holds at the origin of its frame.
        time: (T,) s.
        position: (T, n) of the joints, rad or m.
        force: (T,) size of the force of the hand, N.
        leads: start and end of each lead, s; after its end the hand lets go.
    """

    robot: RobotModel
    link: str
    time: NDArray
    position: NDArray
    force: NDArray
    leads: Sequence[tuple[float, float]]

    @property
    def held(self) -> NDArray:
        """(T, 3) place that the hand holds, m."""
        return link_origins(self.robot, self.link, self.position)

    @property
    def distances(self) -> NDArray:
        """Displacement of the held place by each lead, m."""
        held = self.held
        rows = [np.searchsorted(self.time, lead).clip(0, len(self.time) - 1) for lead in self.leads]
        return np.array([np.linalg.norm(held[end] - held[start]) for start, end in rows])

    @property
    def drifts(self) -> NDArray:
        """Largest distance of the held place from where it was left, after each lead, m."""
        held = self.held
        return np.array([np.linalg.norm(held[rows] - held[rows.start], axis=1).max() for rows in self.rests()])

    @property
    def shortest_rest(self) -> float:
        """Shortest time after a lead, s."""
        return float(min(self.time[rows.stop - 1] - self.time[rows.start] for rows in self.rests()))

    def rests(self) -> list[slice]:
        """Return the rows after each lead, up to the next one."""
        starts = [start for start, _ in self.leads[1:]] + [np.inf]
        return [
            slice(int(np.searchsorted(self.time, end)), int(np.searchsorted(self.time, start)))
            for (_, end), start in zip(self.leads, starts, strict=True)
        ]


def guiding_act(stage: Stage) -> None:
    """Play the act."""
    arm = stage.arm
    stage.announce("Hand guiding: a hand takes the floating arm along and lets go, twice.")
    stage.call.set_parameters("/simulator", {"push_link": HELD_LINK})
    with arm.compensation():
        arm.wait_for_compensation()
        with arm.let_go():
            first = len(arm.track) - 1
            hand = Hand(stage, arm, HELD_LINK)
            for displacement in LEADS:
                hand.lead(displacement)
                arm.wait(WATCH_TIME_S)
            track = arm.track[first:]
    time, position = (np.array(values) for values in zip(*track, strict=True))
    stamps, forces = (np.array(values) for values in zip(*hand.forces, strict=True))
    force = np.interp(time, stamps, forces, left=0.0, right=0.0)
    leads = [(float(start - time[0]), float(end - time[0])) for start, end in hand.leads]
    motion = GuidedMotion(arm.robot, HELD_LINK, time - time[0], position, force, leads)
    stage.judge_later("hand_guiding", lambda: judge_guiding(motion))


def judge_guiding(motion: GuidedMotion) -> Act:
    """Check that the arm followed the hand and stayed where it was left."""
    poses = motion.position[[0, *(rows.stop - 1 for rows in motion.rests())]]
    return Act(
        "Hand guiding: the arm is led, and stays where it is left",
        GUIDING_STORY,
        [
            Check(
                f"Wrist led with at most {motion.force.max():.0f} N, shortest lead",
                CM_PER_M * float(motion.distances.min()),
                MIN_LEAD_CM,
                "cm",
                at_least=True,
            ),
            Check("Drift of the wrist when left", MM_PER_M * float(motion.drifts.max()), MAX_DRIFT_MM, "mm"),
            Check("Time of watching", motion.shortest_rest, MIN_WATCH_TIME_S, "s", at_least=True),
        ],
        pictures={
            "Grey: before; blue: where the hand left it": _draw_poses(motion.robot, poses),
            "Displacement of the wrist and force of the hand; the hand leads in the shaded times": _draw_motion(motion),
        },
    )


def _draw_motion(motion: GuidedMotion) -> str:
    """Draw the displacement of the held place, and the force of the hand below, as SVG."""
    held = motion.held
    displacement = CM_PER_M * np.linalg.norm(held - held[0], axis=1)

    def draw(figure: Figure) -> None:
        above = plot_area(figure, left=52, bottom=50 + FORCE_HEIGHT)
        above.plot(motion.time, displacement, color=LIGHT["identified"], linewidth=1.8)
        label_axes(above, "", "displacement (cm)")
        above.tick_params(axis="x", length=0, labelbottom=False)
        below = plot_area(figure, left=52, bottom=40, top=PICTURE_HEIGHT - 40 - FORCE_HEIGHT)
        below.plot(motion.time, motion.force, color=LIGHT["measured"], linewidth=1.4)
        label_axes(below, "time (s)", "force (N)")
        below.yaxis.set_major_locator(MaxNLocator(3))
        for axes in (above, below):
            for start, end in motion.leads:
                axes.axvspan(start, end, color=LIGHT["band"], linewidth=0, zorder=0)
            axes.margins(x=0)

    return svg("Displacement of the wrist and force of the hand over time", PICTURE_WIDTH, PICTURE_HEIGHT, draw)


def _draw_poses(robot: RobotModel, poses: NDArray) -> str:
    """Draw the arm from the side in the poses (P, n) after each lead, the first in grey, as SVG."""
    sticks = SideView.from_motion(robot, poses).sticks(poses)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, 0, 0, 0, 0)
        prepare_axes(axes, sticks)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        for alpha, stick in zip(np.linspace(0.4, 1.0, len(sticks) - 1), sticks[1:], strict=True):
            draw_stick(axes, stick, LIGHT["identified"], alpha=float(alpha), width=3)

    return svg("Side view of the arm where the hand left it", PICTURE_WIDTH, PICTURE_HEIGHT, draw)
