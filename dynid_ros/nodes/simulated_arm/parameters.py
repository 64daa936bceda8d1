"""Parameters of the node `simulator`, and the arm, sensors and loads that they describe."""

import math
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import per_joint
from dynid_ros.model.flange import arm_from_urdf
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass, inertia_matrix
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS
from dynid_ros.nodes.simulated_arm.camera import CAMERA_PARAMETERS
from dynid_ros.nodes.simulated_arm.controller_node import CONTROLLER_PARAMETERS, PER_JOINT
from dynid_ros.nodes.simulated_arm.hardware import with_hardware
from dynid_ros.simulation import Drives, KnownFriction, Sensors, SimulatedArm, Springs, WrenchSensor, misjudged_urdf

PER_AXIS = "; one for force and one for torque, or one per axis"
SENSOR_PARAMETERS = (
    NodeParameter(
        "torque_offset", [0.02], f"size of the offset, fraction of the range; random sign{PER_JOINT}", adjustable=True
    ),
    NodeParameter(
        "torque_gain_error", [0.0], f"size of the relative gain error; random sign{PER_JOINT}", adjustable=True
    ),
)
"""Errors of the torque sensors, which may change while the arm works."""
PUSH_PARAMETERS = (
    NodeParameter("push_link", "", "link that ~/push pushes, at its frame's origin; empty: tip_link", adjustable=True),
    NodeParameter("push_duration", 0.2, "duration of the effect of a message on ~/push, s", adjustable=True),
)
LOAD_PARAMETERS = (
    NodeParameter("load_mass", 2.0, "mass of the load that ~/pick_up attaches, kg", adjustable=True),
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
    NodeParameter("rate", 250.0, "joint states per second", least=1.0, most=1000.0),
    NodeParameter("timestep", 0.001, "largest timestep of the physics, s", least=1e-5),
    NodeParameter("seed", 0, "seed of all random numbers: signs of the sensor errors, noise", least=0),
    NodeParameter(
        "description_error",
        0.0,
        "relative error of masses and extents of the links in the published robot_description; 0: none",
        least=0.0,
        most=0.99,
    ),
    NodeParameter("start_position", [math.nan], f"rad (m); nan: zero, or the limit nearest to it{PER_JOINT}"),
    NodeParameter("coulomb_friction", [math.nan], f"N m; nan: <dynamics friction> of the URDF{PER_JOINT}"),
    NodeParameter("viscous_friction", [math.nan], f"N m s/rad; nan: <dynamics damping> of the URDF{PER_JOINT}"),
    NodeParameter(
        "friction_file",
        "",
        "identified.yaml of links, whose friction the joints have with all its terms (memory, load, springs); empty: "
        "coulomb_friction and viscous_friction",
    ),
    NodeParameter("rotor_inertia", [0.0], f"kg m^2, seen at the joint; of flexible joints, of the motors{PER_JOINT}"),
    NodeParameter("stiffness", [math.inf], f"N m/rad, of the springs of flexible joints; inf: rigid joints{PER_JOINT}"),
    NodeParameter("spring_cubic", [0.0], f"cubic stiffness of the springs, N m/rad^3{PER_JOINT}"),
    NodeParameter("spring_dead_zone", [0.0], f"half of the play between motor and link, rad{PER_JOINT}"),
    NodeParameter("spring_damping", [0.0], f"damping parallel to the springs, N m s/rad{PER_JOINT}"),
    NodeParameter("motor_viscous", [0.0], f"friction of the motors of flexible joints, N m s/rad{PER_JOINT}"),
    NodeParameter(
        "torque_range", [math.nan], f"full scale of the torque sensors, N m; nan: the URDF's effort limits{PER_JOINT}"
    ),
    *SENSOR_PARAMETERS,
    NodeParameter("torque_noise", [0.005], f"standard deviation of a sample, fraction of the range{PER_JOINT}"),
    NodeParameter("position_noise", [2e-5], f"standard deviation of a sample, rad{PER_JOINT}"),
    NodeParameter("velocity_noise", [1e-3], f"standard deviation of a sample, rad/s{PER_JOINT}"),
    *CONTROLLER_PARAMETERS,
    NodeParameter("wrench_topic", "", "topic of the force/torque sensor between tip link and load; empty: none"),
    NodeParameter("wrench_bias", [5.0, 0.3], f"size of the bias, N and N m; random sign{PER_AXIS}"),
    NodeParameter("wrench_noise", [0.1, 0.003], f"standard deviation of a sample, N and N m{PER_AXIS}"),
    NodeParameter("wrench_range", [math.inf], f"largest reading, N and N m{PER_AXIS}"),
    *LOAD_PARAMETERS,
    *PUSH_PARAMETERS,
    NodeParameter("link_states_topic", "", "sensor_msgs/JointState with the positions of the links; empty: none"),
    *CAMERA_PARAMETERS,
)


def make_arm(settings: SimpleNamespace, urdf: str) -> SimulatedArm:
    """Return the arm of a URDF.

    Raises:
        DynidError: a parameter is invalid, or the URDF does not describe an arm.
    """
    robot, _ = arm_from_urdf(
        urdf,
        settings.tip_link,
        settings.base_link,
        settings.gravity,
        held=held_positions([settings.held_joints]),
        srdf=settings.srdf_file,
        group=settings.group,
    )
    period = 1.0 / settings.rate
    wrench_sensor = WrenchSensor.draw(
        np.random.default_rng((settings.seed, 3)),
        bias=settings.wrench_bias,
        noise=settings.wrench_noise,
        range=settings.wrench_range,
    )
    drives = Drives(
        _unless_nan(settings.coulomb_friction), _unless_nan(settings.viscous_friction), settings.rotor_inertia
    )
    friction = KnownFriction.read(settings.friction_file, robot) if settings.friction_file else None
    return SimulatedArm(
        robot,
        drives=drives,
        friction=friction,
        springs=_springs(settings),
        sensors=make_sensors(settings, robot),
        wrench_sensor=wrench_sensor,
        start=_unless_nan(settings.start_position),
        timestep=period / max(math.ceil(period / settings.timestep - 1e-9), 1),
        seed=settings.seed,
        servo_model=settings.controller == "effort",
    )


def make_sensors(settings: SimpleNamespace, robot: RobotModel) -> Sensors:
    """Return the sensors of the joints; the signs of their errors depend on the seed only."""
    torque_range = _unless_nan(settings.torque_range)
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
    """Return the URDF of the robot with the error of the parameters, and with the hardware's element if needed."""
    error = settings.description_error
    urdf = misjudged_urdf(robot, error, np.random.default_rng((settings.seed, 2))) if error else robot.urdf
    return with_hardware(urdf, robot) if urdf and settings.controller == "ros2_control" else urdf


def load_parameters(settings: SimpleNamespace) -> NDArray:
    """Return the inertial parameters (10,) of the load of `LOAD_PARAMETERS` about the tip link's frame.

    Raises:
        DynidError: a list has another length.
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


def _unless_nan(values: list[float]) -> list[float] | None:
    return None if len(values) == 1 and math.isnan(values[0]) else values
