"""Step 4: the motion is carried out and recorded; torque and tracking error are plotted."""

import time

import numpy as np
import yaml

from dynid_ros.errors import DynidError
from dynid_ros.guide.context import Context, TimePlot, update
from dynid_ros.guide.panel import plain_markdown
from dynid_ros.trajectories import Trajectory

MIN_PROGRESS = 0.02
"""Progress from which on the remaining time is told."""


class RecordStep:
    """Widgets of the step.

    Args:
        context: what the steps share.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._began = 0.0
        self._planned: tuple[float, Trajectory] | None = None
        self._plan = ""
        panel = context.panel
        panel.said(
            "One person watches the arm with a hand at the emergency stop. The arm moves to the first pose, then "
            "follows the designed motion; the recorder writes a bag."
        )
        self._said = panel.said()
        panel.button(
            "Record and move",
            context.record,
            self._said,
            hint="Start the recorder and the motion; stop the recorder when the motion is done",
            color="orange",
            then=self._on_end,
        )
        gui = panel.server.gui
        self._bar = gui.add_progress_bar(0.0, animated=True)
        self._state = panel.said()
        names = context.robot.joint_names
        self._effort = TimePlot(panel.server, names, "effort, as the driver has it")
        self._error = TimePlot(panel.server, names, "measured minus planned position, mrad (mm)")

    def refresh(self) -> None:
        """Show the progress, and plot while the arm moves."""
        bench = self._context.bench
        state = bench.texts["excitation/state"]
        moving = state in ("approaching", "running")
        now = time.monotonic()
        if not moving:
            self._began = 0.0
            update(self._bar, "value", 100.0 if state == "done" else 0.0)
            self._state.show(f"State: {plain_markdown(state)}" if state else "Design a motion first, in step 3.")
            return
        self._began = self._began or now
        progress = bench.progress
        remaining = ""
        if progress > MIN_PROGRESS:
            remaining = f", about {(now - self._began) * (1.0 - progress) / progress:.0f} s to go"
        update(self._bar, "value", round(100.0 * progress, 1))
        self._state.show(f"State: {state}, {100.0 * progress:.0f} %{remaining}")
        self._plot(state)

    def _plot(self, state: str) -> None:
        bench = self._context.bench
        if bench.state is None:
            return
        stamp, values = bench.state
        if "effort" in values:
            self._effort.add(stamp, np.array(values["effort"]))
        if state != "running":
            return
        self._read_plan()
        if self._planned is not None:
            begin, trajectory = self._planned
            planned = np.array(trajectory.at(np.clip(stamp - begin, 0.0, trajectory.duration))[0]).reshape(-1)
            self._error.add(stamp, 1e3 * (np.array(values["position"]) - planned))

    def _read_plan(self) -> None:
        """Read the planned motion once, with the time at which it began."""
        text = self._context.bench.texts["excitation/plan"]
        if text == self._plan:
            return
        self._plan = text
        begin = (yaml.safe_load(text) or {}).get("start_time")
        try:
            trajectory = Trajectory.read(self._context.answers.motion_file).select(self._context.robot.joint_names)
        except DynidError:
            return
        self._planned = None if begin is None else (float(begin), trajectory)

    def _on_end(self, text: str) -> None:
        self._context.keep_bag("gravity")
        self._said.show(f"{plain_markdown(text)}. Go on with step 5.")
