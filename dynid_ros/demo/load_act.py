"""Holds the load that the demo identified against what MuJoCo knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.figure import Figure
from numpy.typing import NDArray
from std_msgs.msg import String

from dynid_ros.demo.page import Act, Found
from dynid_ros.demo.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say, say_links
from dynid_ros.errors import DynidError
from dynid_ros.estimation.estimate import half_width
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.section import dof_of
from dynid_ros.model.inertia import inertia_matrix
from dynid_ros.report.drawing import LIGHT, label_axes, plot_area, svg
from dynid_ros.report.page import Tile

# A load's mass as it was learnt while the arm moved.


WIDTH, HEIGHT = 340, 260
ROOM = 0.5
"""Of the true mass, shown on either side of zero and of it."""


def live_plot(time: NDArray, mass: NDArray, interval: NDArray, true: NDArray) -> str:
    """SVG of estimates and truth over time.

    Args:
        time: (E,) s since the arm began to move.
        mass: (E,) kg.
        interval: (E, 2) of 95 %.
        true: (E,) kg.
    """

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(time, *interval.T, color=LIGHT["band"], linewidth=0)
        axes.step(time, true, color=LIGHT["truth"], linewidth=1.6, where="pre")
        axes.plot(time, mass, color=LIGHT["identified"], linewidth=1.2, marker="o", markersize=3)
        axes.set_ylim(-ROOM * true.max(), (1 + ROOM) * true.max())
        label_axes(axes, "time since the arm began to move (s)", "mass (kg)")
        axes.margins(x=0)

    return svg("Mass of the load over time, as learnt and in truth", WIDTH, HEIGHT, draw)


LARGEST_MASS_ERROR, LARGEST_CENTER_ERROR, LARGEST_INERTIA_ERROR = 0.01, 0.005, 0.2
"""Relative, m and relative. In 11 repetitions of the demo's motion, each another one, they were at most 0.5 %, 1.1 mm
and 8 %."""
LEAST_COVERED = 0.8
"""Of ten intervals of 95 %, which err together."""
LIVE_TIME, LARGEST_LIVE_ERROR = 5.0, 0.05
"""s of motion after which the mass learnt meanwhile is to be right, and its relative error."""
LARGEST_DRIFT, LEAST_SAG = np.deg2rad(1.0), np.deg2rad(5.0)
"""Of any joint, of the arm that knows its load, and of the one that does not."""
LATEST_CHANGE = 0.5
"""s by which the date of the change may be off."""

INERTIA = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
MILLI = 1e3


@dataclass(frozen=True)
class LoadShown:
    """What was seen of the arm and its nodes; stamps are of one clock, s.

    Attributes:
        began: when the arm began to move with the load.
        put_down: when the load was let go of.
        estimates: messages of `~/estimate` of the node `load_identification`, each with the stamp of its arrival.
        sag: farthest that a joint came, let go with compensation of the arm alone, rad.
        drift: the same with that of the load.
    """

    began: float
    put_down: float
    estimates: Sequence[tuple[float, dict[str, Any]]]
    sag: float
    drift: float


@dataclass(frozen=True)
class LoadVerdict:
    """The load in truth, as the bag gave it, and as it was learnt.

    Attributes:
        truth: table of the load, see `truth_table`.
        identified: section `load` of `identified.yaml`.
        shown: what happened.
    """

    truth: dict[str, Any]
    identified: dict[str, Any]
    shown: LoadShown

    @property
    def mass_error(self) -> float:
        """Relative, of the result of record."""
        return abs(self.identified["mass"] / self.truth["mass"] - 1)

    @property
    def center_error(self) -> float:
        """Distance, m."""
        return float(np.linalg.norm(np.subtract(self.identified["center"], self.truth["center"])))

    @property
    def inertia_error(self) -> float:
        """Largest principal moment of the difference, over the largest true one; NaN if the inertia was not found."""
        found, true = (_tensor(load["inertia"]) for load in (self.identified, self.truth))
        if not np.isfinite(found).all():
            return np.nan
        return float(np.linalg.norm(found - true, 2) / np.linalg.norm(true, 2))

    @cached_property
    def rows(self) -> list[Found]:
        """All ten numbers."""
        found, true = self.identified, self.truth
        mass, center = found["interval"]["mass"], found["interval"]["center"]
        std = _numbers(found["std"]["inertia"] or [None] * len(INERTIA))
        halves = half_width(std, dof_of({}, found, "inertia"))
        return [
            Found("Mass", "kg", true["mass"], found["mass"], np.ptp(mass) / 2),
            *(
                Found(f"Centre {axis}", "mm", *(MILLI * value for value in values))
                for axis, *values in zip(
                    "xyz", true["center"], found["center"], np.ptp(center, axis=1) / 2, strict=True
                )
            ),
            *(
                Found(name, "kg m²", *values)
                for name, *values in zip(INERTIA, true["inertia"], _numbers(found["inertia"]), halves, strict=True)
            ),
        ]

    @property
    def covered(self) -> NDArray:
        """(10,) whether the interval of each number holds the truth."""
        return np.array([row.covered for row in self.rows])

    @property
    def live(self) -> tuple[float, dict[str, Any]] | None:
        """The last estimate that arrived within `LIVE_TIME` of motion, and after how long; None: there was none."""
        published = [
            (stamp - self.shown.began, estimate)
            for stamp, estimate in self.shown.estimates
            if stamp - self.shown.began <= LIVE_TIME and estimate["loaded"]
        ]
        return published[-1] if published else None

    @property
    def live_error(self) -> float:
        """Relative, of the mass in `live`; infinite without one."""
        return abs(self.live[1]["mass"] / self.truth["mass"] - 1) if self.live else np.inf

    @property
    def change(self) -> dict[str, float] | None:
        """What was noticed of the load's being put down; None: nothing."""
        changes = self.shown.estimates[-1][1]["changes"] if self.shown.estimates else []
        losses = [change for change in changes if change["mass"] < 0 and change["noticed"] >= self.shown.put_down]
        return losses[0] if losses else None

    @property
    def change_error(self) -> float:
        """By how much its date is off, s; infinite if it was not noticed."""
        return abs(self.change["time"] - self.shown.put_down) if self.change else np.inf

    @property
    def passed(self) -> bool:
        """Whether all is as good as it must be."""
        return bool(
            self.mass_error <= LARGEST_MASS_ERROR
            and self.center_error <= LARGEST_CENTER_ERROR
            and self.inertia_error <= LARGEST_INERTIA_ERROR
            and self.covered.mean() >= LEAST_COVERED
            and self.live_error <= LARGEST_LIVE_ERROR
            and self.shown.sag >= LEAST_SAG
            and self.shown.drift <= LARGEST_DRIFT
            and self.change_error <= LATEST_CHANGE
        )

    def sentences(self) -> list[str]:
        """The verdict."""
        live, change = self.live, self.change
        return [
            "PASSED: the load is known." if self.passed else "FAILED: the load is not known well enough.",
            f"From the bag: mass off by {self.mass_error:.2%} (allowed {LARGEST_MASS_ERROR:.0%}), centre by "
            f"{MILLI * self.center_error:.1f} mm (allowed {MILLI * LARGEST_CENTER_ERROR:g} mm), inertia by "
            f"{self.inertia_error:.0%} (allowed {LARGEST_INERTIA_ERROR:.0%})",
            f"True values within their 95 % intervals: {self.covered.sum()} of {len(self.covered)} (at least "
            f"{LEAST_COVERED:.0%})",
            f"Learnt live: {live[1]['mass']:.3f} kg after {live[0]:.1f} s of motion, off by {self.live_error:.1%} "
            f"(allowed {LARGEST_LIVE_ERROR:.0%} after {LIVE_TIME:g} s)"
            if live
            else f"Learnt live: nothing within {LIVE_TIME:g} s of motion",
            f"Let go with compensation: the largest joint drift is {np.rad2deg(self.shown.sag):.1f} deg as long as the "
            f"load is not known, then {np.rad2deg(self.shown.drift):.2f} deg (allowed {np.rad2deg(LARGEST_DRIFT):g})",
            f"Put down: noticed after {change['noticed'] - self.shown.put_down:.2f} s, and dated to within "
            f"{self.change_error:.2f} s (allowed {LATEST_CHANGE:g} s)"
            if change
            else "Put down: not noticed",
        ]

    def tiles(self) -> list[Tile]:
        """The verdict in numbers."""
        return [
            Tile("Mass", f"{self.identified['mass']:.3f} kg", f"{self.truth['mass']:g} kg in truth"),
            Tile("Centre off by", f"{MILLI * self.center_error:.1f} mm", f"mass by {self.mass_error:.2%}"),
            Tile(
                f"Within {LIVE_TIME:g} s of motion",
                f"{self.live[1]['mass']:.3f} kg" if self.live else "–",
                "learnt while the arm moved",
            ),
            Tile(
                "Largest drift, let go",
                f"{np.rad2deg(self.shown.drift):.2f}°",
                f"{np.rad2deg(self.shown.sag):.1f}° before the load was known",
            ),
        ]

    @property
    def pictures(self) -> dict[str, str]:
        """The mass over time, as it was learnt."""
        published = [
            (stamp, estimate)
            for stamp, estimate in self.shown.estimates
            if estimate["estimate"]["parameters"][0] is not None
        ]
        if not published:
            return {}
        stamps = np.array([stamp for stamp, _ in published])
        picture = live_plot(
            stamps - self.shown.began,
            np.array([estimate["estimate"]["parameters"][0] for _, estimate in published]),
            np.array([estimate["interval"]["mass"] for _, estimate in published]),
            np.where(stamps < self.shown.put_down, self.truth["mass"], 0.0),
        )
        return {"The load's mass as it was learnt, with its 95 % interval; green: the truth": picture}


def judge_load(truth: dict[str, Any], folder: Path, shown: LoadShown) -> LoadVerdict:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo.

    Args:
        truth: of the simulated arm while it carried the load, see `truth_table`.
        folder: that the identification wrote into.
        shown: what else was seen.

    Raises:
        DynidError: the file says that there is no load.
    """
    identified = load_identified(folder / "identified.yaml")["load"]
    if not identified["loaded"]:
        raise DynidError(
            f"{folder / 'identified.yaml'}: the load that the arm carried was not found; a busy machine keeps the "
            "simulator waiting, and the bag has gaps: play the act again when it is quieter (--acts load)"
        )
    return LoadVerdict(truth["load"], identified, shown)


def _numbers(values: Sequence[float | None]) -> NDArray:
    return np.array([np.nan if value is None else value for value in values])


def _tensor(inertia: Sequence[float | None]) -> NDArray:
    return inertia_matrix(np.concatenate([np.zeros(4), _numbers(inertia)]))


# Fourth act of the demo: the arm picks up a load that is not announced, and knows it seconds later.


BLOCK = {
    "load_mass": 2.0,
    "load_center": [0.05, -0.03, 0.08],
    "load_inertia": [0.00333, 0.0, 0.0, 0.01667, 0.0, 0.01667],
}
"""Of 30 x 10 x 10 cm."""
MOTION = {
    "motion": "fourier",
    "target": "load",
    "base_frequency": 0.2,
    "harmonics": 5,
    "periods": 2,
    "seed": 1,
    "design_time": 3.0,
}
SAG_TIME, FLOAT_TIME = 1.0, 2.0
"""For which the arm is let go without knowing the load, and knowing it, s."""
AWAY = [-0.6, 0.5, 1.0, -0.4, 0.8, -0.3]
"""Pose that the arm is on its way to when it lets go of the load."""
UNDER_WAY, NOTICING = 1.3, 2.0
"""How long it has been, and how long it is watched then, s."""
STIRRED = 0.01
"""What a joint moves when the arm has begun to move, rad."""
TELL_EVERY = 1.0
"""Time between estimates on the terminal, s."""
NODE = "/load_identification"
STORY = (
    "The arm picks up a block of 2 kg that is not announced. Let go with the gravity torque of the arm alone, "
    "it sags. Then it moves, and a node weighs the block meanwhile: mass, centre and inertia follow from the "
    "torques beyond those of the arm alone, which the act before has identified.",
    "Gravity compensation hears of the load and carries it: let go again, the arm floats with the block in its "
    "hand. At the end the block is put down in motion, and the node is to notice.",
)


def load_act(stage: Stage) -> None:
    """Play it; it is good if the load is known."""
    arm, pose, folder = stage.arm, stage.settings.drop_pose, stage.output / "load"
    stage.call.trigger("/simulator/reset")
    stage.announce("A load is picked up that is not announced: with the arm's own compensation, the arm sags.")
    with arm.compensation():
        arm.move(pose)
        stage.call.set_parameters("/simulator", BLOCK)
        say(stage.call.set("/simulator/pick_up", True))
        truth = stage.truth()
        arm.compensated()
        sagging = arm.drop(SAG_TIME)
        arm.move(pose)
        say_links(stage)
        parameters = {"live": True, "model_file": stage.output / "links" / "identified.yaml", "output": folder}
        with stage.node("load_identification", parameters):
            heard = _Estimates(stage)
            stage.announce("Excitation: a motion designed to show loads; the load is learnt meanwhile.")
            stage.call.wait(f"{NODE}/identify", timeout=START_TIMEOUT)
            stage.excitation.designed()
            with arm.listening():
                stage.excitation.record("running", attentive=True)
                began = arm.began_to_move(STIRRED)
            heard.aloud = False
            stage.announce("The load, identified from the bag.")
            say(stage.call.trigger(f"{NODE}/identify", timeout=COMPUTING_TIMEOUT))
            stage.announce("Gravity compensation has heard of the load: the arm is let go again.")
            arm.move(pose)
            floating = arm.drop(FLOAT_TIME)
            stage.announce("The load is let go of while the arm moves.")
            arm.begin_move(AWAY)
            arm.wait(UNDER_WAY)
            put_down = stage.now()
            stage.call.set("/simulator/pick_up", False)
            arm.wait(NOTICING)
    shown = LoadShown(began, put_down, heard.all, _drift(sagging), _drift(floating))

    def judge() -> Act:
        title, pages = "A load: weighed in motion, and carried", [("the identification's report", "load/report.html")]
        return Act.of(title, STORY, judge_load(truth, folder, shown), pages)

    stage.later("load", judge)


class _Estimates:
    """What the node publishes while it learns, on the terminal now and then, and all of it for the report."""

    def __init__(self, stage: Stage) -> None:
        self.all: list[tuple[float, dict[str, Any]]] = []
        self.aloud = True
        self._now: Callable[[], float] = stage.now
        self._told, self._changes = -np.inf, 0
        stage.create_subscription(String, f"{NODE}/estimate", self._on_estimate, 10)

    def _on_estimate(self, message: String) -> None:
        estimate, now = yaml.safe_load(message.data), self._now()
        self.all.append((now, estimate))
        for change in estimate["changes"][self._changes :]:
            say(f"noticed: {change['mass']:+.1f} kg, {now - change['time']:.2f} s ago")
        self._changes = len(estimate["changes"])
        if self.aloud and now - self._told >= TELL_EVERY:
            self._told = now
            say(_in_words(estimate))


def _in_words(estimate: dict[str, Any]) -> str:
    if estimate["interval"]["mass"][0] is None:
        return "live: nothing known yet"
    low, high = estimate["interval"]["mass"]
    mass = f"live: {low:6.3f} to {high:6.3f} kg"
    if not estimate["loaded"]:
        return f"{mass}, no load is shown"
    center = " ".join(f"{1e3 * value:.0f}" for value in estimate["center"])
    inertia = " ".join(f"{value:.4f}" for value in np.array(estimate["inertia"], float)[[0, 3, 5]])
    return f"{mass}, centre {center} mm, inertia {inertia} kg m²"


def _drift(track: tuple[NDArray, NDArray]) -> float:
    _, position = track
    return float(np.abs(position - position[0]).max())
