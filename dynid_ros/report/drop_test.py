"""What only a simulation can show: the identified model against the truth."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.files import write_atomically
from dynid_ros.model import RobotModel
from dynid_ros.report.drawing import LIGHT, plot_area, png, svg
from dynid_ros.report.formats import JointUnits, brief, distance, joint_units
from dynid_ros.report.plots import SideView, draw_stick

STILL = np.deg2rad(0.5)
"""A joint that moves less than this when let go is held by friction, rad (or m)."""


@dataclass(frozen=True)
class Demonstration:
    """True gravity of a simulated arm, and the arm let go without and with gravity compensation; n joints.

    Attributes:
        joint_names: n names.
        moments: (k,) true moments in the order of `GravityModel.names`, kg m; NaN where there is no truth.
        poses: (P, n) poses that the identification has not seen, rad or m.
        gravity_torque: (P, n) true torque in these, N m or N.
        identified_torque: (P, n) what the identified model says; NaN where it promises nothing.
        time: (T,) of the drop test, s.
        position_without: (T, n) of the arm in effort mode with zero torque, rad or m.
        position_with: (T, n) with gravity compensation, from the same pose.
        verdict: sentences that lead the report.

    Raises:
        IdentificationError: an array has another shape.

    """

    joint_names: tuple[str, ...]
    moments: NDArray
    poses: NDArray
    gravity_torque: NDArray
    identified_torque: NDArray
    time: NDArray
    position_without: NDArray
    position_with: NDArray
    verdict: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, samples, poses = len(self.joint_names), len(self.time), len(self.poses)
        for name, shape in {
            "poses": (poses, n),
            "gravity_torque": (poses, n),
            "identified_torque": (poses, n),
            "position_without": (samples, n),
            "position_with": (samples, n),
        }.items():
            found = getattr(self, name).shape
            if found != shape or 0 in shape:
                raise IdentificationError(f"demonstration: {name} has shape {found}, expected {shape}, not empty")

    @property
    def largest_torque(self) -> NDArray:
        """(n,) largest true gravity torque; zero where it is only rounding."""
        largest = np.abs(self.gravity_torque).max(axis=0)
        return np.where(largest > 1e-9 * largest.max(initial=0.0), largest, 0.0)

    @property
    def torque_error(self) -> NDArray:
        """(P, n) identified less true."""
        return self.identified_torque - self.gravity_torque

    @property
    def torque_rms(self) -> NDArray:
        """(n,) of `torque_error`."""
        return np.sqrt(np.mean(self.torque_error**2, axis=0))

    @property
    def relative_rms(self) -> NDArray:
        """(n,) `torque_rms` over `largest_torque`; NaN where gravity makes no torque."""
        return relative(self.torque_rms, self.largest_torque)

    @property
    def relative_worst(self) -> NDArray:
        """(n,) largest error over `largest_torque`; NaN where gravity makes no torque."""
        return relative(np.abs(self.torque_error).max(axis=0), self.largest_torque)

    @property
    def duration(self) -> float:
        """Of the drop test, s."""
        return float(self.time[-1] - self.time[0])

    @property
    def drift_without(self) -> NDArray:
        """(n,) farthest that each joint came from where it was let go, rad or m."""
        return _drift(self.position_without)

    @property
    def drift_with(self) -> NDArray:
        """(n,) the same with compensation."""
        return _drift(self.position_with)

    @property
    def drift_ratios(self) -> NDArray:
        """(n,) drift with compensation over drift without; NaN where the joint keeps still without."""
        return np.where(self.drift_without > STILL, relative(self.drift_with, self.drift_without), np.nan)

    @property
    def drift_ratio(self) -> float:
        """Largest drift of all joints with compensation over that without; NaN if the arm keeps still without."""
        moves = self.drift_without.max() > STILL
        return float(self.drift_with.max() / self.drift_without.max()) if moves else float("nan")


def relative(part: NDArray | float, whole: NDArray | float) -> NDArray:
    """`part` over `whole`, NaN where `whole` is zero."""
    part, whole = np.asarray(part, float), np.asarray(whole, float)
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)


def _drift(position: NDArray) -> NDArray:
    return np.abs(position - position[0]).max(axis=0)


# How far a joint drifts in the drop test.


WIDTH, HEIGHT = 320, 160
SMALLEST_SPAN = 2.0
"""Least height of the picture, ° or mm: noise must not look like motion."""


def drift_plot(demonstration: Demonstration, joint: int, unit: JointUnits) -> str:
    """Position less the position where the arm was let go, over time, without and with compensation."""

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        for position, color in (
            (demonstration.position_without, LIGHT["uncompensated"]),
            (demonstration.position_with, LIGHT["identified"]),
        ):
            drift = (position[:, joint] - position[0, joint]) * unit.scale
            axes.plot(demonstration.time - demonstration.time[0], drift, color=color, linewidth=1.8)
        axes.set_xlabel("time (s)")
        axes.set_ylabel(f"drift ({unit.position})")
        middle = np.mean(axes.get_ylim())
        half = max(np.ptp(axes.get_ylim()), SMALLEST_SPAN) / 2
        axes.set_ylim(middle - half, middle + half)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0)

    return svg(f"Drift of {demonstration.joint_names[joint]} without and with compensation", WIDTH, HEIGHT, draw)


# The arm let go without and with gravity compensation, as stick figures.


DROP_PICTURE_WIDTH, DROP_PICTURE_HEIGHT = 340, 300
TITLE = 56
GHOSTS = 14
"""Poses on the way, evenly spaced along the path."""


class DropPicture:
    """Side views of both cases at one scale: start in grey, the way in faint ghosts, the end in colour."""

    def __init__(self, robot: RobotModel, demonstration: Demonstration):
        without, compensated = demonstration.position_without, demonstration.position_with
        view = SideView.of(robot, np.concatenate([without, compensated]))
        self._cases = {
            "without": (view.sticks(without), LIGHT["uncompensated"]),
            "with": (view.sticks(compensated), LIGHT["identified"]),
        }
        self._later = f"{brief(demonstration.duration)} s later"
        points = np.concatenate([sticks.reshape(-1, 2) for sticks, _ in self._cases.values()])
        margin = 0.12 * (np.ptp(points, axis=0).max() or 1.0)
        self._low, self._high = points.min(axis=0) - margin, points.max(axis=0) + margin

    def svg(self, case: str) -> str:
        """One case, "without" or "with"."""
        label = f"Side view of the arm {case} compensation, when let go and {self._later}"
        return svg(
            label,
            DROP_PICTURE_WIDTH,
            DROP_PICTURE_HEIGHT,
            lambda figure: self._draw(plot_area(figure, 0, 0, 0, 0), case),
        )

    def png(self, captions: dict[str, str]) -> bytes:
        """Both cases side by side, each with its caption."""

        def draw(figure: Figure) -> None:
            row = 20 / (DROP_PICTURE_HEIGHT + TITLE)
            for number, (case, caption) in enumerate(captions.items()):
                self._draw(
                    plot_area(figure, number * DROP_PICTURE_WIDTH, 0, (1 - number) * DROP_PICTURE_WIDTH, TITLE), case
                )
                middle = (number + 0.5) / 2
                figure.text(middle, 1 - 1.1 * row, f"{case.capitalize()} gravity compensation", size=13, ha="center")
                figure.text(middle, 1 - 2.1 * row, caption, color=LIGHT["muted"], ha="center")
            key = f"grey: let go, colour: {self._later}"
            figure.text(0.5, 0.5 * row, key, size=10, color=LIGHT["muted"], ha="center")

        return png(2 * DROP_PICTURE_WIDTH, DROP_PICTURE_HEIGHT + TITLE, draw)

    def _draw(self, axes: Axes, case: str) -> None:
        sticks, color = self._cases[case]
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(self._low[0], self._high[0])
        axes.set_ylim(self._low[1], self._high[1])
        axes.axhline(0, color=LIGHT["line"], linewidth=1.5, zorder=0)
        for ghost in _along_the_way(sticks):
            draw_stick(axes, sticks[ghost], color, alpha=0.13, width=2)
        draw_stick(axes, sticks[0], LIGHT["measured"], alpha=0.55, width=6)
        draw_stick(axes, sticks[-1], color, width=3)


def write_drop_picture(path: str | Path, robot: RobotModel, demonstration: Demonstration) -> Path:
    """Both cases side by side as a PNG on white, for pages that cannot hold the report."""
    unit = joint_units(robot)[int(np.argmax(demonstration.drift_without))]
    captions = {
        "without": f"largest drift of a joint: {distance(demonstration.drift_without.max(), unit)}",
        "with": f"largest drift of a joint: {distance(demonstration.drift_with.max(), unit)}",
    }
    return write_atomically(path, DropPicture(robot, demonstration).png(captions))


def _along_the_way(sticks: NDArray) -> NDArray:
    """Samples at even spacing along the path of the last joint."""
    path = np.cumsum(np.linalg.norm(np.diff(sticks[:, -1], axis=0, prepend=sticks[:1, -1]), axis=1))
    return np.unique(np.searchsorted(path, np.linspace(0, path[-1], GHOSTS + 2)[1:-1]))
