"""Test the steps of the guide: they show the state of the nodes, and their buttons call them."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import viser
from helpers.guide_bench import RecordingBench

from dynid_ros.files.bounded import share_path
from dynid_ros.guide.actions import Pages, Runner
from dynid_ros.guide.answers import Answers
from dynid_ros.guide.context import Context
from dynid_ros.guide.gate import Gate, serve_page
from dynid_ros.guide.model_steps import CompensateStep, OfflineStep
from dynid_ros.guide.panel import Panel
from dynid_ros.guide.scene import Scene
from dynid_ros.guide.start import _add_steps
from dynid_ros.model.arm import arm_from_urdf

URDF = share_path("config/demo_arm.urdf")
COMPENSATION = "gravity_compensation/state"


class Page:
    """Page without a browser, which stores texts, inputs and buttons by label."""

    def __init__(self, folder, monkeypatch):
        self.texts = []
        self.fields = {}
        self.clicks = {}
        self.notes = []
        self.client = SimpleNamespace(add_notification=lambda *note, **_: self.notes.append(note))
        for kind in ("add_markdown", "add_dropdown", "add_number", "add_slider", "add_text"):
            monkeypatch.setattr(viser.GuiApi, kind, self.store_handles(getattr(viser.GuiApi, kind)))
        monkeypatch.setattr(
            viser.GuiButtonHandle, "on_click", lambda handle, click: self.clicks.update({handle.label: click})
        )
        robot = arm_from_urdf(URDF, "tool")[0]
        self.bench = RecordingBench()
        self.bench.texts = defaultdict(str, {"recorder/bag": "bag_1"})
        self.pages = Pages()
        self.server = serve_page(Gate("127.0.0.1", folder, "arm", self.bench.stop), 0)
        panel = Panel(self.server, self.pages, Runner(self.bench), "", folder / "commands.sh")
        self.context = Context(panel, Answers(URDF, folder), self.bench, robot, Scene(self.server, URDF, robot))

    def store_handles(self, add):
        def add_and_store(gui, label_or_text, *values, **options):
            handle = add(gui, label_or_text, *values, **options)
            if hasattr(handle, "value"):
                self.fields[label_or_text] = handle
            else:
                self.texts.append(handle)
            return handle

        return add_and_store

    def press(self, label, number=None):
        self.clicks[label](SimpleNamespace(client=self.client, client_id=number))

    @property
    def text(self):
        return "\n".join(handle.content for handle in self.texts)


@pytest.fixture
def page(tmp_path, monkeypatch):
    page = Page(tmp_path, monkeypatch)
    yield page
    page.server.stop()


@pytest.fixture
def steps(page):
    return _add_steps(page.context)


def test_steps_without_running_nodes(page, steps):
    for step in steps:
        step.refresh()
    assert "Joint states come from" in page.text or "none arrives" in page.text
    assert "Design a motion first" in page.text


def test_steps_of_a_moving_arm(page, steps):
    page.bench.texts |= {"excitation/state": "running", COMPENSATION: "active"}
    page.bench.progress = 0.5
    for stamp in (1.0, 2.0):
        page.bench.state = (stamp, {"position": [0.1] * 6, "effort": [2.0] * 6})
        for step in steps:
            step.refresh()
    assert "State: running, 50 %" in page.text
    assert "| 0.10 |" in page.text
    assert "State: **active**" in page.text


def test_inputs_become_parameters(page, steps):
    page.fields["Acceleration"].value = 3.0
    page.fields["Floor"].value = 0.1
    page.press("Use this robot")
    assert page.bench.calls == ["start excitation", "start recorder"]
    commands = (page.context.answers.output / "commands.sh").read_text()
    assert "-p acceleration_limits:=[3.0] -p floor_height:=0.1" in commands.replace("'", "")
    assert "Go on with step 2" in page.text


def test_watching_page_cannot_press_buttons(page, steps):
    page.pages.open(1)
    page.pages.open(2)
    page.press("Use this robot", 2)
    assert page.bench.calls == []
    assert page.notes[0][0] == "Only watching"
    page.press("Use this robot", 1)
    assert page.bench.calls != []


def test_error_is_shown_as_one_line(page, steps):
    page.bench.refused = "gravity_identification/identify"
    page.press("Identify")
    assert "**Refused:** refused" in page.text
    page.press("Report")
    assert "There is no report yet" in page.text


@pytest.mark.parametrize("experiment", ["links", "load", "flexible joints", "torque sensors"])
def test_card_records_for_its_experiment(page, steps, experiment):
    page.press(f"Design for {experiment}")
    assert page.bench.calls[-1] == "excitation/design"
    page.press(f"Record {experiment}")
    assert page.bench.calls[-3:] == ["recorder/start", "excitation/start", "recorder/stop"]
    assert page.context.bags == {experiment.replace(" ", "_"): "bag_1"}
    assert "The motion is recorded" in page.text


def test_release_needs_an_active_compensation(page):
    CompensateStep(page.context)
    page.press("Let go")
    assert "the arm would fall" in page.text
    page.bench.texts[COMPENSATION] = "active"
    page.press("Let go")
    assert page.bench.calls == ["simulator/activate_effort_controller", "simulator/activate_trajectory_controller"]
    page.press("Hold again")
    assert page.bench.calls[2:] == ["simulator/activate_trajectory_controller", "simulator/activate_effort_controller"]


@pytest.mark.parametrize(("route", "n_switches"), [("feedforward", 1), ("trajectory", 0)])
def test_routes_with_a_position_controller_keep_it(page, route, n_switches):
    page.bench.texts[COMPENSATION] = "active"
    page.context.answers.route = route
    CompensateStep(page.context)
    page.press("Let go")
    assert page.bench.calls == ["simulator/activate_effort_controller"][:n_switches]
    assert ("there is no switch" in page.text) == (not n_switches)


def test_export_without_a_model_is_refused(page, tmp_path):
    OfflineStep(page.context, tmp_path / "recording.npz").refresh()
    page.press("Export")
    assert "there is no model yet" in page.text
