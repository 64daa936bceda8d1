"""Torque at which a ramp begins where a controller already holds one, as of a process that was killed."""

from collections.abc import Sequence

from dynid_ros.errors import ControlError

MAX_ACTING_SCALE = 1.1
"""Largest part of the gravity torque that a process before may have commanded, sensor gains included."""
MIN_ACTING_SCALE = 0.05
"""Part of the gravity torque below which nothing acts."""


def acting_scale(
    names: Sequence[str], gravity: Sequence[float], effort: Sequence[float], error: Sequence[float]
) -> float:
    """Return the part of the gravity torque that acts: one number for all joints, from their measured efforts.

    Offsets of the sensors therefore never become commands, and light joints begin at their share of nearly nothing.

    Args:
        names: n joint names.
        gravity: (n,) torque of the model in this pose, N m (N).
        effort: (n,) measured, N m (N).
        error: (n,) largest error of the sensors, N m (N).

    Raises:
        ControlError: the efforts are no part of the gravity torque, so nobody knows what acts.
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
