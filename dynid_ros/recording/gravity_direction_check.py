"""Does gravity point where the robot model says? Judged by the direction that explains the torques best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.effort_check import COMPENSATED
from dynid_ros.recording.explanation import Explanation
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import Terms, TorqueEquations, TorqueFit, TorqueModel

DIRECTION: Final = "gravity direction"
TILTED = 10.0
"""Smallest angle that is an error, degrees."""
SLIGHT, SEEN = 3.0, 0.1
"""A smaller one is worth a warning from this angle, degrees, and this gain on."""
STEPS, LARGEST = 4, 0.5
"""Of the search, and the longest of them, rad."""
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

    def equations(rigid: NDArray) -> TorqueEquations:
        return TorqueEquations(Terms(rigid, terms.drive, terms.moving), samples.torque, robot.chain.prismatic)

    def along(direction: NDArray) -> NDArray:
        return weightless + size * np.tensordot(direction, of_gravity, 1)

    def fit(direction: NDArray) -> TorqueFit:
        return equations(along(direction)).fit()

    def step(direction: NDArray, parameters: NDArray) -> NDArray:
        """The turn (3,) of the direction that explains most of what is left: two tangents span those around it."""
        tangents = np.linalg.svd(direction[None])[2][1:]
        columns = np.moveaxis(size * np.tensordot(tangents, of_gravity @ parameters, 1), 0, 2)
        found = equations(np.concatenate([along(direction), columns], axis=2)).fit()
        return found.rigid[-len(tangents) :] @ tangents

    yield from _compensated(model, samples, terms, weightless, given)
    gravity = size * _best_direction(fit, step, robot.gravity / size)
    angle = np.degrees(np.arccos(np.clip(gravity @ robot.gravity / size**2, -1, 1)))
    gain = given.misfit - fit(gravity / size).misfit
    if angle >= TILTED or (angle >= SLIGHT and gain >= SEEN):
        found = ", ".join(f"{value:.1f}" for value in gravity)
        yield Explanation(
            DIRECTION,
            gain,
            f"gravity points {angle:.0f} degrees away from where the robot model has it: ({found}) m/s^2 in the frame "
            f"of '{robot.base}' explains the torques best",
            "give the gravity of the robot as it is mounted (--gravity, parameter gravity)",
            severity="error" if angle >= TILTED else "warning",
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


def _best_direction(
    fit: Callable[[NDArray], TorqueFit], step: Callable[[NDArray, NDArray], NDArray], nominal: NDArray
) -> NDArray:
    """Unit vector; from the best of a coarse grid and the nominal one by Gauss-Newton steps."""
    grid = [
        np.array(direction) for direction in product((-1.0, 0.0, 1.0), repeat=3) if sum(map(abs, direction)) in (1, 3)
    ]
    grid = [nominal, *(direction / np.linalg.norm(direction) for direction in grid)]
    fits = [fit(direction) for direction in grid]
    best = int(np.argmin([it.misfit for it in fits]))
    direction, found = grid[best], fits[best]
    for _ in range(STEPS):
        turn = step(direction, found.rigid)
        turned = direction + turn * LARGEST / max(float(np.linalg.norm(turn)), LARGEST)
        turned /= np.linalg.norm(turned)
        following = fit(turned)
        if following.misfit >= found.misfit:
            break
        direction, found = turned, following
    return direction
