"""What the steps of the guide share, and the rows of actions that several of them use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from viser import ViserServer, uplot

from dynid_ros.guide.actions import LONG_CALL_TIMEOUT_S, Action, call, move, set_parameters, start_node
from dynid_ros.guide.answers import EFFORT_CONVENTIONS, EXPERIMENT_NODES, Answers
from dynid_ros.guide.gate import FILES_PATH
from dynid_ros.guide.panel import Panel, Said
from dynid_ros.guide.scene import Scene
from dynid_ros.model import RobotModel

SLOW_FRACTION = 0.05
LINE_COLORS = (
    "#1f77b4",
    "#ff7f0e",
    "#2ca02c",
    "#d62728",
    "#9467bd",
    "#8c564b",
    "#e377c2",
    "#7f7f7f",
    "#bcbd22",
    "#17becf",
)
N_PLOTTED_SAMPLES = 200
PLOT_PERIOD_S = 0.2
MIN_SHOW_PERIOD_S = 0.5
"""Shortest time between two updates of a plot."""
Refresh = Callable[[], None]
"""Function that updates a step; called some times per second while a page is open."""


@dataclass
class Context:
    """Robot, nodes, widgets and answers.

    Attributes:
        panel: factory of widgets.
        answers: answers so far.
        bench: nodes of the arm.
        robot: chain of the URDF.
        scene: arm in 3-D.
        bags: last recording of each experiment.
    """

    panel: Panel
    answers: Answers
    bench: Any
    robot: RobotModel
    scene: Scene
    bags: dict[str, str] = field(default_factory=dict)

    def start(self, node: str) -> Action:
        """Return the start of a node with the present answers."""
        return start_node(node, self.answers.parameters(node), self.answers.files, self.answers.namespace)

    def design(self, experiment: str, motion: str = "", speed: float = 0.0, **more: object) -> list[Action]:
        """Return the design of a motion; empty and 0: the usual motion and the node's own speed."""
        self.bench.require_driver()
        values = dict(EXPERIMENT_NODES[experiment][1])
        values |= {"motion": motion} if motion else {}
        values |= {"speed_fraction": speed, "travel_speed_fraction": speed} if speed else {}
        values |= more
        values["trajectory_file"] = str(self.answers.motion_file)
        return [
            self.start("excitation"),
            self.start("recorder"),
            set_parameters("excitation", values),
            call("excitation/design", timeout=LONG_CALL_TIMEOUT_S),
        ]

    def record(self) -> list[Action]:
        """Return the recorded motion."""
        self.bench.require_driver()
        return [move(recorded=True)]

    def identify(self, experiment: str) -> list[Action]:
        """Return the identification from the last recording of the experiment."""
        node = EXPERIMENT_NODES[experiment][0]
        bag = self.bags.get(experiment, "")
        return [
            self.start(node),
            set_parameters(node, {"recording": bag}),
            call(f"{node}/identify", timeout=LONG_CALL_TIMEOUT_S),
        ]

    def keep_bag(self, experiment: str) -> None:
        """Remember the last recording as that of an experiment."""
        self.bags[experiment] = self.bench.texts["recorder/bag"]

    def add_effort_inputs(self) -> None:
        """Add the inputs for the meaning of effort."""
        gui = self.panel.server.gui
        answers = self.answers
        options = {"initial_value": answers.effort_convention, "hint": "Meaning of effort in joint_states"}
        self.panel.bind(gui.add_dropdown, "Effort is", answers, "effort_convention", EFFORT_CONVENTIONS, **options)
        hint = "N m per unit of effort, with commas; empty: none"
        self.panel.bind(gui.add_text, "Motor gains", answers, "motor_gains", answers.motor_gains, hint=hint)

    def show_report(self, path: str, title: str) -> None:
        """Show a report of the chosen folder in a window of the page."""
        gui = self.panel.server.gui
        with gui.add_modal(title) as modal:
            gui.add_html(
                f'<iframe src="{FILES_PATH}{path}" style="width:100%;height:70vh;border:1px solid #ccc"></iframe>'
                f'<a href="{FILES_PATH}{path}" target="_blank">Open it in a page of its own</a>'
            )
            gui.add_button("Close").on_click(lambda _: modal.close())

    def report_button(self, chosen: Callable[[], str], said: Said) -> None:
        """Add a button that shows the report of the chosen experiment."""
        handle = self.panel.server.gui.add_button("Report", hint="Show the report of the identification")

        def show(_event: Any) -> None:
            folder = self.answers.folder(chosen())
            if (folder / "report.html").is_file():
                self.show_report(f"{folder.name}/report.html", f"Report: {chosen()}")
            else:
                said.show("There is no report yet; identify first.")

        handle.on_click(show)


class TimePlot:
    """Plot of one line per joint over the last seconds.

    Args:
        server: server of the page.
        names: names of the lines.
        title: quantity and unit.
    """

    def __init__(self, server: ViserServer, names: tuple[str, ...], title: str) -> None:
        lines = [uplot.Series(label=name, stroke=LINE_COLORS[k % len(LINE_COLORS)]) for k, name in enumerate(names)]
        self._rows: list[tuple[float, NDArray]] = []
        self._shown = 0.0
        self._n = len(names)
        empty = tuple(np.zeros(1) for _ in range(self._n + 1))
        scales = {"x": uplot.Scale(time=False)}
        series = (uplot.Series(label="s"), *lines)
        self._handle = server.gui.add_uplot(empty, series, title=title, scales=scales, aspect=2.2)

    def add(self, time: float, values: NDArray) -> None:
        """Add a sample, unless the last one is too near; show the plot from time to time."""
        if self._rows and 0.0 <= time - self._rows[-1][0] < PLOT_PERIOD_S:
            return
        self._rows = [*self._rows, (time, np.array(values, dtype=float))][-N_PLOTTED_SAMPLES:]
        if time - self._shown < MIN_SHOW_PERIOD_S and time > self._shown:
            return
        self._shown = time
        times = np.array([row[0] for row in self._rows])
        columns = np.array([row[1] for row in self._rows]).T
        self._handle.data = (times - times[-1], *columns)

    def clear(self) -> None:
        """Forget all samples."""
        self._rows = []


def update(handle: Any, name: str, value: Any) -> None:
    """Set a property of a widget if it differs, because each assignment is sent to the page."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)
