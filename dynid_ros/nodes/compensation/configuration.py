"""Parameters of `gravity_compensation`, and the control loop built from them."""

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String

from dynid_ros.control import (
    CarriedLoad,
    FeedbackGains,
    GravityCompensator,
    HeldArm,
    JointSettings,
    ModelChange,
    Timing,
    load_held_arm,
)
from dynid_ros.control.compensator_settings import (
    MAX_DESCENT_SPEED,
    MAX_DESCENT_TIME,
    MAX_FAULT_RAMP_TIME,
    MAX_GAIN,
    MAX_HOLD_ON_SILENCE,
)
from dynid_ros.control.joint_feedback import MAX_FRICTION_SCALE
from dynid_ros.control.rest_friction import MAX_REST_SCALE
from dynid_ros.control.servo_offset import MAX_OFFSET_LIMIT, ServoOffset
from dynid_ros.errors import ControlError
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.compensation.base_imu import IMU_PARAMETERS, CompensationImu
from dynid_ros.nodes.compensation.controller import CompensationController
from dynid_ros.nodes.compensation.controller_state import ROUTES, ControllerPlan, EffortCommands
from dynid_ros.nodes.compensation.inputs import CompensationLinks, CompensationLoad, CompensationSetpoint, ReadModel
from dynid_ros.nodes.compensation.loop import CompensationLoop
from dynid_ros.nodes.shared.controllers import ControllerAnswer
from dynid_ros.nodes.shared.diagnostics import robot_name
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import (
    LOAD_TOPIC,
    ROBOT_PARAMETERS,
    checked_description,
    robot_description,
    with_group_ends,
)
from dynid_ros.nodes.shared.topics import LATCHED

MODEL = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml, written by the gravity identification"),
    NodeParameter("use_load", True, "whether the torque includes a load, of model_file or load_topic"),
    NodeParameter("largest_load", 5.0, "largest plausible mass of a load, kg; a heavier load is refused", least=0.0),
    NodeParameter(
        "max_model_change",
        0.2,
        "largest difference between a model and the URDF or the model in force, as a fraction of each joint's largest "
        "gravity torque; inf: any",
        above=0.0,
    ),
    NodeParameter("use_springs", True, "whether link positions follow from the springs in model_file"),
)
TOPICS = (
    LOAD_TOPIC,
    NodeParameter("link_states_topic", "", "topic of measured link positions, sensor_msgs/JointState; empty: none"),
    *IMU_PARAMETERS,
    NodeParameter("controller_joints", [""], 'joints that the controller must have, in its order; [""]: any'),
    NodeParameter(
        "unchecked_controller", False, "whether to command a controller that cannot be queried, by controller_joints"
    ),
    NodeParameter(
        "effort_convention",
        "",
        "meaning of effort in joint_states; torque: torque of the drives, N m (N), which shows the torque that acts "
        "before the ramp and checks the model; empty: unknown",
        choices=("torque", ""),
    ),
    NodeParameter(
        "setpoint_topic", "~/setpoint", "topic of desired positions by name, sensor_msgs/JointState; empty: none"
    ),
)
STARTED = (
    NodeParameter(
        "output",
        "effort",
        "type of the commands; effort: Float64MultiArray for forward_command_controller; trajectory: JointTrajectory; "
        "position: Float64MultiArray of servo set-points, shifted by the offsets that carry gravity",
        choices=tuple(ROUTES),
    ),
    NodeParameter("controller", "", "name of the controller that is queried; empty: from command_topic"),
    NodeParameter("command_topic", "", "topic of the commands; empty: that of the controller"),
    NodeParameter(
        "position_controller",
        "joint_trajectory_controller",
        "position controller of the arm, with output effort; empty: none",
    ),
    NodeParameter("enable_on_activate", False, "whether activation ramps in at the first good joint state"),
    NodeParameter("autostart", False, "whether the node configures and activates itself at the start"),
)
LIVE = (
    NodeParameter("largest_deflection", 0.1, "largest plausible distance of a link from its motor, rad (m)", above=0.0),
    NodeParameter("assume_no_effort", False, "whether ~/enable assumes that no torque acts where it is unknown"),
    NodeParameter(
        "effort_tolerance",
        0.05,
        "largest error of effort in joint_states, as a fraction of each joint's effort limit",
        above=0.0,
        most=1.0,
    ),
    NodeParameter(
        "scale", [0.2], "factor on the gravity torque; one value, or one per joint", least=0.0, most=MAX_GAIN
    ),
    NodeParameter(
        "carried_load",
        [math.nan],
        "mass, kg, and centre of mass x, y, z, m in the tip link's frame, of the load; [0.0]: no load; [nan]: load of "
        "load_topic or model_file",
    ),
    NodeParameter(
        "speed_limit",
        [0.0],
        "speed above which a joint is braked, rad/s (m/s); [0.0]: half of the URDF's velocity limits",
        above=0.0,
    ),
    NodeParameter(
        "watch_motion", True, "whether to withdraw torque if the arm begins to move by itself while torque is added"
    ),
    NodeParameter(
        "descent_time",
        5.0,
        "time for which the arm is held after a fault with a known pose, before it is lowered, s; 0: the torque ramps "
        "to zero instead; for output effort",
        least=0.0,
        most=MAX_DESCENT_TIME,
    ),
    NodeParameter("descent_speed", 0.15, "speed of the lowered joints, rad/s (m/s)", above=0.0, most=MAX_DESCENT_SPEED),
    NodeParameter(
        "stiffness", [0.0], "stiffness about the desired pose, N m/rad (N/m); one value, or one per joint", least=0.0
    ),
    NodeParameter(
        "damping", [0.0], "damping about the desired pose, N m s/rad (N s/m); one value, or one per joint", least=0.0
    ),
    NodeParameter(
        "setpoint_velocity", [0.25], "speed of the desired pose, rad/s (m/s); one value, or one per joint", above=0.0
    ),
    NodeParameter(
        "friction_scale",
        [0.0],
        "compensated fraction of the identified friction; one value, or one per joint",
        least=0.0,
        most=MAX_FRICTION_SCALE,
    ),
    NodeParameter(
        "friction_velocity", 0.05, "speed of full friction compensation, rad/s (m/s); below half of it none", above=0.0
    ),
    NodeParameter(
        "friction_at_rest",
        [0.0],
        "compensated fraction of the identified breakaway friction at rest, so that a hand starts a motion; one value, "
        "or one per joint",
        least=0.0,
        most=MAX_REST_SCALE,
    ),
    NodeParameter(
        "motion_scale",
        [0.0],
        "added fraction of inertia, Coriolis and friction torque of the planned motion; one value, or one per joint",
        least=0.0,
        most=1.0,
    ),
    NodeParameter(
        "motion_limit",
        0.5,
        "largest torque of the planned motion, as a fraction of the torque limits",
        above=0.0,
        most=1.0,
    ),
    NodeParameter(
        "servo_stiffness",
        [0.0],
        "stiffness of position servos, N m/rad (N/m), for output position; [0.0]: from section servos of model_file",
        least=0.0,
    ),
    NodeParameter(
        "offset_limits",
        [0.1],
        "largest shift of a set-point, rad (m), for output position; one value, or one per joint",
        above=0.0,
        most=MAX_OFFSET_LIMIT,
    ),
    NodeParameter(
        "torque_limits", [0.0], "largest torque, N m (N); one value, or one per joint; [0.0]: from the URDF", above=0.0
    ),
    NodeParameter(
        "effort_limit_factor", 1.0, "fraction of the URDF's effort limits that may be commanded", above=0.0, most=1.0
    ),
    NodeParameter("max_rate", [0.0], "fastest torque change, N m/s (N/s); [0.0]: limit / fault_ramp_time", above=0.0),
    NodeParameter("ramp_time", 2.0, "duration of the ramps after enable and disable, s", above=0.0),
    NodeParameter(
        "fault_ramp_time",
        0.5,
        "duration of the ramp to zero after a fault, at deactivation and at the end, s",
        above=0.0,
        most=MAX_FAULT_RAMP_TIME,
    ),
    NodeParameter("timeout", 0.2, "largest age of a joint state that the torque may follow, s", above=0.0),
    NodeParameter(
        "hold_on_silence",
        0.0,
        "time for which the torque is held if late joint states are the only fault, s",
        least=0.0,
        most=MAX_HOLD_ON_SILENCE,
    ),
    NodeParameter("limit_margin", 0.1, "distance beyond the position limits that is no fault yet, rad (m)", least=0.0),
)
PARAMETERS = (
    *(replace(parameter, configured=True) for parameter in (*MODEL, *TOPICS)),
    *STARTED,
    *(replace(parameter, adjustable=True) for parameter in LIVE),
)
"""Parameters in three groups: read at each configuration (`MODEL` also at each ~/reload), at the start, and live."""

FROM_URDF = [0.0]
"""Value of a list that is not set, for which the URDF or the model file has a default."""


def timing(settings: SimpleNamespace) -> Timing:
    """Return the durations; the arm is lowered after a fault with output effort only."""
    descends = settings.output == "effort"
    return Timing(
        settings.ramp_time,
        settings.fault_ramp_time,
        settings.timeout,
        settings.hold_on_silence,
        settings.descent_time if descends else 0.0,
        settings.descent_speed,
        settings.watch_motion and settings.output != "position",
    )


def parameter_load(settings: SimpleNamespace, frame: str) -> CarriedLoad | None:
    """Return the load of the parameter `carried_load` in the tip link's `frame`; None if the parameter is not set."""
    values = list(settings.carried_load)
    if len(values) == 1 and math.isnan(values[0]):
        return None
    if len(values) not in {1, 4} or (len(values) == 1 and values[0] != 0.0):
        raise ControlError(f"carried_load is {values}; expected [mass, x, y, z] in kg and m, or [0.0] for none")
    x, y, z = values[1:] or (0.0, 0.0, 0.0)
    return CarriedLoad(values[0], (x, y, z), frame)


def read_arm(settings: SimpleNamespace, urdf: str) -> HeldArm:
    """Return the arm of the model file; see `load_held_arm` for errors."""
    if not settings.model_file:
        raise ControlError("parameter model_file is empty; give the identified.yaml of this robot")
    return load_held_arm(
        settings.model_file,
        urdf,
        settings.base_link or None,
        settings.tip_link or None,
        gravity=settings.gravity,
        use_load=settings.use_load,
        largest_load=settings.largest_load,
        use_springs=settings.use_springs,
        held=held_positions([settings.held_joints]),
        tilts=bool(settings.imu_topic),
    )


def joint_settings(settings: SimpleNamespace, arm: HeldArm) -> JointSettings:
    """Return limits and gains of the joints; see `IdentifiedFriction.compensated` for errors of `friction_scale`."""
    robot = arm.robot
    if any(settings.motion_scale) and arm.gravity.motion is None:
        raise ControlError(
            f"motion_scale needs the links of {settings.model_file}, which has gravity alone; run `dynid identify "
            "links`, or set motion_scale to 0"
        )
    if any(settings.motion_scale) and any(settings.friction_scale):
        raise ControlError(
            "motion_scale and friction_scale both compensate for friction, of the planned and of the measured motion; "
            "set one of them to 0"
        )
    coulomb, viscous = arm.friction.compensated(settings.friction_scale)
    feedback = FeedbackGains.from_robot(
        robot,
        stiffness=settings.stiffness,
        damping=settings.damping,
        setpoint_velocity=settings.setpoint_velocity,
        coulomb=coulomb,
        viscous=viscous,
        friction_velocity=settings.friction_velocity,
        rest=arm.friction.compensated_at_rest(settings.friction_at_rest),
    )
    joints = JointSettings.from_robot(
        robot,
        fault_ramp_time=timing(settings).fault_ramp_time,
        gain=settings.scale,
        torque=_unless(FROM_URDF, settings.torque_limits),
        effort_limit_factor=settings.effort_limit_factor,
        rate=_unless(FROM_URDF, settings.max_rate),
        limit_margin=settings.limit_margin,
        feedback=feedback,
        speed_limit=_unless(FROM_URDF, settings.speed_limit),
        brake=arm.brake if settings.output == "effort" else None,
        planned_scale=settings.motion_scale,
        planned_limit=settings.motion_limit,
        servo=servo_offset(settings, arm, feedback),
    )
    if settings.output == "trajectory" and (joints.feedback.needs_velocity or joints.feedback.rest):
        raise ControlError(
            "stiffness, damping, friction_scale and friction_at_rest are for output effort; with output trajectory the "
            "position controller holds the arm"
        )
    return joints


def servo_offset(settings: SimpleNamespace, arm: HeldArm, feedback: FeedbackGains) -> ServoOffset | None:
    """Return the offsets of position servos; None on other routes."""
    if settings.output != "position":
        return None
    if feedback.needs_velocity or feedback.holds or feedback.rest or any(settings.motion_scale):
        raise ControlError(
            "stiffness, damping, friction_scale, friction_at_rest and motion_scale are torques; with output position "
            "set them to 0"
        )
    stiffness = _unless(FROM_URDF, settings.servo_stiffness)
    return ServoOffset.from_robot(arm.robot, arm.servo_stiffness, stiffness=stiffness, limit=settings.offset_limits)


def _unless(unset: list[float], values: list[float]) -> list[float]:
    """Return the values, or an empty list if they are those of a parameter that is not set."""
    return [] if list(values) == unset else list(values)


class CompensationModel:
    """Reader of the model. It stores the URDF from the topic, because a transition cannot wait for a message.

    Attributes:
        robot: name of the robot whose model was read last; empty before.
    """

    def __init__(self, node: LifecycleNode, settings: SimpleNamespace, changed: Callable[[], None]) -> None:
        self.robot = ""
        self._node = node
        self._settings = settings
        self._changed = changed
        self._description = ""
        node.create_subscription(String, "robot_description", self._on_description, LATCHED)

    @property
    def waits(self) -> bool:
        """Whether no URDF has arrived yet."""
        return not (self._settings.robot_description or self._description)

    def read(self) -> ReadModel:
        """Return the model of the file.

        Raises:
            DynidError: no URDF has arrived, or the model file or a parameter cannot be used.
        """
        if self.waits:
            raise ControlError(
                "no URDF has arrived on the topic robot_description yet; start robot_state_publisher or set the "
                "parameter robot_description, then configure again"
            )
        if self._settings.robot_description:
            urdf = robot_description(self._node, self._settings.robot_description)
        else:
            urdf = checked_description(self._description, "robot_description")
        self.robot = robot_name(urdf)
        arm = read_arm(with_group_ends(self._settings, urdf), urdf)
        joints = joint_settings(self._settings, arm)
        change = ModelChange(arm.gravity.model, joints.torque, self._settings.max_model_change)
        return ReadModel(arm, joints, change, arm.gravity)

    def _on_description(self, message: String) -> None:
        changed = message.data != self._description and not self._settings.robot_description
        self._description = message.data
        if changed:
            self._changed()


def make_loop(
    node: LifecycleNode,
    settings: SimpleNamespace,
    model: ReadModel,
    *,
    controller: CompensationController,
    changed: Callable[[], None],
) -> CompensationLoop:
    """Return the control loop with its topics.

    Args:
        node: node of the topics.
        settings: parameters of the node.
        model: model to compensate with.
        controller: controller that receives the torque.
        changed: function that is called when the state of the compensation may have changed.

    Raises:
        ControlError: a parameter or the controller does not fit the model.
    """
    joints = model.joints
    answer = controller.answer()
    commands = _commands(node, settings, joints, answer)
    controller.use(answer, [joints.names[i] for i in commands.order], joints)
    imu = CompensationImu(node, settings, model.gravity.model)
    model = replace(model, gravity=imu.tilting(model.gravity))
    compensator = GravityCompensator(model.gravity, joints, timing(settings))
    follows_setpoint = joints.feedback.holds or controller.holds_pose
    plan = ControllerPlan(node, controller.position.name, compensator.plan)
    plan.use(joints, follows_setpoint=follows_setpoint)
    return CompensationLoop(
        node,
        compensator,
        list(joints.names),
        commands,
        changed,
        controller=controller,
        imu=imu,
        load=CompensationLoad(node, settings.load_topic if settings.use_load else "", compensator, model),
        links=CompensationLinks(
            node,
            settings.link_states_topic,
            joints.names,
            timeout=settings.timeout,
            largest_deflection=settings.largest_deflection,
        ),
        tolerance=settings.effort_tolerance,
        setpoint=CompensationSetpoint(
            node, settings.setpoint_topic, compensator, joints.names, follows=follows_setpoint
        ),
        plan=plan,
    )


def _commands(
    node: LifecycleNode, settings: SimpleNamespace, joints: JointSettings, controller: ControllerAnswer | None
) -> EffortCommands:
    """Return the publisher of commands for this output, in the controller's joint order; warn of its weak points."""
    route = ROUTES[settings.output]
    order = [name for name in settings.controller_joints if name]
    missing = [name for name in joints.names if order and name not in order]
    if missing:
        node.get_logger().warning(f"controller_joints lacks {', '.join(missing)}, which are not compensated.")
    if controller is not None:
        order = _checked_joints(route.refusal(controller), controller, joints, order)
        if controller.follows_trajectories and not controller.command_timeout:
            node.get_logger().warning(
                f"controller '{controller.name}' keeps the effort of a process that was killed; set its cmd_timeout "
                "to about 0.5 s, above its constraints.goal_time."
            )
    topic = settings.command_topic or f"{settings.controller or route.CONTROLLER}/{route.TOPIC}"
    return route(node, topic, joints.names, order)


def _checked_joints(
    refusal: str, controller: ControllerAnswer, joints: JointSettings, expected: list[str]
) -> list[str]:
    """Return the controller's joints in its order.

    They must match, because a command of another size would deactivate the controller, and the arm would fall.
    """
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
            f"controller '{controller.name}' has joints that the model does not know: {', '.join(unknown)}; use a "
            f"controller of {', '.join(joints.names)} alone"
        )
    missing = [name for name in joints.names if name not in controller.joints]
    if missing and not expected:
        raise ControlError(
            f"controller '{controller.name}' lacks {', '.join(missing)}; give it these joints too, or set "
            f"controller_joints to those that it has ({', '.join(controller.joints)}) to go without the others"
        )
    return list(controller.joints)
