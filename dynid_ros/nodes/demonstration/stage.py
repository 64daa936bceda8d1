"""What the acts of the demo share: steps to announce, services, nodes started late, and acts that are judged later."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import String
from tqdm import tqdm

from dynid_ros.errors import DynidError
from dynid_ros.nodes.demonstration.arm import DemoArm
from dynid_ros.nodes.demonstration.excitation import DemoExcitation
from dynid_ros.nodes.demonstration.process import DemoProcess, running
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.service_calls import ServiceCaller
from dynid_ros.nodes.shared.topics import LATCHED
from dynid_ros.report.demonstration.act import Act

TRUTH_TOPIC = "/simulator/true_parameters"
TRUTH_TIMEOUT = 30.0
START_TIMEOUT = 180.0
"""Within which a program has started, s; long, for a busy machine, and one that ends is noticed at once."""
COMPUTING_TIMEOUT = 600.0
"""Of an identification, s; likewise."""
CHECK_PERIOD = 0.5
"""Between looks at whether nodes that were started late still run, s."""
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


def say(text: str) -> None:
    """Print below the line that says what is being done."""
    # a bar may be there
    tqdm.write("\n".join(f"     {line}" for line in text.splitlines()))
    sys.stdout.flush()
