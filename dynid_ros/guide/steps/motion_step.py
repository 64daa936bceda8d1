"""Step 3: the motion is designed, shown as a ghost, and carried out slowly first."""

import time

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action, move
from dynid_ros.guide.context import SLOW_FRACTION, Context, update
from dynid_ros.guide.panel import plain_markdown
from dynid_ros.nodes.experiment.design import LIMITS, WORKSPACE, Safety
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS
from dynid_ros.report.motion_use import MotionUse
from dynid_ros.trajectories import Trajectory

OFFERED_MOTION_KINDS = ("static_rotation", "poses", "fourier")
GHOST_SPEED = 4.0
USUAL_SPEED = 0.4


class MotionStep:
    """Widgets of the step and the ghost that plays the planned motion.

    Args:
        context: what the steps share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._motion = OFFERED_MOTION_KINDS[0]
        self._speed = USUAL_SPEED
        self._trajectory: Trajectory | None = None
        self._began = 0.0
        panel = context.panel
        gui = panel.server.gui
        panel.said("The design moves nothing. Read its answer, watch the ghost, and let the arm move slowly first.")
        hint = "static_rotation or poses: gravity; fourier: links and friction"
        panel.bind(gui.add_dropdown, "Motion", self, "_motion", OFFERED_MOTION_KINDS, hint=hint)
        hint = "Fraction of the velocity limits"
        panel.bind(gui.add_slider, "Speed", self, "_speed", SLOW_FRACTION, 1.0, 0.05, self._speed, hint=hint)
        said = panel.said()
        panel.button(
            "Design",
            lambda: context.design("gravity", self._motion, self._speed),
            said,
            hint="ros2 service call /excitation/design: plan the motion; nothing moves",
            color="green",
            then=self._on_design,
        )
        self._bar = gui.add_progress_bar(0.0)
        self._said = said
        self._ghost_time = panel.said()
        self._play = gui.add_checkbox("Play the ghost", False, hint="Show the planned motion, four times as fast")
        self._play.on_update(lambda _: self._begin())
        panel.button(
            "Slow first",
            self._slow,
            said,
            hint="Design at a twentieth of the speed and move, not recorded. Watch one joint, then press STOP.",
            then=lambda _: said.show("The slow motion has ended. Design again for the usual speed."),
        )

    def refresh(self) -> None:
        """Show the progress of the design, and move the ghost."""
        bench = self._context.bench
        designing = bench.texts["excitation/state"] == "designing"
        update(self._bar, "value", round(100.0 * bench.progress, 1) if designing else 0.0)
        ghost = self._context.scene.ghost
        if not self._play.value or self._trajectory is None:
            ghost.visible = False
            return
        elapsed = (GHOST_SPEED * (time.monotonic() - self._began)) % self._trajectory.duration
        ghost.visible = True
        ghost.place(np.array(self._trajectory.at(elapsed)[0]).reshape(-1))
        self._ghost_time.show(f"Ghost: {elapsed:.0f} of {self._trajectory.duration:.0f} s")

    def _begin(self) -> None:
        self._began = time.monotonic()
        if self._trajectory is None:
            self._read()

    def _on_design(self, text: str) -> None:
        self._read()
        lines = [*text.split("; "), *self._clearances()]
        self._said.show("\n".join(f"- {plain_markdown(line)}" for line in lines))

    def _clearances(self) -> list[str]:
        """Return the smallest distance and the most used limits, by the limits and the workspace of the node."""
        if self._trajectory is None:
            return []
        names = [parameter.name for parameter in (*ROBOT_PARAMETERS, *LIMITS, *WORKSPACE)]
        settings = self._context.bench.parameters_of("excitation", names)
        safety = Safety(self._context.robot, settings)
        return MotionUse(self._context.robot, safety.limits, safety.workspace, self._trajectory).lines()

    def _read(self) -> None:
        try:
            self._trajectory = Trajectory.read(self._context.answers.motion_file)
        except DynidError:
            self._ghost_time.show("There is no motion yet; design one.")

    def _slow(self) -> list[Action]:
        return [*self._context.design("gravity", self._motion, SLOW_FRACTION), move(recorded=False)]
