"""Whether samples decide the gravity moment of a joint, and what stands in the way."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.samples import Samples
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel

MAXIMUM_INFLATION = 30.0
"""Parameters whose standard errors collinearity inflates beyond this are not reported. With an unknown torque offset, a
joint reaches it where it turns by less than about 45 degrees (60: 17, 30: 65)."""


@dataclass(frozen=True)
class Observability:
    """Whether the data decide a joint's moment; `reason` says why not, and what to do."""

    observable: bool
    reason: str = ""
    torque_free: bool = False


def describe_observability(
    robot: RobotModel,
    gravity: GravityModel,
    names: list[str],
    errors: tuple[NDArray, NDArray],
    samples: Samples,
) -> dict[str, Observability]:
    """Say for each joint whether its moment is decided, and if not, what stands in the way.

    Args:
        robot: the arm.
        gravity: its moments.
        names: (k,) of the unknowns that were fitted.
        errors: (k,) inflation of their standard errors, infinite for what is open, and (k,) half 95 % intervals.
        samples: that were fitted.

    """
    worst, wide = (dict(zip(names, values, strict=True)) for values in errors)
    weight = np.linalg.norm(robot.gravity)
    parallel = gravity.unobservable_axes()
    found = {}
    for i, joint in enumerate(robot.joint_names):
        if parallel[i]:
            how = "parallel" if robot.joint_types[i] == "revolute" else "square"
            reason = f"axis {how} to gravity in every pose: its gravity torque is zero"
            found[joint] = Observability(False, reason, torque_free=True)
            continue
        factor = max(worst.get(gravity.names[c], np.inf) for c in columns_of(gravity, i))
        revolute = robot.joint_types[i] == "revolute"
        angles = len(np.unique(np.round(samples.position[:, i] / np.deg2rad(2))))
        needed = 4 if any(name.startswith("offset") for name in names) else 3
        width = max(wide.get(gravity.names[c], np.inf) for c in columns_of(gravity, i))
        vague = width * weight > np.abs(samples.torque[:, i]).max()
        if factor <= MAXIMUM_INFLATION and (angles >= needed or not revolute) and not vague:
            found[joint] = Observability(True)
            continue
        span = float(np.ptp(samples.position[:, i]))
        if not samples.friction_known[:, i].any():
            reason = "it is held in all samples, by a stiction that nobody knows; turn it, or bring it to its hold anew"
        elif not revolute:
            reason = (
                "the weight that it carries cannot be told from its torque offset; tilt its axis, "
                "or zero the sensor and set torque_offset to false"
            )
        elif angles < needed:
            reason = f"only {angles} different angle(s) in the samples; at least {needed} are needed for its sinusoid"
        elif span < np.deg2rad(60):
            reason = (
                f"its angle spans only {np.rad2deg(span):.0f} degrees; "
                "at least about 60 are needed to tell its moment from its torque offset"
            )
        elif factor <= MAXIMUM_INFLATION:
            reason = f"its moment is known to ± {width:.2g} kg m only, which is more than all of its torque; add poses"
        else:
            reason = (
                "its moment cannot be told from those of other joints in these poses; "
                "add poses of the proximal joints with its axis horizontal"
            )
        found[joint] = Observability(False, reason)
    return found


def columns_of(gravity: GravityModel, joint: int) -> range:
    """Where the moments of a joint are among all."""
    return range(len(gravity.names))[gravity.columns(joint)]
