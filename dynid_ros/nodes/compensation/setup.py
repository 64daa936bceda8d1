"""From the parameters of `gravity_compensation` to its control loop."""

from collections.abc import Callable
from types import SimpleNamespace

from rclpy.lifecycle import LifecycleNode

from dynid_ros.control import GravityCompensator, JointSettings, LoadedGravity, ModelChange
from dynid_ros.errors import ControlError
from dynid_ros.nodes.compensation.controller import CompensationController
from dynid_ros.nodes.compensation.effort_commands import ROUTES, EffortCommands
from dynid_ros.nodes.compensation.links import CompensationLinks
from dynid_ros.nodes.compensation.load import CompensationLoad
from dynid_ros.nodes.compensation.loop import CompensationLoop
from dynid_ros.nodes.compensation.parameters import timing
from dynid_ros.nodes.compensation.setpoint import CompensationSetpoint
from dynid_ros.nodes.shared.controller_query import ControllerAnswer


def make_loop(
    node: LifecycleNode,
    settings: SimpleNamespace,
    gravity: LoadedGravity,
    joints: JointSettings,
    change: ModelChange,
    *,
    controller: CompensationController,
    changed: Callable[[], None],
) -> CompensationLoop:
    """The loop, with its topics.

    Args:
        node: has them.
        settings: values of its parameters.
        gravity: torque.
        joints: settings that belong to it.
        change: what it is compared by.
        controller: takes the commands; is configured for them.
        changed: called after each step.

    Raises:
        ControlError: parameters, or a controller, that do not fit.

    """
    answer = controller.answer()
    commands = _commands(node, settings, joints, answer)
    controller.use(answer, [joints.names[i] for i in commands.order], joints)
    compensator = GravityCompensator(gravity, joints, timing(settings))
    return CompensationLoop(
        node,
        compensator,
        joints.names,
        commands,
        changed,
        controller=controller,
        load=CompensationLoad(
            node, settings.load_topic if settings.use_load else "", compensator, gravity, joints, change=change
        ),
        links=CompensationLinks(
            node,
            settings.link_states_topic,
            joints.names,
            timeout=settings.timeout,
            largest_deflection=settings.largest_deflection,
        ),
        setpoint=CompensationSetpoint(
            node,
            settings.setpoint_topic,
            compensator,
            joints.names,
            follows=joints.feedback.holds or settings.output == "trajectory",
        ),
    )


def _commands(
    node: LifecycleNode, settings: SimpleNamespace, joints: JointSettings, controller: ControllerAnswer | None
) -> EffortCommands:
    if settings.output not in ROUTES:
        raise ControlError(f"parameter output is '{settings.output}'; expected {' or '.join(ROUTES)}")
    route = ROUTES[settings.output]
    if settings.output == "trajectory" and joints.feedback.needs_velocity:
        raise ControlError(
            "stiffness, damping and friction_scale are for output effort; with output trajectory the position "
            "controller holds the arm"
        )
    order = [name for name in settings.controller_joints if name]
    missing = [name for name in joints.names if order and name not in order]
    if missing:
        node.get_logger().warning(f"controller_joints lacks {', '.join(missing)}: no compensation there")
    if controller is not None:
        order = _checked_joints(route.refusal(controller), controller, joints, order)
        if controller.follows_trajectories and not controller.command_timeout:
            node.get_logger().warning(
                f"controller '{controller.name}' keeps the effort of a process that was killed; set its cmd_timeout "
                "to 0.5 s or so, above its constraints.goal_time"
            )
    topic = settings.command_topic or f"{settings.controller or route.CONTROLLER}/{route.TOPIC}"
    return route(node, topic, joints.names, order)


def _checked_joints(
    refusal: str, controller: ControllerAnswer, joints: JointSettings, expected: list[str]
) -> list[str]:
    """The controller's joints in its order: a command of another size deactivates it, and the arm falls."""
    if refusal:
        raise ControlError(f"controller '{controller.name}' {refusal}")
    if expected and expected != list(controller.joints):
        raise ControlError(
            f"controller_joints is {', '.join(expected)}, and controller '{controller.name}' has "
            f"{', '.join(controller.joints)}; give these in this order, or leave controller_joints out"
        )
    unknown = [name for name in controller.joints if name not in joints.names]
    if unknown:
        raise ControlError(
            f"controller '{controller.name}' has joints that the model does not know: {', '.join(unknown)}; use one of "
            f"{', '.join(joints.names)} alone"
        )
    missing = [name for name in joints.names if name not in controller.joints]
    if missing and not expected:
        raise ControlError(
            f"controller '{controller.name}' lacks {', '.join(missing)}; give it these joints too, or set "
            f"controller_joints to those that it has ({', '.join(controller.joints)}) to go without the others"
        )
    return list(controller.joints)
