"""Node that designs a motion and has a joint trajectory controller carry it out.

Parameters that shape the motion may be changed while the node runs; `~/design` takes them. A design takes its time:
the answer comes when it is done, the node stays alive meanwhile, and `~/stop` ends it with the best motion so far.
`~/start` carries out the last design, and designs first if there is none.

Latched topics: `~/state` (idle, designing, approaching the first pose, running, done, or `stopped: <reason>`),
`~/progress` (part of the design's time, or of approach and experiment, that is past, 0 to 1) and `~/plan` (YAML of the
plan, such as `FourierPlan`; once started also `start_time`, when the experiment begins on the node's clock, s).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any, TypeVar

import yaml
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import Float32, String
from std_srvs.srv import Trigger

from dynid_ros.errors import DynidError
from dynid_ros.excitation import Experiment, Plan
from dynid_ros.excitation.fourier_search import Candidate
from dynid_ros.excitation.parallel_search import Enough, Progress
from dynid_ros.nodes.experiment.design import MOTION_PARAMETERS, PARAMETERS, Design
from dynid_ros.nodes.experiment.safety import Safety
from dynid_ros.nodes.experiment.trajectory_execution import REQUESTED, Arm
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status
from dynid_ros.nodes.shared.parameters import declare, read_values
from dynid_ros.nodes.shared.process import Background, answer_later, run_undisturbed
from dynid_ros.nodes.shared.robot_description import robot_model
from dynid_ros.nodes.shared.steady_thread import SteadyThread
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.trajectories import Trajectory, check_start

# Long computations of the excitation node, which can be ended early.


T = TypeVar("T")


class Work:
    """Computes one thing at a time in a thread; coroutines of the node await it.

    Attributes:
        fraction: of a search that is past, 0 to 1.
    """

    def __init__(self, node: Node) -> None:
        self.fraction = 0.0
        self._enough = Event()
        self._background = Background(node)

    @property
    def stopped(self) -> bool:
        """Whether the computation was, or is to be, ended early."""
        return self._enough.is_set()

    def begin(self) -> None:
        """Forget that the last one was stopped."""
        self._enough.clear()
        self.fraction = 0.0

    async def result(self, compute: Callable[[Progress], T]) -> T:
        """What `compute` returns or raises; it is handed a `Progress` which ends a search that is stopped."""
        return await self._background.result(lambda: compute(self._progress))

    def stop(self) -> None:
        """End a search soon, with the best so far."""
        self._enough.set()

    def end(self) -> None:
        """Stop, and wait for the thread."""
        self.stop()
        self._background.end()

    def _progress(self, fraction: float, best: Candidate) -> None:
        del best
        self.fraction = fraction
        if self.stopped:
            raise Enough


WATCH_RATE = 100.0
PROGRESS_PERIOD = 0.2


class ExcitationNode(Node):
    """Designs motions in the background, and has the controller carry them out, with the way to their start.

    One thread is to spin it. Another, of its own, watches the arm, whatever the executor waits for.
    """

    _made = False  # a node that could not be made is destroyed as well

    def __init__(self, **arguments: Any) -> None:
        super().__init__("excitation", **arguments)
        self.settings = declare(self, PARAMETERS, self._adjust)
        self._robot = robot_model(self, self.settings)
        self.safety = Safety(self._robot, self.settings)
        self._wanted(self.settings).experiment()  # what makes no sense is said at once
        self._designed: tuple[Experiment, Plan] | None = None
        self._doing = ""
        self._state_lock = Lock()  # the state is published in the order in which it changes, by whichever thread
        self._approach = self._progress = self._progress_time = 0.0

        self._plan_publisher = self.create_publisher(String, "~/plan", LATCHED)
        self._progress_publisher = self.create_publisher(Float32, "~/progress", LATCHED)
        self._state_publisher = self.create_publisher(String, "~/state", LATCHED)
        self._set_state("idle")
        for warning in self.safety.warnings:
            self.get_logger().warning(warning)
        self._work = Work(self)
        self.arm = Arm(self, self.settings, self.safety.limits, on_halt=self._on_halt, on_rest=self._on_rest)
        waiting = ReentrantCallbackGroup()  # so that a design that is awaited keeps nothing else waiting
        design = answer_later(self, self.design, lambda: self.settings.answer_at_once)
        for name, action in (
            ("design", design),
            ("start", answer_later(self, self.start)),
            ("stop", answer_later(self, self.stop)),
        ):
            self.create_service(Trigger, f"~/{name}", action, callback_group=waiting)
        Diagnostics(self, self.status, hardware=self._robot.name)
        self.steady = SteadyThread(self, self._watch, 1.0 / WATCH_RATE)
        self._made = True

    def _adjust(self, settings: SimpleNamespace) -> None:
        if self._made:
            self.arm.adjust(settings)

    async def design(self) -> str:
        """Plan the motion from the model and the parameters as they are now."""
        with self._exclusively("designing"):
            return await self._design()

    async def start(self) -> str:
        """Send the approach and the planned motion to the controller."""
        with self._exclusively("starting"):
            await self._hold()  # before anything that takes time, in which an old motion would go on
            if self._designed is None:
                await self._design()
            self._refuse_if_stopped()
            assert self._designed is not None
            experiment, plan = self._designed
            measured = await self.arm.resting_position()

            def whole(_: Progress) -> tuple[Trajectory, Trajectory, Trajectory]:
                self.safety.check_start(measured)
                approach = experiment.approach_motion(measured, plan)
                motion = Trajectory.join([approach, plan.trajectory])
                sampled = motion.sample(self.settings.point_rate)
                self.safety.check(sampled)
                return approach, motion, sampled

            approach, motion, sampled = await self._work.result(whole)
            load = await self._work.result(lambda _: self.arm.load(motion, sampled))
            self._refuse_if_stopped()
            check_start(sampled, await self.arm.resting_position())
            await self.arm.require_controller()  # still

            def send(_: Progress) -> float:
                with self.arm.lock:
                    self._refuse_if_stopped()
                    self._approach = approach.duration
                    until_start = self.arm.send(load)
                    self._set_state("approaching")
                    self._publish_progress(0.0)
                    return self.get_clock().now().nanoseconds * 1e-9 + until_start + self._approach

            begin = await self._work.result(send)
        await self.arm.accepted()
        self._publish_plan(plan, start_time=begin)
        how = f", by {self.arm.interface}" * self.arm.interface.startswith("action")
        return f"approaching for {approach.duration:.1f} s, then {plan.duration:.1f} s of excitation{how}"

    async def stop(self) -> str:
        """Bring the arm to rest, whoever moves it, or end the design."""
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
            return f"at rest in {self.arm.halt(REQUESTED):.1f} s"
        if self._doing == "stopping":
            raise DynidError("the node is looking already whether the arm moves, and stops it then")
        self._work.stop()
        return "the design ends with the best so far" if self.state == "designing" else "the arm stays at rest"

    def status(self) -> Status:
        """State, how far the motion or its design is, and whether a motion could begin."""
        values: dict[str, object] = {
            "progress": f"{self._progress:.3f}",
            "seconds_since_joint_state": f"{time.monotonic() - self.arm.received:.2f}",
            "command_topic": self.settings.command_topic,
            "command_interface": self.arm.interface,
            "motion": self.get_parameter("motion").value,
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
            self._work.end()

    def destroy_node(self) -> None:
        """Bring a moving arm to rest, then end."""
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
        self._work.begin()
        try:
            yield
        finally:
            self.arm.leave_command()
            self._doing = ""

    async def _hold(self) -> None:
        """Have the controller hold the arm, if it may be where it rests."""
        await self.arm.take_command()
        measured = await self.arm.resting_position()
        await self._work.result(lambda _: self.safety.check_start(measured))
        self._refuse_if_stopped()
        await self.arm.hold()

    async def _design(self) -> str:
        """Design a motion and keep it; a text about it."""
        settings = read_values(self, MOTION_PARAMETERS)
        wanted = self._wanted(settings)
        before = self.state
        self._set_state("designing")

        def planned(progress: Progress) -> tuple[Experiment, Plan, str]:
            experiment, plan = wanted.plan(progress)
            lines = [plan.summary(), *(f"warning: {warning}" for warning in self.safety.warnings)]
            if settings.trajectory_file:
                lines.append(f"written to {plan.trajectory.save(settings.trajectory_file)}")
            return experiment, plan, "\n".join(dict.fromkeys("\n".join(lines).splitlines()))

        try:
            experiment, plan, text = await self._work.result(planned)
        except Exception as error:
            self._set_state(f"stopped: no design: {error}" if self.settings.answer_at_once else before)
            raise
        self._designed = experiment, plan
        self._publish_plan(plan)
        self._set_state("idle")
        return text

    def _wanted(self, settings: SimpleNamespace) -> Design:
        return Design(self._robot, self.safety, settings, self.settings.point_rate)

    def _refuse_if_stopped(self) -> None:
        if self._work.stopped:
            raise DynidError("stopped before the arm moved; ~/start carries out the best motion that was found")

    def _watch(self) -> None:
        with self.arm.lock:
            self.arm.watch()
            if self.state == "approaching" and self.arm.elapsed >= self._approach:
                self._set_state("running")
            if time.monotonic() - self._progress_time >= PROGRESS_PERIOD:
                if self.state == "designing":
                    self._publish_progress(self._work.fraction)
                elif self.state in ("approaching", "running"):
                    self._publish_progress(self.arm.fraction)

    def _on_halt(self, reason: str) -> None:
        self._set_state(f"stopped: {reason}")
        if reason != REQUESTED:
            self.get_logger().error(f"motion stopped: {reason}")

    def _on_rest(self, stopped: bool) -> None:
        if not stopped:
            self._publish_progress(1.0)
            self._set_state("done")
        elif self.state == f"stopped: {REQUESTED}":
            self._set_state("idle")

    def _publish_plan(self, plan: Plan, **when: float) -> None:
        self._plan_publisher.publish(String(data=yaml.safe_dump({**plan.as_dict(), **when}, sort_keys=False)))

    def _publish_progress(self, fraction: float) -> None:
        self._progress, self._progress_time = fraction, time.monotonic()
        self._progress_publisher.publish(Float32(data=fraction))

    def _set_state(self, state: str) -> None:
        with self._state_lock:
            self.state = state
            self._state_publisher.publish(String(data=state))


def main() -> None:
    """Entry point of `ros2 run dynid_ros excitation`."""
    run_undisturbed(ExcitationNode, interruptible=True)


if __name__ == "__main__":
    main()
