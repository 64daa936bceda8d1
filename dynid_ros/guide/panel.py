"""Widgets of the page, which obey the acting page alone, and which show the commands behind each button."""

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from viser import GuiEvent, ViserServer

from dynid_ros.errors import DynidError, one_line
from dynid_ros.guide.actions import Action
from dynid_ros.guide.pages import SPECTATOR_TEXT, Pages, Runner

N_SHOWN_COMMANDS = 8
NOTE_SECONDS = 6.0
LINES_STYLE = "font-size:10px;line-height:1.4;overflow-x:auto;background:#f6f7f9;padding:6px"


class Said:
    """Text of a step: its last answer, or the reason why it was refused."""

    def __init__(self, server: ViserServer, text: str = "") -> None:
        self._text = server.gui.add_markdown(text)
        self._lines = server.gui.add_html("", visible=False)

    def show(self, text: str) -> None:
        """Show Markdown, unless it is shown already."""
        self._lines.visible = False
        if self._text.content != text:
            self._text.content = text

    def show_lines(self, text: str) -> None:
        """Show lines as they are, with their columns."""
        content = f'<pre style="{LINES_STYLE}">{html.escape(text.strip())}</pre>' if text.strip() else ""
        if self._lines.content == content and self._lines.visible:
            return
        self.show("")
        self._lines.content = content
        self._lines.visible = bool(content)

    def refuse(self, error: Exception) -> None:
        """Show the line of an error."""
        self.show(f"**Refused:** {plain_markdown(str(error))}")


def plain_markdown(text: str) -> str:
    """Return one line whose characters Markdown does not interpret."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|~!$" else sign for sign in one_line(text))


class Panel:
    """Factory of widgets.

    Args:
        server: server of the page.
        pages: roles of the open pages.
        runner: runner of the actions.
        namespace: namespace of the nodes in commands.
        log: file to which commands are appended.
    """

    def __init__(self, server: ViserServer, pages: Pages, runner: Runner, namespace: str, log: Path) -> None:
        self.server = server
        self.pages = pages
        self.runner = runner
        self._namespace = namespace
        self._log = log
        self._commands: list[str] = []
        self._shown: Said | None = None

    def add_commands(self) -> None:
        """Add the list of the last commands."""
        with self.server.gui.add_folder("The same by hand", expand_by_default=False):
            self._shown = Said(self.server, f"Each button is listed here as commands, and in {self._log.name}.")

    @contextmanager
    def folder(self, title: str, expand: bool = True) -> Iterator[None]:
        """Group the widgets of the block."""
        with self.server.gui.add_folder(title, expand_by_default=expand):
            yield

    def said(self, text: str = "") -> Said:
        """Add a text."""
        return Said(self.server, text)

    def button(
        self,
        label: str,
        actions: Callable[[], Sequence[Action]],
        said: Said,
        *,
        hint: str,
        color: Any = None,
        then: Callable[[str], None] | None = None,
    ) -> Any:
        """Add a button that does actions.

        Args:
            label: text of the button.
            actions: returns the actions; an error refuses.
            said: text for the answer.
            hint: what the button does, in a few words.
            color: colour; None: the usual one.
            then: called with the answer instead of showing it.
        """
        handle = self.server.gui.add_button(label, hint=hint, color=color)

        def on_click(event: GuiEvent) -> None:
            if not self._may_act(event):
                return
            try:
                chosen = list(actions())
                self.note_commands(label, chosen)
                said.show(f"{label} …")
                answer = self.runner.run(label, chosen)
                (then or said.show_lines)(answer)
            except DynidError as error:
                said.refuse(error)
            except Exception as error:  # a programming error must not leave the page without a word
                said.refuse(error)
                raise

        handle.on_click(on_click)
        return handle

    def field(self, handle: Any, changed: Callable[[Any], None]) -> Any:
        """Let an input call `changed` with a new value; a page that watches gets the old value back."""
        accepted = [handle.value]

        def on_update(event: GuiEvent) -> None:
            if not self.pages.may_act(event.client_id):
                self._may_act(event)
                handle.value = accepted[0]
                return
            accepted[0] = handle.value
            changed(handle.value)

        handle.on_update(on_update)
        return handle

    def bind(self, add: Callable[..., Any], label: str, owner: Any, name: str, *values: Any, **options: Any) -> Any:
        """Add an input for an attribute of an object, which keeps the type of its present value."""
        kind = type(getattr(owner, name))
        return self.field(add(label, *values, **options), lambda value: setattr(owner, name, kind(value)))

    def note_commands(self, label: str, actions: Sequence[Action]) -> None:
        """Show the commands of a button and append them to the log."""
        lines = [f"# {label}", *(line for action in actions for line in action.commands(self._namespace))]
        with self._log.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self._commands = [*self._commands, *lines][-N_SHOWN_COMMANDS:]
        if self._shown is not None:
            self._shown.show_lines("\n".join(self._commands))

    def _may_act(self, event: GuiEvent) -> bool:
        if self.pages.may_act(event.client_id):
            return True
        if event.client is not None:
            event.client.add_notification("Only watching", SPECTATOR_TEXT, auto_close_seconds=NOTE_SECONDS)
        return False
