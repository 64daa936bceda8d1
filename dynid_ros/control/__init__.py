"""Feed-forward torque for a running robot."""

from dynid_ros.control.base_gravity import BaseGravity, BaseRules
from dynid_ros.control.compensator_settings import JointSettings, Timing
from dynid_ros.control.gravity_compensator import GravityCompensator, GravityTorque, State
from dynid_ros.control.gravity_feedforward import CarriedLoad, JointSprings, LoadedGravity, load_gravity_torque
from dynid_ros.control.joint_feedback import FeedbackGains, JointFeedback, compensated_friction
from dynid_ros.control.model_change import ModelChange

__all__ = [
    "BaseGravity",
    "BaseRules",
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
