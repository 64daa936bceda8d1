"""Steps 1 to 4: robot, meaning of effort, design of the motion, and the motion itself, which is recorded."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import yaml

from dynid_ros.collision.obstacles import read_obstacles
from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action, call, move, run, set_parameters
from dynid_ros.guide.context import Context, Step
from dynid_ros.guide.panel import Text, TimePlot, markdown_table, plain_markdown, update
from dynid_ros.nodes.experiment.design import LIMITS, WORKSPACE, Safety
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS
from dynid_ros.report.motion_use import MotionUse
from dynid_ros.trajectories import Trajectory

NO_OBSTACLES = "none"
MAX_STATE_AGE_S = 1.0
MAX_ACCELERATION = 50.0
CHECK_PERIOD_S = 8.0
N_JOG_POSES = 5
DEFAULT_POSES = 15
JOG_SPEED = 0.2
RECORDING_TEXT = "The recorder records. **Jog the arm now.**"
OFFERED_MOTION_KINDS = ("static_rotation", "poses", "fourier")
DEFAULT_SPEED = 0.4
SLOW_SPEED = 0.05
GHOST_SPEED = 4.0
MIN_PROGRESS = 0.02
"""Smallest elapsed fraction for an estimate of the remaining time."""


class RobotStep(Step):
    """Step 1: the robot, its joint states and limits, and obstacles."""

    def __init__(self, context: Context) -> None:
        answers = context.answers
        robot = context.robot
        remarks = [f"- {plain_markdown(remark)}" for remark in context.scene.remarks]
        head = [
            f"**{plain_markdown(robot.name)}**: {robot.n_joints} joints, tip `{robot.tip}`.",
            "Is this your arm, the right way up? The arm follows the joint states.",
            *remarks,
        ]
        super().__init__(context, "\n\n".join(head))
        self._joints = Text(self._card.gui)
        gui = self._card.gui
        answers.tip = robot.tip
        links = tuple(dict.fromkeys([robot.tip, robot.link_names[-1]]))
        hint = "Last link of the chain; for a chain of other joints start the guide with --tip"
        self._card.bind(gui.add_dropdown, "Tip", answers, "tip", links, hint=hint)
        span = {"min": 0.0, "max": MAX_ACCELERATION, "step": 0.5}
        hint = "Limit of all joints, rad/s² (m/s²); 0: the limit of the URDF or the parameter file"
        self._card.bind(gui.add_number, "Acceleration", answers, "acceleration_limit", hint=hint, **span)
        hint = "Lowest height of links above the base, m"
        self._card.bind(gui.add_number, "Floor", answers, "floor_height", hint=hint, step=0.01)
        files = (NO_OBSTACLES, *sorted(path.name for path in answers.output.glob("*.yaml")))
        hint = f"YAML file of boxes in {answers.output}"
        self._card.field(gui.add_dropdown("Obstacles", files, hint=hint), self._set_obstacles)
        self._card.button(
            "Use this robot",
            "Start the nodes excitation and recorder with these answers; nothing moves",
            self._start_nodes,
            "The nodes `excitation` and `recorder` run. Go on with step 2.",
            color="green",
        )

    def refresh(self) -> None:
        """Show the driver, the limits and the joint states."""
        limits = self._context.robot.limits
        names = self._context.robot.joint_names
        values = self._bench.state[1] if self._bench.state else {}
        position = values.get("position", [np.nan] * len(names))
        effort = values.get("effort", [np.nan] * len(names))
        rows = []
        for k, name in enumerate(names):
            span = f"{_number(limits.lower[k])} to {_number(limits.upper[k])}"
            efforts = [_number(effort[k], 1), _number(limits.effort[k], 0)]
            rows.append([name, _number(position[k]), span, _number(limits.velocity[k]), *efforts])
        table = markdown_table("joint,position,limits: rad (m),speed limit,effort,effort limit", rows)
        self._joints.show(f"{self._driver_line()}\n\n{table}")

    def _driver_line(self) -> str:
        """Return a line that names the publisher of joint states, or the fault."""
        try:
            driver = self._bench.require_driver()
        except DynidError as error:
            return f"**{plain_markdown(str(error))}**"
        if time.monotonic() - self._bench.state_time < MAX_STATE_AGE_S:
            return f"Joint states come from `{driver}`."
        return f"**`{driver}` publishes joint states, but none arrives; is the driver paused?**"

    def _set_obstacles(self, name: str) -> None:
        answers = self._context.answers
        answers.obstacles = "" if name == NO_OBSTACLES else name
        try:
            boxes = read_obstacles(answers.inside(name)) if answers.obstacles else ()
            self._context.scene.show_obstacles(boxes)
        except DynidError as error:
            answers.obstacles = ""
            self._card.answer.refuse(error)

    def _start_nodes(self) -> list[Action]:
        self._bench.require_driver()
        return [self._context.start("excitation"), self._context.start("recorder")]


class EffortStep(Step):
    """Step 2: the meaning of effort; `dynid check` is repeated while the arm is moved and recorded."""

    def __init__(self, context: Context) -> None:
        self._checks = ThreadPoolExecutor(max_workers=1)
        self._running: Future[str] | None = None
        self._due = 0.0
        self._records = False
        super().__init__(
            context,
            "Effort in `joint_states` may be torque, current, or torque without gravity. Record, jog the arm to five "
            "different poses with the teach pendant, and let it rest for some seconds in each.",
        )
        context.add_effort_inputs(self._card)
        hint = "ros2 service call /recorder/start; jog the arm now"
        self._card.button("Record by hand", hint, self._begin, lambda _: self._on_begin())
        self._card.button("End and check", "Stop the recorder and run dynid check", self._end, self._show)
        hint = "The excitation node moves the arm slowly to some poses, recorded; then dynid check"
        self._card.button("Jog for me", hint, self._jog, self._show)

    def refresh(self) -> None:
        """Show the last check, and start the next one while recording."""
        if self._running is not None and self._running.done():
            if self._running.exception() is None:
                self._show(self._running.result())
            self._running = None
            self._due = time.monotonic() + CHECK_PERIOD_S
        if self._records and self._running is None and time.monotonic() > self._due:
            self._running = self._checks.submit(self._check().do, self._bench)

    def _begin(self) -> list[Action]:
        self._bench.require_driver()
        return [self._context.start("recorder"), call("recorder/start")]

    def _on_begin(self) -> None:
        self._records = True
        self._due = time.monotonic() + CHECK_PERIOD_S
        self._card.answer.show(f"{RECORDING_TEXT} The check follows.")

    def _end(self) -> list[Action]:
        self._records = False
        return [call("recorder/stop"), self._check_later()]

    def _jog(self) -> list[Action]:
        is_running = self._bench.has("excitation/design")
        n_poses = self._bench.services.parameters("excitation", ["count"]).count if is_running else DEFAULT_POSES
        jog = self._context.design("gravity", "poses", JOG_SPEED, count=N_JOG_POSES)
        return [*jog, move(recorded=True), set_parameters("excitation", {"count": n_poses}), self._check_later()]

    def _check_later(self) -> Action:
        """Return the check of the bag that is the last one when the check begins."""
        return Action(self._check().lines, lambda bench: self._check().do(bench))

    def _check(self) -> Action:
        bag = self._bench.texts["recorder/bag"] or "BAG"
        return run("dynid", "check", *self._context.answers.identify_options(bag))

    def _show(self, text: str) -> None:
        """Show the answer of dynid check, whose remedies name the convention that fits."""
        verdict, *lines = filter(str.strip, text.splitlines())
        head = f"{RECORDING_TEXT}\n\n" if self._records else ""
        self._card.answer.show_list(f"{head}**{plain_markdown(verdict)}**", lines)


class MotionStep(Step):
    """Step 3: the motion is designed, played by a ghost, and carried out slowly first."""

    def __init__(self, context: Context) -> None:
        self._motion = OFFERED_MOTION_KINDS[0]
        self._speed = DEFAULT_SPEED
        self._trajectory: Trajectory | None = None
        text = "The design moves nothing. Read its answer, watch the ghost, and let the arm move slowly first."
        super().__init__(context, text)
        gui = self._card.gui
        hint = "static_rotation or poses: gravity; fourier: links and friction"
        self._card.bind(gui.add_dropdown, "Motion", self, "_motion", OFFERED_MOTION_KINDS, hint=hint)
        hint = "Fraction of the velocity limits"
        self._card.bind(gui.add_slider, "Speed", self, "_speed", SLOW_SPEED, 1.0, 0.05, hint=hint)
        self._card.button(
            "Design",
            "ros2 service call /excitation/design: plan the motion; nothing moves",
            lambda: context.design("gravity", self._motion, self._speed),
            self._on_design,
            color="green",
        )
        self._bar = gui.add_progress_bar(0.0)
        self._ghost_time = Text(self._card.gui)
        self._play = gui.add_checkbox("Play the ghost", False, hint="Show the planned motion, four times as fast")
        self._play.on_update(lambda _: self._read())
        self._card.button(
            "Slow first",
            "Design at a twentieth of the speed and move, not recorded. Watch one joint, then press STOP.",
            self._slow,
            "The slow motion has ended. Design again for the usual speed.",
        )

    def refresh(self) -> None:
        """Show the progress of the design, and move the ghost."""
        designing = self._bench.texts["excitation/state"] == "designing"
        update(self._bar, "value", round(100.0 * self._bench.progress, 1) if designing else 0.0)
        ghost = self._context.scene.ghost
        trajectory = self._trajectory if self._play.value else None
        update(ghost.frame, "visible", trajectory is not None)
        if trajectory is not None:
            elapsed = GHOST_SPEED * time.monotonic() % trajectory.duration
            ghost.place(np.array(trajectory.at(elapsed)[0]).reshape(-1))
            self._ghost_time.show(f"Ghost: {elapsed:.0f} of {trajectory.duration:.0f} s")

    def _on_design(self, text: str) -> None:
        self._read()
        clearances = self._clearances(self._trajectory) if self._trajectory else []
        self._card.answer.show_list("", [*text.split("; "), *clearances])

    def _clearances(self, trajectory: Trajectory) -> list[str]:
        """Return the smallest distance and the most used limits, by the limits and the workspace of the node."""
        names = [parameter.name for parameter in (*ROBOT_PARAMETERS, *LIMITS, *WORKSPACE)]
        safety = Safety(self._context.robot, self._bench.services.parameters("excitation", names))
        return MotionUse(self._context.robot, safety.limits, safety.workspace, trajectory).lines()

    def _read(self) -> None:
        try:
            self._trajectory = Trajectory.read(self._context.answers.motion_file)
        except DynidError:
            self._ghost_time.show("There is no motion yet; design one.")

    def _slow(self) -> list[Action]:
        return [*self._context.design("gravity", self._motion, SLOW_SPEED), move(recorded=False)]


class RecordStep(Step):
    """Step 4: the motion is carried out and recorded; effort and tracking error are plotted."""

    def __init__(self, context: Context) -> None:
        self._began = 0.0
        self._planned: tuple[float, Trajectory] | None = None
        self._plan = ""
        super().__init__(
            context,
            "One person watches the arm with a hand at the emergency stop. The arm moves to the first pose, then "
            "follows the designed motion; the recorder writes a bag.",
        )
        hint = "Start the recorder and the motion; stop the recorder when the motion is done"
        done = "The motion is recorded. Go on with step 5."
        self._card.button("Record and move", hint, lambda: context.record("gravity"), done, color="orange")
        gui = self._card.gui
        self._bar = gui.add_progress_bar(0.0, animated=True)
        self._state = Text(self._card.gui)
        names = context.robot.joint_names
        self._effort = TimePlot(gui, names, "effort, in the driver's unit")
        self._error = TimePlot(gui, names, "measured minus planned position, mrad (mm)")

    def refresh(self) -> None:
        """Show the progress, and plot while the arm moves."""
        state = self._bench.texts["excitation/state"]
        now = time.monotonic()
        if state not in ("approaching", "running"):
            self._began = 0.0
            update(self._bar, "value", 100.0 if state == "done" else 0.0)
            self._state.show(f"State: {plain_markdown(state)}" if state else "Design a motion first, in step 3.")
            return
        self._began = self._began or now
        progress = self._bench.progress
        remaining = ""
        if progress > MIN_PROGRESS:
            remaining = f", about {(now - self._began) * (1.0 - progress) / progress:.0f} s to go"
        update(self._bar, "value", round(100.0 * progress, 1))
        self._state.show(f"State: {state}, {100.0 * progress:.0f} %{remaining}")
        if self._bench.state is not None:
            self._plot(state == "running", *self._bench.state)

    def _plot(self, follows_plan: bool, stamp: float, values: dict[str, list[float]]) -> None:
        if "effort" in values:
            self._effort.add(stamp, values["effort"])
        if follows_plan:
            self._read_plan()
        if follows_plan and self._planned is not None:
            begin, trajectory = self._planned
            planned = np.array(trajectory.at(np.clip(stamp - begin, 0.0, trajectory.duration))[0]).reshape(-1)
            self._error.add(stamp, 1e3 * (np.array(values["position"]) - planned))

    def _read_plan(self) -> None:
        """Read the planned motion once, with the time of its first sample."""
        text = self._bench.texts["excitation/plan"]
        if text == self._plan:
            return
        self._plan = text
        begin = (yaml.safe_load(text) or {}).get("start_time")
        try:
            trajectory = Trajectory.read(self._context.answers.motion_file).select(self._context.robot.joint_names)
        except DynidError:
            return
        self._planned = None if begin is None else (float(begin), trajectory)


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"
