"""Start of the guide: page, gate, nodes, and their end."""

import contextlib
import io
import signal
import webbrowser
from pathlib import Path
from typing import Any

from viser import ClientHandle, ViserServer

from dynid_ros.errors import DynidError
from dynid_ros.files.share import share_path
from dynid_ros.guide.answers import Answers
from dynid_ros.guide.context import Context, Refresh
from dynid_ros.guide.gate import LOOPBACK_HOSTS, Gate, serve_page
from dynid_ros.guide.offline import OfflineBench, add_offline_steps
from dynid_ros.guide.pages import Pages, Runner
from dynid_ros.guide.panel import Panel, plain_markdown
from dynid_ros.guide.scene import Scene
from dynid_ros.model import RobotModel
from dynid_ros.nodes.shared.ros_domain import alone

REFRESH_PERIOD_S = 0.1
UNWATCHED_PERIOD_S = 0.5
SIMULATED_FILE = "config/launch/guide_simulated.yaml"


def run_guide(
    answers: Answers,
    robot: RobotModel,
    *,
    recording: Path | None = None,
    simulated: bool = False,
    domain: str = "",
    host: str = LOOPBACK_HOSTS[0],
    port: int = 8080,
    browser: bool = True,
) -> None:
    """Serve the page until SIGINT or SIGTERM, then end the nodes that it started.

    Args:
        answers: URDF, output folder and what else is known at the start.
        robot: chain of the URDF.
        recording: recording of a page without ROS; None: a page with nodes.
        simulated: whether the guide starts a simulated arm, on a ROS domain of its own.
        domain: number of that domain; empty: a free one.
        host: address to listen on.
        port: port to listen on.
        browser: whether to open a browser.

    Raises:
        DynidError: the port is in use, the folder cannot be written, ROS 2 is missing, or a node does not start.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        answers.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"{answers.output}: cannot be written ({error.strerror}); choose another folder with --output"
        raise DynidError(text) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        if simulated:
            stack.enter_context(alone(answers.output, domain))
            answers.files = (share_path(SIMULATED_FILE).resolve(), *answers.files)
        bench: Any = OfflineBench(answers.namespace)
        if recording is None:
            from dynid_ros.guide.ros_bench import RosBench  # noqa: PLC0415 - a page without ROS needs no rclpy

            bench = RosBench(answers.namespace, robot.joint_names, answers.output / "logs", answers.files)
        stack.callback(bench.end)
        pages = Pages()
        runner = Runner(bench)
        gate = Gate.for_host(host, answers.output, robot.name, runner.stop)
        server = serve_page(gate, port)
        stack.callback(_stop_quietly, server)
        panel = Panel(server, pages, runner, answers.namespace, answers.output / "commands.sh")
        context = Context(panel, answers, bench, robot, Scene(server, answers.urdf, robot))
        panel.note_commands("start of the guide", [])
        if simulated:
            panel.note_commands("Simulated arm", [context.start("simulator")])
            bench.begin("simulator", answers.parameters("simulator"))
        refreshes = add_offline_steps(context, recording) if recording is not None else _add_steps(context)
        panel.add_commands()
        _watch_pages(server, pages)
        _announce(gate.address(server.get_port()), browser)
        _serve(bench, pages, context, refreshes)


def _stop_quietly(server: ViserServer) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def _add_steps(context: Context) -> list[Refresh]:
    """Add a tab for each step and return what refreshes them."""
    from dynid_ros.guide.steps.compensate_step import CompensateStep  # noqa: PLC0415 - rclpy's messages
    from dynid_ros.guide.steps.effort_step import EffortStep  # noqa: PLC0415
    from dynid_ros.guide.steps.identify_step import add_identify_step  # noqa: PLC0415
    from dynid_ros.guide.steps.more_cards import add_more_cards  # noqa: PLC0415
    from dynid_ros.guide.steps.motion_step import MotionStep  # noqa: PLC0415
    from dynid_ros.guide.steps.record_step import RecordStep  # noqa: PLC0415
    from dynid_ros.guide.steps.robot_step import add_robot_step  # noqa: PLC0415

    steps = {
        "1 Robot": add_robot_step,
        "2 Effort": lambda context: EffortStep(context).refresh,
        "3 Motion": lambda context: MotionStep(context).refresh,
        "4 Record": lambda context: RecordStep(context).refresh,
        "5 Identify": add_identify_step,
        "6 Compensate": lambda context: CompensateStep(context).refresh,
        "More": add_more_cards,
    }
    problem = context.panel.said()
    tabs = context.panel.server.gui.add_tab_group()
    refreshes: list[Refresh] = [lambda: problem.show(plain_markdown(context.bench.problem))]
    for title, add_step in steps.items():
        with tabs.add_tab(title):
            refreshes.append(add_step(context))
    return refreshes


def _watch_pages(server: ViserServer, pages: Pages) -> None:
    """Let the first page act, and give the others a button to take over."""
    notes: dict[int, list[Any]] = {}

    def show_roles() -> None:
        for number, client in server.get_clients().items():
            for handle in notes.pop(number, []):
                handle.remove()
            if not pages.may_act(number):
                notes[number] = _spectator_note(client, take_over)

    def take_over(number: int) -> None:
        pages.take_over(number)
        show_roles()

    def on_connect(client: ClientHandle) -> None:
        pages.open(client.client_id)
        show_roles()

    def on_disconnect(client: ClientHandle) -> None:
        pages.close(client.client_id)
        notes.pop(client.client_id, None)
        show_roles()

    server.on_client_connect(on_connect)
    server.on_client_disconnect(on_disconnect)


def _spectator_note(client: ClientHandle, take_over: Any) -> list[Any]:
    note = client.gui.add_markdown("**This page watches.** Another page acts, or acted.", order=-2.0)
    button = client.gui.add_button("Take over", color="yellow", order=-1.0)
    button.on_click(lambda _: take_over(client.client_id))
    return [note, button]


def _announce(address: str, browser: bool) -> None:
    """Print the address, and open a browser if there is one."""
    print(f"The guide is at {address} (Ctrl-C ends it, and the nodes that it started)", flush=True)
    if not browser:
        return
    try:
        opened = webbrowser.get().open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        print("no browser was found here; open this address in one", flush=True)


def _serve(bench: Any, pages: Pages, context: Context, refreshes: list[Refresh]) -> None:
    """Do the work of the main thread until it is interrupted."""
    while True:
        is_watched = pages.is_watched
        bench.look(is_watched)
        bench.work(REFRESH_PERIOD_S if is_watched else UNWATCHED_PERIOD_S)
        if not is_watched:
            continue
        bench.take_state()
        if bench.state is not None:
            context.scene.arm.place_if_moved(bench.state[1]["position"])
        for refresh in refreshes:
            try:
                refresh()
            except Exception as error:  # the end of the guide would end the nodes, and with them a motion
                bench.problem = f"the page cannot show a step: {type(error).__name__}: {error}"
