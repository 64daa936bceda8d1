"""Numbers and lists as text."""

import re
from dataclasses import dataclass

import numpy as np

from dynid_ros.model import RobotModel

# Units in which a joint's numbers are shown.


@dataclass(frozen=True)
class JointUnits:
    """Of one joint.

    Attributes:
        position: "°" or "mm".
        scale: from rad or m to that.
        effort: "N m" or "N".
        noun: what its position is called.
        moment: unit of its gravity parameters.
        velocity, viscous, inertia: units of its velocity, and of its viscous friction and rotor inertia.
    """

    position: str
    scale: float
    effort: str
    noun: str
    moment: str
    velocity: str
    viscous: str
    inertia: str


REVOLUTE = JointUnits("°", float(np.rad2deg(1.0)), "N m", "angle", "kg m", "rad/s", "N m s/rad", "kg m²")
PRISMATIC = JointUnits("mm", 1000.0, "N", "position", "kg", "m/s", "N s/m", "kg")


def joint_units(robot: RobotModel) -> list[JointUnits]:
    """Units of each joint."""
    return [PRISMATIC if kind == "prismatic" else REVOLUTE for kind in robot.joint_types]


MISSING = "–"
UNIT_GAP = re.compile(
    r"(?<=[<±]) (?=\d)|(?<=\d) (?=(?:%|°|N m|N|kg|mm|cm|m|Hz|s|rad)(?:\W|$))|(?<=\bN) (?=m\b)|(?<=\bkg) (?=m[\W²])"
)
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def significant(value: float, digits: int = 3) -> str:
    """`value` to that many significant digits, with a power of ten only if huge or tiny; a dash for NaN."""
    if not np.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    scientific = f"{value:.{digits - 1}e}"
    mantissa, _, power = scientific.partition("e")
    exponent = int(power)
    if abs(exponent) > 5:
        return _minus(mantissa) + "·10" + str(exponent).translate(RAISED)
    return fixed(value, max(digits - 1 - exponent, 0))


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    """`value` to that many significant digits and its unit; a dash for NaN."""
    return f"{significant(value, digits)} {unit}" if np.isfinite(value) else MISSING


def fixed(value: float, decimals: int) -> str:
    """`value` to that many decimals; a dash for NaN."""
    return _minus(f"{value:.{decimals}f}") if np.isfinite(value) else MISSING


def brief(value: float) -> str:
    """`value` to three significant digits at most."""
    return _minus(f"{value:.3g}") if np.isfinite(value) else MISSING


def as_fine_as(value: float, half: float) -> str:
    """`value` to the second significant digit of `half`."""
    return fixed(value, int(np.clip(1 - np.floor(np.log10(half)), 0, 9))) if half > 0 else significant(value, 5)


def plus_minus(value: float, half: float) -> str:
    """`value` ± `half`, both to the second significant digit of `half`."""
    return f"{as_fine_as(value, half)} ± {as_fine_as(half, half)}"


def percent(fraction: float) -> str:
    """A fraction in per cent, to two significant digits."""
    if not np.isfinite(fraction):
        return MISSING
    return "< 0.01 %" if abs(fraction) < 1e-4 else f"{significant(100 * fraction, 2)} %"


def share(fraction: float) -> str:
    """A share that is explained, in per cent: none below zero, and never all of it by rounding."""
    if not np.isfinite(fraction):
        return MISSING
    if fraction <= 0:
        return "0 %"
    decimals = 0 if fraction < 0.985 else 1
    return f"{min(round(100 * fraction, decimals), 99.9):.{decimals}f} %"


def distance(value: float, unit: JointUnits) -> str:
    """A distance in rad or m, in the units that are shown."""
    shown = value * unit.scale
    gap = "" if unit.position == "°" else " "
    return f"< 0.01{gap}{unit.position}" if shown < 0.01 else f"{significant(shown)}{gap}{unit.position}"


def counted(number: int, noun: str) -> str:
    """As in 1 pose, 2 poses, 3 stretches."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{ending}"


def unbroken(text: str) -> str:
    """`text` whose numbers stay on one line with their units."""
    return UNIT_GAP.sub("\N{NO-BREAK SPACE}", text)


def listed(words: list[str]) -> str:
    """As in a; a and b; a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _minus(text: str) -> str:
    return text.replace("-", "−")
