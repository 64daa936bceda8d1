"""Information that the torques of a motion contain on the parameters."""

from typing import TYPE_CHECKING

from dynid_ros.lazy import offer

if TYPE_CHECKING:
    from dynid_ros.information.motion_quality import MotionQuality as MotionQuality
    from dynid_ros.information.steady_state import (
        FlexibleJoints as FlexibleJoints,
        proposed_base_frequency as proposed_base_frequency,
        resonance as resonance,
    )


offer(globals())
