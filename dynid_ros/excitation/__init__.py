"""Experiments: motions that determine the parameters best, within limits and workspace."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.excitation.experiment import Dwell, Experiment, Plan
    from dynid_ros.excitation.fourier_excitation import FourierExcitation, FourierPlan, flexible_excitation
    from dynid_ros.excitation.joint_by_joint import JointByJoint
    from dynid_ros.excitation.payload_motion import PayloadMotion
    from dynid_ros.excitation.pose_set import PoseSet
    from dynid_ros.excitation.static_rotation import StaticRotation

__all__ = [
    "Dwell",
    "Experiment",
    "FourierExcitation",
    "FourierPlan",
    "JointByJoint",
    "PayloadMotion",
    "Plan",
    "PoseSet",
    "StaticRotation",
    "flexible_excitation",
]

offer(globals())
