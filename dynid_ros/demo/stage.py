"""Stage of the demo's acts: motions that are designed ahead, nodes, services, and acts that are judged later."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import Float32, String
from tqdm import tqdm

from dynid_ros.demo.arm import DemoArm, spin_until
from dynid_ros.demo.page import Act
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.child_process import NodeProcess, ServiceCaller, running
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.topics import LATCHED

TRUTH_TOPIC = "/simulator/true_parameters"
EXCITATION_STATES = ("approaching", "running", "done")
DESIGN_TIMEOUT_S = 300.0
MOTION_TIMEOUT_S = 600.0
TRUTH_TIMEOUT_S = 30.0
START_TIMEOUT_S = 180.0
"""Time for a program to start: long, for a busy machine. A program that ends is noticed at once."""
COMPUTING_TIMEOUT_S = 600.0
CHECK_PERIOD_S = 0.5
"""Period of the checks whether nodes that were started late still run."""
Judge = Callable[[], Act]
"""Compares the files of an act with the truth."""


class DemoExcitation:
    """Has each motion designed as soon as the motion before was made, and recorded on request."""

    def __init__(self, node: Node, call: ServiceCaller, during_motion: Callable[[], None]) -> None:
        self._node = node
        self._call = call
        self._during_motion = during_motion
        self._motions: deque[Mapping[str, object]] = deque()
        self._design: Callable[[], str] | None = None
        self._state = ""
        self._progress = 0.0
        self._bag = ""
        node.create_subscription(String, "/excitation/state", self._on_state, LATCHED)
        node.create_subscription(Float32, "/excitation/progress", self._on_progress, LATCHED)
        node.create_subscription(String, "/recorder/bag", self._on_bag, LATCHED)

    def plan(self, motions: Sequence[Mapping[str, object]]) -> None:
        """Queue motions, as parameters of the excitation node, and have the first one designed at once.

        A parameter that a motion does not name keeps its value.
        """
        self._motions.extend(motions)
        self._design_next()

    def report_design(self) -> None:
        """Wait for the design of the next motion and print its summary."""
        if self._design is not None:
            say(self._design())
            self._design = None

    def record(self, record_from: str = EXCITATION_STATES[0], *, listen_only: bool = False) -> str:
        """Make the next motion, record it, and return the path of the bag.

        Args:
            record_from: state of the excitation that starts the recording.
            listen_only: whether nothing else is done meanwhile, so that messages are received at once.
        """
        self.report_design()
        self._state = ""
        say(self._call.trigger("/excitation/start"))
        self._wait_for(record_from)
        self._call.trigger("/recorder/start")
        if not listen_only:
            self._during_motion()
        # disable=None: no bar in a log file
        with tqdm(total=100, disable=None, bar_format="     {percentage:3.0f}% {bar} {remaining} to go") as bar:
            self._wait_for("done", lambda: bar.update(round(100 * self._progress) - bar.n))
        say(self._call.trigger("/recorder/stop"))
        self._design_next()
        return self._bag

    def _design_next(self) -> None:
        if self._motions and self._design is None:
            self._call.set_parameters("/excitation", self._motions.popleft())
            self._design = self._call.begin("/excitation/design", DESIGN_TIMEOUT_S)

    def _wait_for(self, state: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Spin until the excitation is in a state or beyond it."""
        awaited = EXCITATION_STATES[EXCITATION_STATES.index(state) :]

        def reached() -> bool:
            if self._state.startswith("stopped"):
                raise DynidError(f"the excitation ended early: {self._state}")
            meanwhile()
            return self._state in awaited

        failure = f"the excitation was not {state} in time; see the log of node excitation"
        spin_until(self._node, reached, MOTION_TIMEOUT_S, failure)

    def _on_state(self, message: String) -> None:
        self._state = message.data

    def _on_progress(self, message: Float32) -> None:
        self._progress = message.data

    def _on_bag(self, message: String) -> None:
        self._bag = message.data


class Stage(Node):
    """Coordinator node on which the acts are played.

    An act needs the arm, and then one or two computations. The arm does not wait for these: a function that an act
    hands to `judge_later` is called while the next motion is under way.

    Args:
        parameters: parameters of the robot, `output`, `drop_pose`, `drop_time` and `command_topic`.
    """

    def __init__(self, name: str, parameters: Sequence[NodeParameter]) -> None:
        super().__init__(name)
        self.settings = declare(self, parameters)
        self.output = Path(self.settings.output)
        self.logs = self.output / "logs"
        self.call = ServiceCaller(self)
        self.acts: dict[str, Act] = {}
        self.processes: list[NodeProcess] = []
        self._answers: dict[str, Callable[[], str]] = {}
        self._judges: dict[str, Judge] = {}
        self._n_steps = 0
        self._step = 0
        self.create_timer(CHECK_PERIOD_S, self._check_processes)

    @cached_property
    def arm(self) -> DemoArm:
        """Simulated arm."""
        return DemoArm(self, self.call, self.settings)

    @cached_property
    def excitation(self) -> DemoExcitation:
        """Motions to identify from."""
        return DemoExcitation(self, self.call, self.judge)

    def expect(self, n_steps: int) -> None:
        """Set the number of steps that will be announced."""
        self._n_steps = n_steps
        self._step = 0

    def announce(self, text: str) -> None:
        """Print the step that begins."""
        self._step += 1
        print(f"{self._step}/{self._n_steps}  {text}", flush=True)

    def now(self) -> float:
        """Return the time of the clock that joint states are stamped by, s."""
        return self.get_clock().now().nanoseconds * 1e-9

    def truth(self, topic: str = TRUTH_TOPIC) -> dict[str, Any]:
        """Return the truth of the simulated arm, see `truth_table`."""
        received, message = wait_for_message(String, self, topic, qos_profile=LATCHED, time_to_wait=TRUTH_TIMEOUT_S)
        if not received:
            raise DynidError(f"nothing on {topic} within {TRUTH_TIMEOUT_S:g} s; is the simulator running?")
        return yaml.safe_load(message.data)

    @contextmanager
    def node(self, name: str, parameters: Mapping[str, object]) -> Iterator[None]:
        """Run a node for the block; the demo ends with an error if the node ends before."""
        with running(self.processes, NodeProcess(name, parameters, self.logs / f"{name}.log")):
            yield

    def begin(self, name: str, service: str) -> None:
        """Call a service that computes, without waiting."""
        self._answers[name] = self.call.begin(service, timeout=COMPUTING_TIMEOUT_S)

    def answer(self, name: str) -> str:
        """Return the message of a service that `begin` called; empty if it was returned before."""
        return self._answers.pop(name)() if name in self._answers else ""

    def judge_later(self, name: str, judge: Judge) -> None:
        """Keep the judge of an act that does not need the arm any more."""
        self._judges[name] = judge

    def judge(self) -> None:
        """Judge all acts that are over."""
        while self._judges:
            name = next(iter(self._judges))
            self.finish(name, self._judges.pop(name)())

    def finish(self, name: str, act: Act) -> None:
        """Print the result of an act and keep it."""
        self.acts[name] = act
        say("\n".join(act.sentences))

    def _check_processes(self) -> None:
        for process in self.processes:
            process.check()


def say_links(stage: Stage) -> None:
    """Wait until the links are identified, and print their validation once."""
    if answer := stage.answer("links"):
        say("".join(answer.partition("Validation on")[1:]))


def say(text: str) -> None:
    """Print text below the line of the current step, above a progress bar."""
    tqdm.write("\n".join(f"     {line}" for line in text.splitlines()))
    sys.stdout.flush()
