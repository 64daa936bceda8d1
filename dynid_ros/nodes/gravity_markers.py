"""Node that shows in RViz the gravity that acts on an arm; it commands nothing and does not slow down the control loop.

It publishes `visualization_msgs/MarkerArray` in the frame of the base link, a few times a second. The centre of mass of
all moving links has an arrow for the weight. Each joint has an arc (a prismatic joint: an arrow) for the torque that
holds the arm, where three quarters of a circle are the joint's effort limit. A larger arc, in the same scale, is the
external torque that the node `external_torque` publishes. The load, and position limits that are near, are shown as
well. Blue stands for identified values, sand for those of the URDF, green for the load, orange for external torque, red
for a torque or a position beyond its limit. Markers disappear without joint states.
"""

import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from dynid_ros.control import CarriedLoad
from dynid_ros.control.gravity_view import GravityPicture, GravityView
from dynid_ros.errors import DynidError
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.process import run, steady_timer
from dynid_ros.nodes.shared.robot_description import (
    LOAD_TOPIC,
    ROBOT_PARAMETERS,
    JointOrder,
    LoadListener,
    robot_description,
    with_group_ends,
)
from dynid_ros.nodes.shared.topics import RawSubscription
from dynid_ros.report.drawing import DARK, LIGHT

PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml; empty: values of the URDF"),
    LOAD_TOPIC,
    NodeParameter(
        "load_in_force_topic",
        "gravity_compensation/load_in_force",
        "latched geometry_msgs/InertiaStamped, the load in the model of gravity_compensation, which takes precedence; "
        "empty: none",
    ),
    NodeParameter(
        "external_torque_topic",
        "external_torque/joint_torques",
        "sensor_msgs/JointState with external torques as effort; empty: none",
    ),
    NodeParameter("marker_topic", "gravity_markers", "visualization_msgs/MarkerArray", required=True),
    NodeParameter("rate", 10.0, "pictures per second", least=0.1, most=60.0),
    NodeParameter("size", 0.12, "radius of the arcs, m; everything else is in proportion", least=0.001, most=10.0),
)
COLORS = DARK | {"urdf": LIGHT["urdf"]}
"""Palette; the sand of dark pages is for areas, too dim for thin arcs on the background of dynid.rviz."""
CHORD_ANGLE_RAD = np.deg2rad(6.0)
MAX_ARROWHEAD_LENGTH = 0.35
"""Length of the arrowhead of an arc in radii; never longer than the arc, so that a torque of zero has none."""
SPACE_WIDTH = 0.5
"""Width of a space in letter heights; RViz would use that of letters of 1 m."""
PICTURE_LIFETIME_S = 1.0
FULL_ARC_RAD = 1.5 * np.pi
"""Arc of a torque at its limit."""
MAX_ARC_FRACTION = 1.2
"""Longest arc, in arcs of a torque at its limit."""
EXTERNAL_RADIUS = 1.4
"""Radius of the arc of an external torque, in radii of that of gravity."""
MIN_SHOWN_FRACTION = 0.03
"""Smallest torque that is shown, as a fraction of the effort limit; numbers of nothing would hide the others."""
LETTER_HEIGHT = 0.32
"""Height of letters in radii of gravity's arcs; with the view of dynid.rviz some 14 pixels."""
LABEL_ANGLE_RAD = 0.4
"""Angle between the number of an arc and its start."""
NEAR_LIMIT_FRACTION = 0.05
"""Distance from a position limit within which the limit is shown, as a fraction of the joint's range."""
MAX_STATES = 10
"""Joint states that are searched for one of this arm, because a gripper may publish on the same topic."""
DISCOVERY_PERIOD_S = 0.2


class Shapes:
    """Collection of markers in one frame, which disappear without newer ones; lengths in m."""

    def __init__(self, header: Header, lifetime: float) -> None:
        self.markers: list[Marker] = []
        self._ids: Counter[str] = Counter()
        self._header = header
        self._lifetime = Duration(seconds=lifetime).to_msg()

    def sphere(self, kind: str, center: NDArray, diameter: float, color: str) -> None:
        """Add a sphere; `color` is a name of the palette."""
        marker = self._add(kind, Marker.SPHERE, color, alpha=0.85)
        marker.pose.position = _point(center)
        marker.scale.x = marker.scale.y = marker.scale.z = diameter

    def text(self, kind: str, place: NDArray, height: float, words: str, color: str = "ink") -> None:
        """Add a text that faces the viewer."""
        marker = self._add(kind, Marker.TEXT_VIEW_FACING, color)
        marker.pose.position = _point(place)
        marker.scale.x = SPACE_WIDTH * height
        marker.scale.z = height
        marker.text = words

    def arrow(self, kind: str, start: NDArray, end: NDArray, width: float, color: str) -> None:
        """Add an arrow between two places, unless they coincide."""
        if np.allclose(start, end, atol=1e-9):
            return
        marker = self._add(kind, Marker.ARROW, color)
        marker.points = [_point(start), _point(end)]
        marker.scale.x = width
        marker.scale.y = 2.5 * width
        marker.scale.z = min(4 * width, 0.5 * float(np.linalg.norm(end - start)))

    def arc(self, kind: str, rotation: NDArray, center: NDArray, *, angle: float, radius: float, color: str) -> None:
        """Add an arc of `angle`, rad, about z of a frame, from its x axis, with an arrowhead for the direction."""
        angles = np.linspace(0.0, angle, max(2, int(np.ceil(abs(angle) / CHORD_ANGLE_RAD)) + 1))
        points = radius * np.column_stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
        line = self._add(kind, Marker.LINE_STRIP, color)
        line.pose = _pose(rotation, center)
        line.points = [_point(point) for point in points]
        line.scale.x = radius / 12
        head = np.clip(angle, -MAX_ARROWHEAD_LENGTH, MAX_ARROWHEAD_LENGTH)
        ahead = points[-1] + head * radius * np.array([-np.sin(angle), np.cos(angle), 0.0])
        width = radius * min(0.1, abs(head) / 3)
        self.arrow(kind, center + rotation @ points[-1], center + rotation @ ahead, width, color)

    def skip_ids(self, kind: str, count: int) -> None:
        """Keep the ids of the following markers; otherwise old markers with the last ids would remain."""
        self._ids[kind] += count

    def _add(self, kind: str, shape: int, color: str, alpha: float = 1.0) -> Marker:
        marker = Marker(header=self._header, ns=kind, id=self._ids[kind], type=shape, action=Marker.ADD)
        marker.pose.orientation.w = 1.0
        marker.color = _color(color, alpha)
        marker.lifetime = self._lifetime
        self._ids[kind] += 1
        self.markers.append(marker)
        return marker


def _color(name: str, alpha: float) -> ColorRGBA:
    red, green, blue = (int(COLORS[name][i : i + 2], 16) / 255 for i in (1, 3, 5))
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def _point(place: Sequence[float] | NDArray) -> Point:
    x, y, z = map(float, place)
    return Point(x=x, y=y, z=z)


def _pose(rotation: NDArray, origin: NDArray) -> Pose:
    x, y, z, w = map(float, Rotation.from_matrix(rotation).as_quat())
    return Pose(position=_point(origin), orientation=Quaternion(x=x, y=y, z=z, w=w))


class GravityMarkers(Node):
    """Node `gravity_markers`; see the module."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("gravity_markers", **arguments)
        self.settings = settings = declare(self, PARAMETERS)
        urdf = robot_description(self, settings.robot_description)
        self.view = GravityView.from_settings(with_group_ends(settings, urdf), urdf)
        self._order = JointOrder(self.view.robot.joint_names)
        self._states: deque[bytes] = deque(maxlen=MAX_STATES)
        self._problem = ""
        self._heard = time.monotonic()
        self._drawn: GravityPicture | None = None
        self._external: tuple[float, NDArray] | None = None
        self._publisher = self.create_publisher(MarkerArray, settings.marker_topic, 10)
        self._topic = RawSubscription(self, "joint_states", ["sensor_msgs/msg/JointState"], self._on_joint_state)
        self._compensated = False
        self._loads = [
            LoadListener(self, settings.load_topic, self._take_load, lambda: self.view.load),
            LoadListener(self, settings.load_in_force_topic, self._take_load_in_force, lambda: self.view.load),
        ]
        if settings.external_torque_topic:
            self.create_subscription(JointState, settings.external_torque_topic, self._on_external_torque, 10)
        steady_timer(self, DISCOVERY_PERIOD_S, self._topic.update)
        steady_timer(self, 1.0 / settings.rate, self._draw)
        Diagnostics(self, self.status, hardware=self.view.robot.name)

    def status(self) -> Status:
        """Return what is shown."""
        view = self.view
        values: dict[str, object] = {
            "model_file": self.settings.model_file,
            "torque": "identified" if view.torque_identified else "of the URDF",
            "masses": "identified" if view.masses_identified else "of the URDF",
            "load": view.load or "none",
            "viewers": self._publisher.get_subscription_count(),
        }
        drawn = self._drawn
        if drawn is not None:
            values["moving_mass"] = f"{drawn.mass:.3f}"
            values |= {
                f"torque {name}": f"{torque:.3f}"
                for name, torque in zip(view.robot.joint_names, drawn.torque, strict=True)
            }
        if problem := self._topic.problem or self._problem:
            return ERROR, problem, values
        load_problem = next((load.problem for load in self._loads if load.problem), "")
        if warning := silence(self._topic.topic, self._heard) or load_problem:
            return WARN, warning, values
        return OK, "showing gravity" if drawn is not None else "waiting for joint states", values

    def _on_joint_state(self, _topic: RawSubscription, _received: int, data: bytes) -> None:
        self._states.append(data)

    def _take_load(self, load: CarriedLoad) -> None:
        """Show a load that was announced, unless gravity compensation publishes the one in its model."""
        if not self._compensated:
            self.view.carry(load)

    def _take_load_in_force(self, load: CarriedLoad) -> None:
        self._compensated = True
        self.view.carry(load)

    def _on_external_torque(self, message: JointState) -> None:
        with suppress(DynidError):  # the publisher reports its faults
            self._external = time.monotonic(), np.array(self._order.pick(message, "effort"))

    def _newest_state(self) -> JointState | None:
        """Return the newest joint state of this arm since the last call; None without one."""
        self._topic.drain()
        while self._states:
            message = deserialize_message(self._states.pop(), JointState)
            if self._order.concerns(message):
                self._states.clear()
                return message
        return None

    def _draw(self) -> None:
        message = self._newest_state()
        if message is None:
            return
        self._heard = time.monotonic()
        try:
            position = np.array(self._order.pick(message, "position"))
            picture = self.view.at(position)
        except DynidError as error:
            self._problem = str(error)
            return
        self._problem = ""
        self._drawn = picture
        header = Header(frame_id=self.view.robot.base, stamp=message.header.stamp)
        shapes = Shapes(header, PICTURE_LIFETIME_S)
        size = self.settings.size
        draw_gravity(shapes, self.view, picture, size)
        if self._external is not None and time.monotonic() - self._external[0] < PICTURE_LIFETIME_S:
            external = self._external[1]
            draw_torques(shapes, self.view, picture, external, size, color="uncompensated", outside=True)
        draw_limits(shapes, self.view, picture, position, size)
        self._publisher.publish(MarkerArray(markers=shapes.markers))


def draw_gravity(shapes: Shapes, view: GravityView, picture: GravityPicture, size: float) -> None:
    """Add the markers of masses, gravity torques and load."""
    down = _down(view)
    if picture.center is not None:
        color = "identified" if view.masses_identified else "urdf"
        source = "" if view.masses_identified else " (URDF)"
        label = f"{picture.mass:.1f} kg{source}"
        shapes.sphere("center_of_mass", picture.center, 0.5 * size, color)
        shapes.text("center_of_mass", picture.center + 2.3 * size * down, LETTER_HEIGHT * size, label)
        shapes.arrow("center_of_mass", picture.center, picture.center + 2 * size * down, size / 10, color)
    color = "identified" if view.torque_identified else "urdf"
    draw_torques(shapes, view, picture, picture.torque, size, color=color)
    if picture.load is not None and view.load is not None:
        shapes.sphere("load", picture.load, 0.6 * size, "truth")
        label = f"load {view.load.mass:.2f} kg"
        shapes.text("load", picture.load + 0.6 * size * down, LETTER_HEIGHT * size, label)


def draw_torques(
    shapes: Shapes,
    view: GravityView,
    picture: GravityPicture,
    torques: NDArray,
    size: float,
    *,
    color: str,
    outside: bool = False,
) -> None:
    """Add the markers of torques (n,) at the joints, as fractions of their effort limits.

    External torques (`outside`) have larger arcs than gravity, and their numbers one line below.
    """
    kind = "external_torque" if outside else "gravity_torque"
    text_color = color if outside else "ink"
    radius = EXTERNAL_RADIUS * size if outside else size
    below = 1.4 * LETTER_HEIGHT * size * _down(view) if outside else np.zeros(3)
    rows = zip(view.robot.joint_types, picture.rotations, picture.origins, torques, view.full_scale, strict=True)
    for joint_type, rotation, origin, torque, full in rows:
        fraction = float(torque / full)
        if abs(fraction) < MIN_SHOWN_FRACTION:
            shapes.skip_ids(kind, 2 if joint_type == "prismatic" else 3)
            continue
        shade = "wrong" if abs(fraction) > 1 else color
        if joint_type == "prismatic":
            shapes.arrow(kind, origin, origin + 3 * radius * fraction * rotation[:, 2], radius / 8, shade)
        else:
            angle = float(np.clip(fraction, -MAX_ARC_FRACTION, MAX_ARC_FRACTION)) * FULL_ARC_RAD
            shapes.arc(kind, rotation, origin, angle=angle, radius=radius, color=shade)
        unit = "N" if joint_type == "prismatic" else "N m"
        # The label stands before the start of the arc, which would cross it out otherwise.
        label_place = rotation @ [np.cos(LABEL_ANGLE_RAD), -np.sign(fraction) * np.sin(LABEL_ANGLE_RAD), 0.0]
        label = f"{torque:.1f} {unit}"
        shapes.text(kind, origin + radius * label_place + below, LETTER_HEIGHT * size, label, text_color)


def _down(view: GravityView) -> NDArray:
    """Return the direction (3,) of gravity with length 1, or 0 without gravity."""
    return view.robot.gravity / max(float(np.linalg.norm(view.robot.gravity)), 1e-9)


def draw_limits(shapes: Shapes, view: GravityView, picture: GravityPicture, position: NDArray, size: float) -> None:
    """Add a sphere and a text at each joint that is near a position limit, or beyond it."""
    robot = view.robot
    low = robot.limits.lower
    high = robot.limits.upper
    for i in np.flatnonzero(np.isfinite(low) & np.isfinite(high)):
        left = float(min(position[i] - low[i], high[i] - position[i]))
        if left > NEAR_LIMIT_FRACTION * (high[i] - low[i]):
            shapes.skip_ids("limits", 2)
            continue
        unit = "m" if robot.joint_types[i] == "prismatic" else "rad"
        color = "wrong" if left < 0 else "ink"
        shapes.sphere("limits", picture.origins[i], 0.3 * size, color)
        words = f"{robot.joint_names[i]}: {abs(left):.2f} {unit} {'beyond' if left < 0 else 'to'} its limit"
        place = picture.origins[i] - 1.2 * size * picture.rotations[i][:, 0]
        shapes.text("limits", place, LETTER_HEIGHT * size, words, color)


main = partial(run, GravityMarkers)
