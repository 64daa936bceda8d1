"""Step 1: the robot, its tip, its joint states and limits, and what stands around it."""

import time

import numpy as np

from dynid_ros.collision.obstacles import read_obstacles
from dynid_ros.errors import DynidError
from dynid_ros.guide.actions import Action
from dynid_ros.guide.context import Context, Refresh
from dynid_ros.guide.panel import plain_markdown
from dynid_ros.model.flange import arm_from_urdf

NO_FILE = "none"
MAX_STATE_AGE_S = 1.0
MAX_ACCELERATION = 50.0


def add_robot_step(context: Context) -> Refresh:
    """Add the widgets of the step and return what refreshes them."""
    panel = context.panel
    answers = context.answers
    gui = panel.server.gui
    robot = context.robot
    remarks = [f"- {plain_markdown(remark)}" for remark in context.scene.remarks]
    head = [
        f"**{plain_markdown(robot.name)}**: {robot.n_joints} joints, tip `{robot.tip}`.",
        "Is this your arm, the right way up? The arm follows the joint states.",
        *remarks,
    ]
    panel.said("\n\n".join(head))
    joints = panel.said()
    links = tuple(dict.fromkeys([robot.tip, *robot.link_names]))

    def set_tip(tip: str) -> None:
        chosen = arm_from_urdf(answers.urdf, tip)[0]
        if chosen.joint_names != robot.joint_names:
            tip_field.value = answers.tip or robot.tip
            said.refuse(DynidError(f"tip {tip} has other joints; end the guide and start it again with --tip {tip}"))
        else:
            answers.tip = tip

    tip_field = panel.field(
        gui.add_dropdown("Tip", links, initial_value=robot.tip, hint="Last link of the chain"), set_tip
    )
    limit = answers.acceleration_limit
    span = {"min": 0.0, "max": MAX_ACCELERATION, "step": 0.5}
    hint = "Limit of all joints, rad/s² (m/s²); 0: that of the URDF or the parameter file"
    panel.bind(gui.add_number, "Acceleration", answers, "acceleration_limit", limit, hint=hint, **span)
    height = answers.floor_height
    hint = "Lowest height of links above the base, m"
    panel.bind(gui.add_number, "Floor", answers, "floor_height", height, hint=hint, step=0.01)
    files = (NO_FILE, *sorted(path.name for path in answers.output.glob("*.yaml")))

    def set_obstacles(name: str) -> None:
        answers.obstacles = "" if name == NO_FILE else name
        try:
            boxes = read_obstacles(answers.inside(name)) if answers.obstacles else ()
            context.scene.show_obstacles({box.name: box for box in boxes})
        except DynidError as error:
            answers.obstacles = ""
            said.refuse(error)

    panel.field(
        gui.add_dropdown("Obstacles", files, hint=f"YAML file of boxes in {answers.output}; none: nothing is around"),
        set_obstacles,
    )
    said = panel.said()

    def actions() -> list[Action]:
        context.bench.require_driver()
        return [context.start("excitation"), context.start("recorder")]

    panel.button(
        "Use this robot",
        actions,
        said,
        hint="Start the nodes excitation and recorder with these answers; nothing moves",
        color="green",
        then=lambda _: said.show("The nodes `excitation` and `recorder` run. Go on with step 2."),
    )

    def refresh() -> None:
        joints.show(f"{_driver_line(context)}\n\n{_joint_table(context)}")

    return refresh


def _driver_line(context: Context) -> str:
    """Return what publishes joint states, or what is missing."""
    try:
        context.bench.require_driver()
    except DynidError as error:
        return f"**{plain_markdown(str(error))}**"
    (driver,) = context.bench.drivers()
    age = time.monotonic() - context.bench.heard
    if age < MAX_STATE_AGE_S:
        return f"Joint states come from `{driver}`."
    return f"**`{driver}` publishes joint states, but none arrives; is the driver paused?**"


def _joint_table(context: Context) -> str:
    """Return a Markdown table of limits and present values."""
    limits = context.robot.limits
    values = context.bench.state[1] if context.bench.state else {}
    nothing = [float("nan")] * context.robot.n_joints
    position = values.get("position", nothing)
    effort = values.get("effort", nothing)
    rows = [
        f"| {plain_markdown(name)} | {_text(position[k])} | {_text(limits.lower[k])} to {_text(limits.upper[k])} | "
        f"{_text(limits.velocity[k])} | {_text(effort[k], 1)} | {_text(limits.effort[k], 0)} |"
        for k, name in enumerate(context.robot.joint_names)
    ]
    head = "| joint | position | limits, rad (m) | speed limit | effort | effort limit |\n|---|--:|--:|--:|--:|--:|"
    return "\n".join([head, *rows])


def _text(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"
