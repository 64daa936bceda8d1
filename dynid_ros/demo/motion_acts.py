"""Acts of the demo while all joints move: links and friction are identified, then a load that is not announced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from matplotlib.figure import Figure
from numpy.typing import NDArray
from std_msgs.msg import String

from dynid_ros.demo.drop_test import largest_drift
from dynid_ros.demo.page import Act
from dynid_ros.demo.stage import COMPUTING_TIMEOUT_S, START_TIMEOUT_S, Stage, say, say_links
from dynid_ros.errors import DynidError
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import LinkModel, known_arm
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import inertia_matrix
from dynid_ros.recording import Recording
from dynid_ros.rehearsal.truth_comparison import Check, as_array, compare_base_parameters, compare_load, coverage_check
from dynid_ros.report.drawing import LIGHT, before_after_plot, label_axes, plot_area, svg
from dynid_ros.report.load import MM_PER_M
from dynid_ros.signals import Motion
from dynid_ros.simulation import tabled_arm

MAX_TORQUE_ERROR_PERCENT = 2.0
"""RMS error in per cent of the RMS of the true torque of each joint."""
MIN_COVERED_PERCENT = 80.0
"""Share of about 60 intervals of 95 %. They err together: in 20 repetitions of the demo's motion 97 % contained the
truth on average, 87 % in the worst case; intervals of half the right width would contain 67 %."""
FOURIER_SETTINGS = {"motion": "fourier", "target": "links", "base_frequency": 0.125, "harmonics": 10}
LINKS_MOTIONS = (
    {**FOURIER_SETTINGS, "seed": 1, "periods": 2, "design_time": 8.0},
    # the validation motion need not show the links best
    {**FOURIER_SETTINGS, "seed": 2, "periods": 1, "design_time": 0.0},
)
LINKS_STORY = (
    "Gravity is not all: a moving arm has inertia and friction. A motion of all joints at once is designed to show "
    "them best within the limits of the arm, clear of the floor and of the arm itself; it is made and recorded. "
    "Masses, mass moments, inertias and friction of all links are identified from it, with 95 % intervals.",
    "Then the arm makes another motion, and the identified model predicts the torque of that one.",
)


def links_act(stage: Stage) -> None:
    """Play the act: identify from one motion, and validate on another."""
    arm = stage.arm
    folder = stage.output / "links"
    stage.call.trigger("/simulator/reset")
    stage.announce("Excitation: a motion of all joints, designed to show the links; then another one.")
    # Stiction holds a joint at standstill, which no model predicts: the approach with its dwells is left out.
    fitted, unseen = (stage.excitation.record("running") for _ in LINKS_MOTIONS)
    stage.announce("Links and friction are identified from the first bag, and validated on the second.")
    stage.call.set_parameters("/link_identification", {"recording": fitted, "validation_recording": unseen})
    stage.begin("links", "/link_identification/identify")
    truth = stage.truth()

    def judge() -> Act:
        say_links(stage)
        return judge_links(arm.robot, truth, folder, arm.read(unseen))

    stage.judge_later("links", judge)


def judge_links(robot: RobotModel, truth: dict[str, Any], folder: Path, unseen: Recording) -> Act:
    """Compare `identified.yaml` in `folder` with the truth of MuJoCo.

    Args:
        robot: arm with the links of the URDF that was identified from.
        truth: truth of the simulated arm, see `truth_table`.
        folder: folder of the identification.
        unseen: recording of a motion that was not fitted.
    """
    document = load_identified(folder / "identified.yaml")
    arm = known_arm(document, robot)
    true_arm = tabled_arm(truth)
    motion = _filtered_motion(arm.model, unseen)
    torque = true_arm.truth.drive_torque(*motion)

    def relative_error(model: LinkModel) -> NDArray:
        error = _drive_torque(model, motion) - torque
        return np.sqrt(np.mean(error**2, axis=0) / np.mean(torque**2, axis=0))

    error = 100 * relative_error(arm.model)
    urdf_error = 100 * relative_error(replace(arm.model, parameters=robot.parameters))
    comparisons = compare_base_parameters(document, arm, true_arm)
    label = "RMS error of the torque (% of the true RMS)"
    return Act(
        "Links: masses, inertias and friction",
        LINKS_STORY,
        [
            Check(
                "Torque of links and rotors on the unseen motion, worst joint: RMS error over the true RMS (URDF: "
                f"{urdf_error.max():.0f} %)",
                float(error.max()),
                MAX_TORQUE_ERROR_PERCENT,
                "%",
            ),
            coverage_check(comparisons, MIN_COVERED_PERCENT),
        ],
        comparisons,
        {
            "Torque on the unseen motion. Orange: URDF; blue: identified links": before_after_plot(
                robot.joint_names, urdf_error, error, label
            )
        },
        [("the report of the identification", "links/report.html")],
    )


def _filtered_motion(model: LinkModel, recording: Recording) -> Motion:
    """Return position, velocity and acceleration, (M, n) each, as the identification derives them."""
    segments = model.signals.segments(recording)
    return Motion(*(np.concatenate(part) for part in zip(*(segment.motion for segment in segments), strict=True)))


def _drive_torque(model: LinkModel, motion: Motion) -> NDArray:
    """Return the torque (M, n) of links and rotors, without friction and offset."""
    robot = model.robot
    coefficients = dict(zip(model.friction.names(robot), model.coefficients, strict=True))
    rotors = np.array([coefficients.get(f"rotor_inertia {joint}", 0.0) for joint in robot.joint_names])
    return robot.inverse_dynamics(*motion, model.parameters) + rotors * motion.acceleration


MAX_MASS_ERROR_PERCENT = 1.0
MAX_CENTRE_ERROR_MM = 5.0
MAX_INERTIA_ERROR_PERCENT = 20.0
"""Errors in 11 repetitions, each with another motion, were at most 0.5 %, 1.1 mm and 8 %."""
LIVE_TIME_S = 5.0
"""Time of motion after which the mass that is estimated meanwhile must be right."""
MAX_LIVE_ERROR_PERCENT = 5.0
MAX_DRIFT_DEG = 1.0
MIN_SAG_DEG = 5.0
MAX_CHANGE_ERROR_S = 0.5
PLOT_WIDTH = 340
PLOT_HEIGHT = 260
PLOT_MARGIN = 0.5
"""Margin over the true mass, below zero and above it."""

LOAD_BLOCK = {
    "load_mass": 2.0,
    "load_center": [0.05, -0.03, 0.08],
    "load_inertia": [0.00333, 0.0, 0.0, 0.01667, 0.0, 0.01667],
}
"""A block of 30 x 10 x 10 cm."""
LOAD_MOTION = {
    "motion": "fourier",
    "target": "load",
    "base_frequency": 0.2,
    "harmonics": 5,
    "periods": 2,
    "seed": 1,
    "design_time": 3.0,
}
SAG_TIME_S = 1.0
FLOAT_TIME_S = 2.0
"""Duration of the drops without and with the known load."""
AWAY_POSE = [-0.6, 0.5, 1.0, -0.4, 0.8, -0.3]
"""Target of the move that ends with the release of the load."""
MOVING_TIME_S = 1.3
WATCH_TIME_S = 2.0
"""Time between the start of that move and the release of the load, and time of watching after it."""
MIN_MOTION_RAD = 0.01
SAY_PERIOD_S = 1.0
LOAD_NODE = "/load_identification"
LOAD_STORY = (
    "The arm picks up a block of 2 kg that is not announced. Let go with the gravity torque of the arm alone, it sags. "
    "Then it moves, and a node weighs the block meanwhile: mass, centre of mass and inertia follow from the torque "
    "beyond that of the arm alone, which the act before has identified.",
    "Gravity compensation receives the load and carries it: let go again, the arm floats with the block in its hand. "
    "At the end the block is put down in motion, and the node must notice.",
)


@dataclass(frozen=True)
class LoadRun:
    """Observations of the arm and its nodes; stamps are of one clock, s.

    Attributes:
        began: stamp of the first motion with the load.
        put_down: stamp of the release of the load.
        estimates: messages of `~/estimate` of the node `load_identification`, with the stamps of their arrival.
        sag: largest drift of a joint with compensation of the arm alone, rad.
        drift: largest drift of a joint with compensation of the load too, rad.
    """

    began: float
    put_down: float
    estimates: Sequence[tuple[float, dict[str, Any]]]
    sag: float
    drift: float

    @property
    def live_mass(self) -> float:
        """Last mass that was estimated within `LIVE_TIME_S` of motion, kg; NaN: none."""
        masses = [
            estimate["mass"]
            for stamp, estimate in self.estimates
            if stamp - self.began <= LIVE_TIME_S and estimate["loaded"]
        ]
        return masses[-1] if masses else float("nan")

    @property
    def change_error(self) -> float:
        """Error of the detected time of the release, s; NaN: not detected."""
        changes = self.estimates[-1][1]["changes"] if self.estimates else []
        times = [one["time"] for one in changes if one["mass"] < 0 and one["noticed"] >= self.put_down]
        return abs(times[0] - self.put_down) if times else float("nan")


def load_act(stage: Stage) -> None:
    """Play the act."""
    arm = stage.arm
    pose = stage.settings.drop_pose
    folder = stage.output / "load"
    stage.call.trigger("/simulator/reset")
    stage.announce("A load is picked up that is not announced: with the compensation of the arm alone, the arm sags.")
    with arm.compensation():
        arm.move(pose)
        stage.call.set_parameters("/simulator", LOAD_BLOCK)
        say(stage.call.set("/simulator/pick_up", True))
        truth = stage.truth()
        arm.wait_for_compensation()
        sagging = arm.drop(SAG_TIME_S)
        arm.move(pose)
        say_links(stage)
        parameters = {"live": True, "model_file": stage.output / "links" / "identified.yaml", "output": folder}
        with stage.node("load_identification", parameters):
            listener = _EstimateListener(stage)
            stage.announce("Excitation: a motion designed to show loads; the load is estimated meanwhile.")
            stage.call.wait(f"{LOAD_NODE}/identify", timeout=START_TIMEOUT_S)
            stage.excitation.report_design()
            with arm.listening():
                stage.excitation.record("running", listen_only=True)
                began = arm.began_to_move(MIN_MOTION_RAD)
            listener.is_printing = False
            stage.announce("The load is identified from the bag.")
            say(stage.call.trigger(f"{LOAD_NODE}/identify", timeout=COMPUTING_TIMEOUT_S))
            stage.announce("Gravity compensation knows the load: the arm is let go again.")
            arm.move(pose)
            floating = arm.drop(FLOAT_TIME_S)
            stage.announce("The load is let go of while the arm moves.")
            arm.begin_move(AWAY_POSE)
            arm.wait(MOVING_TIME_S)
            put_down = stage.now()
            stage.call.set("/simulator/pick_up", False)
            arm.wait(WATCH_TIME_S)
    sag, drift = (float(largest_drift(position).max()) for _, position in (sagging, floating))
    run = LoadRun(began, put_down, listener.estimates, sag, drift)
    stage.judge_later("load", lambda: judge_load(truth, folder, run))


class _EstimateListener:
    """Keeps the estimates that the node publishes, and prints one of them every `SAY_PERIOD_S`."""

    def __init__(self, stage: Stage) -> None:
        self.estimates: list[tuple[float, dict[str, Any]]] = []
        self.is_printing = True
        self._stage = stage
        self._last_print = -np.inf
        self._n_changes = 0
        stage.create_subscription(String, f"{LOAD_NODE}/estimate", self._on_estimate, 10)

    def _on_estimate(self, message: String) -> None:
        estimate = yaml.safe_load(message.data)
        now = self._stage.now()
        self.estimates.append((now, estimate))
        for change in estimate["changes"][self._n_changes :]:
            say(f"noticed: {change['mass']:+.1f} kg, {now - change['time']:.2f} s ago")
        self._n_changes = len(estimate["changes"])
        if self.is_printing and now - self._last_print >= SAY_PERIOD_S:
            self._last_print = now
            say(_describe(estimate))


def _describe(estimate: dict[str, Any]) -> str:
    low, high = estimate["interval"]["mass"]
    if low is None:
        return "live: nothing known yet"
    mass = f"live: {low:6.3f} to {high:6.3f} kg"
    if not estimate["loaded"]:
        return f"{mass}, no load is shown"
    center = " ".join(f"{MM_PER_M * value:.0f}" for value in estimate["center"])
    inertia = " ".join(f"{value:.4f}" for value in np.array(estimate["inertia"], float)[[0, 3, 5]])
    return f"{mass}, centre {center} mm, inertia {inertia} kg m²"


def judge_load(truth: dict[str, Any], folder: Path, run: LoadRun) -> Act:
    """Compare `identified.yaml` in `folder`, and the observations, with the truth of MuJoCo.

    Args:
        truth: truth of the simulated arm while it carried the load, see `truth_table`.
        folder: folder of the identification.
        run: observations.
    """
    estimate = load_identified(folder / "identified.yaml")["load"]
    true = truth["load"]
    if not estimate["loaded"]:
        raise DynidError(
            f"{folder / 'identified.yaml'}: the load that the arm carried was not found; a busy machine keeps the "
            "simulator waiting, and the bag has gaps: play the act again when it is quieter (--acts load)"
        )
    comparisons = compare_load(true, estimate)
    inertia, true_inertia = (_inertia_tensor(load["inertia"]) for load in (estimate, true))
    inertia_error = float("nan")
    if np.isfinite(inertia).all():
        inertia_error = float(np.linalg.norm(inertia - true_inertia, 2) / np.linalg.norm(true_inertia, 2))
    centre_error = float(np.linalg.norm(np.subtract(estimate["center"], true["center"])))
    live_error = abs(run.live_mass / true["mass"] - 1)
    return Act(
        "A load: weighed in motion, and carried",
        LOAD_STORY,
        [
            Check("Mass, relative error", 100 * comparisons[0].relative_error, MAX_MASS_ERROR_PERCENT, "%"),
            Check("Centre of mass, error", MM_PER_M * centre_error, MAX_CENTRE_ERROR_MM, "mm"),
            Check("Inertia, relative error", 100 * inertia_error, MAX_INERTIA_ERROR_PERCENT, "%"),
            coverage_check(comparisons, MIN_COVERED_PERCENT),
            Check(
                f"Mass estimated live, relative error after {LIVE_TIME_S:g} s of motion",
                100 * live_error,
                MAX_LIVE_ERROR_PERCENT,
                "%",
            ),
            Check(
                "Largest joint drift without the load known",
                float(np.rad2deg(run.sag)),
                MIN_SAG_DEG,
                "°",
                at_least=True,
            ),
            Check("Largest joint drift with the load known", float(np.rad2deg(run.drift)), MAX_DRIFT_DEG, "°"),
            Check("Time at which the load was put down, error", run.change_error, MAX_CHANGE_ERROR_S, "s"),
        ],
        comparisons,
        _draw_live_mass(run, true["mass"]),
        [("the report of the identification", "load/report.html")],
    )


def _inertia_tensor(inertia: Sequence[float | None]) -> NDArray:
    return inertia_matrix(np.concatenate([np.zeros(4), as_array(inertia)]))


def _draw_live_mass(run: LoadRun, true_mass: float) -> dict[str, str]:
    """Draw the mass with its 95 % interval, and the true mass, over the time of motion."""
    known = [(s, one) for s, one in run.estimates if one["estimate"]["parameters"][0] is not None]
    if not known:
        return {}
    stamps = np.array([stamp for stamp, _ in known])
    time = stamps - run.began
    mass = np.array([one["estimate"]["parameters"][0] for _, one in known])
    interval = np.array([one["interval"]["mass"] for _, one in known])
    true = np.where(stamps < run.put_down, true_mass, 0.0)

    def draw(figure: Figure) -> None:
        axes = plot_area(figure, left=52, bottom=40)
        axes.fill_between(time, *interval.T, color=LIGHT["band"], linewidth=0)
        axes.step(time, true, color=LIGHT["truth"], linewidth=1.6, where="pre")
        axes.plot(time, mass, color=LIGHT["identified"], linewidth=1.2, marker="o", markersize=3)
        axes.set_ylim(-PLOT_MARGIN * true_mass, (1 + PLOT_MARGIN) * true_mass)
        label_axes(axes, "time since the arm began to move (s)", "mass (kg)")
        axes.margins(x=0)

    picture = svg("Estimated and true mass of the load over time", PLOT_WIDTH, PLOT_HEIGHT, draw)
    return {"Mass of the load as estimated meanwhile, with its 95 % interval; green: the truth": picture}
