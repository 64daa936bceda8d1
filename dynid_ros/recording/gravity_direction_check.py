"""Does gravity point where the robot model says? Judged by the direction that explains the torques best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from dynid_ros.recording.effort_check import COMPENSATED
from dynid_ros.recording.explanation import Explanation
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueFit, TorqueModel

DIRECTION: Final = "gravity direction"
TILTED = 10.0
"""Smallest angle to report, degrees."""
WORTH_REFINING = 0.1
"""Gain of a coarse direction from which the best one is looked for."""
LEFT = 0.4
"""Most of the nominal gravity torque that a driver's compensation leaves."""


def gravity_explanations(
    model: TorqueModel, samples: MotionSamples, terms: Terms, given: TorqueFit
) -> Iterator[Explanation]:
    """What gravity along another direction, and none at all, would explain."""
    robot = model.robot
    size = float(np.linalg.norm(robot.gravity))
    if size == 0.0:
        return
    weightless, of_gravity = model.rigid_without_gravity(samples), model.rigid_of_gravity(samples)

    def misfit(gravity: NDArray) -> float:
        rigid = weightless + np.tensordot(gravity, of_gravity, 1)
        equations = TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic)
        return equations.fit().misfit

    yield from _compensated(model, samples, terms, weightless, given)
    gravity = size * _best_direction(misfit, size, given.misfit - WORTH_REFINING)
    angle = np.degrees(np.arccos(np.clip(gravity @ robot.gravity / size**2, -1, 1)))
    if angle >= TILTED:
        found = ", ".join(f"{value:.1f}" for value in gravity)
        yield Explanation(
            DIRECTION,
            given.misfit - misfit(gravity),
            f"gravity points {angle:.0f} degrees away from where the robot model has it: ({found}) m/s^2 in the frame "
            f"of '{robot.base}' explains the torques best",
            "give the gravity of the robot as it is mounted (--gravity, parameter gravity)",
        )


def _compensated(
    model: TorqueModel, samples: MotionSamples, terms: Terms, weightless: NDArray, given: TorqueFit
) -> Iterator[Explanation]:
    """Gravity apart from inertia: a driver's own model leaves some of it, in other proportions."""
    robot = model.robot
    gravity = robot.gravity_regressor(samples.position)
    gravity = gravity[:, :, np.flatnonzero(np.any(gravity, axis=(0, 1)))]
    rigid = np.concatenate([weightless, gravity], axis=2)
    equations = TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic)
    fit = equations.fit()
    found = gravity @ fit.rigid[weightless.shape[2] :]
    nominal = robot.gravity_torque(samples.position)
    sizes = [np.sqrt(np.mean(terms.moving * (torque - torque.mean(axis=0)) ** 2)) for torque in (found, nominal)]
    if sizes[0] < LEFT * sizes[1]:
        yield Explanation(
            COMPENSATED,
            given.misfit - fit.misfit,
            f"there is no gravity in the effort: {100 * sizes[0] / sizes[1]:.0f} % of the URDF's",
            "switch the driver's gravity compensation off, or give its uncompensated torque as torque_topic",
        )


def _best_direction(misfit: Callable[[NDArray], float], size: float, interesting: float) -> NDArray:
    """Unit vector of the lowest misfit; coarse unless it is below `interesting`."""
    grid = [np.array(direction) for direction in product((-1.0, 0.0, 1.0), repeat=3) if any(direction)]
    grid = [direction / np.linalg.norm(direction) for direction in grid]
    values = [misfit(size * direction) for direction in grid]
    best = grid[int(np.argmin(values))]
    if min(values) > interesting:
        return best
    # Two tangents span the directions around it.
    tangents = np.linalg.svd(best[None])[2][1:]

    def direction(step: NDArray) -> NDArray:
        turned = best + step @ tangents
        return turned / np.linalg.norm(turned)

    found = minimize(
        lambda step: misfit(size * direction(step)),
        np.zeros(2),
        method="Nelder-Mead",
        options={"initial_simplex": [[0, 0], [0.3, 0], [0, 0.3]], "maxfev": 40, "xatol": 0.02, "fatol": 0.01},
    )
    return direction(found.x)
