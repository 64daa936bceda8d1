"""A simulated arm on MuJoCo: joint drives with friction, a position servo, torque motors, sensors with errors."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.simulation.arm import SimulatedArm
    from dynid_ros.simulation.controlled_arm import ControlledArm
    from dynid_ros.simulation.descriptions import demo_arm_urdf, misjudged_urdf
    from dynid_ros.simulation.drives import Drives, KnownFriction, Springs
    from dynid_ros.simulation.replay import measure, record, simulate
    from dynid_ros.simulation.sensors import (
        Camera,
        CameraView,
        Sensors,
        WrenchSensor,
        body_poses,
        marker_poses,
        scattered_markers,
    )
    from dynid_ros.simulation.trajectory_controller import ForwardController, TrajectoryController
    from dynid_ros.simulation.trajectory_points import TrajectoryPoints
    from dynid_ros.simulation.trajectory_settings import (
        ArmHardware,
        CommandInterfaces,
        GoalTolerances,
        TrajectorySettings,
    )
    from dynid_ros.simulation.truth import ArmTruth
    from dynid_ros.simulation.truth_tables import tabled_arm, truth_table

__all__ = [
    "ArmHardware",
    "ArmTruth",
    "Camera",
    "CameraView",
    "CommandInterfaces",
    "ControlledArm",
    "Drives",
    "ForwardController",
    "GoalTolerances",
    "KnownFriction",
    "Sensors",
    "SimulatedArm",
    "Springs",
    "TrajectoryController",
    "TrajectoryPoints",
    "TrajectorySettings",
    "WrenchSensor",
    "body_poses",
    "demo_arm_urdf",
    "marker_poses",
    "measure",
    "misjudged_urdf",
    "record",
    "scattered_markers",
    "simulate",
    "tabled_arm",
    "truth_table",
]

offer(globals())
