"""Section `friction` of `identified.yaml` for controllers: numbers by joint, without a friction model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import DOF, Section, as_number, file_of, is_number

DIRECTIONS = ("torque_positive", "torque_negative")
"""Torque without gravity of a joint that moves slowly in its positive and its negative direction."""
POSITION_TERMS = ("spring", "cos_", "sin_")
"""Prefixes of the terms that depend on the joint's position only."""
LOWER_BOUND_STD = 2.0
"""Number of standard errors from an estimate to the lower end of its 95 % interval."""
DIRECTION_KEYS = ("{}", "{}_positive", "{}_negative")
"""Patterns of the keys of a term that may depend on the direction of motion."""


def joint_friction_entry(estimates: Mapping[str, tuple[float, float, float]]) -> dict:
    """Return the entry of a joint from value, standard error and degrees of freedom by label, NaN where unknown."""
    entry: dict = {label: as_number(value) for label, (value, _, _) in estimates.items()}
    entry["rotor_inertia"] = None
    entry["std"] = {label: as_number(error) for label, (_, error, _) in estimates.items()}
    entry[DOF] = {label: as_number(dof) for label, (_, _, dof) in estimates.items()}
    return entry


def friction_values(document: dict, joints: Sequence[str], labels: Sequence[str]) -> list[NDArray]:
    """Return an array (n,) for each label, such as "coulomb"; NaN where the file has no number."""
    section = Section.optional(document, "friction")
    entries = [section.child(joint) for joint in joints]
    return [np.array([entry.number_or_nan(label) for entry in entries]) for label in labels]


def least_friction(document: Mapping, joint: str) -> tuple[float, float]:
    """Return lower bounds of a joint's Coulomb (N m) and viscous (N m s/rad) friction from the 95 % intervals.

    If the directions differ, the smaller friction counts. A bound below zero is zero.
    """
    section = document.get("friction")
    if not isinstance(section, dict):
        raise IdentifiedFileError(
            f"{file_of(document)}: has no section friction; set friction_scale to 0, or identify it"
        )
    entry = section.get(joint)
    entry = entry if isinstance(entry, dict) else {}
    coulomb = _lower_bound(entry, "coulomb")
    viscous = _lower_bound(entry, "viscous")
    if coulomb is None and viscous is None:
        raise IdentifiedFileError(
            f"{file_of(document)}: friction of joint '{joint}' was not identified; set its friction_scale to 0, or "
            "identify it"
        )
    return coulomb or 0.0, viscous or 0.0


def least_breakaway(document: Mapping, joint: str) -> tuple[float, float, float, float]:
    """Return lower bounds of a joint's dry friction at rest from the 95 % intervals; zero for unknown terms.

    Returns:
        Coulomb friction, N m (N); additional friction at rest (Stribeck), N m (N); the speed at which the latter has
        decayed to 1/e, rad/s (m/s), infinite if there is none; and friction per torque of the links.
    """
    section = document.get("friction")
    entry = section.get(joint) if isinstance(section, dict) else None
    entry = entry if isinstance(entry, dict) else {}
    speed = entry.get("stribeck_velocity")
    width = float(speed) if speed is not None and is_number(speed) and speed > 0.0 else math.inf
    stribeck = _lower_bound(entry, "stribeck") if math.isfinite(width) else None
    bounds = [_lower_bound(entry, term) or 0.0 for term in ("coulomb", "load")]
    return bounds[0], stribeck or 0.0, width, bounds[1]


def harmonics_of(document: Mapping, joint: str, terms: Sequence[str]) -> list[float]:
    """Return the waves per turn of the harmonics among the terms of a joint, which are pairs such as cos_2, sin_2."""
    waves = [term.removeprefix("cos_") for term in terms if term.startswith("cos_")]
    try:
        numbers = [float(wave) for wave in waves]
    except ValueError:
        numbers = []
    if len(numbers) < len(waves) or waves != [term.removeprefix("sin_") for term in terms if term.startswith("sin_")]:
        raise IdentifiedFileError(
            f"{file_of(document)}: friction of joint '{joint}' has terms {list(terms)}; expected pairs cos_H, sin_H of "
            "a number of waves per turn; run the link identification again"
        )
    return numbers


def own_angle_torque(document: Mapping, joints: Sequence[str]) -> Callable[[Sequence[float]], list[float]] | None:
    """Return a function from positions (n,) to the torque (n,) of terms that depend on a joint's own position.

    These are springs and harmonics; without any, the result is None. The rest angle of a spring is contained in the
    joint's offset, so the offset is added for joints with a spring.
    """
    section = document.get("friction")
    laws: list[tuple[int, float, float, list[tuple[float, float, float]]]] = []
    for index, joint in enumerate(joints):
        entry = section.get(joint) if isinstance(section, dict) else None
        terms = entry.get("terms") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(terms, list):
            continue
        position_terms = [str(term) for term in terms if str(term).startswith(POSITION_TERMS)]
        if position_terms:
            reader = Section(entry, f"{file_of(document)}: friction of joint '{joint}'")
            values = {term: reader.number(term) for term in position_terms}
            spring = values.get("spring", 0.0)
            offset = reader.number("offset") if spring and "offset" in terms else 0.0
            waves = [
                (h, values[f"cos_{name}"], values[f"sin_{name}"])
                for h, name in zip(
                    harmonics_of(document, joint, position_terms),
                    [term.removeprefix("cos_") for term in position_terms if term.startswith("cos_")],
                    strict=True,
                )
            ]
            laws.append((index, offset, spring, waves))

    def torque(position: Sequence[float]) -> list[float]:
        torques = [0.0] * len(joints)
        for index, offset, spring, waves in laws:
            q = position[index]
            torques[index] = offset + spring * q + sum(c * math.cos(h * q) + s * math.sin(h * q) for h, c, s in waves)
        return torques

    return torque if laws else None


def _lower_bound(entry: Mapping, term: str) -> float | None:
    """Return the lower end of a term's 95 % interval, at least 0; None if the term is unknown."""
    errors = entry.get("std")
    bounds = []
    for key in (pattern.format(term) for pattern in DIRECTION_KEYS):
        value = entry.get(key)
        if is_number(value):
            error = errors.get(key) if isinstance(errors, dict) else None
            bounds.append(value - LOWER_BOUND_STD * (error if is_number(error) else 0.0))
    return max(min(bounds), 0.0) if bounds else None
