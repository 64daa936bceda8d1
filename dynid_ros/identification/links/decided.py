"""What a recording decides of links and friction, and what it does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid_ros.estimation.estimate import BaseEstimate
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import BaseParameters, random_motion, regressor_blocks
from dynid_ros.model.friction import FrictionModel

WEAK = 0.3


def beyond_the_arm(
    robot: RobotModel, base: BaseParameters, friction: FrictionModel, estimate: BaseEstimate, torque_rms: NDArray
) -> NDArray:
    """(k,) bool: the standard error alone would be more torque than the joint ever has; then nothing is known.

    It is the torque of an ordinary motion that counts. In the recording such a parameter may have had no part: dry
    friction of a joint that crept has a coefficient of any size.
    """
    motion = random_motion(robot)
    effect = np.mean(
        [np.mean(part**2, axis=0) for part in regressor_blocks(robot.structure, friction, motion)], axis=0
    )[:, base.columns]
    nominal = np.sqrt(np.mean(robot.inverse_dynamics(*motion) ** 2, axis=0))
    limit = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, 0.0)
    most = np.maximum.reduce([torque_rms, nominal, limit])
    return np.any(np.sqrt(effect) * np.nan_to_num(estimate.standard_errors) > most[:, None], axis=0)


def what_is_open(base: BaseParameters, estimate: BaseEstimate) -> list[str]:
    """Sentences on what no motion, and what this motion, does not show."""
    found = []
    hidden = [name for name, category in zip(base.names, base.categories, strict=True) if category == "unidentifiable"]
    if hidden:
        found.append(
            f"no motion of this arm shows {', '.join(hidden)}: their values follow from the URDF and from the rest"
        )
    undecided = [e for e, value in zip(estimate.expressions, estimate.values, strict=True) if not np.isfinite(value)]
    if undecided:
        found.append(f"this motion does not decide {'; '.join(undecided)}: move all joints, faster and further")
    with np.errstate(invalid="ignore"):
        weak = [
            name for name, share in zip(estimate.names, estimate.relative_standard_errors, strict=True) if share > WEAK
        ]
    if weak:
        found.append(f"standard error above {WEAK:.0%} of the value: {', '.join(weak)}")
    return found
