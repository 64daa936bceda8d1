"""Section `friction` of `identified.yaml` joint by joint, as controllers read it: without a model of friction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    as_number,
    file_of,
    is_number,
    mapping,
    read_finite,
    read_number,
)

DIRECTIONS = ("torque_positive", "torque_negative")
"""Torque besides gravity of a joint that moves slowly in its positive, and negative, direction."""
OWN = ("spring", "cos_", "sin_")
"""How terms begin that act at standstill, wherever the joint is."""
SURE = 2.0
"""Standard errors below the estimate: the lower end of its 95 % interval is what a joint has at least."""
SIDES = ("{}", "{}_positive", "{}_negative")


def joint_friction_entry(estimates: Mapping[str, tuple[float, float, float]]) -> dict:
    """Entry of a joint: from value, standard error and its degrees of freedom by label, NaN where not known."""
    entry: dict = {label: as_number(value) for label, (value, _, _) in estimates.items()}
    entry["rotor_inertia"] = None
    entry["std"] = {label: as_number(error) for label, (_, error, _) in estimates.items()}
    entry[DOF] = {label: as_number(dof) for label, (_, _, dof) in estimates.items()}
    return entry


def friction_values(document: dict, joints: Sequence[str], labels: Sequence[str]) -> list[NDArray]:
    """(n,) of each label, such as "coulomb"; NaN where the file has none.

    Raises:
        IdentifiedFileError: the section is malformed.
    """
    section, file = mapping(document, "friction", file_of(document)), file_of(document)
    entries = {joint: mapping(section, joint, f"{file}: friction") for joint in joints}
    return [
        np.array([read_number(document, entry, label, f"friction of joint '{j}'") for j, entry in entries.items()])
        for label in labels
    ]


def determined_friction(document: dict) -> dict:
    """The section without Coulomb friction and offset of joints whose torques by direction are known."""
    return {
        joint: {label: value for label, value in entry.items() if label not in ("coulomb", "offset")}
        if isinstance(entry, dict) and any(is_number(entry.get(label)) for label in DIRECTIONS)
        else entry
        for joint, entry in mapping(document, "friction", file_of(document)).items()
    }


def least_friction(document: Mapping, joint: str) -> tuple[float, float]:
    """Coulomb (N m) and viscous (N m s/rad) friction that a joint has at least: lower ends of the 95 % intervals.

    Where the two directions have friction of their own it is the smaller one's; below zero it is zero.

    Raises:
        IdentifiedFileError: neither was identified.
    """
    section = document.get("friction")
    if not isinstance(section, dict):
        raise IdentifiedFileError(
            f"{file_of(document)}: has no section friction; set friction_scale to 0, or identify it"
        )
    entry = section.get(joint)
    coulomb, viscous = (_at_least(entry, term) if isinstance(entry, dict) else None for term in ("coulomb", "viscous"))
    if coulomb is None and viscous is None:
        raise IdentifiedFileError(
            f"{file_of(document)}: friction of joint '{joint}' was not identified; set its friction_scale to 0, or "
            "identify it"
        )
    return coulomb or 0.0, viscous or 0.0


def harmonics_of(document: Mapping, joint: str, terms: Sequence[str]) -> list[float]:
    """Waves per turn of the harmonics among the terms of a joint.

    Raises:
        IdentifiedFileError: one that is no number, or has a cosine without a sine.
    """
    waves = [term.removeprefix("cos_") for term in terms if term.startswith("cos_")]
    try:
        found = [float(wave) for wave in waves]
    except ValueError:
        found = []
    if len(found) < len(waves) or waves != [term.removeprefix("sin_") for term in terms if term.startswith("sin_")]:
        raise IdentifiedFileError(
            f"{file_of(document)}: friction of joint '{joint}' has terms {list(terms)}; expected pairs cos_H, sin_H of "
            "a number of waves per turn; run the link identification again"
        )
    return found


def own_angle_torque(document: Mapping, joints: Sequence[str]) -> Callable[[Sequence[float]], list[float]] | None:
    """Torque (n,) of one sample from positions (n,), of springs and harmonics of the joints' own angles; None: none.

    A spring's rest angle is in the joint's offset, which is then part of it.

    Raises:
        IdentifiedFileError: a coefficient is no number.
    """
    section = document.get("friction")
    laws: list[tuple[int, float, float, list[tuple[float, float, float]]]] = []
    for place, joint in enumerate(joints):
        entry = section.get(joint) if isinstance(section, dict) else None
        terms = entry.get("terms") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(terms, list):
            continue
        if own := [str(term) for term in terms if str(term).startswith(OWN)]:
            where = f"friction of joint '{joint}'"
            value = {term: read_finite(document, entry, term, where) for term in own}
            spring = value.get("spring", 0.0)
            offset = read_finite(document, entry, "offset", where) if spring and "offset" in terms else 0.0
            waves = harmonics_of(document, joint, own)
            amplitudes = [[value[term] for term in own if term.startswith(wave)] for wave in ("cos_", "sin_")]
            laws.append((place, offset, spring, list(zip(waves, *amplitudes, strict=True))))

    def torque(position: Sequence[float]) -> list[float]:
        found = [0.0] * len(joints)
        for place, offset, spring, waves in laws:
            q = position[place]
            found[place] = offset + spring * q + sum(c * math.cos(h * q) + s * math.sin(h * q) for h, c, s in waves)
        return found

    return torque if laws else None


def _at_least(entry: Mapping, term: str) -> float | None:
    """What the joint surely has of a term, at least 0; None: not known."""
    errors = entry.get("std")
    sure = []
    for key in (side.format(term) for side in SIDES):
        value = entry.get(key)
        if is_number(value):
            error = errors.get(key) if isinstance(errors, dict) else None
            sure.append(value - SURE * (error if is_number(error) else 0.0))
    return max(min(sure), 0.0) if sure else None
