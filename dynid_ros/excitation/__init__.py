"""Experiments: motions that determine the parameters best, within limits and workspace."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.excitation.experiment import Dwell as Dwell, Experiment as Experiment, Plan as Plan
    from dynid_ros.excitation.fourier_excitation import (
        FourierExcitation as FourierExcitation,
        FourierPlan as FourierPlan,
        flexible_excitation as flexible_excitation,
    )
    from dynid_ros.excitation.joint_by_joint import JointByJoint as JointByJoint
    from dynid_ros.excitation.payload_motion import PayloadMotion as PayloadMotion
    from dynid_ros.excitation.pose_set import PoseSet as PoseSet
    from dynid_ros.excitation.static_rotation import StaticRotation as StaticRotation


offer(globals())
