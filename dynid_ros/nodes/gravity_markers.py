"""Node that shows in RViz what acts on an arm; it commands nothing, and costs the control loop nothing.

`visualization_msgs/MarkerArray` in the base link's frame, a few times a second: the centre of mass of all that the
joints move with its weight, an arc (a prismatic joint: an arrow) about each joint for the torque that holds the arm,
three quarters of a circle being the joint's effort limit, the load, outside of these arcs the torque from outside that
the node `external_torque` tells, in the same scale, and how far a joint is from a limit that is near. Blue is what was
identified, sand what is the URDF's, green the load, orange what comes from outside, red a torque or a position beyond
its limit. Markers vanish when no joint states come.
"""

import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, Point, Pose, Quaternion
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
from dynid_ros.errors import ControlError, DynidError
from dynid_ros.nodes.shared.diagnostics import ERROR, OK, WARN, Diagnostics, Status, silence
from dynid_ros.nodes.shared.joint_states import JointOrder
from dynid_ros.nodes.shared.parameters import NodeParameter, declare
from dynid_ros.nodes.shared.process import run
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS, robot_description, with_group_ends
from dynid_ros.nodes.shared.steady_thread import steady_timer
from dynid_ros.nodes.shared.topics import LATCHED, RawSubscription
from dynid_ros.report.drawing import DARK, LIGHT

COLORS = DARK | {"urdf": LIGHT["urdf"]}
"""The sand of dark pages is for areas: too dim for thin arcs on the background of dynid.rviz."""
STEP = np.deg2rad(6.0)
"""Angle of the chords of an arc, rad."""
TIP = 0.35
"""Length of the tip of an arc in parts of its radius; no longer than the arc, or no torque would look like some."""
SPACE = 0.5
"""Width of a space in parts of the letters' height; without it RViz takes that of letters 1 m high."""


class Shapes:
    """Collects markers in one frame, which vanish when no newer ones come; lengths in m."""

    def __init__(self, header: Header, lifetime: float) -> None:
        self.markers: list[Marker] = []
        self._ids: Counter[str] = Counter()
        self._header = header
        self._lifetime = Duration(seconds=lifetime).to_msg()

    def sphere(self, kind: str, center: NDArray, diameter: float, color: str) -> None:
        """A ball; `color` is a name of the palette."""
        marker = self._add(kind, Marker.SPHERE, color, alpha=0.85)
        marker.pose.position = _point(center)
        marker.scale.x = marker.scale.y = marker.scale.z = diameter

    def text(self, kind: str, place: NDArray, height: float, words: str, color: str = "ink") -> None:
        """Words that face who looks."""
        marker = self._add(kind, Marker.TEXT_VIEW_FACING, color)
        marker.pose.position = _point(place)
        marker.scale.x, marker.scale.z = SPACE * height, height
        marker.text = words

    def arrow(self, kind: str, start: NDArray, end: NDArray, width: float, color: str) -> None:
        """An arrow between two places; none if they are one."""
        if np.allclose(start, end, atol=1e-9):
            return
        marker = self._add(kind, Marker.ARROW, color)
        marker.points = [_point(start), _point(end)]
        marker.scale.x, marker.scale.y = width, 2.5 * width
        marker.scale.z = min(4 * width, 0.5 * float(np.linalg.norm(end - start)))

    def arc(self, kind: str, rotation: NDArray, center: NDArray, *, angle: float, radius: float, color: str) -> None:
        """An arc of `angle`, rad, about z of a frame from its x on, with a tip that says which way round."""
        angles = np.linspace(0.0, angle, max(2, int(np.ceil(abs(angle) / STEP)) + 1))
        points = radius * np.column_stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
        line = self._add(kind, Marker.LINE_STRIP, color)
        line.pose = _pose(rotation, center)
        line.points = [_point(point) for point in points]
        line.scale.x = radius / 12
        tip = np.clip(angle, -TIP, TIP)
        ahead = points[-1] + tip * radius * np.array([-np.sin(angle), np.cos(angle), 0.0])
        width = radius * min(0.1, abs(tip) / 3)
        self.arrow(kind, center + rotation @ points[-1], center + rotation @ ahead, width, color)

    def leave_out(self, kind: str, count: int) -> None:
        """Keep the numbers of the markers that follow: else old ones, with the last numbers, would stay beside them."""
        self._ids[kind] += count

    def _add(self, kind: str, shape: int, color: str, alpha: float = 1.0) -> Marker:
        marker = Marker(
            header=self._header,
            ns=kind,
            id=self._ids[kind],
            type=shape,
            action=Marker.ADD,
        )
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


PARAMETERS = (
    *ROBOT_PARAMETERS,
    NodeParameter("model_file", "", "identified.yaml; empty: what the URDF says"),
    NodeParameter(
        "load_topic", "load", "latched geometry_msgs/InertiaStamped, the load in the tip link's frame; empty: none"
    ),
    NodeParameter(
        "load_in_force_topic",
        "gravity_compensation/load_in_force",
        "the same, the load that gravity_compensation counts with, which then is the one shown; empty: none",
    ),
    NodeParameter(
        "external_torque_topic",
        "external_torque/joint_torques",
        "sensor_msgs/JointState with efforts from outside; empty: none",
    ),
    NodeParameter("marker_topic", "gravity_markers", "visualization_msgs/MarkerArray", required=True),
    NodeParameter("rate", 10.0, "pictures per second, 0.1 to 60"),
    NodeParameter("size", 0.12, "radius of the arcs, 0.001 to 10 m; all else is in proportion"),
)
BOUNDS = {"rate": (0.1, 60.0), "size": (0.001, 10.0)}
LIFETIME = 1.0
"""s for which a picture stays when no other comes."""
FULL_TURN = 1.5 * np.pi
"""Arc of a torque at its limit, rad."""
OUTSIDE = 1.4
"""Radius of the arc of a torque from outside, in parts of that of gravity."""
FAINT = 0.03
"""Part of a joint's effort limit below which its torque is not shown: numbers of nothing hide the others."""
LETTERS = 0.32
"""Height of letters in parts of the radius of gravity's arcs: with the view of dynid.rviz some 14 pixels."""
BEFORE = 0.4
"""Angle before the start of an arc at which its number is, rad."""
NEAR = 0.05
"""Part of a joint's range within which its limit is shown."""
KEPT = 10
"""Joint states that are looked through for one of this arm: a gripper's come on the same topic."""


class GravityMarkers(Node):
    """The node; see the module."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("gravity_markers", **arguments)
        self.settings = settings = declare(self, PARAMETERS)
        for name, (lowest, highest) in BOUNDS.items():
            if not lowest <= (value := getattr(settings, name)) <= highest:
                raise DynidError(f"parameter {name} is {value}; expected {lowest:g} to {highest:g}")
        urdf = robot_description(self, settings.robot_description)
        self.view = GravityView.from_settings(with_group_ends(settings, urdf), urdf)
        self._order = JointOrder(self.view.robot.joint_names)
        self._states: deque[bytes] = deque(maxlen=KEPT)
        self._problem = self._load_problem = ""
        self._heard = time.monotonic()
        self._drawn: GravityPicture | None = None
        self._external: tuple[float, NDArray] | None = None
        self._publisher = self.create_publisher(MarkerArray, settings.marker_topic, 10)
        self._topic = RawSubscription(self, "joint_states", ["sensor_msgs/msg/JointState"], self._on_joint_state)
        self._compensated = False
        if settings.load_topic:
            self.create_subscription(InertiaStamped, settings.load_topic, self._on_load, LATCHED)
        if settings.load_in_force_topic:
            self.create_subscription(InertiaStamped, settings.load_in_force_topic, self._on_load_in_force, LATCHED)
        if settings.external_torque_topic:
            self.create_subscription(JointState, settings.external_torque_topic, self._on_external_torque, 10)
        steady_timer(self, 0.2, self._topic.update)
        steady_timer(self, 1.0 / settings.rate, self._draw)
        Diagnostics(self, self.status, hardware=self.view.robot.name)

    def status(self) -> Status:
        """What is shown."""
        view, drawn = self.view, self._drawn
        values: dict[str, object] = {
            "model_file": self.settings.model_file,
            "torque": "identified" if view.torque_identified else "of the URDF",
            "masses": "identified" if view.masses_identified else "of the URDF",
            "load": view.load or "none",
            "viewers": self._publisher.get_subscription_count(),
        }
        if drawn is not None:
            values["moving_mass"] = f"{drawn.mass:.3f}"
            values |= {
                f"torque {name}": f"{torque:.3f}"
                for name, torque in zip(view.robot.joint_names, drawn.torque, strict=True)
            }
        if problem := self._topic.problem or self._problem:
            return ERROR, problem, values
        if warning := silence(self._topic.topic, self._heard) or self._load_problem:
            return WARN, warning, values
        return OK, "showing gravity" if drawn is not None else "waiting for joint states", values

    def _on_joint_state(self, _topic: RawSubscription, _received: int, data: bytes) -> None:
        self._states.append(data)

    def _on_load(self, message: InertiaStamped) -> None:
        """Show a load that was announced, unless gravity compensation says which one it counts with."""
        if not self._compensated:
            self._show_load(message)

    def _on_load_in_force(self, message: InertiaStamped) -> None:
        self._compensated = True
        self._show_load(message)

    def _show_load(self, message: InertiaStamped) -> None:
        center = message.inertia.com
        try:
            self.view.carry(
                CarriedLoad(message.inertia.m, (center.x, center.y, center.z), message.header.frame_id.lstrip("/"))
            )
            self._load_problem = ""
        except ControlError as error:
            self._load_problem = f"a load is not shown: {error}"

    def _on_external_torque(self, message: JointState) -> None:
        # who publishes says itself what is wrong with it
        with suppress(DynidError):
            self._external = time.monotonic(), np.array(self._order.pick(message, "effort"))

    def _newest(self) -> JointState | None:
        """The newest joint state of this arm since the last look."""
        self._topic.drain()
        while self._states:
            message = deserialize_message(self._states.pop(), JointState)
            if self._order.concerns(message):
                self._states.clear()
                return message
        return None

    def _draw(self) -> None:
        message = self._newest()
        if message is None:
            return
        self._heard = time.monotonic()
        try:
            position = np.array(self._order.pick(message, "position"))
            picture = self.view.at(position)
        except DynidError as error:
            self._problem = str(error)
            return
        self._problem, self._drawn = "", picture
        shapes = Shapes(Header(frame_id=self.view.robot.base, stamp=message.header.stamp), LIFETIME)
        draw_gravity(shapes, self.view, picture, self.settings.size)
        if self._external is not None and time.monotonic() - self._external[0] < LIFETIME:
            external = self._external[1]
            draw_torques(shapes, self.view, picture, external, self.settings.size, color="uncompensated", outside=True)
        draw_limits(shapes, self.view, picture, position, self.settings.size)
        self._publisher.publish(MarkerArray(markers=shapes.markers))


def draw_gravity(shapes: Shapes, view: GravityView, picture: GravityPicture, size: float) -> None:
    """Markers of one picture."""
    down = _down(view)
    if picture.center is not None:
        color = "identified" if view.masses_identified else "urdf"
        source = "" if view.masses_identified else " (URDF)"
        shapes.sphere("center_of_mass", picture.center, 0.5 * size, color)
        shapes.text(
            "center_of_mass", picture.center + 2.3 * size * down, LETTERS * size, f"{picture.mass:.1f} kg{source}"
        )
        shapes.arrow("center_of_mass", picture.center, picture.center + 2 * size * down, size / 10, color)
    color = "identified" if view.torque_identified else "urdf"
    draw_torques(shapes, view, picture, picture.torque, size, color=color)
    if picture.load is not None and view.load is not None:
        shapes.sphere("load", picture.load, 0.6 * size, "truth")
        shapes.text("load", picture.load + 0.6 * size * down, LETTERS * size, f"load {view.load.mass:.2f} kg")


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
    """Markers of torques (n,) at the joints, in parts of their effort limits.

    Those from outside have arcs around those of gravity, and their numbers a line below.
    """
    kind, words = ("external_torque", color) if outside else ("gravity_torque", "ink")
    radius, below = (OUTSIDE * size, 1.4 * LETTERS * size * _down(view)) if outside else (size, np.zeros(3))
    types = view.robot.joint_types
    for joint, rotation, origin, torque, full in zip(
        types, picture.rotations, picture.origins, torques, view.full_scale, strict=True
    ):
        part = float(torque / full)
        if abs(part) < FAINT:
            shapes.leave_out(kind, 2 if joint == "prismatic" else 3)
            continue
        shade = "wrong" if abs(part) > 1 else color
        if joint == "prismatic":
            shapes.arrow(kind, origin, origin + 3 * radius * part * rotation[:, 2], radius / 8, shade)
        else:
            angle = float(np.clip(part, -1.2, 1.2)) * FULL_TURN
            shapes.arc(kind, rotation, origin, angle=angle, radius=radius, color=shade)
        unit = "N" if joint == "prismatic" else "N m"
        before = rotation @ [np.cos(BEFORE), -np.sign(part) * np.sin(BEFORE), 0.0]  # its arc would strike it through
        shapes.text(kind, origin + radius * before + below, LETTERS * size, f"{torque:.1f} {unit}", words)


def _down(view: GravityView) -> NDArray:
    """Where gravity points to, (3,) of length 1, or 0 where there is none."""
    return view.robot.gravity / max(float(np.linalg.norm(view.robot.gravity)), 1e-9)


def draw_limits(shapes: Shapes, view: GravityView, picture: GravityPicture, position: NDArray, size: float) -> None:
    """A ball and words at each joint that is near a limit of its position, or beyond."""
    robot = view.robot
    low, high = robot.limits.lower, robot.limits.upper
    for i in np.flatnonzero(np.isfinite(low) & np.isfinite(high)):
        left = float(min(position[i] - low[i], high[i] - position[i]))
        if left > NEAR * (high[i] - low[i]):
            shapes.leave_out("limits", 2)
            continue
        unit = "m" if robot.joint_types[i] == "prismatic" else "rad"
        color = "wrong" if left < 0 else "ink"
        shapes.sphere("limits", picture.origins[i], 0.3 * size, color)
        words = f"{robot.joint_names[i]}: {abs(left):.2f} {unit} {'beyond' if left < 0 else 'to'} its limit"
        place = picture.origins[i] - 1.2 * size * picture.rotations[i][:, 0]
        shapes.text("limits", place, LETTERS * size, words, color)


def main() -> None:
    """Entry point of `ros2 run dynid_ros gravity_markers`."""
    run(GravityMarkers)


if __name__ == "__main__":
    main()
