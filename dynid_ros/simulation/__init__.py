"""A simulated arm on MuJoCo: joint drives with friction, a position servo, torque motors, sensors with errors."""

from dynid_ros.simulation.arm import SimulatedArm
from dynid_ros.simulation.camera import Camera, CameraView
from dynid_ros.simulation.camera_poses import body_poses, filmed, marker_poses
from dynid_ros.simulation.command_interfaces import CommandInterfaces
from dynid_ros.simulation.controlled_arm import ControlledArm
from dynid_ros.simulation.demo_arm import demo_arm_urdf
from dynid_ros.simulation.drives import Drives
from dynid_ros.simulation.experiment import measure, record, simulate
from dynid_ros.simulation.following import TrajectoryPoints
from dynid_ros.simulation.forward_controller import ForwardController
from dynid_ros.simulation.hardware import ArmHardware
from dynid_ros.simulation.markers import scattered_markers
from dynid_ros.simulation.misjudged import misjudged_urdf
from dynid_ros.simulation.sensors import Sensors
from dynid_ros.simulation.springs import Springs
from dynid_ros.simulation.trajectory_controller import TrajectoryController
from dynid_ros.simulation.trajectory_settings import GoalTolerances, TrajectorySettings
from dynid_ros.simulation.truth import ArmTruth
from dynid_ros.simulation.truth_table import tabled_arm, truth_table
from dynid_ros.simulation.wrench_sensor import WrenchSensor

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
    "Sensors",
    "SimulatedArm",
    "Springs",
    "TrajectoryController",
    "TrajectoryPoints",
    "TrajectorySettings",
    "WrenchSensor",
    "body_poses",
    "demo_arm_urdf",
    "filmed",
    "marker_poses",
    "measure",
    "misjudged_urdf",
    "record",
    "scattered_markers",
    "simulate",
    "tabled_arm",
    "truth_table",
]
