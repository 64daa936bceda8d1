"""What an arm carries at its tip beside what its URDF has: mass, centre and inertia, as one declares it to a driver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, is_possible, transformed
from dynid_ros.model.robot import RobotModel

DENSITY = 2700.0
"""Density of a ball that stands for a body of which mass and centre are known, kg/m³: aluminium."""
FARTHEST = 2.0
"""Largest distance of the centre from the tip, m."""
SAME = 0.2
"""Relative difference of two masses below which they are taken for the same body."""
NUMBERS = "MASS CX CY CZ, kg and m in the axes of the tip, or these and IXX IXY IXZ IYY IYZ IZZ about the centre, kg m²"


def ball(mass: float, center: NDArray) -> NDArray:
    """Parameters (10,) of a ball of aluminium with that mass, kg, and centre (3,), m."""
    radius = (3 * mass / (4 * np.pi * DENSITY)) ** (1 / 3)
    return from_center_of_mass(mass, np.asarray(center), 0.4 * mass * radius**2 * np.eye(3))


def payload_parameters(values: Sequence[float]) -> NDArray:
    """Parameters (10,) about the tip from four numbers or ten, see `NUMBERS`; of four the inertia is a ball's.

    Raises:
        ModelError: another number of them, or a body that cannot be.
    """
    given = np.asarray(values, dtype=float)
    if given.shape not in ((4,), (10,)) or not np.isfinite(given).all():
        raise ModelError(f"payload: {list(values)} is none; expected {NUMBERS}")
    mass, center = given[0], given[1:4]
    if mass <= 0 or np.linalg.norm(center) > FARTHEST:
        raise ModelError(
            f"payload: a mass of {mass:g} kg at ({', '.join(f'{c:g}' for c in center)}) m; expected one above 0 within "
            f"{FARTHEST:g} m of the tip"
        )
    if given.size == 4:
        return ball(mass, center)
    found = from_center_of_mass(mass, center, inertia_matrix(np.concatenate([np.zeros(4), given[4:]])))
    if not is_possible(found):
        raise ModelError(f"payload: no body has the inertia {list(given[4:])} kg m²; expected {NUMBERS}")
    return found


def with_payload(robot: RobotModel, values: Sequence[float]) -> RobotModel:
    """The arm with a payload at its tip; without `values` as it is.

    Raises:
        ModelError: as `payload_parameters`; several tips; or the URDF has about that mass at or beyond the tip already.
    """
    if not len(values):
        return robot
    body = payload_parameters(values)
    if "," in robot.tip:
        raise ModelError(f"payload: the model has several tips ({robot.tip}); expected one, which carries it")
    carried = {} if robot.urdf is None else _carried(robot)
    if any(abs(mass - body[0]) < SAME * body[0] for mass in (*carried.values(), sum(carried.values()))):
        said = ", ".join(f"'{link}' {mass:g} kg" for link, mass in carried.items())
        raise ModelError(
            f"payload: the URDF has about its mass at or beyond the tip '{robot.tip}' already ({said}); leave the "
            "payload out, or take it out of the URDF"
        )
    parameters = robot.parameters.copy()
    parameters[robot.tip_columns] += transformed(body, robot.tip_offset)
    return robot.with_parameters(parameters)


def _carried(robot: RobotModel) -> dict[str, float]:
    """Masses of links at the tip and beyond it, kg, by name; a tip that a joint moves is a link of the arm."""
    masses = {
        link: robot.tree.links[link].inertial for link in robot.tree.below(robot.tip) if link not in robot.link_names
    }
    return {link: inertial.mass for link, inertial in masses.items() if inertial is not None and inertial.mass > 0}
