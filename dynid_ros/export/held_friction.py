"""Friction as simulators hold it, Coulomb and viscous, with the loss against the identified friction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid_ros.export.exported_arm import ExportedArm
from dynid_ros.export.motion import Motion
from dynid_ros.model.friction_terms import COUPLING_TERMS, JointFriction

_ALIKE = ("coulomb", "viscous", "stribeck", "load", "coupling_coulomb", "coupling_viscous")
"""Terms that a simulator's Coulomb and viscous friction approximate."""
_SHAPES = {
    "sliding_length": "memory of the direction",
    "smoothing": "smooth reversal",
    "dead_zone": "dead zone",
    "saturation_velocity": "saturation of viscous friction",
}
NEGLIGIBLE = 1e-9
AT_REST = 0.005
"""rad/s or m/s; a joint that is slower rests, as in gravity identification."""


@dataclass(frozen=True, eq=False)
class HeldFriction:
    """Part of the joints' own torque that a format holds; arrays (n,).

    Attributes:
        coulomb, viscous: N m and N m s/rad, at least 0.
        rotor_inertia: kg m²; zero if the format has none.
        spring, rest: N m/rad, and its rest angle, rad; zero if the format has none.
        breakaway: Coulomb plus Stribeck friction at the end of standstill, N m.
        rms: RMS of the joints' own torque, N m.
        error: RMS of the part that the format does not hold, N m.
        lost: terms by joint that the format does not hold.
        motion: motion to which `rms` and `error` refer.
    """

    coulomb: NDArray
    viscous: NDArray
    rotor_inertia: NDArray
    spring: NDArray
    rest: NDArray
    breakaway: NDArray
    rms: NDArray
    error: NDArray
    lost: dict[str, tuple[str, ...]]
    motion: str

    @classmethod
    def of(cls, arm: ExportedArm, held: Collection[str], motion: Motion) -> HeldFriction:
        """Choose the friction of the format that is nearest to the identified friction on a motion.

        Coulomb and viscous coefficients stay as identified if a joint has no similar term. Else they are fitted to all
        similar
        terms together.

        Args:
            arm: identified arm.
            held: of "rotor_inertia" and "spring", those that the format also holds.
            motion: motion for the fit and for the errors.
        """
        robot = arm.robot
        n = arm.robot.n_joints
        columns = arm.friction.of_motion(robot, motion.q, motion.qd, motion.qdd, arm.friction.memory(motion.q))
        whole = columns @ arm.coefficients
        values = {name: np.zeros(n) for name in ("coulomb", "viscous", "rotor_inertia", "spring", "rest", "breakaway")}
        error = np.zeros(n)
        lost = {}
        for j, joint in enumerate(robot.joint_names):
            q, qd, qdd = (part[:, j] for part in (motion.q, motion.qd, motion.qdd))
            own = _OwnTerms.of(arm, j)
            direction = own.friction.direction_model.evaluate(qd, q)
            coulomb, viscous = own.pair(columns[:, j], qd, direction)
            kept = {name: max(own.coefficients.get(name, 0.0), 0.0) for name in held}
            spring = kept.get("spring", 0.0)
            rest = -own.coefficients.get("offset", 0.0) / spring if spring else 0.0
            breaks = sum(own.coefficients.get(name, 0.0) for name in ("coulomb", "stribeck"))
            found = {"coulomb": coulomb, "viscous": viscous, "rest": rest, "breakaway": max(coulomb, breaks), **kept}
            for name, value in found.items():
                values[name][j] = value
            without = viscous * qd + kept.get("rotor_inertia", 0.0) * qdd + spring * (q - rest)
            # Friction holds a resting joint with the torque that it needs, up to Coulomb friction.
            held_by = np.clip(whole[:, j] - without, -coulomb, coulomb)
            dry = np.where(np.abs(qd) < AT_REST, held_by, coulomb * np.sign(qd))
            error[j] = _rms(whole[:, j] - without - dry)
            if terms := own.lost(kept):
                lost[joint] = terms
        rms = np.array([_rms(column) for column in whole.T])
        return cls(**values, rms=rms, error=error, lost=lost, motion=motion.name)

    def remarks(self, what: str, joint_names: tuple[str, ...]) -> list[str]:
        """Say which terms a format, `what`, does not hold, and the error that this makes."""
        if not self.lost or not self.error.max() > NEGLIGIBLE * max(self.rms.max(), 1.0):
            return []
        terms: dict[str, list[str]] = {}
        for joint, names in self.lost.items():
            for name in names:
                terms.setdefault(name, []).append(joint)
        every = len(joint_names)
        which = "; ".join(
            f"{name} of {'all joints' if len(joints) == every > 1 else ', '.join(joints)}"
            for name, joints in terms.items()
        )
        errors = ", ".join(
            f"{joint} {error:.3g} of {whole:.3g}"
            for joint, error, whole in zip(joint_names, self.error, self.rms, strict=True)
        )
        return [f"{what} cannot hold: {which}. RMS error over the joints' torque, N m, on {self.motion}: {errors}"]

    def document(self, joint_names: tuple[str, ...]) -> dict:
        """Errors by joint, for programs."""
        return {
            "motion": self.motion,
            "lost": {joint: list(terms) for joint, terms in self.lost.items()},
            "rms": dict(zip(joint_names, self.rms.tolist(), strict=True)),
            "error": dict(zip(joint_names, self.error.tolist(), strict=True)),
        }


@dataclass(frozen=True, eq=False)
class _OwnTerms:
    """Terms of one joint, those of its pairs among them: names, values and places among all coefficients."""

    friction: JointFriction
    names: tuple[str, ...]
    values: NDArray
    places: NDArray

    @classmethod
    def of(cls, arm: ExportedArm, j: int) -> _OwnTerms:
        keys = arm.friction.keys(arm.robot.n_joints)
        places = np.array([k for k, (_, joints) in enumerate(keys) if j in joints], dtype=int)
        friction = arm.friction.per_joint(arm.robot.n_joints)[j]
        return cls(friction, tuple(keys[k][0] for k in places), arm.coefficients[places], places)

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the joint by name."""
        return {
            name: value
            for name, value in zip(self.names, self.values.tolist(), strict=True)
            if name not in COUPLING_TERMS
        }

    def pair(self, columns: NDArray, velocity: NDArray, direction: NDArray) -> tuple[float, float]:
        """Coulomb and viscous coefficients, of columns (N, k) of all terms and motion (N,)."""
        alike = [i for i, name in enumerate(self.names) if name.startswith(_ALIKE)]
        plain = {self.names[i] for i in alike} <= {"coulomb", "viscous"}
        if plain and self.friction.saturation_velocity is None:
            own = self.coefficients
            return max(own.get("coulomb", 0.0), 0.0), max(own.get("viscous", 0.0), 0.0)
        target = columns[:, self.places[alike]] @ self.values[alike]
        coulomb, viscous = _at_least_zero(np.stack([direction, velocity], axis=1), target)
        return float(coulomb), float(viscous)

    def lost(self, kept: Mapping[str, float]) -> tuple[str, ...]:
        """Return the terms other than Coulomb friction, viscous friction and those in `kept`."""
        held = {"coulomb", "viscous", *(name for name, value in kept.items() if value)}
        held |= {"offset"} if "spring" in held else set()
        terms = [name for name, value in zip(self.names, self.values, strict=True) if value and name not in held]
        return (*terms, *(words for shape, words in _SHAPES.items() if getattr(self.friction, shape)))


def _at_least_zero(matrix: NDArray, target: NDArray) -> NDArray:
    """Least squares of two columns whose coefficients are not below zero."""
    found = np.linalg.lstsq(matrix, target, rcond=None)[0]
    if (found >= 0.0).all():
        return found
    alone = [np.zeros(2), np.zeros(2)]
    for k, column in enumerate(matrix.T):
        alone[k][k] = max(column @ target / max(column @ column, NEGLIGIBLE), 0.0)
    return min(alone, key=lambda pair: float(np.square(target - matrix @ pair).sum()))


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
