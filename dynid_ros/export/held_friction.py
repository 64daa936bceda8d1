"""Approximation of identified friction by the friction terms of a file format, and the error that remains."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from dynid_ros.export.exported_arm import ExportedArm, Motion
from dynid_ros.model.friction_terms import COUPLING_TERMS, JointFriction

_APPROXIMATED = ("coulomb", "viscous", "stribeck", "load", "coupling_coulomb", "coupling_viscous")
"""Terms that Coulomb and viscous friction of a format approximate."""
_SHAPES = {
    "sliding_length": "memory of the direction",
    "smoothing": "smooth reversal",
    "dead_zone": "dead zone",
    "saturation_velocity": "saturation of viscous friction",
}
"""Properties of the friction model that no format holds, in words."""
NEGLIGIBLE_ERROR = 1e-9
"""Largest error over the RMS torque, or over 1 N m, that causes no remark."""
BRISTLE_LENGTH = 2e-4
"""Deflection of the bristles at breakaway of a joint without an identified sliding length, rad or m."""
POLYNOMIAL = "polynomial"
BRISTLE = "bristle"
"""Optional terms of a format, like "rotor_inertia" and "spring": damping in powers of the speed, and LuGre friction."""
REST_SPEED = 0.005
"""Speed below which a joint is at rest, rad/s or m/s, as in gravity identification."""


@dataclass(frozen=True, eq=False)
class HeldFriction:
    """Friction, springs and rotor inertia of the joints in the terms of a format; arrays are (n,) by default.

    Attributes:
        coulomb, viscous: Coulomb friction, N m, and viscous friction, N m s/rad, at least 0.
        drag: (n, 2) coefficients of v |v| and v³; zero if the format has no such terms.
        bristle: (n, 5) LuGre friction, which replaces `coulomb`: stiffness N m/rad and damping N m s/rad of the
            bristles, Coulomb and static friction N m, Stribeck velocity rad/s; zero for joints without it.
        rotor_inertia: rotor inertia, kg m²; zero if the format has none.
        spring, rest: spring stiffness, N m/rad, and rest angle, rad; zero if the format has no springs.
        breakaway: torque at which a joint leaves standstill, Coulomb plus Stribeck friction, N m.
        rms: RMS of the identified torque of friction, springs and rotors, N m.
        error: RMS of the part of this torque that the format does not represent, N m.
        lost: names of the terms that the format does not represent, by joint.
        motion: description of the motion to which `rms` and `error` refer.
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
        """Return the friction of the format that is nearest to the identified friction on a motion.

        If a joint has Coulomb and viscous friction only, the identified coefficients are used. Otherwise Coulomb and
        viscous friction are fitted to the sum of all terms that they approximate.

        Args:
            arm: identified arm.
            held: optional terms that the format has: "rotor_inertia", "spring", `POLYNOMIAL`, `BRISTLE`.
            motion: motion for the fit and for the errors.
        """
        robot = arm.robot
        n = arm.robot.n_joints
        columns = arm.friction.of_motion(robot, motion.q, motion.qd, motion.qdd, arm.friction.memory(motion.q))
        torque = columns @ arm.coefficients
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
            breakaway = max(coulomb, sum(own.coefficients.get(name, 0.0) for name in ("coulomb", "stribeck")))
            scalars = {"coulomb": coulomb, "viscous": damping[0], "rest": rest, "breakaway": breakaway, **kept}
            for name, value in scalars.items():
                values[name][j] = value
            values["drag"][j] = damping[1:]
            static = coulomb
            level = coulomb * np.sign(qd)
            if has_bristles:
                bristle = own.bristle(coulomb, kept.get("rotor_inertia", 0.0))
                values[BRISTLE][j] = bristle
                static = bristle[3]
                level = (coulomb + (static - coulomb) * np.exp(-np.square(qd / bristle[4]))) * direction
            # Represented torque except for dry friction: damping, rotor inertia and spring.
            smooth = damping @ np.array([qd, qd * np.abs(qd), qd**3])
            smooth = smooth + kept.get("rotor_inertia", 0.0) * qdd + spring * (q - rest)
            # Dry friction holds a joint at rest with any torque up to the static friction.
            stiction = np.clip(torque[:, j] - smooth, -static, static)
            error[j] = _rms(torque[:, j] - smooth - np.where(np.abs(qd) < REST_SPEED, stiction, level))
            if terms := own.lost(kept, has_bristles):
                lost[joint] = terms
        rms = np.array([_rms(column) for column in torque.T])
        return cls(**values, rms=rms, error=error, lost=lost, motion=motion.name)

    def remarks(self, what: str, joint_names: tuple[str, ...]) -> list[str]:
        """Describe which terms the format named `what` does not represent, and the error that this causes."""
        if not self.lost or not self.error.max() > NEGLIGIBLE_ERROR * max(self.rms.max(), 1.0):
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
        """Return the errors by joint as plain data."""
        return {
            "motion": self.motion,
            "lost": {joint: list(terms) for joint, terms in self.lost.items()},
            "rms": dict(zip(joint_names, self.rms.tolist(), strict=True)),
            "error": dict(zip(joint_names, self.error.tolist(), strict=True)),
        }


@dataclass(frozen=True, eq=False)
class _OwnTerms:
    """Terms of one joint, including those that couple it to other joints.

    Attributes:
        friction: friction model of the joint.
        names: names of the terms.
        values: (k,) their coefficients.
        places: (k,) their indices among all coefficients.
    """

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
        """Coefficients by name, without those of coupling terms."""
        return {
            name: value
            for name, value in zip(self.names, self.values.tolist(), strict=True)
            if name not in COUPLING_TERMS
        }

    @property
    def needs_bristles(self) -> bool:
        """Whether LuGre friction is of use: with Coulomb friction, and Stribeck friction or a sliding length."""
        return bool("coulomb" in self.names and (self.coefficients.get("stribeck") or self.friction.sliding_length))

    def bristle(self, coulomb: float, inertia: float) -> NDArray:
        """Return the LuGre friction (5,) of the joint (Canudas de Wit and others 1995), see `HeldFriction.bristle`.

        Args:
            coulomb: Coulomb friction, N m.
            inertia: inertia that the bristles damp, kg m².
        """
        static = coulomb + max(self.coefficients.get("stribeck", 0.0), 0.0)
        stiffness = static / (self.friction.sliding_length or BRISTLE_LENGTH)
        velocity = self.friction.stribeck_velocity or 1.0
        return np.array([stiffness, np.sqrt(stiffness * inertia), coulomb, static, velocity])

    def fit(
        self, columns: NDArray, velocity: NDArray, direction: NDArray, has_powers: bool, has_bristles: bool
    ) -> NDArray:
        """Return (4,) Coulomb friction and the coefficients of v, v |v| and v³ that approximate the similar terms.

        Args:
            columns: (N, f) regressor columns of all terms of all joints.
            velocity: (N,) velocity v of the joint.
            direction: (N,) direction-dependent factor of dry friction, -1 to 1.
            has_powers: whether damping may have powers of the speed; otherwise the last two coefficients are zero.
            has_bristles: whether LuGre friction represents the Stribeck term.
        """
        similar = [i for i, name in enumerate(self.names) if name.startswith(_APPROXIMATED)]
        similar = [i for i in similar if not (has_bristles and self.names[i] == "stribeck")]
        is_exact = {self.names[i] for i in similar} <= {"coulomb", "viscous"}
        if is_exact and self.friction.saturation_velocity is None:
            own = self.coefficients
            return np.array([max(own.get("coulomb", 0.0), 0.0), max(own.get("viscous", 0.0), 0.0), 0.0, 0.0])
        target = columns[:, self.places[similar]] @ self.values[similar]
        powers = (velocity * np.abs(velocity), velocity**3) if has_powers else ()
        fitted = _dissipative(np.stack([direction, velocity, *powers], axis=1), target)
        return np.pad(fitted, (0, 4 - len(fitted)))

    def lost(self, kept: Mapping[str, float], has_bristles: bool) -> tuple[str, ...]:
        """Return the names of the terms that the format does not represent.

        Args:
            kept: coefficients of "rotor_inertia" and "spring" that the format represents.
            has_bristles: whether LuGre friction represents Stribeck friction and sliding length.
        """
        held = {"coulomb", "viscous", *(name for name, value in kept.items() if value)}
        held |= {"offset"} if "spring" in held else set()
        held |= {"stribeck", "sliding_length"} if has_bristles else set()
        terms = [name for name, value in zip(self.names, self.values, strict=True) if value and name not in held]
        shapes = [words for shape, words in _SHAPES.items() if shape not in held and getattr(self.friction, shape)]
        return (*terms, *shapes)


def _dissipative(matrix: NDArray, target: NDArray) -> NDArray:
    """Return least-squares coefficients (2,) or (4,) of a friction that opposes the motion at every speed.

    The damping a v + b v |v| + c v³ opposes the motion also for negative b, if b² is at most 4 a c.
    """
    solution = np.linalg.lstsq(matrix, target, rcond=None)[0]
    signs = np.delete(solution, 2) if len(solution) > 2 else solution
    if (signs >= 0.0).all() and (len(solution) == 2 or solution[2] >= -2.0 * np.sqrt(solution[1] * solution[3])):
        return solution
    return nnls(matrix, target)[0]


def _rms(values: NDArray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
