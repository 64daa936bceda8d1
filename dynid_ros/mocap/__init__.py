"""Joint angles from motion capture: markers on the links, as cameras see them."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.mocap.hinge import Hinge, JointAngle, joint_angle, start_hinge
    from dynid_ros.mocap.link_angles import LinkAngles, chain_angles
    from dynid_ros.mocap.marker_assignment import Assignment, assign, bodies
    from dynid_ros.mocap.marker_set import MarkerSet, body_markers
    from dynid_ros.mocap.markers import tracks
    from dynid_ros.mocap.registration import Registration, register
    from dynid_ros.mocap.rotation_axis import Axis, Center, axis_of_rotation, center_of_rotation
    from dynid_ros.mocap.single_joint import SingleJoint, SingleJointResult

__all__ = [
    "Assignment",
    "Axis",
    "Center",
    "Hinge",
    "JointAngle",
    "LinkAngles",
    "MarkerSet",
    "Registration",
    "SingleJoint",
    "SingleJointResult",
    "assign",
    "axis_of_rotation",
    "bodies",
    "body_markers",
    "center_of_rotation",
    "chain_angles",
    "joint_angle",
    "register",
    "start_hinge",
    "tracks",
]

offer(globals())
