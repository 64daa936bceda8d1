"""Friction as simulators hold it, Coulomb, viscous and more, with the loss against the identified friction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from dynid_ros.export.exported_arm import ExportedArm, Motion
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
BRISTLE_LENGTH = 2e-4
"""Deflection of the bristles at breakaway of a joint without an identified sliding length, rad or m."""
POLYNOMIAL = "polynomial"
BRISTLE = "bristle"
"""What a format may hold besides "rotor_inertia" and "spring": damping in powers of the speed, and LuGre friction."""
AT_REST = 0.005
"""rad/s or m/s; a joint that is slower rests, as in gravity identification."""


@dataclass(frozen=True, eq=False)
class HeldFriction:
    """Part of the joints' own torque that a format holds; arrays (n,).

    Attributes:
        coulomb, viscous: N m and N m s/rad, at least 0.
        drag: (n, 2) coefficients of v |v| and v³; zero if the format has none.
        bristle: (n, 5) LuGre friction that takes the place of `coulomb`: stiffness N m/rad and damping N m s/rad of the
            bristles, Coulomb and static friction N m, Stribeck velocity rad/s; zero if there is none.
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
    drag: NDArray
    bristle: NDArray
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
            held: of "rotor_inertia", "spring", `POLYNOMIAL` and `BRISTLE`, those that the format also holds.
            motion: motion for the fit and for the errors.
        """
        robot = arm.robot
        n = arm.robot.n_joints
        columns = arm.friction.of_motion(robot, motion.q, motion.qd, motion.qdd, arm.friction.memory(motion.q))
        whole = columns @ arm.coefficients
        values = {name: np.zeros(n) for name in ("coulomb", "viscous", "rotor_inertia", "spring", "rest", "breakaway")}
        values |= {"drag": np.zeros((n, 2)), BRISTLE: np.zeros((n, 5))}
        error = np.zeros(n)
        lost = {}
        for j, joint in enumerate(robot.joint_names):
            q, qd, qdd = (part[:, j] for part in (motion.q, motion.qd, motion.qdd))
            own = _OwnTerms.of(arm, j)
            direction = own.friction.direction_model.evaluate(qd, q)
            has_bristles = BRISTLE in held and own.needs_bristles
            coulomb, *damping = own.fit(columns[:, j], qd, direction, POLYNOMIAL in held, has_bristles)
            kept = {name: max(own.coefficients.get(name, 0.0), 0.0) for name in {"rotor_inertia", "spring"} & set(held)}
            spring = kept.get("spring", 0.0)
            rest = -own.coefficients.get("offset", 0.0) / spring if spring else 0.0
            breaks = sum(own.coefficients.get(name, 0.0) for name in ("coulomb", "stribeck"))
            found = {"viscous": damping[0], "rest": rest, "breakaway": max(coulomb, breaks), **kept}
            for name, value in (found | {"coulomb": coulomb}).items():
                values[name][j] = value
            values["drag"][j] = damping[1:]
            static = coulomb
            level = coulomb * np.sign(qd)
            if has_bristles:
                bristle = own.bristle(coulomb, kept.get("rotor_inertia", 0.0))
                values[BRISTLE][j] = bristle
                static = bristle[3]
                level = (coulomb + (static - coulomb) * np.exp(-np.square(qd / bristle[4]))) * direction
            without = damping @ np.array([qd, qd * np.abs(qd), qd**3])
            without = without + kept.get("rotor_inertia", 0.0) * qdd + spring * (q - rest)
            # Friction holds a resting joint with the torque that it needs, up to the static friction.
            held_by = np.clip(whole[:, j] - without, -static, static)
            error[j] = _rms(whole[:, j] - without - np.where(np.abs(qd) < AT_REST, held_by, level))
            if terms := own.lost(kept, has_bristles):
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

    @property
    def needs_bristles(self) -> bool:
        """Whether breakaway friction or a memory of the direction was identified, in both directions alike."""
        return bool("coulomb" in self.names and (self.coefficients.get("stribeck") or self.friction.sliding_length))

    def bristle(self, coulomb: float, inertia: float) -> NDArray:
        """Return the LuGre friction (5,) of the joint (Canudas de Wit and others 1995), for its Coulomb friction."""
        static = coulomb + max(self.coefficients.get("stribeck", 0.0), 0.0)
        stiffness = static / (self.friction.sliding_length or BRISTLE_LENGTH)
        velocity = self.friction.stribeck_velocity or 1.0
        return np.array([stiffness, np.sqrt(stiffness * inertia), coulomb, static, velocity])

    def fit(
        self, columns: NDArray, velocity: NDArray, direction: NDArray, has_powers: bool, has_bristles: bool
    ) -> NDArray:
        """Return Coulomb friction and the coefficients (3,) of damping, of columns (N, k) of all terms.

        Args:
            columns: of all terms.
            velocity: (N,) of the motion.
            direction: (N,) of dry friction.
            has_powers: whether damping may have powers of the speed; otherwise the last two are zero.
            has_bristles: whether the Stribeck term is kept besides.
        """
        alike = [i for i, name in enumerate(self.names) if name.startswith(_ALIKE)]
        alike = [i for i in alike if not (has_bristles and self.names[i] == "stribeck")]
        plain = {self.names[i] for i in alike} <= {"coulomb", "viscous"}
        if plain and self.friction.saturation_velocity is None:
            own = self.coefficients
            return np.array([max(own.get("coulomb", 0.0), 0.0), max(own.get("viscous", 0.0), 0.0), 0.0, 0.0])
        target = columns[:, self.places[alike]] @ self.values[alike]
        powers = (velocity * np.abs(velocity), velocity**3) if has_powers else ()
        found = _dissipative(np.stack([direction, velocity, *powers], axis=1), target)
        return np.pad(found, (0, 4 - len(found)))

    def lost(self, kept: Mapping[str, float], has_bristles: bool) -> tuple[str, ...]:
        """Return the terms other than Coulomb friction, viscous friction, those in `kept` and those of bristles."""
        held = {"coulomb", "viscous", *(name for name, value in kept.items() if value)}
        held |= {"offset"} if "spring" in held else set()
        held |= {"stribeck", "sliding_length"} if has_bristles else set()
        terms = [name for name, value in zip(self.names, self.values, strict=True) if value and name not in held]
        shapes = [words for shape, words in _SHAPES.items() if shape not in held and getattr(self.friction, shape)]
        return (*terms, *shapes)


def _dissipative(matrix: NDArray, target: NDArray) -> NDArray:
    """Return least squares whose coefficients (2,) or (4,) make a friction that opposes motion at every speed.

    Damping a v + b v |v| + c v³ does so for negative b, too, if b² is at most 4 a c.
    """
    found = np.linalg.lstsq(matrix, target, rcond=None)[0]
    signs = np.delete(found, 2) if len(found) > 2 else found
    if (signs >= 0.0).all() and (len(found) == 2 or found[2] >= -2.0 * np.sqrt(found[1] * found[3])):
        return found
    return nnls(matrix, target)[0]


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
