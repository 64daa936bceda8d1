"""Sections `flexible_joints` and `torsion` of `identified.yaml`: spring, motor, friction and torsion of each joint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import DOF, Section, as_number, as_numbers, check_same_robot, file_of
from dynid_ros.model.robot import RobotModel

LINK_FRICTION_KEYS = {"coulomb": "link_coulomb", "viscous": "link_viscous"}
"""Keys of the friction of the link in the file, by the names of the friction terms."""

RIPPLE_KEYS = ("per_turn", "amplitude", "phase")
"""Keys of a ripple, a sinusoidal error over the reading of the link encoder: periods per turn, amplitude and phase,
rad."""


def flexible_joint_entry(
    spring: str, terms: Mapping[str, tuple[float, float, bool]], stiffness_interval: NDArray, resonance: float
) -> dict:
    """Return the entry of a joint in the section `flexible_joints`.

    Args:
        spring: name of the spring law.
        terms: value, standard error and whether the data determine it, by name of the parameter.
        stiffness_interval: (2,) ends of the 95 % interval, N m/rad or N/m; infinite if the joint may be rigid.
        resonance: resonant frequency of the link with the motor held, Hz.
    """
    named = {LINK_FRICTION_KEYS.get(name, name): term for name, term in terms.items()}
    return {
        "spring": spring,
        **{key: float(value) for key, (value, _, _) in named.items()},
        "stiffness_interval": as_numbers(stiffness_interval),
        "resonance": as_number(resonance),
        "std": {key: as_number(error) for key, (_, error, _) in named.items()},
        "decided": {key: bool(decided) for key, (_, _, decided) in named.items()},
    }


def springs_of(document: Mapping) -> dict[str, Mapping[str, Any]] | None:
    """Return the entries of the joints whose stiffness is determined, by joint; the other joints count as rigid.

    A file without the section gives None.
    """
    section = document.get("flexible_joints")
    if section is None:
        return None
    if not isinstance(section, dict) or not all(isinstance(entry, dict) for entry in section.values()):
        raise ControlError("expected for each flexible joint its stiffness")
    return {joint: entry for joint, entry in section.items() if not _is_undecided(entry)}


def joint_parameters(document: dict, robot: RobotModel, names: Collection[str]) -> dict[str, NDArray]:
    """Return values (n,) of at least 0 for each name of a parameter, such as "stiffness", or "coulomb" of the link."""
    section = Section.required(document, "flexible_joints", "flexible")
    check_same_robot(document, robot)
    parameters = {name: np.zeros(robot.n_joints) for name in names}
    for i, joint in enumerate(robot.joint_names):
        entry = section.joint(joint)
        for name, values in parameters.items():
            if name == "stiffness" and entry.child("decided").get(name) is not True:
                raise IdentifiedFileError(
                    f"{file_of(document)}: the stiffness of joint '{joint}' is undetermined, so no motion can be "
                    "designed for it; give a stiffness"
                )
            # The estimate of a negligible friction may be negative.
            values[i] = max(entry.number(LINK_FRICTION_KEYS.get(name, name)), 0.0)
    return parameters


def _is_undecided(entry: Mapping[str, Any]) -> bool:
    decided = entry.get("decided")
    return isinstance(decided, dict) and decided.get("stiffness") is False


def torsion_entry(
    *,
    stiffness: tuple[float, Sequence[float], str],
    numbers: Mapping[str, float],
    estimates: Mapping[str, tuple[float, float, float]],
    dof: int,
    sets: Sequence[tuple[Sequence[str], float]],
    ripples: Sequence[tuple[float, float, float, float]],
    prismatic: bool = False,
) -> dict:
    """Return the entry of a joint in the section `torsion`.

    Args:
        stiffness: stiffness, N m/rad, NaN if undetermined; ends of its 95 % interval, infinite if the joint may be
            rigid; and the reason if it is undetermined, otherwise an empty text.
        numbers: values of zero, torsion_rms, held_out_rms, noise (rad), delay (s) and fastest (rad/s), by name.
        estimates: coefficient, standard error and RMS contribution to the torsion (rad) by label of the column.
        dof: degrees of freedom of the standard errors.
        sets: sets of terms that predict about equally well, best first, with their RMS error on held-out parts, rad.
        ripples: periods per turn, amplitude (rad), phase (rad), and standard error of the amplitude, of each ripple.
        prismatic: whether the joint is prismatic, so that units have m instead of rad and N instead of N m.
    """
    value, interval, reason = stiffness
    return {
        **({"prismatic": True} if prismatic else {}),
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
            {**dict(zip(RIPPLE_KEYS, as_numbers(ripple[:3]), strict=True)), "std": as_number(ripple[3])}
            for ripple in ripples
        ],
    }


def predicts_torsion(document: Mapping[str, Any]) -> bool:
    """Return whether a file predicts torsion and no torque."""
    return "torsion" in document and not {"links", "gravity"} & set(document)


@dataclass(frozen=True)
class SavedTorsion:
    """Torsion of a joint according to the file; units of a prismatic joint have m instead of rad.

    Attributes:
        coefficients: coefficients by label of their columns.
        fastest: highest speed in the fitted recording, rad/s.
        zero: torsion without torque, rad.
        ripples: periods per turn, amplitude (rad) and phase (rad) of each ripple of the link encoder.
        prismatic: whether the joint is prismatic.
    """

    coefficients: dict[str, float]
    fastest: float
    zero: float
    ripples: tuple[tuple[float, float, float], ...]
    prismatic: bool


def read_torsion(document: Mapping[str, Any]) -> tuple[tuple[str, ...], float, dict[str, SavedTorsion]]:
    """Return the joints of the recordings, the cutoff frequency of the low-pass (Hz), and the torsion by joint."""
    section = Section.required(document, "torsion", "torsion")
    robot = Section(document["robot"], f"{file_of(document)}: robot")
    names = robot.get("joints")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise robot.error(f"joints is {names!r}, expected a list of names")
    unknown = [str(name) for name in section if name not in names]
    if unknown:
        raise section.error(f"{', '.join(unknown)}: the robot has no such joint")
    cutoff = Section.optional(document, "source").child("settings").positive("cutoff")
    return tuple(names), cutoff, {name: _joint(section, name) for name in section}


def _joint(section: Section, name: str) -> SavedTorsion:
    entry = section.child(name, f"joint '{name}'")
    coefficients = entry.child("coefficients")
    if not coefficients:
        raise entry.error("coefficients are missing, as in files of old versions")
    ripples = entry.get("ripples") or []
    if not isinstance(ripples, list) or not all(isinstance(ripple, dict) for ripple in ripples):
        raise entry.error(f"ripples is {ripples!r}, expected a list of mappings")
    readers = [Section(ripple, f"{entry.place}: ripples") for ripple in ripples]
    return SavedTorsion(
        {str(label): coefficients.number(label) for label in coefficients},
        entry.positive("fastest"),
        entry.number("zero"),
        tuple((reader.number("per_turn"), reader.number("amplitude"), reader.number("phase")) for reader in readers),
        entry.get("prismatic") is True,
    )
