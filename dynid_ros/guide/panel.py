"""Widgets of the page: cards of texts, inputs, buttons and plots, which obey the acting page of several alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from viser import GuiApi, GuiEvent, ViserServer, uplot

from dynid_ros.errors import DynidError, one_line
from dynid_ros.guide.actions import Action, Pages, Runner

N_SHOWN_COMMANDS = 8
SPECTATOR_TEXT = "this page watches while another one acts; press 'Take over' first (STOP works in every page)"
NOTE_DURATION_S = 6.0
LINE_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#17becf")
N_PLOTTED_SAMPLES = 200
PLOT_PERIOD_S = 0.3
LAST_ORDER = 1e6


@dataclass(eq=False)
class Panel:
    """Server of the page, roles of its pages, and the commands behind its buttons, which are appended to a log."""

    server: ViserServer
    pages: Pages
    runner: Runner
    namespace: str
    log: Path

    def __post_init__(self) -> None:
        self._commands: list[str] = []
        with self.server.gui.add_folder("The same by hand", expand_by_default=False, order=LAST_ORDER):
            self._shown = Text(self.server.gui, f"Each button is listed here as commands, and in {self.log.name}.")

    def note_commands(self, label: str, actions: Sequence[Action]) -> None:
        """Show the commands of a button and append them to the log."""
        lines = [f"# {label}", *(line for action in actions for line in action.commands(self.namespace))]
        with self.log.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self._commands = [*self._commands, *lines][-N_SHOWN_COMMANDS:]
        self._shown.show_lines("\n".join(self._commands))

    def may_act(self, event: GuiEvent) -> bool:
        """Return whether the page of an event acts; a page that watches shows how to take over."""
        if self.pages.may_act(event.client_id):
            return True
        if event.client is not None:
            event.client.add_notification("Only watching", SPECTATOR_TEXT, auto_close_seconds=NOTE_DURATION_S)
        return False


class Card:
    """Row of widgets below a text in Markdown; its buttons share one answer."""

    def __init__(self, panel: Panel, text: str) -> None:
        self.gui = panel.server.gui
        self._panel = panel
        Text(self.gui, text)

    @cached_property
    def answer(self) -> "Text":
        """Last answer, above the first button."""
        return Text(self.gui)

    def button(
        self,
        label: str,
        hint: str,
        actions: Callable[[], Sequence[Action]],
        then: str | Callable[[str], None] = "",
        color: Any = None,
    ) -> None:
        """Add a button for actions, which refuse by an error.

        Args:
            label: text of the button.
            hint: effect of the button, in a few words.
            actions: function that returns the actions.
            then: text after the actions, or function of their last answer; empty: the answer is shown.
            color: colour; None: the default of viser.
        """
        answer = self.answer

        def on_click(event: GuiEvent) -> None:
            if not self._panel.may_act(event):
                return
            try:
                chosen = list(actions())
                self._panel.note_commands(label, chosen)
                answer.show(f"{label} …")
                reply = self._panel.runner.run(label, chosen)
                if callable(then):
                    then(reply)
                elif then:
                    answer.show(then)
                else:
                    answer.show_lines(reply)
            except DynidError as error:
                answer.refuse(error)
            except Exception as error:  # a programming error must not leave the page without an answer
                answer.refuse(error)
                raise

        self.gui.add_button(label, hint=hint, color=color).on_click(on_click)

    def field(self, handle: Any, changed: Callable[[Any], None]) -> None:
        """Let an input call `changed` with a new value; a page that watches gets the old value back."""
        accepted = [handle.value]

        def on_update(event: GuiEvent) -> None:
            if not self._panel.may_act(event):
                handle.value = accepted[0]
                return
            accepted[0] = handle.value
            changed(handle.value)

        handle.on_update(on_update)

    def bind(self, add: Callable[..., Any], label: str, owner: Any, name: str, *values: Any, **options: Any) -> None:
        """Add an input for an attribute of an object, which keeps the type of its present value."""
        present = getattr(owner, name)
        handle = add(label, *values, initial_value=present, **options)
        self.field(handle, lambda value: setattr(owner, name, type(present)(value)))


class Text:
    """Text of a card in Markdown."""

    def __init__(self, gui: GuiApi, content: str = "") -> None:
        self._handle = gui.add_markdown(content)

    def show(self, content: str) -> None:
        """Show Markdown."""
        update(self._handle, "content", content)

    def show_lines(self, lines: str) -> None:
        """Show plain lines with their columns."""
        self.show(f"```\n{lines.strip()}\n```" if lines.strip() else "")

    def show_list(self, head: str, lines: Iterable[str]) -> None:
        """Show Markdown and a list of plain lines below it."""
        self.show("\n".join([head, "", *(f"- {plain_markdown(line)}" for line in lines)]))

    def refuse(self, error: Exception) -> None:
        """Show the line of an error."""
        self.show(f"**Refused:** {plain_markdown(str(error))}")


class TimePlot:
    """Plot of named lines over the last seconds; its title is the quantity with its unit."""

    def __init__(self, gui: GuiApi, names: Sequence[str], title: str) -> None:
        lines = [uplot.Series(label=name, stroke=LINE_COLORS[k % len(LINE_COLORS)]) for k, name in enumerate(names)]
        self._rows: list[NDArray] = []
        empty = tuple(np.zeros(1) for _ in range(len(names) + 1))
        scales = {"x": uplot.Scale(time=False)}
        series = (uplot.Series(label="s"), *lines)
        self._handle = gui.add_uplot(empty, series, title=title, scales=scales, aspect=2.2)

    def add(self, time: float, values: Sequence[float] | NDArray) -> None:
        """Add a sample and show the plot, unless the last sample is too near."""
        if self._rows and 0.0 <= time - self._rows[-1][0] < PLOT_PERIOD_S:
            return
        self._rows = [*self._rows, np.array([time, *values])][-N_PLOTTED_SAMPLES:]
        times, *columns = np.array(self._rows).T
        self._handle.data = (times - times[-1], *columns)

    def clear(self) -> None:
        """Forget all samples."""
        self._rows = []


def plain_markdown(text: str) -> str:
    """Return one line whose characters Markdown does not interpret."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|~!$" else sign for sign in one_line(text))


def markdown_table(columns: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table of plain cells in Markdown, from titles with commas between them; numbers are aligned right."""
    titles = columns.split(",")
    lines = [titles, ["---", *["--:"] * (len(titles) - 1)], *([plain_markdown(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def update(handle: Any, name: str, value: Any) -> None:
    """Set a property of a widget if it differs, because each assignment is sent to the page."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
