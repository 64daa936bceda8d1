"""Motions of the demo's arm: designed ahead, made, recorded."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from rclpy.node import Node
from std_msgs.msg import Float32, String
from tqdm import tqdm

from dynid_ros.errors import DynidError
from dynid_ros.nodes.demonstration.waiting import spin_until
from dynid_ros.nodes.shared.service_calls import ServiceCaller
from dynid_ros.nodes.shared.topics import LATCHED

DESIGN_TIMEOUT = 300.0
TIMEOUT = 600.0
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
        """Wait for the design of the next motion and tell of it."""
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
