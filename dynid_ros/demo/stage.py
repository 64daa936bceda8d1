"""What the acts of the demo share: steps to announce, services, nodes started late, and acts that are judged later."""

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

from dynid_ros.demo.arm import DemoArm
from dynid_ros.demo.calls import ServiceCaller, spin_until
from dynid_ros.demo.page import Act
from dynid_ros.demo.processes import DemoProcess, running
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.topics import LATCHED

TRUTH_TOPIC = "/simulator/true_parameters"


# Motions of the demo's arm: designed ahead, made, recorded.


STATES = ("approaching", "running", "done")


class DemoExcitation:
    """Has each motion designed as soon as the one before was made, and recorded when it is asked for.

    Args:
        node: of the coordinator.
        call: its services.
        say: prints what the nodes answer.
        meanwhile: done while the arm moves.
    """

    def __init__(
        self, node: Node, call: ServiceCaller, say: Callable[[str], None], meanwhile: Callable[[], None]
    ) -> None:
        self._node, self._call, self._say, self._meanwhile = node, call, say, meanwhile
        self._motions: deque[Mapping[str, object]] = deque()
        self._designed: Callable[[], str] | None = None
        self._state, self._progress, self._bag = "", 0.0, ""
        node.create_subscription(String, "/excitation/state", self._on_state, LATCHED)
        node.create_subscription(Float32, "/excitation/progress", self._on_progress, LATCHED)
        node.create_subscription(String, "/recorder/bag", self._on_bag, LATCHED)

    def plan(self, motions: Sequence[Mapping[str, object]]) -> None:
        """Motions to come, in this order, as parameters of the excitation node; the first one is designed at once.

        Parameters that a motion does not give are as they were.
        """
        self._motions.extend(motions)
        self._design_next()

    def designed(self) -> None:
        """Wait for the design of the next motion and report it."""
        if self._designed is not None:
            self._say(self._designed())
            self._designed = None

    def record(self, record_from: str = STATES[0], *, attentive: bool = False) -> str:
        """Make the next motion and record it; the bag.

        Args:
            record_from: state of the excitation in which the recording starts.
            attentive: messages that come meanwhile count, so that nothing else is done.
        """
        self.designed()
        self._state = ""
        self._say(self._call.trigger("/excitation/start"))
        self._wait_for(record_from)
        self._call.trigger("/recorder/start")
        if not attentive:
            self._meanwhile()
        # no bar in a log file
        with tqdm(total=100, disable=None, bar_format="     {percentage:3.0f}% {bar} {remaining} to go") as bar:
            self._wait_for("done", lambda: bar.update(round(100 * self._progress) - bar.n))
        self._say(self._call.trigger("/recorder/stop"))
        self._design_next()
        return self._bag

    def _design_next(self) -> None:
        if self._motions and self._designed is None:
            self._call.set_parameters("/excitation", self._motions.popleft())
            self._designed = self._call.begin("/excitation/design", DESIGN_TIMEOUT)

    def _wait_for(self, state: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Spin until the excitation is in a state, or beyond."""
        awaited = STATES[STATES.index(state) :]

        def reached() -> bool:
            if self._state.startswith("stopped"):
                raise DynidError(f"the excitation ended early: {self._state}")
            meanwhile()
            return self._state in awaited

        late = f"the excitation was not {state} in time; see the log of node excitation"
        spin_until(self._node, reached, TIMEOUT, late)

    def _on_state(self, message: String) -> None:
        self._state = message.data

    def _on_progress(self, message: Float32) -> None:
        self._progress = message.data

    def _on_bag(self, message: String) -> None:
        self._bag = message.data


Judge = Callable[[], Act]
"""Holds what an act has left against the truth."""


class Stage(Node):
    """Where the acts are played.

    An act needs the arm, and then a computation or two. The arm does not wait for these: what an act hands to `later`
    is done while the next motion is under way.

    Args:
        name: of the node.
        parameters: those of the robot, `output`, `drop_pose`, `drop_time` and `command_topic`.
    """

    def __init__(self, name: str, parameters: Sequence[NodeParameter]) -> None:
        super().__init__(name)
        self.settings = declare(self, parameters)
        self.output = Path(self.settings.output)
        self.logs = self.output / "logs"
        self.call = ServiceCaller(self)
        self.acts: dict[str, Act] = {}
        self.processes: list[DemoProcess] = []
        self._answers: dict[str, Callable[[], str]] = {}
        self._later: dict[str, Judge] = {}
        self._steps, self._step = 0, 0
        self.create_timer(CHECK_PERIOD, self._check)

    @cached_property
    def arm(self) -> DemoArm:
        """The simulated arm."""
        return DemoArm(self, self.call, self.settings)

    @cached_property
    def excitation(self) -> DemoExcitation:
        """Its motions to identify from."""
        return DemoExcitation(self, self.call, say, self.judge)

    def expect(self, steps: int) -> None:
        """So many steps are to come."""
        self._steps, self._step = steps, 0

    def announce(self, text: str) -> None:
        """Say which step begins."""
        self._step += 1
        print(f"{self._step}/{self._steps}  {text}", flush=True)

    def now(self) -> float:
        """Time of the clock that joint states are stamped by, s."""
        return self.get_clock().now().nanoseconds * 1e-9

    def truth(self, topic: str = TRUTH_TOPIC) -> dict[str, Any]:
        """All that is true of the simulated arm, see `truth_table`."""
        received, message = wait_for_message(String, self, topic, qos_profile=LATCHED, time_to_wait=TRUTH_TIMEOUT)
        if not received:
            raise DynidError(f"nothing on {topic} within {TRUTH_TIMEOUT:g} s; is the simulator running?")
        return yaml.safe_load(message.data)

    @contextmanager
    def node(self, name: str, parameters: Mapping[str, object]) -> Iterator[None]:
        """A node that is needed for a while; the demo ends with the reason if it ends before."""
        with running(self.processes, DemoProcess(name, parameters, self.logs / f"{name}.log")):
            yield

    def begin(self, name: str, service: str) -> None:
        """Call a service that computes, and go on."""
        self._answers[name] = self.call.begin(service, timeout=COMPUTING_TIMEOUT)

    def answer(self, name: str) -> str:
        """What a service said that was begun so; empty if none was, or this was asked before."""
        return self._answers.pop(name)() if name in self._answers else ""

    def later(self, name: str, judge: Judge) -> None:
        """The arm is done with an act; `judge` may take its time."""
        self._later[name] = judge

    def judge(self) -> None:
        """Judge all acts that are over; a good moment is while the arm moves by itself."""
        while self._later:
            name = next(iter(self._later))
            self.passed_or_failed(name, self._later.pop(name)())

    def passed_or_failed(self, name: str, act: Act) -> None:
        """Tell the verdict and keep it."""
        self.acts[name] = act
        say(f"{act.title}\n{act.text()}")

    def _check(self) -> None:
        for process in self.processes:
            process.check()


def say_links(stage: Stage) -> None:
    """Wait until the links are identified, and report it once."""
    if answer := stage.answer("links"):
        # The report has all base parameters.
        say("".join(answer.partition("Validation on")[1:]))


DESIGN_TIMEOUT = 300.0
TIMEOUT = 600.0

TRUTH_TIMEOUT = 30.0
START_TIMEOUT = 180.0
"""Within which a program has started, s; long, for a busy machine, and one that ends is noticed at once."""
COMPUTING_TIMEOUT = 600.0
"""Of an identification, s; likewise."""
CHECK_PERIOD = 0.5
"""Between looks at whether nodes that were started late still run, s."""


def say(text: str) -> None:
    """Print below the line that says what is being done."""
    # a bar may be there
    tqdm.write("\n".join(f"     {line}" for line in text.splitlines()))
    sys.stdout.flush()
