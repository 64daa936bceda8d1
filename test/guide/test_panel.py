"""One page acts, one button at a time is done, and nothing begins after STOP."""

from threading import Event, Thread

import pytest
from helpers.guide_bench import RecordingBench

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import call, move
from dynid_ros.guide.panel import Pages, Runner


def test_the_first_page_acts_and_the_second_watches():
    pages = Pages()
    pages.open(1)
    pages.open(2)
    assert (pages.may_act(1), pages.may_act(2)) == (True, False)


def test_a_page_that_watches_takes_over():
    pages = Pages()
    pages.open(1)
    pages.open(2)
    pages.take_over(2)
    assert (pages.may_act(1), pages.may_act(2)) == (False, True)


def test_a_page_that_watches_does_not_act_when_the_other_is_closed():
    pages = Pages()
    pages.open(1)
    pages.open(2)
    pages.close(1)
    assert not pages.may_act(2)
    pages.open(3)
    assert pages.may_act(3)


def test_a_closed_page_cannot_take_over():
    pages = Pages()
    pages.open(1)
    pages.close(1)
    pages.take_over(1)
    assert not pages.may_act(1)
    assert not pages.is_watched


def test_the_program_changes_its_own_widgets():
    assert Pages().may_act(None)


def test_actions_are_done_in_their_order():
    bench = RecordingBench()
    assert Runner(bench).run("both", [call("a"), call("b")]) == "b"
    assert bench.calls == ["a", "b"]


def test_nothing_begins_after_stop():
    bench = RecordingBench(on_call=lambda service: runner.stop() if service == "excitation/design" else None)
    runner = Runner(bench)
    with pytest.raises(DynidError, match="ended by STOP"):
        runner.run("move", [call("excitation/design"), move(recorded=True)])
    assert "excitation/start" not in bench.calls


def test_an_action_that_began_with_stop_is_stopped_once_more():
    """The node may take the request that moves the arm after the one that stops it."""
    bench = RecordingBench(on_call=lambda service: runner.stop() if service == "excitation/start" else None)
    runner = Runner(bench)
    with pytest.raises(DynidError, match="STOP"):
        runner.run("move", [move(recorded=False)])
    assert bench.calls == ["excitation/start", "STOP", "STOP"]


def test_a_failing_action_is_stopped_too():
    bench = RecordingBench(refused="a", on_call=lambda _: runner.stop())
    runner = Runner(bench)
    with pytest.raises(DynidError, match="refused"):
        runner.run("a", [call("a")])
    assert bench.calls == ["a", "STOP", "STOP"]


def test_one_button_at_a_time():
    began = Event()
    goes_on = Event()

    def on_call(_service):
        began.set()
        goes_on.wait(5.0)

    runner = Runner(RecordingBench(on_call=on_call))
    thread = Thread(target=runner.run, args=("first", [call("a")]))
    thread.start()
    began.wait(5.0)
    with pytest.raises(DynidError, match="'first' is running"):
        runner.run("second", [call("b")])
    goes_on.set()
    thread.join()
    assert runner.run("third", [call("c")]) == "c"
