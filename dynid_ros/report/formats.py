"""Format numbers, units and lists as text for readers."""

import re
from dataclasses import dataclass

import numpy as np

from dynid_ros.model import RobotModel

UNKNOWN_TEXT = "–"
"""Text for an unknown number."""
UNIT_GAP = re.compile(
    r"(?<=[<±]) (?=\d)|(?<=\d) (?=(?:%|°|N m|N|kg|mm|cm|m|Hz|s|rad)(?:\W|$))|(?<=\bN) (?=m\b)|(?<=\bkg) (?=m[\W²])"
)
"""Spaces between a number and its unit, or within a unit."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class JointUnits:
    """Printed units of the quantities of one joint.

    Attributes:
        position: unit of the position, "°" or "mm".
        scale: factor from rad or m to that unit.
        effort: unit of torque or force.
        noun: name of the position, "angle" or "position".
        moment: unit of the gravity parameter.
        velocity: unit of velocity.
        viscous: unit of the viscous friction coefficient.
        inertia: unit of inertia.
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
    """Return the units of each joint of the robot."""
    return [PRISMATIC if kind == "prismatic" else REVOLUTE for kind in robot.joint_types]


def significant(value: float, digits: int = 3) -> str:
    """Format a number with significant digits, with a power of ten if it is very large or small, NaN as a dash."""
    if not np.isfinite(value):
        return UNKNOWN_TEXT
    if value == 0:
        return "0"
    scientific = f"{value:.{digits - 1}e}"
    mantissa, _, power = scientific.partition("e")
    exponent = int(power)
    if abs(exponent) > 5:
        return _minus(mantissa) + "·10" + str(exponent).translate(SUPERSCRIPTS)
    return fixed(value, max(digits - 1 - exponent, 0))


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    """Format a number with significant digits and its unit, NaN as a dash."""
    return f"{significant(value, digits)} {unit}" if np.isfinite(value) else UNKNOWN_TEXT


def fixed(value: float, decimals: int) -> str:
    """Format a number with a fixed number of decimals, NaN as a dash."""
    return _minus(f"{value:.{decimals}f}") if np.isfinite(value) else UNKNOWN_TEXT


def brief(value: float) -> str:
    """Format a number with at most three significant digits, NaN as a dash."""
    return _minus(f"{value:.3g}") if np.isfinite(value) else UNKNOWN_TEXT


def as_fine_as(value: float, half: float) -> str:
    """Round a value to the second significant digit of the half width of its interval."""
    return fixed(value, int(np.clip(1 - np.floor(np.log10(half)), 0, 9))) if half > 0 else significant(value, 5)


def plus_minus(value: float, half: float) -> str:
    """Format "value ± half", both rounded to the second significant digit of the half width."""
    return f"{as_fine_as(value, half)} ± {as_fine_as(half, half)}"


def percent(fraction: float) -> str:
    """Format a fraction in per cent with two significant digits, NaN as a dash."""
    if not np.isfinite(fraction):
        return UNKNOWN_TEXT
    return "< 0.01 %" if abs(fraction) < 1e-4 else f"{significant(100 * fraction, 2)} %"


def share(fraction: float) -> str:
    """Format an R² in per cent; negative values print as 0 %, and no value is rounded up to 100 %."""
    if not np.isfinite(fraction):
        return UNKNOWN_TEXT
    if fraction <= 0:
        return "0 %"
    decimals = 0 if fraction < 0.985 else 1
    return f"{min(round(100 * fraction, decimals), 99.9):.{decimals}f} %"


def distance(value: float, unit: JointUnits) -> str:
    """Format a distance, rad or m, in the printed unit of the joint."""
    shown = value * unit.scale
    gap = "" if unit.position == "°" else " "
    return f"< 0.01{gap}{unit.position}" if shown < 0.01 else f"{significant(shown)}{gap}{unit.position}"


def counted(number: int, noun: str) -> str:
    """Format a count with its noun in the singular or plural, such as "2 poses"."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{ending}"


def unbroken(text: str) -> str:
    """Replace spaces between a number and its unit by no-break spaces."""
    return UNIT_GAP.sub("\N{NO-BREAK SPACE}", text)


def listed(words: list[str]) -> str:
    """Join words with commas and "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _minus(text: str) -> str:
    return text.replace("-", "−")
