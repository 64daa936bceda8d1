"""A long job says on a terminal what it does, again and again, and nothing in a file."""

import io
import time

import pytest

from dynid_ros.jobs import screen as own


class Screen(io.StringIO):
    """What is written, on a terminal or not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_step_that_takes_long_is_drawn_again(monkeypatch, terminal):
    screen = Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(own, "REDRAW_PERIOD_S", 0.01)
    with own.progress(2) as step:
        step("fitting")
        deadline = time.monotonic() + (10.0 if terminal else 0.1)
        while screen.getvalue().count("fitting (1 of 2)") < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        step("writing the report")
    written = screen.getvalue()
    if terminal:
        assert written.count("fitting (1 of 2)") >= 5
        assert "writing the report (2 of 2)" in written
        assert not written.split("\r")[-1].strip(), "the line is taken away at the end"
    else:
        assert not written


def fail_in_a_step():
    with own.progress(1) as step:
        step("fitting")
        raise ZeroDivisionError


def test_an_error_ends_the_line(monkeypatch):
    screen = Screen(True)
    monkeypatch.setattr("sys.stderr", screen)
    with pytest.raises(ZeroDivisionError):
        fail_in_a_step()
    assert not screen.getvalue().split("\r")[-1].strip()
