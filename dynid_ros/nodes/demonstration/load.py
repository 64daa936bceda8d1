"""Fourth act of the demo: the arm picks up a load that nobody has told of, and knows it seconds later."""

from collections.abc import Callable
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from std_msgs.msg import String

from dynid_ros.jobs.demonstration.load import LoadShown, judge_load
from dynid_ros.nodes.demonstration.links import say_links
from dynid_ros.nodes.demonstration.stage import COMPUTING_TIMEOUT, START_TIMEOUT, Stage, say
from dynid_ros.report.demonstration.act import Act

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
    "The arm picks up a block of 2 kg that nobody has told of. Let go with the gravity torque of the arm alone, "
    "it sags. Then it moves, and a node weighs the block meanwhile: mass, centre and inertia follow from the "
    "torques beyond those of the arm alone, which the act before has identified.",
    "Gravity compensation hears of the load and carries it: let go again, the arm floats with the block in its "
    "hand. At the end the block is put down in motion, and the node is to notice.",
)


def load_act(stage: Stage) -> None:
    """Play it; it is good if the load is known."""
    arm, pose, folder = stage.arm, stage.settings.drop_pose, stage.output / "load"
    stage.call.trigger("/simulator/reset")
    stage.announce("A load is picked up that nobody has told of: with the arm's own compensation, the arm sags.")
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
