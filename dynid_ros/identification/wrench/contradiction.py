"""Wrenches that are in another frame, or have the other sign, than they are said to."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.normal_equations import LinkProblem
from dynid_ros.identification.wrench.columns import WrenchColumns
from dynid_ros.identification.wrench.frame import Frame

UNEXPLAINED = 0.2
"""Part of the variation of the readings that is left, from which on the other frame is tried."""
BETTER = 0.4
"""Part of what is left that the other frame must leave at most."""
SEEN = 5.0
"""Standard errors of white noise below zero at which a mass is negative."""


def refuse_contradiction(
    problem: LinkProblem, frame: Frame, in_frame: Callable[[Frame], LinkProblem], source: str
) -> None:
    """Refuse readings that the other frame, or the other sign, explains much better.

    Args:
        problem: as the readings are said to be.
        frame: as they are said to be in.
        in_frame: the same with readings in another frame.
        source: for messages.

    Raises:
        IdentificationError: says what to set.

    """
    given, mass, error = _left(problem)
    if given > UNEXPLAINED:
        (other,) = set(get_args(Frame)) - {frame}
        left, *_ = _left(in_frame(other))
        if left < BETTER * given:
            raise IdentificationError(
                f"{source}: wrench frame '{frame}' contradicts the data: {given:.0%} of the readings' change is left "
                f"unexplained, but {left:.0%} if they are in the frame of the {other}: set frame='{other}', or mend "
                "the frame_id"
            )
    if mass < -SEEN * error:
        raise IdentificationError(
            f"{source}: the load's mass would be {mass:.4g} kg: the wrenches have the other sign, or the sensor's axes "
            "are turned round; set the other convention ('load_on_sensor' or 'sensor_on_load'), or take the sensor's "
            "link as tip"
        )


def _left(problem: LinkProblem) -> tuple[float, float, float]:
    """Part of the variation that is left, geometric mean of force and torque; mass and its standard error, kg."""
    fit, noise = problem.weighted()
    columns = problem.factors.columns
    assert isinstance(columns, WrenchColumns)
    bias = LinkProblem(problem.factors, columns.own[["bias" in name for name in columns.names]])
    variation = bias.residual_rms(bias.ordinary().solution)
    shares = [
        np.linalg.norm(noise[axes]) / max(np.linalg.norm(variation[axes]), 1e-12) for axes in (slice(3), slice(3, 6))
    ]
    return float(np.sqrt(np.prod(shares))), float(fit.solution[0]), float(np.sqrt(fit.covariance[0, 0]))
