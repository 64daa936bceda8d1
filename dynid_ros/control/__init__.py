"""Feed-forward torque for a running robot."""

from dynid_ros.control.base_gravity import BaseGravity, BaseRules
from dynid_ros.control.compensator_settings import JointSettings, Timing
from dynid_ros.control.gravity_compensator import GravityCompensator, GravityTorque, State
from dynid_ros.control.gravity_feedforward import (
    CarriedLoad,
    HeldArm,
    JointSprings,
    LoadedGravity,
    load_gravity_torque,
    load_held_arm,
)
from dynid_ros.control.joint_brake import JointBrake
from dynid_ros.control.joint_feedback import FeedbackGains, IdentifiedFriction, JointFeedback
from dynid_ros.control.model_change import MeasuredEffort, ModelChange

__all__ = [
    "BaseGravity",
    "BaseRules",
    "CarriedLoad",
    "FeedbackGains",
    "GravityCompensator",
    "GravityTorque",
    "HeldArm",
    "IdentifiedFriction",
    "JointBrake",
    "JointFeedback",
    "JointSettings",
    "JointSprings",
    "LoadedGravity",
    "MeasuredEffort",
    "ModelChange",
    "State",
    "Timing",
    "load_gravity_torque",
    "load_held_arm",
]
