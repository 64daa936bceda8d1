"""Test actions: their commands, the page that may act, one button at a time, and STOP."""

import sys
from threading import Event, Thread

import pytest
from helpers.guide_bench import RecordingBench

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Pages, Runner, call, move, run, run_program, set_parameters, start_node


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (call("excitation/stop"), "ros2 service call /left/excitation/stop std_srvs/srv/Trigger"),
        (
            call("gravity_compensation/enable", True),
            "ros2 service call /left/gravity_compensation/enable std_srvs/srv/SetBool '{data: true}'",
        ),
        (set_parameters("excitation", {"steps": [0.2, 1]}), "ros2 param set /left/excitation steps '[0.2, 1]'"),
        (
            start_node("recorder", {"autostart": False}, ["a b.yaml"], "/left"),
            "ros2 run dynid_ros recorder --ros-args --params-file 'a b.yaml' -p autostart:=false -r __ns:=/left &",
        ),
        (run("dynid", "check", "--urdf", "a b.urdf"), "dynid check --urdf 'a b.urdf'"),
    ],
)
def test_action_shows_its_command(action, line):
    assert action.commands("/left") == [line]


def test_recorded_motion_starts_and_stops_the_recorder():
    bench = RecordingBench(state="done")
    assert move(recorded=True).do(bench) == "recorder/stop"
    assert bench.calls == ["recorder/start", "excitation/start", "recorder/stop"]


@pytest.mark.parametrize("failure", ["refused", "stopped: the driver is silent"])
def test_bag_is_closed_after_a_failed_motion(failure):
    bench = RecordingBench(state=failure, refused="excitation/start" if failure == "refused" else "")
    with pytest.raises(DynidError, match=failure):
        move(recorded=True).do(bench)
    assert bench.calls[-1] == "recorder/stop"


def test_failed_program_gives_its_last_line():
    program = "import sys; print('dynid: error: bad input', file=sys.stderr); sys.exit(2)"
    with pytest.raises(DynidError, match=r"^bad input$"):
        run_program([sys.executable, "-c", program])


def test_missing_program_is_one_line():
    with pytest.raises(DynidError, match="cannot be run"):
        run_program(["no-such-program"])


def test_first_page_acts_until_the_second_takes_over():
    pages = Pages()
    pages.open(1)
    pages.open(2)
    assert (pages.may_act(1), pages.may_act(2)) == (True, False)
    pages.take_over(2)
    assert (pages.may_act(1), pages.may_act(2)) == (False, True)


def test_watching_page_does_not_act_after_the_other_is_closed():
    pages = Pages()
    pages.open(1)
    pages.open(2)
    pages.close(1)
    assert not pages.may_act(2)
    pages.open(3)
    assert pages.may_act(3)


def test_closed_page_cannot_take_over():
    pages = Pages()
    pages.open(1)
    pages.close(1)
    pages.take_over(1)
    assert not pages.may_act(1)
    assert not pages.is_watched


def test_program_may_change_widgets():
    assert Pages().may_act(None)


def test_actions_run_in_order():
    bench = RecordingBench()
    assert Runner(bench).run("both", [call("a"), call("b")]) == "b"
    assert bench.calls == ["a", "b"]


def test_no_action_starts_after_stop():
    bench = RecordingBench(on_call=lambda service: runner.stop() if service == "excitation/design" else None)
    runner = Runner(bench)
    with pytest.raises(DynidError, match="ended by STOP"):
        runner.run("move", [call("excitation/design"), move(recorded=True)])
    assert "excitation/start" not in bench.calls


def test_action_started_during_stop_is_stopped_again():
    """The node may receive the request that moves the arm after the one that stops it."""
    bench = RecordingBench(on_call=lambda service: runner.stop() if service == "excitation/start" else None)
    runner = Runner(bench)
    with pytest.raises(DynidError, match="STOP"):
        runner.run("move", [move(recorded=False)])
    assert bench.calls == ["excitation/start", "STOP", "STOP"]


def test_failed_action_is_stopped_too():
    bench = RecordingBench(refused="a", on_call=lambda _: runner.stop())
    runner = Runner(bench)
    with pytest.raises(DynidError, match="refused"):
        runner.run("a", [call("a")])
    assert bench.calls == ["a", "STOP", "STOP"]


def test_only_one_button_acts_at_a_time():
    has_started = Event()
    may_continue = Event()

    def on_call(_service):
        has_started.set()
        may_continue.wait(5.0)

    runner = Runner(RecordingBench(on_call=on_call))
    thread = Thread(target=runner.run, args=("first", [call("a")]))
    thread.start()
    has_started.wait(5.0)
    with pytest.raises(DynidError, match="'first' is running"):
        runner.run("second", [call("b")])
    may_continue.set()
    thread.join()
    assert runner.run("third", [call("c")]) == "c"
