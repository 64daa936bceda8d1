"""What to know of a static calibration beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import f as f_distribution

from dynid_ros.identification.force_sensor.equations import TILT, TURN, StaticReading
from dynid_ros.identification.force_sensor.errors import WeightedPoses
from dynid_ros.identification.force_sensor.result import ForceSensorResult
from dynid_ros.identification.wrench.frame import AXES, UNITS

WEAK = 100.0
"""Condition number from which more poses are advised."""
FEIGNED = 1e-4
"""Probability with which noise feigns as much of a turn."""
WORTH = 0.2
"""Part of the squared residuals that a turn must explain to be worth a remark."""


def remarks(
    result: ForceSensorResult, poses: WeightedPoses, turns: tuple[StaticReading, WeightedPoses] | None
) -> Iterator[str]:
    """Sentences.

    Args:
        result: of the calibration.
        poses: its fit.
        turns: model and fit with turns of base and sensor besides, if it has none.

    """
    if not result.mass > 2 * result.mass_error:
        yield "no weight is seen: the centre of mass is open"
    if result.condition_number > WEAK:
        yield f"condition number {result.condition_number:.3g}: poses that differ more would tell more"
    drifts = poses.drifts
    if drifts:
        axes = ", ".join(f"{AXES[axis]} by {size:.2g} {UNITS[axis]}" for axis, size in drifts.items())
        mass = result.mass + poses.change_by_drift[0]
        yield (
            f"the sensor drifts: {axes} in the course of the poses, beyond noise; with drift=2 the mass is {mass:.4g} "
            "kg. Let it warm up, or zero it and record again"
        )
    elif turns is not None:
        yield from _turns(poses, *turns)


def _turns(poses: WeightedPoses, reading: StaticReading, turned: WeightedPoses) -> Iterator[str]:
    count = len(TILT) + len(TURN)
    freedom = poses.wrench.size - turned.fit.rank
    if turned.fit.rank < len(reading.names) or freedom < count:
        return
    before, after = (float(np.sum((fit.residual / poses.sigma) ** 2)) for fit in (poses.fit, turned.fit))
    ratio = (before - after) / count / (after / freedom) if after > 0 else np.inf
    if before - after > WORTH * before and f_distribution.sf(ratio, count, freedom) < FEIGNED:
        tilt, turn = (np.degrees(rotation.magnitude()) for rotation in (reading.tilted, reading.turned))
        yield (
            f"the base would be tilted by {tilt:.2g}° and the sensor turned by {turn:.2g}° against the poses given, "
            f"which explains {1 - after / before:.0%} of the squared residuals: check how both are mounted, or set "
            "base_tilt or sensor_turn"
        )
