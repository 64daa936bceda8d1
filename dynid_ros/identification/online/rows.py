"""Equations of samples as they come: what is looked for on-line, and what is known."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import starmap

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.presliding import STANDSTILL, Presliding, stiction
from dynid_ros.identified.links import KnownArm
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import finite_vector
from dynid_ros.model.base_parameters import LINK_PARAMETERS, BaseParameters
from dynid_ros.model.friction import FrictionModel, FrictionTerms, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample_regressor import RegressorSums

CHANGES = JointFriction(offset=True)
"""Friction is not the same with a load, nor on another day, and torque sensors drift."""

_UNUSED = 1e3
"""Noise of a joint at rest, as a multiple of its noise in motion, where its friction is not known at all."""


class OnlineRows:
    """Equations [A b] of an arm, N m, as sums over samples, with the columns E of what is known of it.

    Args:
        robot: the arm.
        names: (k,) of the columns of A.
        bodies: (10 n, p + 1 + e) what the first p columns of A, the torque of links that are known, and E are of the
            columns of all links.
        frictions: terms of friction, and what they are in [A b E] after the first p columns: (terms, n, k - p + 1 + e).
        stiction: (n,) torque that the friction of a joint at rest may have, either way, N m.
        n_inertial: p.

    Attributes:
        n_inertial: p.
        known: the arm that b lacks the torque of; None: b lacks nothing.

    """

    known: KnownArm | None = None

    def __init__(
        self,
        robot: RobotModel,
        names: tuple[str, ...],
        bodies: NDArray,
        frictions: Sequence[tuple[FrictionTerms, NDArray]],
        *,
        stiction: NDArray,
        n_inertial: int,
    ):
        n = robot.n_joints
        self.names, self.stiction, self.n_inertial = names, stiction, n_inertial
        self._regressor, self._bodies = RegressorSums(robot), bodies
        self._frictions = [terms for terms, _ in frictions]
        # Friction, torque and rest of a sample in its columns [A b E] after the first p, and three more.
        own = np.zeros((3 * n, n, frictions[0][1].shape[2] + 3))
        own[range(n), range(n), len(names) - n_inertial] = 1.0
        for k in range(3):
            own[range(k * n, (k + 1) * n), range(n), k - 3] = 1.0
        parts = [np.pad(places, ((0, 0), (0, 0), (0, 3))) for _, places in frictions]
        self._places = np.concatenate([*parts, own]).reshape(-1, own[0].size)
        self._presliding = Presliding()

    def restart(self) -> None:
        """Take it that the joints were elsewhere since the last sample."""
        self._presliding.restart()

    @property
    def n_known(self) -> int:
        """Number e of columns of what is known."""
        return self._bodies.shape[1] - self.n_inertial - 1

    def sums(self, samples: NDArray, weights: NDArray) -> NDArray:
        """Sums (m, n, k + e + 4) of [A b E t u s] of N samples, t being the whole torque as measured.

        s is one where a joint stands, u where its friction is not known: there too, and before it has taken up the
        direction of its motion.

        Args:
            samples: (4, N, n) q, qd, qdd and torque, all later than those before.
            weights: (m, N) of the samples in each sum.

        """
        q, qd, qdd, torque = samples
        still = np.abs(qd) < STANDSTILL
        unknown = self._presliding.unknown(q, qd)
        # Noise about zero would give friction a direction that changes from sample to sample.
        sliding = np.where(unknown & (self.stiction > 0.0), 0.0, qd)
        motion = zip(*samples[:3].tolist(), strict=True)
        features = _matrix(starmap(self._regressor.features, motion), len(qd), self._regressor.size)
        moving = list(zip(sliding.tolist(), qdd.tolist(), strict=True))
        frictions = [_matrix(starmap(terms.of, moving), len(qd), len(terms.places)) for terms in self._frictions]
        regressor = self._regressor(features, weights)
        inertial = regressor @ self._bodies
        others = np.concatenate([*frictions, torque, unknown, still], axis=1)
        rest = (weights @ others @ self._places).reshape(*regressor.shape[:2], -1)
        p, b = self.n_inertial, len(self.names) - self.n_inertial
        rest[:, :, b] -= inertial[:, :, p]
        rest[:, :, b + 1 : -3] += inertial[:, :, p + 1 :]
        return np.concatenate([inertial[:, :, :p], rest], axis=2)

    def considered(self, sums: NDArray) -> NDArray:
        """(n, e + n) what b may be wrong by: a unit of each column E, and the whole torque of each joint.

        Where it is not known how an arm's parameters depend on the gains, they are off as its torques are: of the whole
        torque only b is.

        Args:
            sums: (n, k + e + 4) as of `sums`.

        """
        size = len(self.names)
        whole = self.known is None or (self.known.covariance is not None and self.known.gain_shifts is not None)
        return np.hstack([sums[:, size + 1 : -3], np.diag(sums[:, -3 if whole else size])])


class LoadRows(OnlineRows):
    """Of a load at the tip: what the torque has beside that of the arm.

    Args:
        robot: the arm.
        known: its links and friction.
        changes: friction and offsets beside those of `known`, estimated with the load.

    """

    def __init__(self, robot: RobotModel, known: KnownArm, changes: FrictionModel):
        n, arm = robot.n_joints, known.model
        of_arm = arm.robot
        if of_arm.joint_names != robot.joint_names or of_arm.kinematics_sha256 != robot.kinematics_sha256:
            raise IdentificationError(
                f"arm: its model is of robot '{of_arm.name}' with joints {', '.join(of_arm.joint_names)}, which is not "
                f"'{robot.name}' with {', '.join(robot.joint_names)}; identify this arm's links first"
            )
        # A load is a part of the last link, about another frame.
        p, size = PARAMETERS_PER_LINK, robot.parameters.size
        own = np.zeros((size, p + 1))
        own[-p:, :-1] = transformed(np.eye(p), robot.tip_offset).T
        own[:, -1] = finite_vector(arm.parameters, size, "parameters of the links")
        fixed, free = FrictionTerms(arm.friction, n), FrictionTerms(changes, n)
        coefficients = np.asarray(arm.coefficients, dtype=float)
        # What is known of the arm are parameters of links, then coefficients of friction.
        errors = np.eye(size + coefficients.size)[:, known.terms if known.covariance is not None else []]
        bodies = np.hstack([own, errors[:size]])
        of_known = np.concatenate(
            [
                np.zeros((len(fixed.places), n, free.places.shape[2])),
                -fixed.places @ coefficients[:, None],
                fixed.places @ errors[size:],
            ],
            axis=2,
        )
        of_free = np.pad(free.places, ((0, 0), (0, 0), (0, 1 + errors.shape[1])))
        names = (*LINK_PARAMETERS, *changes.names(robot))
        frictions = [(fixed, of_known), (free, of_free)]
        super().__init__(robot, names, bodies, frictions, stiction=stiction(arm), n_inertial=p)
        self.known = known


class LinkRows(OnlineRows):
    """Of all base parameters of an arm and its friction.

    Args:
        robot: the arm.
        friction: terms of its joints.
        noise: (n,) of the torques, N m.

    Attributes:
        base: base parameters of links and friction.

    """

    def __init__(self, robot: RobotModel, friction: FrictionModel, noise: ArrayLike):
        self.base: BaseParameters = robot.base_parameters(friction)
        n, size = robot.n_joints, robot.parameters.size
        inertial = self.base.columns[self.base.columns < size]
        bodies = np.zeros((size, inertial.size + 1))
        bodies[inertial, range(inertial.size)] = 1.0
        terms = FrictionTerms(friction, n)
        places = np.pad(terms.places[:, :, self.base.columns[inertial.size :] - size], ((0, 0), (0, 0), (0, 1)))
        sticks = [joint.coulomb or joint.stribeck_velocity is not None for joint in friction.of(n)]
        super().__init__(
            robot,
            self.base.expressions,
            bodies,
            [(terms, places)],
            stiction=np.where(sticks, _UNUSED * np.asarray(noise), 0.0),
            n_inertial=inertial.size,
        )


def _matrix(rows: Iterable[tuple[float, ...]], count: int, size: int) -> NDArray:
    """Of `count` rows of `size` floats; to pack them is several times faster than `np.array`."""
    return np.frombuffer(b"".join(starmap(struct.Struct(f"{size}d").pack, rows))).reshape(count, size)
