"""Names and units of parameters, and tables of their estimates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from numpy.typing import NDArray

from dynid_ros.model.chain import ArmModel
from dynid_ros.model.friction import FrictionModel
from dynid_ros.model.friction_terms import TERM_KINDS

LINK_PARAMETERS: tuple[str, ...] = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
TORQUE_UNIT = "N m"
UNITS = {family: kind.unit for family, kind in TERM_KINDS.items()}
UNITS |= {"I": "kg m²", "mc": "kg m", "m": "kg", "n_": "kg m", "mass": "kg", "center": "m", "inertia": "kg m²"}
UNITS |= {"motor_inertia": "kg m²", "motor_viscous": "N m s/rad", "stiffness": "N m/rad", "cubic": "N m/rad³"}
UNITS |= {"dead_zone": "rad", "gain": ""}
"""Units for revolute joints, by the kind of a link parameter or by term; all other terms are torques."""


def parameter_names(robot: ArmModel, friction: FrictionModel | None = None) -> tuple[str, ...]:
    """Return the names of an arm's parameters, m1 ... Izz1, m2 ... (links from 1 on), then those of its friction."""
    links = [f"{name}{i}" for i in range(1, robot.n_links + 1) for name in LINK_PARAMETERS]
    return (*links, *(friction.names(robot) if friction else ()))


def describe_parameters(robot: ArmModel, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns "of" (link or joint) and "unit" of parameters, friction among them."""
    owners = []
    units = []
    for name in names:
        term, _, owner = name.partition(" ")
        link = re.fullmatch(r"(m|mc|I)[xyz]{0,2}(\d*)", term)
        if link:
            owner = robot.link_names[int(link[2]) - 1] if link[2] else owner
            unit = UNITS[link[1]]
        else:
            term = re.sub(r"^coupling_|_(positive|negative)$", "", term)
            unit = UNITS.get("n_" if term.startswith("n_") else term, TORQUE_UNIT)
            unit = prismatic_unit(unit) if _is_prismatic(robot, owner) else unit
        owners.append(owner)
        units.append(unit)
    return {"of": owners, "unit": units}


def prismatic_unit(unit: str) -> str:
    """Return the unit that a quantity of a revolute joint has for a prismatic one."""
    return {"kg m²": "kg", "rad/(N m)": "m/N"}.get(unit, unit.replace("N m", "N").replace("rad", "m"))


def _is_prismatic(robot: ArmModel, owner: str) -> bool:
    """Return whether a joint, or the first joint of a coupled pair, is prismatic."""
    joints = zip(robot.joint_names, robot.chain.prismatic, strict=True)
    return any(prismatic for joint, prismatic in joints if owner == joint or owner.startswith(f"{joint} "))


class Estimated(Protocol):
    """Result that has standard errors (k,) and confidence intervals (k, 2)."""

    @property
    def standard_errors(self) -> NDArray: ...  # noqa: D102

    def confidence_intervals(self) -> NDArray: ...  # noqa: D102


def parameter_table(robot: ArmModel, names: Sequence[str], values: NDArray, result: Estimated) -> dict[str, Sequence]:
    """Return the columns of a table of estimates (k,)."""
    low, high = result.confidence_intervals().T
    numbers = {"value": values, "std": result.standard_errors, "low": low, "high": high}
    columns = {key: array.tolist() for key, array in numbers.items()}
    return {"parameter": names, **describe_parameters(robot, names), **columns}
