"""Feed-forward torque for a running robot."""

from dynid_ros.control.carried_load import CarriedLoad
from dynid_ros.control.friction_compensation import compensated_friction
from dynid_ros.control.gravity_compensator import GravityCompensator, GravityTorque, State
from dynid_ros.control.gravity_feedforward import load_gravity_torque
from dynid_ros.control.joint_feedback import FeedbackGains, JointFeedback
from dynid_ros.control.joint_settings import JointSettings
from dynid_ros.control.joint_springs import JointSprings
from dynid_ros.control.loaded_gravity import LoadedGravity
from dynid_ros.control.model_change import ModelChange
from dynid_ros.control.timing import Timing

__all__ = [
    "CarriedLoad",
    "FeedbackGains",
    "GravityCompensator",
    "GravityTorque",
    "JointFeedback",
    "JointSettings",
    "JointSprings",
    "LoadedGravity",
    "ModelChange",
    "State",
    "Timing",
    "compensated_friction",
    "load_gravity_torque",
]
