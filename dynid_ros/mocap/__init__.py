"""Joint angles from motion capture: markers on the links, as cameras see them."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.mocap.link_angles import LinkAngles as LinkAngles, chain_angles as chain_angles
    from dynid_ros.mocap.marker_assignment import Assignment as Assignment, assign as assign, bodies as bodies
    from dynid_ros.mocap.marker_set import MarkerSet as MarkerSet, body_markers as body_markers
    from dynid_ros.mocap.markers import tracks as tracks
    from dynid_ros.mocap.registration import Registration as Registration, register as register
    from dynid_ros.mocap.rotation_axis import (
        Axis as Axis,
        Center as Center,
        Hinge as Hinge,
        axis_of_rotation as axis_of_rotation,
        center_of_rotation as center_of_rotation,
        start_hinge as start_hinge,
    )
    from dynid_ros.mocap.single_joint import (
        JointAngle as JointAngle,
        SingleJoint as SingleJoint,
        SingleJointResult as SingleJointResult,
        joint_angle as joint_angle,
    )


offer(globals())
