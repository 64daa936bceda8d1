"""Each action shows the command that does the same, and a recorded motion always closes its bag."""

import sys

import pytest
from helpers.guide_bench import RecordingBench

from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import call, move, run, run_program, set_parameters, start_node


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
def test_an_action_shows_its_command(action, line):
    assert action.commands("/left") == [line]


def test_a_recorded_motion_starts_waits_and_stops():
    bench = RecordingBench(state="done")
    assert move(recorded=True).do(bench) == "recorder/stop"
    assert bench.calls == ["recorder/start", "excitation/start", "recorder/stop"]


@pytest.mark.parametrize("failure", ["refused", "stopped: the driver is silent"])
def test_a_bag_is_closed_however_the_motion_ends(failure):
    bench = RecordingBench(state=failure, refused="excitation/start" if failure == "refused" else "")
    with pytest.raises(DynidError, match=failure):
        move(recorded=True).do(bench)
    assert bench.calls[-1] == "recorder/stop"


def test_a_program_that_fails_gives_its_last_line():
    program = "import sys; print('dynid: error: bad input', file=sys.stderr); sys.exit(2)"
    with pytest.raises(DynidError, match=r"^bad input$"):
        run_program([sys.executable, "-c", program])


def test_a_program_that_is_missing_is_one_line():
    with pytest.raises(DynidError, match="cannot be run"):
        run_program(["no-such-program"])
