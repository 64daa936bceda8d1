"""Test the marker node over DDS: its markers agree with Pinocchio in place and size."""

import math
import time

import numpy as np
import pytest
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped
from helpers.node_threads import NodeThreads
from pinocchio_arm import PinocchioArm
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from dynid_ros.errors import DynidError
from dynid_ros.files.bounded import share_path
from dynid_ros.nodes.gravity_markers import FULL_ARC_RAD, MIN_SHOWN_FRACTION, PICTURE_LIFETIME_S, GravityMarkers

URDF = share_path("config/demo_arm.urdf").read_text()
POSE = np.array([0.3, 0.8, -0.7, 0.4, 0.9, -1.1])
LIMITS = [230.0, 230.0, 115.0, 25.0, 25.0, 10.0]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


pytestmark = pytest.mark.usefixtures("ros")


class Bench:
    """Marker node, a viewer, and a publisher of joint states of the arm and of a gripper."""

    def __init__(self, **parameters):
        values = {"robot_description": URDF, "rate": 50.0, "size": 0.2} | parameters
        self.node = GravityMarkers(parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
        self.viewer = rclpy.create_node("viewer")
        self.pictures = []
        self.statuses = []
        self.viewer.create_subscription(MarkerArray, "gravity_markers", self.pictures.append, 10)
        self.viewer.create_subscription(DiagnosticArray, "/diagnostics", lambda m: self.statuses.extend(m.status), 10)
        self.states = self.viewer.create_publisher(JointState, "joint_states", 10)
        self.loads = self.viewer.create_publisher(InertiaStamped, "load", LATCHED)
        self.threads = NodeThreads(self.node, self.viewer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.threads.close()
        self.node.destroy_node()
        self.viewer.destroy_node()

    def publish(self, position=POSE):
        names = list(self.node.view.robot.joint_names)
        message = JointState(name=names[::-1], position=[float(q) for q in position[::-1]])
        message.header.stamp = self.viewer.get_clock().now().to_msg()
        self.states.publish(message)
        self.states.publish(JointState(name=["finger"], position=[0.01]))

    def wait_until(self, condition, seconds=60.0, publish=True):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.statuses[-1:]
            if publish:
                self.publish()
            time.sleep(0.02)

    def picture(self, condition=lambda markers: True):
        """Return the markers of the next picture that fulfils a condition, by namespace."""
        self.pictures.clear()
        self.wait_until(lambda: any(condition(group_markers(message)) for message in list(self.pictures)))
        return next(filter(condition, map(group_markers, self.pictures)))


def group_markers(message):
    kinds = {}
    for marker in message.markers:
        kinds.setdefault(marker.ns, []).append(marker)
    return kinds


def coordinates(point):
    return np.array([point.x, point.y, point.z])


def select_type(markers, kind):
    return [marker for marker in markers if marker.type == kind]


def test_markers_agree_with_pinocchio():
    with Bench() as bench:
        robot = bench.node.view.robot
        np.testing.assert_array_equal(robot.limits.effort, LIMITS)
        arm = PinocchioArm(URDF, robot.joint_names, robot.gravity)
        torque = arm.gravity_torque(POSE)
        poses = arm.poses(POSE)
        bodies = list(arm.model.inertias)[1:]
        masses = [body.mass for body in bodies]
        places = [pose[:3, :3] @ body.lever + pose[:3, 3] for pose, body in zip(poses, bodies, strict=True)]
        picture = bench.picture()
        (ball,) = select_type(picture["center_of_mass"], Marker.SPHERE)
        np.testing.assert_allclose(
            coordinates(ball.pose.position), np.average(places, axis=0, weights=masses), atol=1e-9
        )
        (label,) = select_type(picture["center_of_mass"], Marker.TEXT_VIEW_FACING)
        assert label.text == f"{sum(masses):.1f} kg (URDF)"
        arcs = select_type(picture["gravity_torque"], Marker.LINE_STRIP)
        heavy = np.abs(torque / LIMITS) >= MIN_SHOWN_FRACTION
        assert not heavy[0]
        assert heavy[1:].sum() >= 4
        for arc, pose, value, limit in zip(arcs, poses[heavy], torque[heavy], np.array(LIMITS)[heavy], strict=True):
            last = coordinates(arc.points[-1])
            end = pose[:3, :3] @ last + pose[:3, 3]
            tip = Rotation.from_quat([getattr(arc.pose.orientation, axis) for axis in "xyzw"]).apply(last)
            np.testing.assert_allclose(tip + coordinates(arc.pose.position), end, atol=1e-9)
            angle = math.atan2(last[1], last[0])
            assert angle == pytest.approx(FULL_ARC_RAD * value / limit, abs=1e-9)
        assert {marker.header.frame_id for markers in picture.values() for marker in markers} == {"base_link"}
        identities = [(marker.ns, marker.id) for markers in picture.values() for marker in markers]
        assert len(set(identities)) == len(identities)
        assert "load" not in picture


def test_external_torques_and_near_limits_are_shown():
    with Bench() as bench:
        robot = bench.node.view.robot
        torques = [23.0, 0.0, -230.0, 0.0, 5.0, 0.0]
        publisher = bench.viewer.create_publisher(JointState, "external_torque/joint_torques", 10)
        message = JointState(name=list(robot.joint_names), effort=torques)
        bench.wait_until(lambda: publisher.get_subscription_count() > 0)
        publisher.publish(JointState(name=["finger"], effort=[1.0]))

        def has_external_torque(kinds):
            publisher.publish(message)
            return "external_torque" in kinds

        picture = bench.picture(has_external_torque)
        arcs = select_type(picture["external_torque"], Marker.LINE_STRIP)
        assert [arc.id // 3 for arc in arcs] == [0, 2, 4], "torques of zero have no arc, and the others keep their ids"
        angles = [math.atan2(*coordinates(arc.points[-1])[1::-1]) for arc in arcs]
        assert angles[0] == pytest.approx(FULL_ARC_RAD * 0.1)
        assert angles[2] == pytest.approx(FULL_ARC_RAD * 0.2)
        words = [marker.text for marker in select_type(picture["external_torque"], Marker.TEXT_VIEW_FACING)]
        assert words == [f"{torque:.1f} N m" for torque in torques if torque]
        colors = [(arc.color.r, arc.color.g, arc.color.b) for arc in arcs]
        assert colors[0] == colors[2] != colors[1], "torque beyond the effort limit has another color"
        assert "limits" not in picture

        low = robot.limits.lower
        high = robot.limits.upper
        pose = POSE.copy()
        pose[1] = high[1] - 0.01 * (high[1] - low[1])
        bench.pictures.clear()
        bench.wait_until(lambda: bench.publish(pose) or any("limits" in group_markers(m) for m in list(bench.pictures)))
        limits = next(filter(None, (group_markers(m).get("limits") for m in bench.pictures)))
        (label,) = select_type(limits, Marker.TEXT_VIEW_FACING)
        displays = yaml.safe_load(share_path("config/dynid.rviz").read_text())["Visualization Manager"]["Displays"]
        (namespaces,) = (display["Namespaces"] for display in displays if display["Name"] == "Gravity")
        assert set(namespaces) == {*picture, "limits", "load"}
        assert label.text == f"joint_2: {0.01 * (high[1] - low[1]):.2f} rad to its limit"
        pose[1] = high[1] + 0.02
        expected = "joint_2: 0.02 rad beyond its limit"
        bench.pictures.clear()
        bench.wait_until(
            lambda: bench.publish(pose) or expected in {x.text for m in list(bench.pictures) for x in m.markers}
        )
        bench.pictures.clear()
        bench.wait_until(lambda: any("external_torque" not in group_markers(m) for m in list(bench.pictures)))


def test_load_is_shown_until_it_is_removed():
    with Bench() as bench:
        message = InertiaStamped()
        message.header.frame_id = "link_6"
        message.inertia.m = 2.0
        message.inertia.com.x = 0.1
        message.inertia.com.z = 0.05
        bench.loads.publish(message)
        picture = bench.picture(lambda kinds: "load" in kinds)
        arm = PinocchioArm(URDF, bench.node.view.robot.joint_names, bench.node.view.robot.gravity)
        pose = arm.poses(POSE)[-1]
        (ball,) = select_type(picture["load"], Marker.SPHERE)
        expected = pose[:3, :3] @ [0.1, 0.0, 0.05] + pose[:3, 3]
        np.testing.assert_allclose(coordinates(ball.pose.position), expected, atol=1e-9)
        assert select_type(picture["load"], Marker.TEXT_VIEW_FACING)[0].text == "load 2.00 kg"
        message.inertia.m = 0.0
        bench.loads.publish(message)
        bench.picture(lambda kinds: "load" not in kinds)
        message.inertia.m = 1.0
        message.header.frame_id = "nowhere"
        bench.loads.publish(message)
        bench.wait_until(lambda: any("its frame 'nowhere'" in status.message for status in bench.statuses))


def test_load_in_force_of_the_compensation_is_shown():
    with Bench() as bench:
        in_force = bench.viewer.create_publisher(InertiaStamped, "gravity_compensation/load_in_force", LATCHED)
        message = InertiaStamped()
        message.header.frame_id = "link_6"
        message.inertia.m = 1.5
        in_force.publish(message)
        picture = bench.picture(lambda kinds: "load" in kinds)
        assert select_type(picture["load"], Marker.TEXT_VIEW_FACING)[0].text == "load 1.50 kg"
        message.inertia.m = 9.0  # as if the compensation refused it
        bench.loads.publish(message)
        message.inertia.m = 0.0
        in_force.publish(message)
        bench.picture(lambda kinds: "load" not in kinds)


def test_no_markers_without_joint_states():
    with Bench() as bench:
        picture = bench.picture()
        assert all(marker.lifetime.sec == PICTURE_LIFETIME_S for markers in picture.values() for marker in markers)
        bench.wait_until(lambda: any("no message on /joint_states" in s.message for s in bench.statuses), publish=False)
        n_pictures = len(bench.pictures)
        time.sleep(0.1)
        assert len(bench.pictures) == n_pictures


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"rate": 0.0}, "'rate' .* is 0"),
        ({"rate": 1e-12}, "'rate' .* is 1e-12; expected 0.1 to 60"),
        ({"size": 1e308}, r"'size' .* is 1e\+308; expected 0.001 to 10"),
        ({"marker_topic": "<robot/>"}, "'marker_topic' of node 'gravity_markers' is '<robot/>', which is no name"),
        ({"marker_topic": ""}, "Parameter 'marker_topic' of node 'gravity_markers' is '', which is no name"),
        ({"size": -1.0}, "'size' .* is -1"),
        ({"model_file": "nowhere.yaml"}, "nowhere.yaml: cannot be read"),
    ],
)
def test_invalid_parameters_end_the_node_at_the_start(parameters, words):
    with pytest.raises(DynidError, match=words):
        Bench(**parameters)
