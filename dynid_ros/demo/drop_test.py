"""What only a simulation can show: the identified model against the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.files import write_atomically
from dynid_ros.identification.static_samples import Samples
from dynid_ros.model import GravityModel, RobotModel
from dynid_ros.report.drawing import LIGHT, plot_area, png, svg
from dynid_ros.report.formats import JointUnits, brief, counted, distance, joint_units, percent, with_unit
from dynid_ros.report.gravity import Quality, gravity_page
from dynid_ros.report.page import Beside, Figures, Legend, Plot, Section, Table, Tile
from dynid_ros.report.plots import draw_stick, error_plot

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


# The arm as a stick figure, seen from the side on which it moves most.


@dataclass(frozen=True)
class SideView:
    """A vertical plane through the base.

    Attributes:
        robot: the arm.
        axes: (2, 3) unit vectors to the right and up, in the base frame.
    """

    robot: RobotModel
    axes: NDArray

    @classmethod
    def of(cls, robot: RobotModel, position: NDArray) -> SideView:
        """The plane that shows most of the motion (T, n); the arm starts to the right."""
        gravity = robot.gravity if np.any(robot.gravity) else np.array([0.0, 0.0, -1.0])
        up = -gravity / np.linalg.norm(gravity)
        points = _points(robot, position)
        flat = (points - points @ up[:, None] * up).reshape(-1, 3)
        right = np.linalg.svd(flat, full_matrices=False)[2][0]
        right -= right @ up * up
        right /= np.linalg.norm(right) or 1.0
        return cls(robot, np.stack([right if points[0, -1] @ right >= 0 else -right, up]))

    def sticks(self, position: NDArray) -> NDArray:
        """(T, n + 1, 2) the base and the links' origins in the picture, m."""
        return _points(self.robot, position) @ self.axes.T


def _points(robot: RobotModel, position: NDArray) -> NDArray:
    origins = robot.forward_kinematics(position)[:, :, :3, 3]
    return np.concatenate([np.zeros((len(origins), 1, 3)), origins], axis=1)


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


# The report of a gravity identification with what only a simulation can show.


def write_drop_report(
    path: str | Path, robot: RobotModel, document: dict, samples: Samples, demonstration: Demonstration
) -> Path:
    """Write the report of the identification with the truth, fresh poses and the drop test.

    Raises:
        IdentifiedFileError: the document has no gravity section, is malformed or of another robot.
        IdentificationError: no samples, or a demonstration of another robot.
    """
    _check(robot, demonstration)
    relative_rms = demonstration.relative_rms[np.isfinite(demonstration.relative_rms)]
    evidence = counted(len(demonstration.poses), "fresh pose")
    quality = Quality(
        float(relative_rms.max(initial=np.nan)) if relative_rms.size else np.nan, LARGEST, evidence, unseen=True
    )
    page = gravity_page(robot, document, samples, demonstration.moments, quality)
    unit = joint_units(robot)[int(np.argmax(demonstration.drift_without))]
    drift = Tile(
        f"Drift in {brief(demonstration.duration)} s",
        distance(demonstration.drift_with.max(), unit),
        f"with compensation; {distance(demonstration.drift_without.max(), unit)} without",
    )
    return replace(
        page,
        verdict=demonstration.verdict,
        sentences=[*page.sentences, _sentence(demonstration, unit)],
        tiles=[*page.tiles[:-1], drift, page.tiles[-1]],
        sections=[_drop_section(robot, demonstration), _pose_section(robot, demonstration, evidence), *page.sections],
    ).write(path)


LARGEST = "a joint's largest gravity torque"


def _check(robot: RobotModel, demonstration: Demonstration) -> None:
    names, found, size = robot.joint_names, demonstration.joint_names, len(GravityModel(robot).names)
    if found != names or demonstration.moments.shape != (size,):
        raise IdentificationError(
            f"demonstration: joints {found} and {demonstration.moments.size} moments; expected {names} and "
            f"{size}, of the robot in the report"
        )


def _sentence(demonstration: Demonstration, unit: JointUnits) -> str:
    seconds = f"{brief(demonstration.duration)} s"
    drift_with = distance(demonstration.drift_with.max(), unit)
    if demonstration.drift_without.max() < STILL:
        return (
            f"Let go, friction alone holds the arm; with gravity compensation it drifts by {drift_with} in {seconds}."
        )
    drift_without = distance(demonstration.drift_without.max(), unit)
    return (
        f"Let go, the arm's joints drift by up to {drift_without} in {seconds} without gravity compensation, and by "
        f"{drift_with} with it."
    )


def _drop_section(robot: RobotModel, demonstration: Demonstration) -> Section:
    picture, units = DropPicture(robot, demonstration), joint_units(robot)
    columns = ("Joint", ("Largest drift", "without"), ("Largest drift", "with"), ("Ratio", "with to without"))
    rows = [
        (
            name,
            distance(demonstration.drift_without[i], units[i]),
            distance(demonstration.drift_with[i], units[i]),
            percent(demonstration.drift_ratios[i]),
        )
        for i, name in enumerate(robot.joint_names)
    ]
    return Section(
        "Drop test",
        [
            "The simulated arm is let go: its motors apply no torque at all, or only the gravity torque that the "
            "identified model computes from the joint angles. With a perfect model the arm floats. Grey is where the "
            f"arm was let go, colour where it is {brief(demonstration.duration)} s later; faint lines lie between.",
            Beside(
                [
                    *(Plot(picture.svg(case), f"{case.capitalize()} compensation") for case in ("without", "with")),
                    Table(columns, rows),
                ]
            ),
            Legend({"uncompensated": "without compensation", "identified": "with compensation"}),
            Figures([Plot(drift_plot(demonstration, i, units[i]), name) for i, name in enumerate(robot.joint_names)]),
        ],
    )


def _pose_section(robot: RobotModel, demonstration: Demonstration, evidence: str) -> Section:
    names, units = robot.joint_names, joint_units(robot)
    loaded = np.flatnonzero(demonstration.largest_torque > 0)
    error = 100 * demonstration.torque_error[:, loaded] / demonstration.largest_torque[loaded]
    plot = error_plot([names[i] for i in loaded], error, "error (% of largest torque)") if loaded.size else ""
    columns = (
        "Joint",
        "Largest gravity torque",
        ("Typical error", "RMS"),
        ("Typical error", "of the largest torque"),
        ("Worst error", "of the largest torque"),
    )
    rows = [
        (
            name,
            with_unit(demonstration.largest_torque[i], units[i].effort),
            with_unit(demonstration.torque_rms[i], units[i].effort),
            percent(demonstration.relative_rms[i]),
            percent(demonstration.relative_worst[i]),
        )
        for i, name in enumerate(names)
    ]
    return Section(
        evidence,
        [
            "Gravity torque of the identified model less the true one, which the simulator knows, in poses that were "
            "not used to identify. Each point is one pose. The typical error is the RMS, the root of the mean square.",
            Beside([*([Plot(plot)] if plot else []), Table(columns, rows)]),
        ],
    )
