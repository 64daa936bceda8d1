"""Experiments: which motion excites the parameters best, within limits and workspace."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.excitation.experiment import Dwell, Experiment, Plan
    from dynid_ros.excitation.fourier_excitation import FourierExcitation, FourierPlan, flexible_excitation
    from dynid_ros.excitation.joint_by_joint import JointByJoint, JointByJointPlan, JointMove
    from dynid_ros.excitation.payload_motion import PayloadMotion, PayloadMotionPlan, ToolTurn
    from dynid_ros.excitation.pose_set import PoseDwell, PoseSet, PoseSetPlan
    from dynid_ros.excitation.static_rotation import StaticRotation, StaticRotationPlan

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

offer(globals())
