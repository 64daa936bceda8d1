"""Test the progress line of a long job on a terminal, and its absence in a file."""

import io
import time

import pytest

from dynid_ros.jobs import screen as screen_module


class Screen(io.StringIO):
    """Output stream that claims to be a terminal or not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_long_step_is_redrawn_on_a_terminal(monkeypatch, terminal):
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(screen_module, "REDRAW_PERIOD_S", 0.01)
    with screen_module.progress(2) as step:
        step("fitting")
        deadline = time.monotonic() + (10.0 if terminal else 0.1)
        while screen.getvalue().count("fitting (1 of 2)") < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        step("writing the report")
    output = screen.getvalue()
    if terminal:
        assert output.count("fitting (1 of 2)") >= 5
        assert "writing the report (2 of 2)" in output
        assert not output.split("\r")[-1].strip(), "the line is cleared at the end"
    else:
        assert not output


def fail_in_a_step():
    with screen_module.progress(1) as step:
        step("fitting")
        raise ZeroDivisionError


def test_error_clears_the_line(monkeypatch):
    screen = Screen(True)
    monkeypatch.setattr("sys.stderr", screen)
    with pytest.raises(ZeroDivisionError):
        fail_in_a_step()
    assert not screen.getvalue().split("\r")[-1].strip()
