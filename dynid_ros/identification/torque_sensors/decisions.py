"""Which unknowns of torque sensors the data decide, and in words why not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification.torque_sensors.fit import TorqueSensorFit
from dynid_ros.identification.torque_sensors.model import JOINT_LABELS, TorqueSensorModel

TAKES_PART = 1e-3
"""Part of an open direction, in scaled columns, from which an unknown counts as part of it."""
LARGEST_GAIN_ERROR = 0.1
LARGEST_OFFSET_ERROR = 0.1
LARGEST_ANGLE_ERROR = 0.1
LARGEST_POSITION_GAIN_ERROR = 0.05
NAMED = 5


@dataclass(frozen=True)
class Freedom:
    """A way in which unknowns can change together without any reading changing.

    Attributes:
        changes: by unknown, how much it changes; the first by 1.

    """

    changes: dict[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{name} by {change:+.3g}" for name, change in self.changes.items())


def freedoms(model: TorqueSensorModel, fit: TorqueSensorFit) -> tuple[Freedom, ...]:
    """Combinations that the data leave open, each as short as elimination makes it; not those of one unknown alone."""
    alone = _single(fit)
    basis, size, _ = np.linalg.svd(fit.open * ~alone[:, None], full_matrices=False)
    found = []
    for direction in _eliminated(basis[:, size > TAKES_PART]):
        members = np.flatnonzero(np.abs(direction) > TAKES_PART * np.abs(direction).max())
        change = direction / fit.scale
        # As the gain is 1 / sensitivity.
        sensitivities = model.index("sensitivity")
        change[sensitivities] *= -1 / fit.values[sensitivities] ** 2
        first = members[0]
        found.append(Freedom({reported(model.names[i]): float(change[i] / change[first]) for i in members}))
    return tuple(found)


def undecided(model: TorqueSensorModel, fit: TorqueSensorFit, std: NDArray) -> dict[str, str]:
    """Reason by name of each of the model's unknowns that the data do not decide; `std` is that of the values (K,)."""
    reasons = {}
    ways = freedoms(model, fit)
    part = np.linalg.norm(fit.open, axis=1) > TAKES_PART
    single = _single(fit)
    for i, name in enumerate(model.names):
        if single[i]:
            reasons[name] = _without_effect(model, name)
        elif part[i]:
            mine = [way for way in ways if reported(name) in way.changes]
            others = [other for way in mine for other in way.changes if other != reported(name)]
            reasons[name] = f"no reading changes if it changes together with {_listed(others)}; {_way_out(model)}"
        else:
            too_large = _too_large(model, fit, std, i)
            if too_large:
                reasons[name] = f"{too_large}; {_way_out(model)}"
    return reasons


def reported(name: str) -> str:
    """Name of an unknown as it is told: gains, not sensitivities."""
    return name.replace("sensitivity ", "gain ", 1)


def _single(fit: TorqueSensorFit) -> NDArray:
    """(K,) unknowns that change no reading, whatever the others do."""
    return np.linalg.norm(fit.open, axis=1) > 1 - 1e-6


def _eliminated(directions: NDArray) -> list[NDArray]:
    """The space of directions (K, f), spanned by vectors with many zeros: reduced row echelon form, largest first."""
    rows = directions.T.copy()
    for r in range(len(rows)):
        remaining = np.abs(rows[r:])
        pick, pivot = np.unravel_index(np.argmax(remaining), remaining.shape)
        rows[[r, r + pick]] = rows[[r + pick, r]]
        rows[r] /= rows[r, pivot]
        for other in range(len(rows)):
            if other != r:
                rows[other] -= rows[other, pivot] * rows[r]
    return list(rows)


def _without_effect(model: TorqueSensorModel, name: str) -> str:
    label, joint = name.split(" ", 1)
    if label in JOINT_LABELS[:3] and not np.isfinite(model.samples.torque[:, _joint(model, joint)]).any():
        return "there is no reading of this joint"
    if label == "coulomb":
        return "the direction from which the joint came to rest is not known in any sample"
    if label == "center":
        return "it loads no joint in these poses: hang the mass farther from the last joints' axes, or take other poses"
    if label.startswith("position"):
        return "the joint's position changes no gravity torque"
    return "gravity does not load this joint in these poses; load it, or mount the arm with its axis off the vertical"


def _too_large(model: TorqueSensorModel, fit: TorqueSensorFit, std: NDArray, i: int) -> str:
    label, joint = model.names[i].split(" ", 1)
    if label == "sensitivity" and std[i] > LARGEST_GAIN_ERROR * abs(fit.values[i]):
        return f"its standard error is {std[i] / max(abs(fit.values[i]), 1e-300):.0%} of it"
    if label == "offset":
        spread = model.reading_range[_joint(model, joint)]
        if std[i] > LARGEST_OFFSET_ERROR * spread:
            return f"its standard error, {std[i]:.3g}, is {std[i] / max(spread, 1e-300):.0%} of the readings' range"
    if label == "position_offset" and std[i] > LARGEST_ANGLE_ERROR:
        return f"its standard error is {std[i]:.2g} rad (m)"
    if label == "position_gain" and std[i] > LARGEST_POSITION_GAIN_ERROR:
        return f"its standard error is {std[i]:.2g}"
    return ""


def _joint(model: TorqueSensorModel, name: str) -> int:
    return model.robot.joint_names.index(name)


def _listed(names: list[str]) -> str:
    unique = list(dict.fromkeys(names))
    return ", ".join(unique) if len(unique) <= NAMED else f"{len(unique)} others"


def _way_out(model: TorqueSensorModel) -> str:
    if model.mass is None and model.known is None:
        return "attach a reference mass of known weight and record again, or give the gravity parameters"
    ways = ["turn more joints, each over more of its range and in several poses of the others"]
    if model.mass is not None and model.mass.center is None:
        ways.append("give the mass's centre")
    if model.positions:
        ways.append("take the positions as known")
    return ", or ".join(ways)
