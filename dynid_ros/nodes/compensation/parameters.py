"""Parameters of the node `gravity_compensation`, and what they make."""

from types import SimpleNamespace

from dynid_ros.control import (
    FeedbackGains,
    JointSettings,
    LoadedGravity,
    Timing,
    compensated_friction,
    load_gravity_torque,
)
from dynid_ros.errors import ControlError
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml, written by the gravity identification"),
    NodeParameter("use_load", True, "count with a load: that of model_file, and what load_topic says"),
    NodeParameter(
        "load_topic", "load", "latched geometry_msgs/InertiaStamped, the load in the tip link's frame; empty: none"
    ),
    NodeParameter("largest_load", 5.0, "largest mass of a load that is believed, kg"),
    NodeParameter(
        "max_model_change",
        0.3,
        "part of the effort limits by which gravity may change while enabled, or be off the URDF's; inf: any",
    ),
    NodeParameter("use_springs", True, "count with flexible joints: their springs in model_file"),
    NodeParameter("link_states_topic", "", "sensor_msgs/JointState, measured positions of the links; empty: none"),
    NodeParameter("largest_deflection", 0.1, "rad (m) by which a measured link may be away from its motor"),
    NodeParameter(
        "output", "effort", "effort: Float64MultiArray for forward_command_controller; trajectory: JointTrajectory"
    ),
    NodeParameter("controller", "", "name of the controller, which is asked for its joints; empty: by command_topic"),
    NodeParameter("command_topic", "", "topic of the commands; empty: that of the controller"),
    NodeParameter("controller_joints", [""], 'joints that the controller must have, in its order; [""]: any'),
    NodeParameter("unchecked_controller", False, "command a controller that cannot be asked, in this order of joints"),
    NodeParameter("position_controller", "joint_trajectory_controller", "beside output effort; empty: there is none"),
    NodeParameter(
        "effort_convention", "", "torque: effort in joint_states is what output effort commands; empty: it is not"
    ),
    NodeParameter("assume_no_effort", False, "the controller holds no torque at ~/enable, whether it is seen or not"),
    NodeParameter("scale", [1.0], "factor on the gravity torque, 0 to 1.5; one value, or one per joint"),
    NodeParameter("stiffness", [0.0], "N m/rad (N/m) towards the desired pose; one value, or one per joint"),
    NodeParameter("damping", [0.0], "N m s/rad (N s/m); one value, or one per joint"),
    NodeParameter("setpoint_topic", "~/setpoint", "sensor_msgs/JointState, desired positions by name; empty: none"),
    NodeParameter("setpoint_velocity", [0.25], "rad/s (m/s) of the desired pose towards a set-point; likewise"),
    NodeParameter("friction_scale", [0.0], "part of the identified friction to compensate for, 0 to 0.8; likewise"),
    NodeParameter("friction_velocity", 0.05, "rad/s (m/s) from which on all of it is; below half of it none"),
    NodeParameter("torque_limits", [0.0], "N m (N); one value, or one per joint; [0.0]: from the URDF"),
    NodeParameter("effort_limit_factor", 1.0, "part of the URDF's effort limits that may be commanded, up to 1"),
    NodeParameter("max_rate", [0.0], "fastest change, N m/s (N/s); [0.0]: torque limit / fault_ramp_time"),
    NodeParameter("ramp_time", 2.0, "s, of the ramps after enable and disable"),
    NodeParameter("fault_ramp_time", 0.5, "s, of the ramp to zero at a fault, at deactivation and at the end, up to 3"),
    NodeParameter("timeout", 0.2, "s, oldest joint state that is still acted on"),
    NodeParameter("hold_on_silence", 0.0, "s for which the torque stays where joint states alone are late, up to 1"),
    NodeParameter("limit_margin", 0.1, "rad (m) beyond the position limits that are not yet a fault"),
    NodeParameter("enable_on_activate", False, "ramp in with the first good joint state after activation"),
    NodeParameter("autostart", False, "configure and activate at the start, without a lifecycle manager"),
)

FROM_URDF = [0.0]


def timing(settings: SimpleNamespace) -> Timing:
    """Ramps and timeout."""
    return Timing(settings.ramp_time, settings.fault_ramp_time, settings.timeout, settings.hold_on_silence)


def feedforward(settings: SimpleNamespace, urdf: str) -> tuple[LoadedGravity, JointSettings]:
    """Gravity torque of the model file and the settings of its joints; raises as `load_gravity_torque` does."""
    if not settings.model_file:
        raise ControlError("parameter model_file is empty; give the identified.yaml of this robot")
    robot, gravity = load_gravity_torque(
        settings.model_file,
        urdf,
        settings.base_link or None,
        settings.tip_link or None,
        settings.gravity,
        use_load=settings.use_load,
        largest_load=settings.largest_load,
        use_springs=settings.use_springs,
    )
    coulomb, viscous = compensated_friction(settings.model_file, robot.joint_names, settings.friction_scale)
    feedback = FeedbackGains.of(
        robot,
        stiffness=settings.stiffness,
        damping=settings.damping,
        setpoint_velocity=settings.setpoint_velocity,
        coulomb=coulomb,
        viscous=viscous,
        friction_velocity=settings.friction_velocity,
    )
    joints = JointSettings.of(
        robot,
        fault_ramp_time=timing(settings).fault_ramp_time,
        gain=settings.scale,
        torque=_unless(FROM_URDF, settings.torque_limits),
        effort_limit_factor=settings.effort_limit_factor,
        rate=_unless(FROM_URDF, settings.max_rate),
        limit_margin=settings.limit_margin,
        feedback=feedback,
    )
    return gravity, joints


def _unless(unset: list[float], values: list[float]) -> list[float]:
    return [] if list(values) == unset else list(values)
