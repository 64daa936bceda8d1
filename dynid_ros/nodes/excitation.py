"""Node that designs a motion and lets a joint trajectory controller carry it out.

Parameters of the motion may be changed while the node runs; `~/design` reads them. A design takes time: the answer
comes at its end, the node keeps running meanwhile, and `~/stop` ends the design with the best motion so far. `~/start`
carries out the last design; it designs first if there is none, or if parameters of the motion have changed since.

Latched topics: `~/state` (idle, designing, approaching the first pose, running, done, or `stopped: <reason>`),
`~/progress` (elapsed fraction of the design, or of approach and experiment, 0 to 1) and `~/plan` (YAML of the plan,
such as `FourierPlan`; after `~/start` also `start_time`, the beginning of the experiment by the node's clock, s).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import yaml
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Experiment, Plan
from dynid_ros.excitation.fourier_search import Candidate
from dynid_ros.excitation.parallel_search import Enough
from dynid_ros.nodes.experiment.design import MOTION_PARAMETERS, PARAMETERS, Design, Safety
from dynid_ros.nodes.experiment.trajectory_execution import REQUESTED, Arm
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status
from dynid_ros.nodes.shared.parameters import declare
from dynid_ros.nodes.shared.process import Background, SteadyThread, answer_later, run_undisturbed
from dynid_ros.nodes.shared.robot_description import robot_model
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.trajectories import Trajectory, check_start

WATCH_RATE_HZ = 100.0
PROGRESS_PERIOD_S = 0.2


class ExcitationNode(Node):
    """Node that designs motions in the background and lets the controller carry them out, including the approach.

    A single thread must spin the node. Another thread watches the arm, even while the executor waits.
    """

    _made = False  # a node whose constructor failed is destroyed as well

    def __init__(self, **arguments: Any) -> None:
        super().__init__("excitation", **arguments)
        self.settings = declare(self, PARAMETERS, self._adjust)
        self._robot = robot_model(self, self.settings)
        self.safety = Safety(self._robot, self.settings)
        self._described_design(self.settings).experiment()  # invalid parameters are reported at once
        self._designed: tuple[Experiment, Plan] | None = None
        self._designed_for = ""  # values of the motion's parameters; after a change ~/start designs anew
        self._doing = ""
        self._state_lock = Lock()  # keeps the order of the states, which two threads publish
        self._approach = 0.0
        self._progress = 0.0
        self._progress_time = 0.0

        self._plan_publisher = self.create_publisher(String, "~/plan", LATCHED)
        self._progress_publisher = self.create_publisher(Float32, "~/progress", LATCHED)
        self._state_publisher = self.create_publisher(String, "~/state", LATCHED)
        self._set_state("idle")
        for warning in self.safety.warnings:
            self.get_logger().warning(warning)
        self._background = Background(self)
        self._is_stopped = Event()
        self._searched = 0.0  # fraction
        self.arm = Arm(self, self.settings, self.safety.limits, on_halt=self._on_halt, on_rest=self._on_rest)
        group = ReentrantCallbackGroup()  # an awaited design must not block other callbacks
        design = answer_later(self, self.design, lambda: self.settings.answer_at_once)
        for name, callback in (
            ("design", design),
            ("start", answer_later(self, self.start)),
            ("stop", answer_later(self, self.stop)),
        ):
            self.create_service(Trigger, f"~/{name}", callback, callback_group=group)
        Diagnostics(self, self.status, hardware=self._robot.name)
        self.steady = SteadyThread(self, self._watch, 1.0 / WATCH_RATE_HZ)
        self._made = True

    def _adjust(self, settings: SimpleNamespace) -> None:
        if self._made:
            self.arm.adjust(settings)

    async def design(self) -> str:
        """Plan the motion from the model and the present parameters, and return a summary."""
        with self._exclusively("designing"):
            return await self._design()

    async def start(self) -> str:
        """Send the approach and the planned motion to the controller, and return a description."""
        with self._exclusively("starting"):
            await self._hold()  # first, because an old motion would continue during anything that takes time
            if self._designed is None or self._designed_for != self._motion_settings():
                await self._design()
            self._refuse_if_stopped()
            assert self._designed is not None
            experiment, plan = self._designed
            measured = await self.arm.states.resting_position()

            def plan_whole_motion() -> tuple[Trajectory, Trajectory, Trajectory]:
                self.safety.check_start(measured)
                approach = experiment.approach_motion(measured, plan)
                motion = Trajectory.join([approach, plan.trajectory])
                sampled = motion.sample(self.settings.point_rate)
                self.safety.check(sampled)
                return approach, motion, sampled

            approach, motion, sampled = await self._background.result(plan_whole_motion)
            load = await self._background.result(lambda: self.arm.load(motion, sampled))
            self._refuse_if_stopped()
            check_start(sampled, await self.arm.states.resting_position())
            await self.arm.require_controller()

            def send() -> float:
                with self.arm.lock:
                    self._refuse_if_stopped()
                    self._approach = approach.duration
                    until_start = self.arm.send(load)
                    self._set_state("approaching")
                    self._publish_progress(0.0)
                    return self.get_clock().now().nanoseconds * 1e-9 + until_start + self._approach

            begin = await self._background.result(send)
        await self.arm.accepted()
        self._publish_plan(plan, start_time=begin)
        return (
            f"The arm approaches the first pose for {approach.duration:.1f} s, then follows {plan.duration:.1f} s of "
            f"excitation, by {self.arm.interface}."
        )

    async def stop(self) -> str:
        """Bring the arm to rest, whoever moves it, or end the design, and return a description."""
        with self.arm.lock:
            if self._doing or self.arm.moving:
                return self._stop()
        before = self.state
        with self._exclusively("stopping"):
            try:
                return await self.arm.brake()
            except DynidError as error:
                raise DynidError(f"nothing to stop: the state is {before}; {error}") from error

    def _stop(self) -> str:
        if self.arm.stopping:
            raise DynidError(f"the arm is coming to rest already ({self.state})")
        if self.arm.moving:
            return f"The arm is at rest in {self.arm.halt(REQUESTED):.1f} s."
        if self._doing == "stopping":
            raise DynidError("the node is already checking whether the arm moves, and will stop it then")
        self._is_stopped.set()
        if self.state == "designing":
            return "The design ends with the best motion so far."
        return "The arm stays at rest."

    def status(self) -> Status:
        """Return the state, the progress, and whether a motion could begin."""
        values: dict[str, object] = {
            "progress": f"{self._progress:.3f}",
            "seconds_since_joint_state": f"{time.monotonic() - self.arm.states.received:.2f}",
            "command_topic": self.settings.command_topic,
            "command_interface": self.arm.interface,
            "motion": self.settings.motion,
            "warnings": len(self.safety.warnings),
        }
        if self.state.startswith("stopped") and self.state != f"stopped: {REQUESTED}":
            return ERROR, self.state, values
        if self.arm.action is not None:
            values["controller_error"] = f"{self.arm.action.error:.4g}"
        if self.arm.doubt:
            return WARN, f"{self.state}; {self.arm.doubt}", values
        return OK, self.state, values

    def end(self) -> None:
        """Bring a moving arm to rest, and end a design."""
        if self._made:
            self.steady.end()
            with self.arm.lock:
                if self.context.ok():
                    self.arm.end()
            self._is_stopped.set()
            self._background.end()

    def destroy_node(self) -> None:
        """Bring a moving arm to rest, then destroy the node."""
        self.end()
        super().destroy_node()

    @contextmanager
    def _exclusively(self, what: str) -> Iterator[None]:
        """Refuse to do two things at once."""
        with self.arm.lock:
            if self._doing:
                raise DynidError(f"the node is {self._doing} already; wait, or call ~/stop first")
            if self.arm.moving:
                raise DynidError(f"the arm is moving already ({self.state}); call ~/stop first, or wait")
            self._doing = what
        self._is_stopped.clear()
        self._searched = 0.0
        try:
            yield
        finally:
            self.arm.leave_command()
            self._doing = ""

    async def _hold(self) -> None:
        """Let the controller hold the arm, if it may rest where it is."""
        await self.arm.take_command()
        measured = await self.arm.states.resting_position()
        await self._background.result(lambda: self.safety.check_start(measured))
        self._refuse_if_stopped()
        await self.arm.hold()

    async def _design(self) -> str:
        """Design a motion, store it and return a summary."""
        settings = SimpleNamespace(**vars(self.settings))  # later changes of parameters do not affect this design
        described = self._described_design(settings)
        before = self.state
        self._set_state("designing")

        def plan_motion() -> tuple[Experiment, Plan, str]:
            experiment, plan = described.plan(self._note_search)
            written = plan.trajectory.save(settings.trajectory_file) if settings.trajectory_file else ""
            return experiment, plan, f"written to {written}" if written else ""

        try:
            experiment, plan, written = await self._background.result(plan_motion)
        except Exception as error:
            self._set_state(f"stopped: no design: {error}" if self.settings.answer_at_once else before)
            raise
        self._designed = (experiment, plan)
        self._designed_for = self._motion_settings(settings)
        lines = [*plan.summary().splitlines(), *(f"warning: {text}" for text in self.safety.warnings), written]
        summary = "\n".join(filter(None, dict.fromkeys(lines)))
        warnings = [line for line in summary.splitlines() if line.startswith("warning:")]
        self._publish_plan(plan, summary=summary)
        self.get_logger().info(summary)
        self._set_state("idle")
        return "\n".join([plan.lines[0], *warnings, written])

    def _motion_settings(self, settings: SimpleNamespace | None = None) -> str:
        """Return the present values of the parameters that a design depends on, or those of a design."""
        values = vars(self.settings if settings is None else settings)
        return repr({parameter.name: values[parameter.name] for parameter in MOTION_PARAMETERS})

    def _described_design(self, settings: SimpleNamespace) -> Design:
        return Design(self._robot, self.safety, settings, self.settings.point_rate)

    def _note_search(self, fraction: float, _best: Candidate) -> None:
        """Note the elapsed fraction of a search, and end the search with its best motion after `~/stop`."""
        self._searched = fraction
        if self._is_stopped.is_set():
            raise Enough

    def _refuse_if_stopped(self) -> None:
        if self._is_stopped.is_set():
            raise DynidError("stopped before the arm moved; ~/start carries out the best motion that was found")

    def _watch(self) -> None:
        with self.arm.lock:
            self.arm.watch()
            if self.state == "approaching" and self.arm.elapsed >= self._approach:
                self._set_state("running")
            if time.monotonic() - self._progress_time >= PROGRESS_PERIOD_S:
                if self.state == "designing":
                    self._publish_progress(self._searched)
                elif self.state in ("approaching", "running"):
                    self._publish_progress(self.arm.fraction)

    def _on_halt(self, reason: str) -> None:
        self._set_state(f"stopped: {reason}")
        if reason != REQUESTED:
            self.get_logger().error(f"The motion was stopped: {reason}")

    def _on_rest(self, stopped: bool) -> None:
        if not stopped:
            self._publish_progress(1.0)
            self._set_state("done")
        elif self.state == f"stopped: {REQUESTED}":
            self._set_state("idle")

    def _publish_plan(self, plan: Plan, **more: float | str) -> None:
        content = {**plan.as_dict(), **more}
        self._plan_publisher.publish(String(data=yaml.safe_dump(content, sort_keys=False, allow_unicode=True)))

    def _publish_progress(self, fraction: float) -> None:
        self._progress = fraction
        self._progress_time = time.monotonic()
        self._progress_publisher.publish(Float32(data=fraction))

    def _set_state(self, state: str) -> None:
        with self._state_lock:
            self.state = state
            self._state_publisher.publish(String(data=state))


main = partial(run_undisturbed, ExcitationNode, interruptible=True)
