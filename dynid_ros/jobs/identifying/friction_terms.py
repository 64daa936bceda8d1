"""Friction terms as a user writes them on a command line or in a parameter file."""

from __future__ import annotations

from typing import Any, Literal

from dynid_ros.errors import ModelError
from dynid_ros.model.friction import JointFriction

SWITCHES = ("coulomb", "viscous", "offset", "rotor_inertia", "asymmetric")
SHAPES = ("smoothing", "dead_zone", "stribeck_velocity")
FRICTION_TERMS = (*SWITCHES, *(f"{name}=V" for name in SHAPES))


def friction_terms(text: str) -> JointFriction | Literal["auto"]:
    """Terms of all joints: "auto", "none", or attributes of `JointFriction` with commas between.

    As in "coulomb,viscous,stribeck_velocity=0.1"; velocities are in rad/s or m/s.

    Raises:
        ModelError: an unknown term, or a velocity that makes no sense.

    """
    if text == "auto":
        return "auto"
    words = [] if text == "none" else [word.strip() for word in text.split(",")]
    chosen: dict[str, Any] = dict.fromkeys(SWITCHES, False)
    for word in words:
        name, equals, value = word.partition("=")
        if name in SWITCHES and not equals:
            chosen[name] = True
        elif name in SHAPES and equals:
            chosen[name] = _velocity(name, value)
        else:
            raise ModelError(
                f"friction: '{word}' is no term; expected auto, none, or some of {', '.join(FRICTION_TERMS)}"
            )
    return JointFriction(**chosen)


def _velocity(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ModelError(f"friction: {name} is '{value}'; expected a velocity, rad/s or m/s") from error
