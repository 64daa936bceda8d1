"""Parameters of the node `simulator`, and the arm, sensors, cameras and loads that they describe."""

import math
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose, PoseArray, PoseStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from scipy.spatial.transform import Rotation

from dynid_ros.errors import DynidError
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.model.arrays import per_joint
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass, inertia_matrix
from dynid_ros.model.link_tree import held_positions
from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS
from dynid_ros.nodes.shared.topics import require_topic
from dynid_ros.nodes.simulated_arm.controller_node import CONTROLLER_PARAMETERS, PER_JOINT
from dynid_ros.nodes.simulated_arm.controllers import with_hardware
from dynid_ros.simulation import (
    Camera,
    CameraView,
    Drives,
    KnownFriction,
    Sensors,
    SimulatedArm,
    Springs,
    WrenchSensor,
    misjudged_urdf,
    scattered_markers,
)
from dynid_ros.simulation.sensors import FRAME, body_pose, body_topics

CAMERA_PARAMETERS = (
    NodeParameter("markers_topic", "", "geometry_msgs/PoseArray of all markers; empty: none"),
    NodeParameter("mocap_prefix", "", "links as geometry_msgs/PoseStamped on <mocap_prefix>/<link>/pose; empty: none"),
    NodeParameter("markers_per_link", 3, "number of markers on each moving link, 3 or more"),
    NodeParameter("marker_radius", 0.15, "distance of the markers from their link's origin, m"),
    NodeParameter("marker_noise", 3e-4, "standard deviation of a marker's position along each axis, m"),
    NodeParameter("marker_occlusion", 0.0, "fraction of the time for which a marker is hidden"),
    NodeParameter("marker_burst", 0.0, "mean duration of an occlusion, s; 0: one frame"),
    NodeParameter("marker_swaps", 0.0, "pairs of markers per second that swap their places in the list for a while"),
    NodeParameter("marker_ghosts", 0.0, "fraction of the frames with a reflection, after the markers"),
    NodeParameter("camera_rate", 100.0, "frames per second"),
    NodeParameter("camera_latency", 0.0, "delay of the frames and of their stamps, s"),
    NodeParameter("camera_clock_offset", 0.0, "difference of the robot's clock from the camera's at the start, s"),
    NodeParameter("camera_clock_drift", 0.0, "growth of that difference, s/s"),
    NodeParameter("base_in_camera", [0.0] * 6, "x, y, z (m), roll, pitch, yaw (rad) of the base in the camera's frame"),
)
NO_ROTATION = np.array([0.0, 0.0, 0.0, 1.0])
# The reliability of vrpn_mocap, with a deeper queue, because the simulator may catch up several frames at once.
SENSOR_DATA = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)

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


class SimulatorCamera:
    """Publisher of the markers and link poses that a camera sees, with the camera's rate and clock.

    Raises:
        DynidError: a parameter is invalid.
    """

    def __init__(self, node: Node, settings: SimpleNamespace, arm: SimulatedArm) -> None:
        self._camera = camera_of(settings)
        self._arm = arm
        rng = np.random.default_rng((settings.seed, 4))
        self._markers = scattered_markers(arm.robot, settings.markers_per_link, settings.marker_radius, rng)
        self._view = CameraView(self._camera, rng)
        self._array: Publisher | None = None
        if settings.markers_topic:
            self._array = node.create_publisher(PoseArray, settings.markers_topic, SENSOR_DATA)
        topics = body_topics(self._markers, arm.robot, settings.mocap_prefix) if settings.mocap_prefix else {}
        for topic in topics:
            require_topic(node, topic, "a link's topic by parameter 'mocap_prefix'")
        self._bodies = [(node.create_publisher(PoseStamped, topic, SENSOR_DATA), on) for topic, on in topics.items()]
        self._start: int | None = None
        self._frames = 0
        self._before = (0.0, arm.link_position)  # time, s, and link positions of the last call
        self._delayed: deque[tuple[float, np.ndarray]] = deque()

    def truth(self) -> dict[str, Any]:
        """Return the camera's settings and the markers' places as plain mappings, for the table of true values."""
        camera = {name: np.asarray(value).tolist() for name, value in vars(self._camera).items()}
        links = [self._arm.robot.link_names[link] for link in self._markers.links]
        rows = zip(self._markers.names, links, self._markers.places.tolist(), strict=True)
        return {"camera": camera, "markers": {name: {"link": link, "place": place} for name, link, place in rows}}

    def look(self, stamp: int) -> None:
        """Take the frames up to the arm's present state, of stamp `stamp`, ns, and publish those that are due."""
        if self._start is None:
            self._start = stamp
            self._before = (0.0, self._arm.link_position)
        now = (stamp - self._start) * 1e-9
        then, before = self._before
        links = self._arm.link_position
        period = (1.0 + self._camera.clock_drift) / self._camera.rate
        while (exposure := self._frames * period) <= now:
            fraction = (exposure - then) / (now - then) if now > then else 1.0
            place = before + np.clip(fraction, 0.0, 1.0) * (links - before)
            self._delayed.append(
                (exposure, self._view.frame(self._arm.truth.marker_positions(place, self._markers)[0]))
            )
            self._frames += 1
        self._before = (now, links)
        while self._delayed and self._delayed[0][0] + self._camera.latency <= now:
            self._publish(self._start, *self._delayed.popleft())

    def _publish(self, start: int, exposure: float, seen: np.ndarray) -> None:
        seconds = float(self._camera.camera_time(exposure, 0.0)) + self._camera.latency
        array = PoseArray()
        array.header.frame_id = FRAME
        array.header.stamp.sec, array.header.stamp.nanosec = divmod(start + round(seconds * 1e9), 10**9)
        if self._array is not None:
            array.poses = [_pose(position, NO_ROTATION) for position in seen]
            self._array.publish(array)
        for publisher, on in self._bodies:
            position, quaternion = body_pose(seen[np.newaxis, on], self._markers.places[on])
            if np.isfinite(position).all():  # a tracker does not publish a body that it has lost
                publisher.publish(PoseStamped(header=array.header, pose=_pose(position[0], quaternion[0])))


def camera_of(settings: SimpleNamespace) -> Camera:
    """Return the camera of `CAMERA_PARAMETERS`."""
    if len(settings.base_in_camera) != 6 or not np.isfinite(settings.base_in_camera).all():
        raise DynidError(f"Parameter 'base_in_camera' is {list(settings.base_in_camera)}; expected 6 finite numbers")
    base = np.eye(4)
    base[:3, 3] = settings.base_in_camera[:3]
    base[:3, :3] = Rotation.from_euler("xyz", settings.base_in_camera[3:]).as_matrix()
    return Camera(
        rate=settings.camera_rate,
        base=base,
        noise=settings.marker_noise,
        clock_offset=settings.camera_clock_offset,
        clock_drift=settings.camera_clock_drift,
        occlusion=settings.marker_occlusion,
        burst=settings.marker_burst,
        swaps=settings.marker_swaps,
        ghosts=settings.marker_ghosts,
        latency=settings.camera_latency,
    )


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Pose:
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = position.tolist()
    orientation = pose.orientation
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion.tolist()
    return pose


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
    """Return the inertial parameters (10,) of the load of `LOAD_PARAMETERS` about the tip link's frame."""
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
