"""Test the guide in a browser: from the URDF to a floating arm, with STOP at any time."""

import contextlib
import re
import shlex
import time

import pytest
from gravity_experiment import demo_recording
from helpers.guide_page import GuidePage, chromium, running_guide

from dynid_ros.cli import _parser
from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.shared.child_process import NodeProcess, stop
from dynid_ros.recording import Recording

pytest.importorskip("viser")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


JOINT_STATE_RATE_HZ = 250.0


def use_robot(page):
    page.see("Joint states come from")
    page.press("Use this robot")
    page.see("Go on with step 2")


def read_commands(output):
    """Return the commands that the page shows, after parsing those of dynid."""
    commands = (output / "commands.sh").read_text()
    for line in commands.splitlines():
        if line.startswith("dynid ") and " BAG " not in line:
            _parser().parse_args(shlex.split(line)[1:])
    return commands


def design(page):
    page.step("3 Motion")
    page.press("Design")
    page.see("used of the limits")


def record(page):
    design(page)
    page.step("4 Record")
    page.press("Record and move")
    page.see("Go on with step 5")


@pytest.mark.parametrize("namespace", ["", "left"])
def test_clicks_lead_from_a_urdf_to_a_floating_arm(browser, tmp_path, namespace):
    options = ["--namespace", namespace] if namespace else []
    start = time.monotonic()
    with running_guide(tmp_path, "--simulated", *options, quick=bool(namespace)) as address:
        page = GuidePage(browser, address)
        use_robot(page)
        record(page)
        page.step("5 Identify")
        page.press("Identify")
        page.see("gravity identified from")
        page.press("Report")
        report = page.view.frame_locator("iframe")
        report.get_by_text("Identification: gravity").wait_for()
        page.press("Close")
        if not namespace:  # one validation is enough
            page.press("Record other poses")
            page.see("Now validate")
            page.press("Validate")
            page.see("unseen torque")
        page.step("6 Compensate")
        page.press("Prepare")
        page.see("Controller: forward_effort_controller")
        page.press("Let go")
        page.see("the arm would fall")
        page.view.get_by_role("slider").first.press("End")
        page.press("Set the scale")
        page.see("The scale is 1")
        page.press("Enable")
        page.see("State: active")
        page.press("Let go")
        page.see("Largest drift")
        print(f"from the start of the guide to a floating arm: {time.monotonic() - start:.0f} s")
        page.page.wait_for_timeout(10_000)
        assert float(re.search(r"[\d.]+", page.see("Largest drift"))[0]) < 1.0
        page.press("Hold again")
        page.see("The position controller holds the arm")
        assert re.search("ramping out|is disabled", page.stop())
        page.close()
    commands = read_commands(tmp_path)
    for line in ("gravity_identification/identify", "gravity_compensation/enable", "excitation/design"):
        assert f"ros2 service call {'/left' if namespace else ''}/{line} " in commands


def test_stop_works_in_each_step_by_button_and_space(browser, tmp_path):
    with running_guide(tmp_path, "--simulated") as address:
        page = GuidePage(browser, address)
        use_robot(page)
        for title in ("1 Robot", "2 Effort", "3 Motion", "4 Record", "5 Identify", "6 Compensate", "More"):
            page.step(title)
            assert "nothing to stop" in page.stop(by_space=title != "4 Record")
        design(page)
        page.step("4 Record")
        page.press("Record and move")
        page.see("State: running")
        assert "at rest in" in page.stop(by_space=True)
        page.see("the motion ended early|ended by STOP")
        assert "nothing to stop" in page.stop()
        page.close()


def test_stop_ends_a_slow_motion(browser, tmp_path):
    with running_guide(tmp_path, "--simulated") as address:
        page = GuidePage(browser, address)
        use_robot(page)
        page.step("3 Motion")
        page.press("Slow first")
        page.step("4 Record")
        page.see("State: (approaching|running)")
        assert "at rest in" in page.stop()
        page.step("3 Motion")
        page.see("the motion ended early|ended by STOP")
        page.close()


def test_throttled_page_slows_neither_nodes_nor_stop(browser, tmp_path):
    with running_guide(tmp_path, "--simulated") as address:
        page = GuidePage(browser, address)
        use_robot(page)
        page.throttle()
        record(page)
        (bag,) = (tmp_path / "recordings").iterdir()
        recording = Recording.read(bag)
        assert recording.n_samples / recording.duration > 0.8 * JOINT_STATE_RATE_HZ
        page.press("Record and move")
        page.see("State: (approaching|running)")
        assert "at rest in" in page.stop()
        page.close()


def test_two_guides_move_two_arms(browser, tmp_path):
    file = share_path("config/launch/guide_simulated.yaml")
    values = {"robot_description": share_path("config/demo_arm.urdf"), "tip_link": "tool"}
    with contextlib.ExitStack() as stack:
        pages = []
        for arm in ("left", "right"):
            log = tmp_path / f"{arm}.log"
            simulator = NodeProcess("simulator", values, log, namespace=f"/{arm}", files=[file])
            stack.callback(stop, [simulator.popen])
            options = ("--namespace", arm, "--params-file", str(file))
            pages.append(GuidePage(browser, stack.enter_context(running_guide(tmp_path / arm, *options))))
        for page in pages:
            use_robot(page)
            design(page)
            page.step("4 Record")
        for page in pages:
            page.press("Record and move")
        for page in pages:
            page.see("State: (approaching|running)")
        left, right = pages
        assert "at rest in" in left.stop()
        right.see("Go on with step 5|kept from sending")  # a busy computer may cause the second text
        left.see("the motion ended early|ended by STOP")


def test_motion_continues_after_its_page_is_closed(browser, tmp_path):
    with running_guide(tmp_path, "--simulated") as address:
        first = GuidePage(browser, address)
        use_robot(first)
        second = GuidePage(browser, address)
        second.see("This page watches")
        second.step("3 Motion")
        second.press("Design")
        second.see("Only watching")
        design(first)
        first.step("4 Record")
        first.press("Record and move")
        first.see("State: running")
        first.close()
        second.step("4 Record")
        second.see("Go on with step 5")  # the motion ended as planned, and the recorder closed the bag
        second.press("Record and move")
        second.see("Only watching")
        second.press("Take over")
        second.press("Record and move")
        second.see("State: (approaching|running)")
        assert "at rest in" in second.stop()
        second.close()


def test_recording_is_identified_and_exported_without_ros(browser, tmp_path):
    recording = tmp_path / "recording.npz"
    demo_recording().write_npz(recording)
    with running_guide(tmp_path / "guide", "--recording", str(recording)) as address:
        page = GuidePage(browser, address)
        page.press("Check")
        page.see("no fault found")
        page.press("Identify")
        page.see("gravity identified from")
        page.press("Report")
        page.view.frame_locator("iframe").get_by_text("Identification: gravity").wait_for()
        page.press("Close")
        page.press("Export")
        page.see("wrote .*arm.urdf")
        assert "nothing moves" in page.stop()
        page.close()
    assert (tmp_path / "guide" / "arm.urdf").is_file()
    assert read_commands(tmp_path / "guide").count("dynid ") == 3
