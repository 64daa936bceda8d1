"""Joint angles from motion capture: markers on the links, as cameras see them."""

from dynid_ros.mocap.assignment import Assignment, assign, bodies
from dynid_ros.mocap.axis import Axis, axis_of_rotation
from dynid_ros.mocap.center import Center, center_of_rotation
from dynid_ros.mocap.chain_angles import chain_angles
from dynid_ros.mocap.hinge import Hinge, start_hinge
from dynid_ros.mocap.joint_angle import JointAngle, joint_angle
from dynid_ros.mocap.link_angles import LinkAngles
from dynid_ros.mocap.marker_set import MarkerSet, body_markers
from dynid_ros.mocap.registration import register
from dynid_ros.mocap.registration_result import Registration
from dynid_ros.mocap.single_joint import SingleJoint
from dynid_ros.mocap.single_joint_result import SingleJointResult
from dynid_ros.mocap.tracks import tracks

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
