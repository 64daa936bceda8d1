"""Roles of the pages in browsers, and the runner of a button's actions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action


@dataclass
class Pages:
    """Numbers of the open pages, and of the page that acts; all others watch until one of them takes over."""

    acting: int | None = None
    _open: set[int] = field(default_factory=set)

    @property
    def is_watched(self) -> bool:
        """Whether a browser shows a page."""
        return bool(self._open)

    def open(self, page: int) -> None:
        """Add a page; it acts if no other page does."""
        self._open.add(page)
        self.acting = page if self.acting is None else self.acting

    def close(self, page: int) -> None:
        """Remove a page. Pages that watch go on watching, even if the closed page acted."""
        self._open.discard(page)
        self.acting = None if self.acting == page else self.acting

    def take_over(self, page: int) -> None:
        """Let an open page act; the page that acted before watches."""
        self.acting = page if page in self._open else self.acting

    def may_act(self, page: int | None) -> bool:
        """Return whether a page acts; None is this program itself, which may always change its own widgets."""
        return page is None or page == self.acting


@dataclass
class Runner:
    """Runner of the actions of the button with a label, one button at a time, and of no action after STOP."""

    bench: Any
    label: str = ""
    _stops: int = 0
    _lock: Any = field(default_factory=Lock)

    def run(self, label: str, actions: Sequence[Action]) -> str:
        """Run actions in their order and return the last answer.

        STOP may come while an action begins, before the node has received its request. The node is then stopped again.

        Raises:
            DynidError: another button's actions run, an action fails, or STOP was pressed.
        """
        with self._lock:
            if self.label:
                raise DynidError(f"'{self.label}' is running; wait for its end, or press STOP")
            self.label = label
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
            self.label = ""

    def stop(self) -> str:
        """Stop the arm at once, and let no further action of the button begin."""
        self._stops += 1
        return self.bench.stop()
