"""Third act of the demo: the arm picks up a load that nobody has told of, and knows it seconds later."""

from collections.abc import Callable
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from std_msgs.msg import String

from dynid_ros.jobs.load_demonstration import LoadShown, write_load_demonstration
from dynid_ros.nodes.demo_process import node_process
from dynid_ros.nodes.demo_stage import Stage, say

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
    "travel_speed_fraction": 1.0,
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


def load_act(stage: Stage) -> bool:
    """Play it; True if the load is known."""
    folder = stage.output / "load"
    stage.call.trigger("/simulator/reset")
    stage.announce("A load is picked up that nobody has told of: with the arm's own compensation, the arm sags.")
    with stage.compensation():
        stage.move(stage.settings.drop_pose)
        stage.call.set_parameters("/simulator", BLOCK)
        say(stage.call.set("/simulator/pick_up", True))
        truth = stage.truth()
        sagging = stage.drop(SAG_TIME)
        stage.move(stage.settings.drop_pose)
        parameters = {"live": True, "model_file": stage.output / "links" / "identified.yaml", "output": folder}
        with node_process("load_identification", parameters, stage.output / "logs" / "load_identification.log"):
            heard = _Estimates(stage)
            stage.announce("Excitation: a motion that shows loads is designed and made; the load is learnt meanwhile.")
            stage.design(MOTION)
            stage.call.wait(f"{NODE}/identify", timeout=60.0)
            stage.watch(0.1)
            stage.record("running")
            began = stage.began_to_move(STIRRED)
            heard.aloud = False
            stage.announce("The load, identified from the bag.")
            say(stage.call.trigger(f"{NODE}/identify"))
            stage.announce("Gravity compensation has heard of the load: the arm is let go again.")
            stage.move(stage.settings.drop_pose)
            floating = stage.drop(FLOAT_TIME)
            stage.announce("The load is let go of while the arm moves.")
            stage.begin_move(AWAY)
            stage.watch(UNDER_WAY)
            put_down = stage.now()
            stage.call.set("/simulator/pick_up", False)
            stage.watch(NOTICING)
    stage.announce("Report.")
    shown = LoadShown(began, put_down, heard.all, _drift(sagging), _drift(floating))
    verdict = write_load_demonstration(stage.robot, truth, folder, shown)
    say(verdict.text())
    return verdict.passed


class _Estimates:
    """What the node tells while it learns, on the terminal now and then, and all of it for the report."""

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
