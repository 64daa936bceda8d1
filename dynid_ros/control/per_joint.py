"""Settings of a controller that are one number for all joints, or one per joint."""

import math
from collections.abc import Sequence

from dynid_ros.errors import ControlError


def per_joint(
    parameter: str, values: Sequence[float], names: tuple[str, ...], *, least: float = -math.inf
) -> tuple[float, ...]:
    """One value per joint.

    Raises:
        ControlError: neither one value nor one per joint, or with `least` one that is below it or not finite.

    """
    if len(values) not in (1, len(names)):
        raise ControlError(
            f"{parameter} has {len(values)} values; expected 1, or one per joint: {len(names)} ({', '.join(names)})"
        )
    each = tuple(float(value) for value in values)
    each = each if len(values) == len(names) else each * len(names)
    for name, value in zip(names, each, strict=True):
        if least > -math.inf and not (math.isfinite(value) and value >= least):
            raise ControlError(f"{parameter} of joint '{name}' is {value}; expected a number of at least {least:g}")
    return each
