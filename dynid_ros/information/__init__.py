"""What a motion excites of the parameters, by its torques: how much, what not, and what would help."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.information.motion_quality import MotionQuality
    from dynid_ros.information.steady_state import FlexibleJoints, proposed_base_frequency, resonance

__all__ = ["FlexibleJoints", "MotionQuality", "proposed_base_frequency", "resonance"]

offer(globals())
