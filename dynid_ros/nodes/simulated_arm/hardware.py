"""Parameters of the node `simulator`, and the arm and loads that they make."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import per_joint
from dynid_ros.model.flange import arm_from_urdf
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass, inertia_matrix
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.shared.controllers import ControllerView
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS
from dynid_ros.nodes.simulated_arm.camera import CAMERA_PARAMETERS
from dynid_ros.nodes.simulated_arm.controller_node import CONTROLLER_PARAMETERS, CONTROLLERS, EACH
from dynid_ros.simulation import (
    ArmHardware,
    CommandInterfaces,
    Drives,
    KnownFriction,
    Sensors,
    SimulatedArm,
    Springs,
    WrenchSensor,
    misjudged_urdf,
)

PUSH_PARAMETERS = (
    NodeParameter("push_link", "", "link that ~/push pushes, at its frame's origin; empty: tip_link", adjustable=True),
    NodeParameter("push_duration", 0.2, "s for which a message on ~/push acts unless another follows", adjustable=True),
)


# The simulated arm as hardware of the real ros2_control, behind `joint_state_topic_hardware_interface`.


COMMANDS, STATES = "hardware/commands", "hardware/joint_states"
"""Relative, so that they are those of the controller manager's namespace."""
CLAIMED = 5
"""Commands after which a position is one of the controller that has become active, or is none of it if there is none:
that it is active comes another way."""
PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"


class HardwareTopics:
    """Does what `hardware/commands` says: positions by a servo, efforts added.

    As the interface publishes them (topic_based_hardware_interfaces 1.1.0, `write`): in each cycle the last value of
    every command interface, claimed or not; NaN where there was none yet. A joint without position command is held, one
    without effort has none. Without positions at all, that is where the URDF has no such interfaces, effort alone acts;
    so it does while the controller of efforts is active and that of positions is not, and once the latter is active and
    has commanded no position (a trajectory controller on effort, by its PID), as far as that is known: a drive changes
    its mode then. The namespaces of the topics are the names of the controllers that claim positions and efforts.
    """

    def __init__(
        self,
        node: Node,
        arm: SimulatedArm,
        refused: Callable[[str], None],
        position_topic: str,
        effort_topic: str,
    ) -> None:
        self._names = list(arm.robot.joint_names)
        self._interfaces = CommandInterfaces(len(self._names))
        self._hardware = ArmHardware(arm, self._interfaces, sums=True)
        self._refused = refused
        self._heard, self._claimed, self._unwritten = False, CLAIMED, 0
        self._position_controller, self._effort_controller = (
            ControllerView(node, topic.rpartition("/")[0]) for topic in (position_topic, effort_topic)
        )
        node.create_subscription(JointState, COMMANDS, self._on_commands, 10)

    @property
    def mode(self) -> str:
        """In words."""
        if not self._heard:
            return f"hardware of ros2_control, no command on {COMMANDS} yet"
        return f"hardware of ros2_control, {'effort alone' if self._hardware.effort_mode else 'position and effort'}"

    def update(self, period: float) -> None:
        """Command what is due in a cycle of `period` s."""
        self._hardware.write(period)

    def reset(self) -> None:
        """Hold the arm, which has been reset; commands that go on coming act again."""
        self._interfaces.forget()
        self._hardware.effort_mode, self._unwritten = False, 0

    def _on_commands(self, message: JointState) -> None:
        try:
            position = self._of(message, "position")
            effort = self._of(message, "effort")
        except DynidError as error:
            self._refused(f"hardware command refused: {error}")
            return
        self._heard = True
        let_go = self._position_controller.is_inactive and self._effort_controller.is_active
        self._claimed = 0 if let_go else self._claimed + 1
        if position is None or np.isfinite(position).any():
            self._unwritten = 0
        elif self._position_controller.is_active:
            self._unwritten += 1
        alone = position is None or self._claimed < CLAIMED or self._unwritten >= CLAIMED
        self._hardware.effort_mode = effort is not None and alone
        nothing = np.full(len(self._names), np.nan)
        self._interfaces.position = nothing if position is None else position
        self._interfaces.effort = nothing if effort is None else effort

    def _of(self, message: JointState, field: str) -> NDArray | None:
        """(n,) in the arm's joint order; None: no joint has this interface."""
        values = getattr(message, field)
        if not len(values):
            return None
        if sorted(message.name) != sorted(self._names) or len(values) != len(self._names):
            raise DynidError(
                f"{len(values)} values of {field} for {', '.join(message.name) or '(no joints)'}; expected one for "
                f"each of {', '.join(self._names)}: give all joints the same command interfaces"
            )
        return np.array([values[message.name.index(name)] for name in self._names], dtype=float)


def with_hardware(urdf: str, robot: RobotModel, interfaces: tuple[str, ...] = ("position", "effort")) -> str:
    """Return the URDF with the `<ros2_control>` element that makes this arm the hardware of a controller manager.

    Raises:
        DynidError: the URDF has one already.
    """
    root = ET.fromstring(urdf)
    if root.find("ros2_control") is not None:
        raise DynidError("the URDF has a <ros2_control> element already, which would be other hardware; take it out")
    system = ET.SubElement(root, "ros2_control", name="simulated_arm", type="system")
    hardware = ET.SubElement(system, "hardware")
    ET.SubElement(hardware, "plugin").text = PLUGIN
    for name, value in (
        ("joint_commands_topic", COMMANDS),
        ("joint_states_topic", STATES),
        ("trigger_joint_command_threshold", "-1"),  # each cycle; its default withholds small changes
    ):
        ET.SubElement(hardware, "param", name=name).text = value
    for name in robot.joint_names:
        joint = ET.SubElement(system, "joint", name=name)
        for interface in interfaces:
            command = ET.SubElement(joint, "command_interface", name=interface)
            if interface == "effort":
                ET.SubElement(command, "param", name="initial_value").text = "0.0"
        for interface in ("position", "velocity", "effort"):
            ET.SubElement(joint, "state_interface", name=interface)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


SHORTEST_TIMESTEP = 1e-5
BOTH = "; one for force and one for torque, or one per axis"
SENSOR_PARAMETERS = (
    NodeParameter("torque_offset", [0.02], f"fraction of the range, its sign drawn{EACH}", adjustable=True),
    NodeParameter("torque_gain_error", [0.0], f"relative, its sign drawn{EACH}", adjustable=True),
)
"""Errors of the torque sensors, which may go wrong while the arm works."""
LOAD_PARAMETERS = (
    NodeParameter("load_mass", 2.0, "kg, of the load that ~/pick_up takes up", adjustable=True),
    NodeParameter("load_center", [0.0, 0.0, 0.05], "its centre of mass in the tip link's frame, m", adjustable=True),
    NodeParameter(
        "load_inertia",
        [0.005, 0.0, 0.0, 0.005, 0.0, 0.005],
        "its Ixx, Ixy, Ixz, Iyy, Iyz, Izz about its centre of mass, along the tip link's axes, kg m^2",
        adjustable=True,
    ),
)
PARAMETERS = (
    NodeParameter("robot_description", "", "URDF as text, or a path to it; empty: the demo arm"),
    *(parameter for parameter in ROBOT_PARAMETERS if parameter.name != "robot_description"),
    NodeParameter("rate", 250.0, "joint states per second, 1 to 1000"),
    NodeParameter("timestep", 0.001, "largest timestep of the physics, s"),
    NodeParameter("seed", 0, "of all random numbers: signs of the sensor errors, noise"),
    NodeParameter(
        "description_error",
        0.0,
        "of the links in the robot_description that is published: relative, of masses and extents; 0: the truth",
    ),
    NodeParameter("start_position", [math.nan], f"rad (m); nan: zero, or the limit nearest to it{EACH}"),
    NodeParameter("coulomb_friction", [math.nan], f"N m; nan: <dynamics friction> of the URDF{EACH}"),
    NodeParameter("viscous_friction", [math.nan], f"N m s/rad; nan: <dynamics damping> of the URDF{EACH}"),
    NodeParameter(
        "friction_file",
        "",
        "identified.yaml of links, whose friction the joints have with all its terms (memory, load, springs); empty: "
        "coulomb_friction and viscous_friction",
    ),
    NodeParameter("rotor_inertia", [0.0], f"kg m^2, seen at the joint; of flexible joints, that of the motors{EACH}"),
    NodeParameter("stiffness", [math.inf], f"N m/rad, of the springs of flexible joints; inf: rigid joints{EACH}"),
    NodeParameter("spring_cubic", [0.0], f"what the springs stiffen by, N m/rad^3{EACH}"),
    NodeParameter("spring_dead_zone", [0.0], f"half the play between motor and link, rad{EACH}"),
    NodeParameter("spring_damping", [0.0], f"in parallel to the springs, N m s/rad{EACH}"),
    NodeParameter("motor_viscous", [0.0], f"friction of the motors of flexible joints, N m s/rad{EACH}"),
    NodeParameter(
        "torque_range", [math.nan], f"full scale of the torque sensors, N m; nan: the URDF's effort limits{EACH}"
    ),
    *SENSOR_PARAMETERS,
    NodeParameter("torque_noise", [0.005], f"standard deviation of a sample, fraction of the range{EACH}"),
    NodeParameter("position_noise", [2e-5], f"standard deviation of a sample, rad{EACH}"),
    NodeParameter("velocity_noise", [1e-3], f"standard deviation of a sample, rad/s{EACH}"),
    *CONTROLLER_PARAMETERS,
    NodeParameter("wrench_topic", "", "readings of the force/torque sensor between tip link and load; empty: none"),
    NodeParameter("wrench_bias", [5.0, 0.3], f"N and N m, its sign drawn{BOTH}"),
    NodeParameter("wrench_noise", [0.1, 0.003], f"standard deviation of a sample, N and N m{BOTH}"),
    NodeParameter("wrench_range", [math.inf], f"largest reading, N and N m{BOTH}"),
    *LOAD_PARAMETERS,
    *PUSH_PARAMETERS,
    NodeParameter("link_states_topic", "", "sensor_msgs/JointState with the positions of the links; empty: none"),
    *CAMERA_PARAMETERS,
)


def make_arm(settings: SimpleNamespace, urdf: str) -> SimulatedArm:
    """The arm of a URDF; raises as its parts do, and for parameters that make no sense."""
    held = held_positions([settings.held_joints])
    robot, _ = arm_from_urdf(
        urdf,
        settings.tip_link,
        settings.base_link,
        settings.gravity,
        held=held,
        srdf=settings.srdf_file,
        group=settings.group,
    )
    period = 1.0 / settings.rate
    if not settings.timestep >= SHORTEST_TIMESTEP:
        raise DynidError(f"Parameter 'timestep' is {settings.timestep:g} s; expected {SHORTEST_TIMESTEP:g} or more")
    if settings.seed < 0:
        raise DynidError(f"Parameter 'seed' is {settings.seed}; expected 0 or more")
    wrench_sensor = WrenchSensor.draw(
        np.random.default_rng((settings.seed, 3)),
        bias=settings.wrench_bias,
        noise=settings.wrench_noise,
        range=settings.wrench_range,
    )
    if settings.controller not in CONTROLLERS:
        raise DynidError(f"Parameter 'controller' is '{settings.controller}'; expected {', '.join(CONTROLLERS)}")
    drives = Drives(_given(settings.coulomb_friction), _given(settings.viscous_friction), settings.rotor_inertia)
    friction = KnownFriction.read(settings.friction_file, robot) if settings.friction_file else None
    return SimulatedArm(
        robot,
        drives=drives,
        friction=friction,
        springs=_springs(settings),
        sensors=make_sensors(settings, robot),
        wrench_sensor=wrench_sensor,
        start=_given(settings.start_position),
        timestep=period / max(math.ceil(period / settings.timestep - 1e-9), 1),
        seed=settings.seed,
        servo_model=settings.controller == "effort",
    )


def make_sensors(settings: SimpleNamespace, robot: RobotModel) -> Sensors:
    """The joints' sensors; other errors have the same signs again."""
    torque_range = _given(settings.torque_range)
    if torque_range is None and not np.all(np.isfinite(robot.limits.effort)):
        raise DynidError("The URDF has joints without effort limit; set parameter 'torque_range'")
    errors = ("torque_offset", "torque_gain_error", "torque_noise", "position_noise", "velocity_noise")
    return Sensors.draw(
        per_joint(
            robot.limits.effort if torque_range is None else torque_range,
            robot.joint_names,
            "torque_range",
            error=DynidError,
            least=0.0,
        ),
        np.random.default_rng((settings.seed, 1)),
        **{name: getattr(settings, name) for name in errors},
    )


def published_description(settings: SimpleNamespace, robot: RobotModel) -> str | None:
    """URDF of `robot`, wrong by as much as the parameter says; with the hardware's element for ros2_control."""
    error = settings.description_error
    if not 0.0 <= error < 1.0:
        raise DynidError(f"Parameter 'description_error' is {error:g}; expected 0 or more, below 1")
    urdf = misjudged_urdf(robot, error, np.random.default_rng((settings.seed, 2))) if error else robot.urdf
    return with_hardware(urdf, robot) if urdf and settings.controller == "ros2_control" else urdf


def load_of(settings: SimpleNamespace) -> NDArray:
    """Parameters (10,) about the tip link's frame of the load that `LOAD_PARAMETERS` describe.

    Raises:
        DynidError: a list of another length.
    """
    for name, length in (("load_center", 3), ("load_inertia", 6)):
        if len(getattr(settings, name)) != length:
            raise DynidError(f"Parameter '{name}' has {len(getattr(settings, name))} values; expected {length}")
    about_center = np.zeros(PARAMETERS_PER_LINK)
    about_center[4:] = settings.load_inertia
    return from_center_of_mass(settings.load_mass, np.array(settings.load_center), inertia_matrix(about_center))


def _springs(settings: SimpleNamespace) -> Springs | None:
    if list(settings.stiffness) == [math.inf]:
        return None
    names = ("stiffness", "spring_cubic", "spring_dead_zone", "spring_damping", "motor_viscous")
    return Springs(*(np.array(getattr(settings, name)) for name in names))


def _given(values: list[float]) -> list[float] | None:
    return None if len(values) == 1 and math.isnan(values[0]) else values
