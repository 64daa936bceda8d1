"""Information that the torques of a motion contain on the parameters, and motions that would add to it."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.information.motion_quality import MotionQuality
    from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance

__all__ = ["FlexibleJoints", "MotionQuality", "proposed_base_frequency", "resonance"]

offer(globals())
