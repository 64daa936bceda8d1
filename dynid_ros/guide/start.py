"""Start of the guide: page, gate and nodes, and their end."""

import contextlib
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from viser import ClientHandle, GuiEvent, ViserServer

from dynid_ros.files.bounded import share_path
from dynid_ros.guide import model_steps
from dynid_ros.guide.actions import OfflineBench, Pages, Runner
from dynid_ros.guide.answers import Answers
from dynid_ros.guide.context import Context, Step
from dynid_ros.guide.gate import Gate, serve_page
from dynid_ros.guide.panel import Panel, Text, plain_markdown
from dynid_ros.guide.scene import Scene
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.child_process import ignore_interrupts, prepare_parent
from dynid_ros.nodes.shared.process import alone

REFRESH_PERIOD_S = 0.1
UNWATCHED_PERIOD_S = 0.5
SIMULATED_FILE = "config/launch/guide_simulated.yaml"


def run_guide(
    answers: Answers,
    robot: RobotModel,
    *,
    recording: Path | None,
    simulated: bool,
    domain: str,
    host: str,
    port: int,
    browser: bool,
) -> None:
    """Serve the page until SIGINT or SIGTERM, then end the nodes that it started.

    With `recording` the page works without ROS. With `simulated` an arm is simulated, on a ROS domain or on a free one.

    Raises:
        DynidError: the port is in use, the folder cannot be written, ROS 2 is missing, or a node does not start.
    """
    prepare_parent(answers.output)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        if simulated:
            stack.enter_context(alone(answers.output, domain))
            answers.files = (share_path(SIMULATED_FILE).resolve(), *answers.files)
        bench: Any = OfflineBench()
        if recording is None:
            from dynid_ros.guide.ros_bench import RosBench  # noqa: PLC0415 - a page without ROS needs no rclpy

            bench = RosBench(answers.namespace, robot.joint_names, answers.output / "logs", answers.files)
            stack.callback(bench.end)
        pages = Pages()
        runner = Runner(bench)
        gate = Gate.for_host(host, answers.output, robot.name, runner.stop)
        server = serve_page(gate, port)
        stack.callback(server.stop)
        panel = Panel(server, pages, runner, answers.namespace, answers.output / "commands.sh")
        context = Context(panel, answers, bench, robot, Scene(server, answers.urdf, robot))
        panel.note_commands("start of the guide", [])
        if simulated:
            panel.note_commands("Simulated arm", [context.start("simulator")])
            bench.begin("simulator", answers.parameters("simulator"))
        problem = Text(server.gui)
        steps = _add_steps(context) if recording is None else [model_steps.OfflineStep(context, recording)]
        _watch_pages(server, pages)
        address = gate.address(server.get_port())
        print(f"The guide is at {address} (Ctrl-C ends it, and the nodes that it started)", flush=True)
        if browser and not webbrowser.open(address):
            print("no browser was found here; open this address in one", flush=True)
        stack.callback(ignore_interrupts)
        while True:
            _refresh(context, pages.is_watched, problem, steps)


def _add_steps(context: Context) -> list[Step]:
    """Add a tab for each step."""
    from dynid_ros.guide import experiment_steps  # noqa: PLC0415 - a page without ROS needs no rclpy

    kinds: dict[str, Callable[[Context], Step]] = {
        "1 Robot": experiment_steps.RobotStep,
        "2 Effort": experiment_steps.EffortStep,
        "3 Motion": experiment_steps.MotionStep,
        "4 Record": experiment_steps.RecordStep,
        "5 Identify": model_steps.IdentifyStep,
        "6 Compensate": model_steps.CompensateStep,
        "More": model_steps.MoreCards,
    }
    tabs = context.panel.server.gui.add_tab_group()
    steps = []
    for title, kind in kinds.items():
        with tabs.add_tab(title):
            steps.append(kind(context))
    return steps


def _watch_pages(server: ViserServer, pages: Pages) -> None:
    """Let the first page act, and give the others a button to take over."""
    notes: dict[int, list[Any]] = {}

    def show_roles() -> None:
        for number, client in server.get_clients().items():
            for handle in notes.pop(number, []):
                handle.remove()
            if not pages.may_act(number):
                note = client.gui.add_markdown("**This page watches.** Another page acts, or acted.", order=-2.0)
                button = client.gui.add_button("Take over", color="yellow", order=-1.0)
                button.on_click(take_over)
                notes[number] = [note, button]

    def change(role: Callable[[int], None], client: ClientHandle) -> None:
        role(client.client_id)
        show_roles()

    def take_over(event: GuiEvent) -> None:
        if event.client is not None:
            change(pages.take_over, event.client)

    server.on_client_connect(lambda client: change(pages.open, client))
    server.on_client_disconnect(lambda client: change(pages.close, client))


def _refresh(context: Context, is_watched: bool, problem: Text, steps: Sequence[Step]) -> None:
    """Check nodes and joint states, and show them if a browser shows the page."""
    bench = context.bench
    bench.work(REFRESH_PERIOD_S if is_watched else UNWATCHED_PERIOD_S, is_watched)
    if not is_watched:
        return
    text = bench.problem
    if bench.state is not None:
        context.scene.arm.place(bench.state[1]["position"])
    for step in steps:
        try:
            step.refresh()
        except Exception as error:  # the end of the guide would end the nodes, and with them a motion
            text = f"the page cannot show a step: {type(error).__name__}: {error}"
    problem.show(plain_markdown(text))
