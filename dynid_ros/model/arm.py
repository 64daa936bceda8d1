"""Arm that a user describes: a URDF, a group of an SRDF or the flange, and a payload that the URDF lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import ModelError
from dynid_ros.model.flange import flange
from dynid_ros.model.inertia import from_center_of_mass, inertia_matrix, is_possible, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.robot import STANDARD_GRAVITY, RobotModel
from dynid_ros.model.srdf import chain_ends
from dynid_ros.model.urdf_text import urdf_text

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


def arm_from_urdf(
    path_or_xml: str | Path,
    tip: str | None = None,
    base: str | None = None,
    gravity: ArrayLike = STANDARD_GRAVITY,
    *,
    held: Mapping[str, float] | None = None,
    payload: Sequence[float] = (),
    srdf: str | Path | None = None,
    group: str | None = None,
) -> tuple[RobotModel, str]:
    """Return the model of a URDF or of a group of an SRDF, with a payload, and a remark about the flange.

    Args:
        path_or_xml: path of a URDF file, or its text.
        tip: last link or links, see `RobotModel.from_urdf`.
        base: first link; None: the root.
        gravity: (3,) in the base frame, m/s².
        held: positions, rad or m, of joints that do not move.
        payload: numbers of a payload that the URDF lacks, see `with_payload`.
        srdf: file of a group, see `chain_ends`.
        group: name of a group of `srdf` in place of base and tip.

    Raises:
        ModelError: see `RobotModel.from_urdf`, `with_payload` and `chain_ends`; or the end of the arm cannot be
            determined.
    """
    tree = LinkTree(*urdf_text(path_or_xml))
    base, tip = chain_ends(tree, base, tip, srdf=srdf, group=group)
    chosen, fingers = (None, ()) if tip else flange(tree, base or None)
    robot = with_payload(RobotModel.from_tree(tree, chosen or tip, base, gravity, held=held), payload)
    if chosen is None:
        return robot, ""
    remark = f"the arm ends at link '{chosen}', its flange; name another tip if the arm ends elsewhere"
    return robot, f"{remark}; joints beyond it belong to a hand: {', '.join(fingers)}" if fingers else remark
