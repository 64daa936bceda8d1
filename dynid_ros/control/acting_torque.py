"""Start torque of a ramp while the controller still applies the last command of an earlier process."""

from collections.abc import Sequence

from dynid_ros.errors import ControlError

MAX_ACTING_SCALE = 1.1
"""Largest fraction of the gravity torque that an earlier process may have commanded, sensor gain included."""
MIN_ACTING_SCALE = 0.05
"""Fraction of the gravity torque below which the applied torque counts as zero."""


def acting_scale(
    names: Sequence[str], gravity: Sequence[float], effort: Sequence[float], error: Sequence[float]
) -> float:
    """Return the fraction of the gravity torque that acts, fitted to the measured efforts of all joints.

    A single fraction for all joints keeps offsets of the sensors out of the commands.

    Args:
        names: n joint names.
        gravity: (n,) gravity torque of the model in the measured pose, N m (N).
        effort: (n,) measured efforts, N m (N).
        error: (n,) largest error of the sensors, N m (N).

    Raises:
        ControlError: the efforts are not proportional to the gravity torque within the sensors' error.
    """
    heavy = [abs(value) > limit for value, limit in zip(gravity, error, strict=True)]
    weight = sum(g * g for g, counts in zip(gravity, heavy, strict=True) if counts)
    scale = 0.0
    if weight > 0.0:
        scale = sum(g * e for g, e, counts in zip(gravity, effort, heavy, strict=True) if counts) / weight
    if not MIN_ACTING_SCALE < scale <= MAX_ACTING_SCALE:
        scale = 0.0
    for name, torque, measured, limit in zip(names, gravity, effort, error, strict=True):
        if abs(measured - scale * torque) > limit:
            raise ControlError(
                f"{measured:.3g} N m (N) act on joint '{name}', which is no part of its gravity torque of "
                f"{torque:.3g}: it is not known what the controller holds"
            )
    return min(scale, 1.0)
