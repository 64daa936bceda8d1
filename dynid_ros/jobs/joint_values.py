"""One value for each joint, as a user writes them on a command line."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid_ros.errors import TrajectoryError


def joint_values(text: str, joint_names: Sequence[str], what: str) -> NDArray:
    """Values (1,) for all joints or (n,): numbers with commas between, or `joint=value` for some of them.

    A joint that is not named has NaN, which stands for what holds without the setting.

    Raises:
        TrajectoryError: something is no number, no joint, or is given twice.

    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not any("=" in word for word in words):
        return np.array([_number(word, what) for word in words])
    values = np.full(len(joint_names), np.nan)
    for word in words:
        name, _, value = (part.strip() for part in word.rpartition("="))
        if name not in joint_names:
            raise TrajectoryError(f"{what}: '{word}' names no joint; expected joint=value of {', '.join(joint_names)}")
        if not np.isnan(values[joint_names.index(name)]):
            raise TrajectoryError(f"{what}: joint '{name}' is given twice")
        values[joint_names.index(name)] = _number(value, what)
    return values


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise TrajectoryError(
            f"{what}: '{text}' is no number; expected one for all joints, one for each with commas between, or "
            "joint=value"
        ) from error
