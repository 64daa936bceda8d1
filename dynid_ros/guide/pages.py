"""Who acts: one page does, all others watch until one of them takes over; and one button at a time is being done."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action

SPECTATOR_TEXT = "this page watches while another one acts; press 'Take over' first (STOP works in every page)"


@dataclass
class Pages:
    """Open pages by their number, and the one that acts.

    Attributes:
        acting: number of the page that acts; None: no page acts, and the next one to open will.
    """

    acting: int | None = None
    _open: set[int] = field(default_factory=set)
    _lock: Any = field(default_factory=Lock)

    @property
    def is_watched(self) -> bool:
        """Whether any page is open."""
        return bool(self._open)

    def open(self, page: int) -> None:
        """Add a page; it acts if no other page does."""
        with self._lock:
            self._open.add(page)
            if self.acting is None:
                self.acting = page

    def close(self, page: int) -> None:
        """Remove a page. Pages that watch go on watching, even if the closed page acted."""
        with self._lock:
            self._open.discard(page)
            if self.acting == page:
                self.acting = None

    def take_over(self, page: int) -> None:
        """Let an open page act; the page that acted before watches."""
        with self._lock:
            if page in self._open:
                self.acting = page

    def may_act(self, page: int | None) -> bool:
        """Return whether a page acts; None stands for this program itself, which may always change its own widgets."""
        return page is None or page == self.acting


@dataclass
class Runner:
    """Does the actions of one button at a time, and none after STOP.

    Attributes:
        bench: access to nodes and programs.
        doing: label of the button that is being done; empty: none.
    """

    bench: Any
    doing: str = ""
    _stops: int = 0
    _lock: Any = field(default_factory=Lock)

    def run(self, label: str, actions: Sequence[Action]) -> str:
        """Do actions in their order and return the last answer.

        STOP may come while an action begins, before the node has received it. The node is then stopped once more.

        Raises:
            DynidError: another button is being done, an action fails, or STOP was pressed.
        """
        with self._lock:
            if self.doing:
                raise DynidError(f"'{self.doing}' is being done; wait for its end, or press STOP")
            self.doing = label
            stops = self._stops
        answer = ""
        try:
            for action in actions:
                try:
                    answer = action.do(self.bench)
                finally:
                    if self._stops != stops:
                        self.bench.stop()
                if self._stops != stops:
                    raise DynidError(f"'{label}' was ended by STOP")
            return answer
        finally:
            self.doing = ""

    def stop(self) -> str:
        """Stop the arm at once, whatever is being done, and let no further action of the button begin."""
        self._stops += 1
        return self.bench.stop()
