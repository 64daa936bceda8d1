"""Section `flexible_joints` of `identified.yaml`: spring, motor and friction of each joint, seen from the link."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import (
    as_number,
    as_numbers,
    check_same_robot,
    file_of,
    is_number,
    mapping,
)
from dynid_ros.model.robot import RobotModel

LINK_FRICTION = {"coulomb": "link_coulomb", "viscous": "link_viscous"}
"""Keys of the link's friction, by the names that its terms have where no motor has friction of its own."""


def flexible_joint_entry(
    spring: str,
    terms: Mapping[str, tuple[float, float, bool]],
    stiffness_interval: NDArray,
    resonance: float,
) -> dict:
    """Entry of a joint.

    Args:
        spring: name of the spring's law.
        terms: value, standard error and whether the data determine it, by name of the parameter.
        stiffness_interval: (2,) ends of the 95 % interval; infinite: the joint may be rigid.
        resonance: of the link with the motor held, Hz.
    """
    named = {LINK_FRICTION.get(name, name): term for name, term in terms.items()}
    return {
        "spring": spring,
        **{key: float(value) for key, (value, _, _) in named.items()},
        "stiffness_interval": as_numbers(stiffness_interval),
        "resonance": as_number(resonance),
        "std": {key: as_number(error) for key, (_, error, _) in named.items()},
        "decided": {key: bool(decided) for key, (_, _, decided) in named.items()},
    }


def springs_of(document: Mapping) -> dict[str, Mapping[str, Any]] | None:
    """Entries of the joints whose stiffness the data determined, by joint; the others count as rigid. None: no section.

    Raises:
        ControlError: the section is malformed.
    """
    section = document.get("flexible_joints")
    if section is None:
        return None
    if not isinstance(section, dict) or not all(isinstance(entry, dict) for entry in section.values()):
        raise ControlError("expected for each flexible joint its stiffness")
    return {joint: entry for joint, entry in section.items() if not _is_undecided(entry)}


def joint_parameters(document: dict, robot: RobotModel, names: Collection[str]) -> dict[str, NDArray]:
    """(n,) of each parameter, such as "stiffness" or "coulomb", the link's; at least 0.

    Raises:
        IdentifiedFileError: of another robot, without flexible joints, or with a stiffness that was not determined.
    """
    file, section = file_of(document), document.get("flexible_joints")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{file}: it has no flexible_joints; give the file of `dynid identify flexible`")
    check_same_robot(document, robot)
    found = {name: np.zeros(robot.n_joints) for name in names}
    for i, joint in enumerate(robot.joint_names):
        entry = section.get(joint)
        entry = entry if isinstance(entry, dict) else {}
        for name, values in found.items():
            key = LINK_FRICTION.get(name, name)
            value = entry.get(key)
            if not is_number(value):
                raise IdentifiedFileError(f"{file}: {key} of joint '{joint}' is {value!r}, expected a number")
            if name == "stiffness" and mapping(entry, "decided", f"{file}: joint '{joint}'").get(name) is not True:
                raise IdentifiedFileError(
                    f"{file}: the stiffness of joint '{joint}' is not determined: no motion can be designed by it; "
                    "give one"
                )
            # An estimate of negligible friction may be below zero.
            values[i] = max(value, 0.0)
    return found


def _is_undecided(entry: Mapping[str, Any]) -> bool:
    decided = entry.get("decided")
    return isinstance(decided, dict) and decided.get("stiffness") is False
