"""How much of the identified friction may be compensated for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynid_ros.control.joint_feedback import LARGEST_FRICTION_SCALE
from dynid_ros.control.per_joint import per_joint
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.identified_file import is_number, load_identified

SURE = 2.0
"""Standard errors below the estimate: the lower end of its 95 % interval is what a joint has at least."""
SIDES = ("{}", "{}_positive", "{}_negative")


def compensated_friction(
    model_file: str | Path, joint_names: Sequence[str], scale: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coulomb (n,) N m and viscous (n,) N m s/rad friction to compensate for: `scale` times what a joint has at least.

    That is the lower end of the 95 % interval in section `friction` of `identified.yaml`, and where the two directions
    have friction of their own the smaller one.

    Args:
        model_file: `identified.yaml`.
        joint_names: n names.
        scale: 0 (none) to 0.8; one value, or n.

    Raises:
        ControlError: a scale out of range.
        IdentifiedFileError: the file is malformed, or friction of a joint whose scale is above 0 was not identified.

    """
    names = tuple(joint_names)
    scales = per_joint("friction_scale", scale, names, least=0.0)
    for name, value in zip(names, scales, strict=True):
        if value > LARGEST_FRICTION_SCALE:
            raise ControlError(
                f"friction_scale of joint '{name}' is {value:g}; expected at most {LARGEST_FRICTION_SCALE:g}: if less "
                "friction is left, errors of the identification could drive the joint"
            )
    if not any(scales):
        return (0.0,) * len(names), (0.0,) * len(names)
    section = load_identified(model_file).get("friction")
    if not isinstance(section, dict):
        raise IdentifiedFileError(f"{model_file}: has no section friction; set friction_scale to 0, or identify it")
    coulomb, viscous = [], []
    for name, part in zip(names, scales, strict=True):
        least = _least(model_file, name, section.get(name)) if part else (0.0, 0.0)
        coulomb.append(part * least[0])
        viscous.append(part * least[1])
    return tuple(coulomb), tuple(viscous)


def _least(model_file: str | Path, joint: str, entry: object) -> tuple[float, float]:
    coulomb, viscous = (_at_least(entry, term) if isinstance(entry, dict) else None for term in ("coulomb", "viscous"))
    if coulomb is None and viscous is None:
        raise IdentifiedFileError(
            f"{model_file}: friction of joint '{joint}' was not identified; set its friction_scale to 0, or identify it"
        )
    return coulomb or 0.0, viscous or 0.0


def _at_least(entry: Mapping[str, Any], term: str) -> float | None:
    """What the joint surely has of a term, at least 0; None if nobody knows."""
    errors = entry.get("std")
    sure = []
    for key in (side.format(term) for side in SIDES):
        value = entry.get(key)
        if is_number(value):
            error = errors.get(key) if isinstance(errors, dict) else None
            sure.append(value - SURE * (error if is_number(error) else 0.0))
    return max(min(sure), 0.0) if sure else None
