"""Torques of the motors beyond inertia and viscous friction: dry friction is chosen, ripple is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.flexible_parameters import MOTOR_TERMS, Layout
from dynid_ros.identification.flexible.output_error import OutputError, Solution
from dynid_ros.identification.flexible.run_residuals import RunTerms
from dynid_ros.identification.flexible.runs import Run
from dynid_ros.identification.flexible.starting_values import Start


class SearchOutcome(NamedTuple):
    """End of a search, with its start and runs."""

    start: Start
    search: OutputError
    runs: list[Run]
    solution: Solution


# Dry friction.


USUAL_TERMS = MOTOR_TERMS[:2]
"""Terms of a motor's torque that are always estimated where terms are chosen."""
MIN_SCORE = 9.0
"""Gain of twice the log-likelihood by dry friction of a motor, in parts of the misfit, from which it is fitted."""
MIN_ERRORS_ABOVE_ZERO = 3.0
"""Distance from zero in standard errors, widened by errors of the model, from which dry friction is significant."""


def with_motor_friction(end: SearchOutcome, terms: Sequence[RunTerms]) -> SearchOutcome:
    """Return the fit with dry friction of the motors where it is significant, else the given fit.

    The score test (Rao 1948) needs no search: a step from the fit without the term predicts the gain of likelihood.
    Where the gain suffices, a search starts from this step.
    """
    layout = replace(end.search.layout, motor_terms=(*end.search.layout.motor_terms, "motor_coulomb"))
    search = OutputError(layout, end.runs, terms)
    values = extended(end.solution.values, layout)
    own = end.solution.runs
    places = layout.index("motor_coulomb")
    try:
        steps, gains = search.score(values, own, places)
        shown = (steps > 0) & (gains > MIN_SCORE * end.solution.misfit)
        if not shown.any():
            return end
        values[places] = np.maximum(steps, 0.0)
        solution = search.solve(values, (values, search.named(own)))
    except IdentificationError:
        return end
    friction = solution.values[places]
    errors = np.sqrt(np.diagonal(solution.covariance)[places])
    if not (friction > MIN_ERRORS_ABOVE_ZERO * errors).any():
        return end
    return SearchOutcome(end.start._replace(values=extended(end.start.values, layout)), search, end.runs, solution)


def extended(values: NDArray, layout: Layout) -> NDArray:
    """Return parameters (p,) of a layout whose first parameters are given; the others are zero."""
    return np.concatenate([values, np.zeros(len(layout.names) - len(values))])


# Torques that are periodic in the motor's position: cogging, ripple of the current sensor or of the gear.


MIN_RIPPLE_PERIODS = 3.0
"""Periods of a ripple within the motor's range: slower ones look like gravity or friction."""
MAX_RIPPLE_PHASE_RAD = 1.0
"""Largest phase of a ripple between two samples."""
MIN_RIPPLE_GAIN = 30.0
"""Gain of twice the log-likelihood by a ripple, in parts of the misfit. Noise gains 14 at the best of 1000 periods."""


class Ripple(NamedTuple):
    """Torque ripple of a motor that the model lacks.

    Attributes:
        remark: Sentence on the ripple.
        shift: Change (p,) of the parameters if the ripple were in the model.
    """

    remark: str
    shift: NDArray


def torque_ripples(end: SearchOutcome, joint_names: Sequence[str]) -> list[Ripple]:
    """Return the largest significant torque ripple of each motor in each run."""
    found = []
    for k, (run, channels) in enumerate(zip(end.runs, end.solution.channels, strict=True)):
        for channel in channels:
            if channel.kind != "motor":
                continue
            position = run.motor.position[:, channel.joint]
            wavenumber = _ripple_wavenumber(channel.samples, position, run)
            if not wavenumber:
                continue
            waves = np.stack([np.cos(wavenumber * position), np.sin(wavenumber * position)], axis=1)
            amplitudes, shift, gain = end.search.omitted_torque(end.solution, k, channel.joint, waves)
            if gain > MIN_RIPPLE_GAIN * end.solution.misfit:
                joint = joint_names[channel.joint]
                size = float(np.hypot(*amplitudes))
                remark = (
                    f"{run.source}: the torque of {joint} has a ripple of {size:.2g} that repeats every "
                    f"{2 * np.pi / wavenumber:.3g} of its motor's position, which the model lacks; intervals are wider "
                    "by what it does to the values"
                )
                found.append(Ripple(remark, shift))
    return found


def _ripple_wavenumber(residual: NDArray, position: NDArray, run: Run) -> float:
    """Return the wavenumber, 1/rad or 1/m, of the largest ripple in a residual (W,) over positions (N,); 0: none."""
    inside = position[run.compared.window]
    span = float(np.ptp(inside))
    fastest = float(np.abs(np.diff(inside)).max())
    if not fastest > 0:
        return 0.0
    candidates = np.arange(2 * np.pi * MIN_RIPPLE_PERIODS / span, MAX_RIPPLE_PHASE_RAD / fastest, np.pi / span / 2)
    if not len(candidates):
        return 0.0
    return float(max(candidates, key=lambda number: abs(np.exp(1j * number * inside) @ residual)))
