"""Equations of samples as they come: what is looked for on-line, and what is known."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import starmap

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.links.model import LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.base_parameters import LINK_PARAMETERS, BaseParameters
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, transformed
from dynid_ros.model.one_sample_friction import FrictionTerms
from dynid_ros.model.regressor_sums import RegressorSums
from dynid_ros.model.samples import finite_vector

CHANGES = JointFriction(offset=True)
"""Friction is not the same with a load, nor on another day, and torque sensors drift."""

STANDSTILL = 0.02
"""Speed below which the direction of friction is not known, rad/s or m/s."""

_UNUSED = 1e3
"""Noise of a joint at rest, as a multiple of its noise in motion, where its friction is not known at all."""


class OnlineRows:
    """Equations [A b] of an arm, N m, as sums over samples.

    Args:
        robot: the arm.
        names: (k,) of the columns.
        bodies: (10 n, p + 1) what the first p columns of A, and the torque of links that are known, are of the columns
            of all links.
        frictions: terms of friction, and what they are in [A b] after the first p columns: (terms, n, k - p + 1).
        stiction: (n,) torque that the friction of a joint at rest may have, either way, N m.

    Attributes:
        n_inertial: p.

    """

    def __init__(
        self,
        robot: RobotModel,
        names: tuple[str, ...],
        bodies: NDArray,
        frictions: Sequence[tuple[FrictionTerms, NDArray]],
        stiction: NDArray,
    ):
        n = robot.n_joints
        self.names, self.stiction, self.n_inertial = names, stiction, bodies.shape[1] - 1
        self._regressor, self._bodies = RegressorSums(robot), bodies
        self._frictions = [terms for terms, _ in frictions]
        # Friction, torque and rest of a sample in its columns [A b s].
        own = np.zeros((2 * n, n, len(names) - self.n_inertial + 2))
        own[range(n), range(n), -2] = own[range(n, 2 * n), range(n), -1] = 1.0
        parts = [np.pad(places, ((0, 0), (0, 0), (0, 1))) for _, places in frictions]
        self._places = np.concatenate([*parts, own]).reshape(-1, own[0].size)

    def sums(self, samples: NDArray, weights: NDArray) -> NDArray:
        """Sums (m, n, k + 2) of [A b s] of N samples, s being one where a joint is too slow to tell its friction.

        Args:
            samples: (4, N, n) q, qd, qdd and torque.
            weights: (m, N) of the samples in each sum.

        """
        _, qd, qdd, torque = samples
        still = np.abs(qd) < STANDSTILL
        # Noise about zero would give friction a direction that changes from sample to sample.
        sliding = np.where(still & (self.stiction > 0.0), 0.0, qd)
        motion = zip(*samples[:3].tolist(), strict=True)
        features = _matrix(starmap(self._regressor.features, motion), len(qd), self._regressor.size)
        moving = list(zip(sliding.tolist(), qdd.tolist(), strict=True))
        frictions = [_matrix(starmap(terms.of, moving), len(qd), len(terms.places)) for terms in self._frictions]
        regressor = self._regressor(features, weights)
        inertial = regressor @ self._bodies
        others = np.concatenate([*frictions, torque, still], axis=1)
        rest = (weights @ others @ self._places).reshape(*regressor.shape[:2], -1)
        rest[:, :, -2] -= inertial[:, :, -1]
        return np.concatenate([inertial[:, :, :-1], rest], axis=2)


class LoadRows(OnlineRows):
    """Of a load at the tip: what the torque has beside that of the arm.

    Args:
        robot: the arm.
        arm: its links and friction.
        changes: friction and offsets beside those of `arm`, estimated with the load.

    """

    def __init__(self, robot: RobotModel, arm: LinkModel, changes: FrictionModel):
        n = robot.n_joints
        of_arm = arm.robot
        if of_arm.joint_names != robot.joint_names or of_arm.kinematics_sha256 != robot.kinematics_sha256:
            raise IdentificationError(
                f"arm: its model is of robot '{of_arm.name}' with joints {', '.join(of_arm.joint_names)}, which is not "
                f"'{robot.name}' with {', '.join(robot.joint_names)}; identify this arm's links first"
            )
        # A load is a part of the last link, about another frame.
        bodies = np.zeros((robot.parameters.size, PARAMETERS_PER_LINK + 1))
        bodies[-PARAMETERS_PER_LINK:, :-1] = transformed(np.eye(PARAMETERS_PER_LINK), robot.tip_offset).T
        bodies[:, -1] = finite_vector(arm.parameters, robot.parameters.size, "parameters of the links")
        known, free = FrictionTerms(arm.friction, n), FrictionTerms(changes, n)
        coefficients = np.asarray(arm.coefficients, dtype=float)
        of_known = np.zeros((len(known.places), n, free.places.shape[2] + 1))
        of_known[:, :, -1] = -known.places @ coefficients
        of_free = np.pad(free.places, ((0, 0), (0, 0), (0, 1)))
        terms = [name.split() for name in arm.friction.names(robot)]
        own = np.array([term[0].startswith(("coulomb", "stribeck")) for term in terms], dtype=bool)
        place = [robot.joint_names.index(term[1]) for term, kept in zip(terms, own, strict=True) if kept]
        stiction = np.zeros(n)
        np.maximum.at(stiction, place, np.abs(coefficients[own]))
        names = (*LINK_PARAMETERS, *changes.names(robot))
        super().__init__(robot, names, bodies, [(known, of_known), (free, of_free)], stiction)


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
        stiction = np.where(sticks, _UNUSED * np.asarray(noise), 0.0)
        super().__init__(robot, self.base.expressions, bodies, [(terms, places)], stiction)


def _matrix(rows: Iterable[tuple[float, ...]], count: int, size: int) -> NDArray:
    """Of `count` rows of `size` floats; to pack them is several times faster than `np.array`."""
    return np.frombuffer(b"".join(starmap(struct.Struct(f"{size}d").pack, rows))).reshape(count, size)
