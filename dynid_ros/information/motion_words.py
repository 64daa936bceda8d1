"""Elementary motions in words, beside a motion that was made."""

import numpy as np

from dynid_ros.information.elementary_motions import ElementaryMotion
from dynid_ros.information.judged_motion import JudgedMotion
from dynid_ros.information.torque_columns import GRAVITY, TorqueColumns

MORE = 1.2
"""Times as wide or as fast, from which on it is worth saying."""


def motion_words(motion: ElementaryMotion, judged: JudgedMotion, columns: TorqueColumns) -> str:
    """What moves how, where another joint stands, and how that differs from the judged motion."""
    names, units = judged.limits.joint_names, judged.limits.units
    static = columns.model == GRAVITY
    parts = []
    for joint, amplitude, speed in zip(motion.joints, motion.amplitudes, motion.speeds, strict=True):
        unit = units[joint]
        about = f"±{_size(amplitude, unit)} about {_size(motion.pose[joint], unit)}"
        said = _difference(joint, amplitude, 0.0 if static else speed, judged)
        how = "stopping in poses" if static else "swinging"
        fast = ", reached from both sides" if static else f" at up to {speed:.2g} {unit}/s"
        parts.append(f"{names[joint]} {how} {about}{fast}{said}")
    words = " with ".join(parts)
    if motion.placed is not None:
        k = motion.placed
        elsewhere = not judged.lower[k] <= motion.pose[k] <= judged.upper[k]
        words += f", while {names[k]} stands at {_size(motion.pose[k], units[k])}{', where it was not,' * elsewhere}"
    return words


def _difference(joint: int, amplitude: float, speed: float, judged: JudgedMotion) -> str:
    width = judged.upper[joint] - judged.lower[joint]
    if not width:
        return " (it did not move)"
    more = ["wider"] * bool(amplitude > MORE * width / 2) + ["faster"] * bool(speed > MORE * judged.speed[joint])
    return f" ({' and '.join(more)} than it did)" if more else ""


def _size(value: float, unit: str) -> str:
    return f"{round(float(np.rad2deg(value)))}°" if unit == "rad" else f"{round(1000 * value)} mm"
