"""Payload at the tip that the URDF lacks: mass, centre and inertia, as users declare it to a driver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, is_possible, transformed
from dynid_ros.model.robot import RobotModel

BALL_DENSITY = 2700.0
"""Density (aluminium) of the ball that replaces a body with unknown inertia, kg/m³."""
MAX_CENTER_DISTANCE_M = 2.0
"""Largest distance of the centre of mass from the tip."""
SAME_MASS_FRACTION = 0.2
"""Relative difference below which two masses count as the same body."""
NUMBERS = "MASS CX CY CZ, kg and m in the axes of the tip, or these and IXX IXY IXZ IYY IYZ IZZ about the centre, kg m²"


def ball(mass: float, center: NDArray) -> NDArray:
    """Return the parameters (10,) of a ball of aluminium with a mass, kg, and a centre (3,), m."""
    radius = (3 * mass / (4 * np.pi * BALL_DENSITY)) ** (1 / 3)
    return from_center_of_mass(mass, np.asarray(center), 0.4 * mass * radius**2 * np.eye(3))


def payload_parameters(values: Sequence[float]) -> NDArray:
    """Return the parameters (10,) about the tip from four or ten `NUMBERS`; with four, the inertia is that of a ball.

    Raises:
        ModelError: there are more or fewer numbers, or no body has these parameters.
    """
    numbers = np.asarray(values, dtype=float)
    if numbers.shape not in ((4,), (10,)) or not np.isfinite(numbers).all():
        raise ModelError(f"payload: got {list(values)}; expected {NUMBERS}")
    mass = numbers[0]
    center = numbers[1:4]
    if mass <= 0 or np.linalg.norm(center) > MAX_CENTER_DISTANCE_M:
        raise ModelError(
            f"payload: a mass of {mass:g} kg at ({', '.join(f'{c:g}' for c in center)}) m; expected one above 0 within "
            f"{MAX_CENTER_DISTANCE_M:g} m of the tip"
        )
    if numbers.size == 4:
        return ball(mass, center)
    inertia = inertia_matrix(np.concatenate([np.zeros(4), numbers[4:]]))
    parameters = from_center_of_mass(mass, center, inertia)
    if not is_possible(parameters):
        raise ModelError(f"payload: no body has the inertia {list(numbers[4:])} kg m²; expected {NUMBERS}")
    return parameters


def with_payload(robot: RobotModel, values: Sequence[float]) -> RobotModel:
    """Return the arm with a payload at its tip; without `values` return the arm itself.

    Raises:
        ModelError: see `payload_parameters`; or the arm has several tips, or the URDF already has a similar mass at or
            beyond the tip.
    """
    if not len(values):
        return robot
    body = payload_parameters(values)
    if "," in robot.tip:
        raise ModelError(f"payload: the model has several tips ({robot.tip}); expected one, which carries it")
    carried = {} if robot.urdf is None else _carried(robot)
    if any(abs(mass - body[0]) < SAME_MASS_FRACTION * body[0] for mass in (*carried.values(), sum(carried.values()))):
        links = ", ".join(f"'{link}' {mass:g} kg" for link, mass in carried.items())
        raise ModelError(
            f"payload: the URDF has about its mass at or beyond the tip '{robot.tip}' already ({links}); leave the "
            "payload out, or take it out of the URDF"
        )
    parameters = robot.parameters.copy()
    parameters[robot.tip_columns] += transformed(body, robot.tip_offset)
    return robot.with_parameters(parameters)


def _carried(robot: RobotModel) -> dict[str, float]:
    """Return the masses, kg, by name, of links at the tip and beyond it, without moving links of the arm."""
    masses = {
        link: robot.tree.links[link].inertial for link in robot.tree.below(robot.tip) if link not in robot.link_names
    }
    return {link: inertial.mass for link, inertial in masses.items() if inertial is not None and inertial.mass > 0}
