"""Parameters of the excitation node."""

import math
from dataclasses import replace

from dynid_ros.nodes.shared.parameters import NodeParameter
from dynid_ros.nodes.shared.robot_description import ROBOT_PARAMETERS

TRAJECTORY_TOPIC = "joint_trajectory_controller/joint_trajectory"

EACH = "; one value for all joints, or one per joint in the model's order"
SHARED = (
    NodeParameter("position_margin", [0.05], f"distance kept from position limits, rad (m){EACH}"),
    NodeParameter("speed_fraction", 0.5, "part of the velocity limits used in the motion"),
    NodeParameter("travel_speed_fraction", 0.25, "part of the velocity limits used on the way to it"),
    NodeParameter("torque_fraction", 0.8, "part of the torque limits that the nominal model may use"),
)
STATIC = (
    NodeParameter("steps", 7, "static_rotation, joint_by_joint: rests per rotation and direction"),
    NodeParameter("dwell", 0.5, "static_rotation, joint_by_joint, payload, poses: rest at each step or pose, s"),
    NodeParameter(
        "approach", [0.05], f"static_rotation, poses: distance from which each joint comes to a dwell, rad (m){EACH}"
    ),
    NodeParameter("sweep", 6.28, "static_rotation: largest range of a rotation, rad"),
    NodeParameter("poses_per_joint", 1, "static_rotation: rotations of each joint, with different poses of the others"),
)
FOURIER = (
    NodeParameter(
        "base_frequency",
        math.nan,
        "fourier, flexible: of the first harmonic, Hz; a period takes 1 / base_frequency; nan: 0.05, of flexible "
        "joints by their resonances",
    ),
    NodeParameter("harmonics", 10, "fourier, flexible: number of harmonics, at least 2"),
    NodeParameter("periods", 1, "fourier, flexible: how often the period is repeated"),
    NodeParameter(
        "criterion", "determinant", "fourier, flexible: what is minimised: determinant, condition, condition_unscaled"
    ),
    NodeParameter(
        "noise", [math.nan], f"fourier, flexible: noise of the torques, N m (N); NaN: as their limits are{EACH}"
    ),
    NodeParameter(
        "design_time", 30.0, "fourier, flexible: time for the search, s; 0: the best of a few random motions"
    ),
    NodeParameter(
        "starts", 0, "fourier, flexible: searches, at most, each from another motion; 0: as many as there is time for"
    ),
    NodeParameter("workers", 0, "fourier, flexible: processes that search; 0: one per core, up to 4"),
    NodeParameter("recordings", [""], "fourier: recordings of the arm, which the motion is to add to; empty: none"),
)
FLEXIBLE = (
    NodeParameter("flexible_file", "", "flexible: identified.yaml with what is known of the joints; empty: none"),
    NodeParameter("stiffness", [math.nan], f"flexible: of the springs, N m/rad; nan: as in flexible_file{EACH}"),
    NodeParameter("motor_inertia", [math.nan], f"flexible: at the link, kg m^2; nan: as in flexible_file{EACH}"),
    NodeParameter("motor_viscous", [math.nan], f"flexible: on the motors' side, N m s/rad; nan: as in the file{EACH}"),
    NodeParameter("coulomb", [math.nan], f"flexible: on the links' side, N m; nan: as in flexible_file{EACH}"),
    NodeParameter("viscous", [math.nan], f"flexible: on the links' side, N m s/rad; nan: as in flexible_file{EACH}"),
    NodeParameter("held", [math.nan], "flexible: where brakes hold a joint, rad, one per joint; nan: it moves"),
)
SINGLE = (
    NodeParameter("joint_motion", "sinusoid", "joint_by_joint: sinusoid or steps"),
    NodeParameter("joints", [""], "joint_by_joint: those that move, in that order; empty: all, from tip to base"),
    NodeParameter("frequencies", [0.1, 0.4], "joint_by_joint: of the sines, Hz; each joint moves at each of them"),
    NodeParameter("cycles", 3, "joint_by_joint: of a sine at full amplitude"),
    NodeParameter("amplitude", 0.9, "joint_by_joint: largest part of what is free for a joint that is used, up to 1"),
)
PAYLOAD = (
    NodeParameter("reach", 1.57, "payload: largest angle of the tool to either side, rad"),
    NodeParameter("turns", 2, "payload: how often the tool turns about each of its axes"),
)
POSES = (
    NodeParameter("count", 15, "poses: how many are visited"),
    NodeParameter("offsets", True, "poses: whether torque offsets must be told apart from gravity"),
)
MOTION_PARAMETERS = tuple(
    replace(parameter, adjustable=True)
    for parameter in (
        NodeParameter(
            "motion",
            "static_rotation",
            "static_rotation or poses, for gravity; fourier, for links; joint_by_joint, for friction; payload, for a "
            "load; flexible, for flexible joints; file: one that was designed before",
        ),
        NodeParameter("motion_file", "", "file: dynid-trajectory/1, as trajectory_file, or dynid-fourier/1, as ~/plan"),
        NodeParameter("repeats", 1, "how often the whole motion is made, with a safe way back in between"),
        NodeParameter("target", "", "fourier, poses: links, gravity or load; empty: links (fourier), gravity (poses)"),
        *STATIC,
        *FOURIER,
        *FLEXIBLE,
        NodeParameter("seed", 0, "fourier, flexible, poses: of the random numbers; another one gives another motion"),
        *SINGLE,
        NodeParameter(
            "pose", [math.nan], "joint_by_joint, payload: where the others hold, rad (m), one per joint; nan: choose"
        ),
        *PAYLOAD,
        *POSES,
        *SHARED,
        NodeParameter("trajectory_file", "", "YAML file to which ~/design writes the motion; empty: none"),
    )
)
"""Those that ~/design reads anew."""
WORKSPACE = (
    NodeParameter("floor_height", 0.0, "lowest height of moving links above the base link's origin, m"),
    NodeParameter("clearance", 0.05, "smallest distance between links, and to obstacles, m"),
    NodeParameter("box_lower", [-math.inf] * 3, "corner, in the base frame, of a box that the links stay in, m"),
    NodeParameter("box_upper", [math.inf] * 3, "the opposite corner, m"),
    NodeParameter("obstacles_file", "", "YAML list of boxes that the links stay clear of; empty: none"),
    NodeParameter(
        "link_shapes",
        "available",
        "available: links are what the URDF's shapes occupy, lines where one cannot be read; required: an error where "
        "one cannot be read; none: all links are lines",
    ),
    NodeParameter("mesh_directories", [""], "folders to look for meshes in; empty: that of the URDF, ROS packages"),
)
LIMITS = (
    NodeParameter("acceleration_limits", [math.nan], f"rad/s^2 (m/s^2), required: no URDF holds them{EACH}"),
    NodeParameter("velocity_limits", [math.nan], f"rad/s (m/s); nan: the URDF's{EACH}"),
    NodeParameter("position_lower", [math.nan], f"rad (m); nan: the URDF's, and -pi for a continuous joint{EACH}"),
    NodeParameter("position_upper", [math.nan], f"rad (m); nan: the URDF's, and pi for a continuous joint{EACH}"),
    NodeParameter("jerk_limits", [math.nan], f"rad/s^3 (m/s^3); nan: none{EACH}"),
    NodeParameter("torque_limits", [math.nan], f"N m (N); nan: the URDF's{EACH}"),
)
PARAMETERS = (
    *ROBOT_PARAMETERS,
    *MOTION_PARAMETERS,
    *LIMITS,
    *WORKSPACE,
    NodeParameter(
        "command_topic", TRAJECTORY_TOPIC, "trajectory_msgs/JointTrajectory for the controller", required=True
    ),
    NodeParameter(
        "accept_jerk",
        False,
        "move though the controller begins each trajectory at the measured pose (interpolate_from_desired_state false)",
    ),
    NodeParameter("controller_joints", [""], "the controller's joint order; empty: the model's"),
    NodeParameter("point_rate", 50.0, "points per second in a trajectory, 10 to 1000"),
    NodeParameter("tracking_error_limit", [0.2], f"distance from the motion at which it is stopped, rad (m){EACH}"),
    NodeParameter(
        "effort_limit",
        [math.nan],
        f"effort in joint_states at which the motion is stopped, in the driver's unit; nan: torque_limits; inf: none"
        f"{EACH}",
    ),
    NodeParameter("effort_grace", 0.1, "how long an effort may be above effort_limit, s"),
    NodeParameter("stale_after", 0.25, "age of the last joint state at which the motion is stopped, 0.02 to 5 s"),
)
