"""Section `torsion` of `identified.yaml`: what the torsion of each joint is made of, and the stiffness it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynid_ros.errors import IdentifiedFileError
from dynid_ros.identified.identified_file import (
    DOF,
    as_number,
    as_numbers,
    file_of,
    mapping,
    read_finite,
    section_of,
)

RIPPLE = ("per_turn", "amplitude", "phase")
"""Periods per turn, rad and rad, of a ripple over what the link encoder reads."""


def torsion_entry(
    *,
    stiffness: tuple[float, Sequence[float], str],
    numbers: Mapping[str, float],
    estimates: Mapping[str, tuple[float, float, float]],
    dof: int,
    sets: Sequence[tuple[Sequence[str], float]],
    ripples: Sequence[tuple[float, float, float, float]],
) -> dict:
    """Entry of a joint.

    Args:
        stiffness: N m/rad, NaN: not determined; ends of its 95 % interval, infinite: the joint may be rigid; why it is
            not determined, else empty.
        numbers: zero, torsion_rms, held_out_rms, noise (rad), delay (s), fastest (rad/s).
        estimates: coefficient, standard error and RMS of its part of the torsion (rad) by label of its column.
        dof: degrees of freedom of these errors.
        sets: of terms that predict equally well, best first, and what they leave of parts that were left out, rad.
        ripples: per turn, amplitude (rad), phase (rad), standard error of the amplitude.
    """
    value, interval, reason = stiffness
    return {
        "stiffness": as_number(value),
        "stiffness_interval": as_numbers(interval),
        "undecided": reason or None,
        **{name: as_number(number) for name, number in numbers.items()},
        "terms": list(sets[0][0]),
        "coefficients": {label: as_number(one[0]) for label, one in estimates.items()},
        "std": {label: as_number(one[1]) for label, one in estimates.items()},
        DOF: dof,
        "part_rms": {label: as_number(one[2]) for label, one in estimates.items()},
        "sets": [{"terms": list(terms), "held_out_rms": as_number(rms)} for terms, rms in sets],
        "ripples": [
            {**dict(zip(RIPPLE, as_numbers(ripple[:3]), strict=True)), "std": as_number(ripple[3])}
            for ripple in ripples
        ],
    }


def predicts_torsion(document: Mapping[str, Any]) -> bool:
    """Whether a file predicts torsion, and no torque."""
    return "torsion" in document and not {"links", "gravity"} & set(document)


@dataclass(frozen=True)
class SavedTorsion:
    """What the file says of a joint's torsion.

    Attributes:
        coefficients: by label of their columns.
        fastest: speed in what it was fitted to, rad/s.
        zero: rad.
        ripples: per turn, amplitude (rad) and phase (rad).
    """

    coefficients: dict[str, float]
    fastest: float
    zero: float
    ripples: tuple[tuple[float, float, float], ...]


def read_torsion(document: Mapping[str, Any]) -> tuple[tuple[str, ...], float, dict[str, SavedTorsion]]:
    """Joints of the recordings, cut-off of the low-pass (Hz), and the joints' torsion.

    Raises:
        IdentifiedFileError: without the section, by a version that did not save coefficients yet, or malformed.
    """
    file, section = file_of(document), section_of(document, "torsion", "torsion")
    names = document["robot"].get("joints")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise IdentifiedFileError(f"{file}: robot.joints is {names!r}, expected a list of names")
    if unknown := [str(name) for name in section if name not in names]:
        raise IdentifiedFileError(f"{file}: torsion of {', '.join(unknown)}, no joint of its robot; identify again")
    source = mapping(document, "source", file)
    cutoff = _positive(document, mapping(source, "settings", f"{file}: source"), "cutoff", "of the low-pass")
    return tuple(names), cutoff, {name: _joint(document, section, name) for name in section}


def _joint(document: Mapping[str, Any], section: Mapping[str, Any], name: str) -> SavedTorsion:
    where = f"{file_of(document)}: torsion of joint '{name}'"
    entry = mapping(section, name, where)
    known = mapping(entry, "coefficients", where)
    if not known:
        raise IdentifiedFileError(f"{where}: it has no coefficients, which older versions did not save; identify again")
    ripples = entry.get("ripples") or []
    if not isinstance(ripples, list) or not all(isinstance(one, dict) for one in ripples):
        raise IdentifiedFileError(f"{where}: ripples must be a list of mappings; identify again")
    place = f"torsion of joint '{name}'"
    return SavedTorsion(
        {str(label): read_finite(document, known, label, place) for label in known},
        _positive(document, entry, "fastest", place),
        read_finite(document, entry, "zero", place),
        tuple(
            (
                read_finite(document, one, RIPPLE[0], place),
                read_finite(document, one, RIPPLE[1], place),
                read_finite(document, one, RIPPLE[2], place),
            )
            for one in ripples
        ),
    )


def _positive(document: Mapping[str, Any], entry: Mapping[str, Any], label: str, where: str) -> float:
    value = read_finite(document, entry, label, where)
    if not value > 0:
        raise IdentifiedFileError(f"{file_of(document)}: {label}, {where}, is {value:g}, expected more than 0")
    return value
