"""Experiments: which motion tells the parameters best, within limits and workspace."""

from dynid_ros.excitation.experiment import Experiment, Plan
from dynid_ros.excitation.flexible_excitation import flexible_excitation
from dynid_ros.excitation.fourier_excitation import FourierExcitation
from dynid_ros.excitation.fourier_plan import FourierPlan
from dynid_ros.excitation.joint_by_joint import JointByJoint
from dynid_ros.excitation.joint_by_joint_plan import JointByJointPlan, JointMove
from dynid_ros.excitation.payload_motion import PayloadMotion
from dynid_ros.excitation.payload_motion_plan import PayloadMotionPlan, ToolTurn
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.excitation.pose_set_plan import PoseDwell, PoseSetPlan
from dynid_ros.excitation.static_rotation import StaticRotation
from dynid_ros.excitation.static_rotation_plan import StaticRotationPlan
from dynid_ros.excitation.stepped_rotation import Dwell

__all__ = [
    "Dwell",
    "Experiment",
    "FourierExcitation",
    "FourierPlan",
    "JointByJoint",
    "JointByJointPlan",
    "JointMove",
    "PayloadMotion",
    "PayloadMotionPlan",
    "Plan",
    "PoseDwell",
    "PoseSet",
    "PoseSetPlan",
    "StaticRotation",
    "StaticRotationPlan",
    "ToolTurn",
    "flexible_excitation",
]
