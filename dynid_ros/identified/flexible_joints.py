"""Section `flexible_joints` of `identified.yaml`: spring, motor and friction of each joint, at the link side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import check_same_robot
from dynid_ros.identified.section import Section, as_number, as_numbers, file_of
from dynid_ros.model.robot import RobotModel

LINK_FRICTION_KEYS = {"coulomb": "link_coulomb", "viscous": "link_viscous"}
"""Keys of the link's friction, by the names of its terms in models without motor friction."""


def flexible_joint_entry(
    spring: str,
    terms: Mapping[str, tuple[float, float, bool]],
    stiffness_interval: NDArray,
    resonance: float,
) -> dict:
    """Return the entry of a joint.

    Args:
        spring: name of the spring law.
        terms: by parameter, its value, its standard error and whether the data determine it.
        stiffness_interval: (2,) ends of the 95 % interval; infinite if the joint may be rigid.
        resonance: of the link with the motor held, Hz.
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
    """Return the entries of the joints whose stiffness is determined; the other joints count as rigid.

    The result is None for a file without the section.

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
    """Return an array (n,), at least 0, for each parameter of the link side, such as "stiffness" or "coulomb".

    Raises:
        IdentifiedFileError: the file belongs to another robot, has no flexible joints, or a stiffness is undetermined.
    """
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
            # The estimate of a negligible friction may be below zero.
            values[i] = max(entry.number(LINK_FRICTION_KEYS.get(name, name)), 0.0)
    return parameters


def _is_undecided(entry: Mapping[str, Any]) -> bool:
    decided = entry.get("decided")
    return isinstance(decided, dict) and decided.get("stiffness") is False
