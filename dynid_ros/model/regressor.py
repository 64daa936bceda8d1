"""Regressors: torques as linear functions of the ten parameters of each link.

The torque of joint i is the power of the wrench on each link j >= i on the twist that a unit velocity of joint i gives
that link. Both are taken in the frame of joint j, where the wrench is a 6x10 matrix times the parameters (Atkeson, An
and Hollerbach 1986, eq. 8), and that matrix is linear in accelerations and products of angular velocities.

Twists, velocities and accelerations are all motion vectors (Featherstone, Rigid Body Dynamics Algorithms, 2008), here
with the linear part first: one constant 6x6 matrix takes them all to the next frame. In memory, samples are next to
each other, and what is summed over comes next.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, skew, transformed
from dynid_ros.model.samples import blocks

N_FEATURES = 12


def gravity_regressor(chain: Chain, gravity: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Matrix (N, n, 10 n) from the parameters about the link frames to the torques at rest in poses q (N, n)."""
    return torque_regressor(chain, gravity, (q, np.zeros_like(q), np.zeros_like(q)))


def torque_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix (N, n, 10 n) from the parameters about the link frames to the torques of q, qd and qdd, each (N, n).

    It is a view of an array (n, 10 n, N): samples of one entry are next to each other.
    """
    n_samples, n = motion[0].shape
    matrix = np.zeros((n, PARAMETERS_PER_LINK * n, n_samples))
    rows = RegressorRows(chain, gravity)
    for block in blocks(n_samples):
        q, qd, qdd = (array[block] for array in motion)
        rows.fill(matrix[:, :, block], q, qd, qdd)
    return matrix.transpose(2, 0, 1)


class Taped(NamedTuple):
    """Of one link: motion vectors (j + 3, 6, N) in its joint frame, the last the joint's own twist, and features."""

    vectors: np.ndarray
    features: np.ndarray


class RegressorRows:
    """Fills regressors of one arm, a block of samples at a time.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        columns: (p,) which of the 10 n parameters, ascending; None: all.

    Attributes:
        to_joint: (n, 6, 6) what takes motion vectors to each joint frame at q = 0 from the one before.
        starts: (n + 1,) the first of the columns of each link, and their number.
        wrenches: for each link two arrays (columns, rows, 12), from features to wrenches of unit parameters: those of
            mass and mass moments with six rows, those of inertia with the moment's three.

    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self.chain, self.gravity = chain, gravity
        chosen = np.arange(PARAMETERS_PER_LINK * chain.n_joints) if columns is None else np.asarray(columns, dtype=int)
        self.to_joint = motion_matrices(chain.transforms)
        self.starts = np.searchsorted(chosen, PARAMETERS_PER_LINK * np.arange(chain.n_joints + 1))
        # What the parameters about the link frame are about the joint frame, and what wrench that takes.
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        self.wrenches = []
        for link, parameters in enumerate(about_joint):
            own = chosen[self.starts[link] : self.starts[link + 1]] % PARAMETERS_PER_LINK
            wrench = (parameters[own] @ WRENCH.reshape(PARAMETERS_PER_LINK, -1)).reshape(-1, 6, N_FEATURES)
            self.wrenches.append((wrench[own < STATIC], wrench[own >= STATIC, 3:]))
        self._vectors = np.empty((3, chain.n_joints + 2, 6, 0))

    def fill(
        self, matrix: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tape: list[Taped] | None = None
    ) -> None:
        """Set a matrix (n, p, N) from the chosen parameters to the torques of q, qd and qdd, each (N, n).

        Entries of links before the joint are zero whatever the motion, and left as they are. What `gradient` needs of
        each link is added to the `tape`, if there is one.
        """
        n_samples, n = q.shape
        if self._vectors.shape[-1] != n_samples:
            self._vectors = np.empty((3, n + 2, 6, n_samples))
        # Velocity, acceleration and the twists of the joints before, in the frames before, at and after a joint.
        before, still, after = self._vectors
        before[:2] = 0.0
        # Gravity enters as an acceleration of the base upwards.
        before[1, :3] = -self.gravity[:, None]
        features = np.empty((N_FEATURES, n_samples))
        motion = JointMotion(self.chain.prismatic, q, qd, qdd)
        for j, parts in enumerate(self.wrenches):
            k = j + 2
            np.matmul(self.to_joint[j], before[:k], out=still[:k])
            motion.through(j, still[:k], after[:k])
            axis = 2 if self.chain.prismatic[j] else 5
            after[k] = 0.0
            after[k, axis] = 1.0
            set_features(features, *after[:2])
            if tape is not None:
                tape.append(Taped(after[: k + 1].copy(), features.copy()))
            column = self.starts[j]
            for part in parts:
                n_columns, n_rows, _ = part.shape
                wrenches = part @ features
                torques = matrix[: j + 1, column : column + n_columns]
                # The twist of the joint itself is one component.
                own = axis - (6 - n_rows)
                torques[j] = wrenches[:, own] if own >= 0 else 0.0
                if j:
                    np.einsum("irm,crm->icm", after[2:k, -n_rows:], wrenches, out=torques[:j])
                column += n_columns
            before, after = after, before


class JointMotion:
    """What the joints do to motion vectors, for a block of samples; q, qd and qdd are (N, n)."""

    def __init__(self, prismatic: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray):
        self.prismatic = prismatic
        angle = q.T.copy()
        angle[prismatic] = 0.0
        # Cosine and sine by the tangent of half the angle, which numpy has a vector instruction for.
        half = np.tan(0.5 * angle)
        scale = 1.0 / (1.0 + half * half)
        cos, sin = 2.0 * scale - 1.0, 2.0 * half * scale
        self.turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
        self.rates = np.stack([qd.T, qdd.T], axis=1)
        signs = np.array([[1.0], [-1.0]])
        self.slide, self.slip = q.T[:, None] * signs, qd.T[:, None] * signs

    def through(self, j: int, still: np.ndarray, moved: np.ndarray) -> None:
        """Take motion vectors (k, 6, N) through joint j.

        Velocity and acceleration, which come first, gain what the joint contributes.
        """
        shape = (len(still), 2, 3, still.shape[-1])
        still, moved = still.reshape(shape), moved.reshape(shape)
        np.einsum("abm,klbm->klam", self.turn[j], still[:, :, :2], out=moved[:, :, :2])
        moved[:, :, 2] = still[:, :, 2]
        velocity, acceleration = moved[:2]
        # Products with the axis take x from y, and y from x with the other sign.
        if self.prismatic[j]:
            moved[:, 0, :2] += still[:, 1, 1::-1] * self.slide[j]
            acceleration[0, :2] += velocity[1, 1::-1] * self.slip[j]
            moved[:2, 0, 2] += self.rates[j]
        else:
            acceleration[:, :2] += velocity[:, 1::-1] * self.slip[j]
            moved[:2, 1, 2] += self.rates[j]


def motion_matrices(transforms: np.ndarray) -> np.ndarray:
    """Matrices (n, 6, 6) that take motion vectors to frames of poses `transforms` (n, 4, 4)."""
    matrices = np.zeros((len(transforms), 6, 6))
    for matrix, transform in zip(matrices, transforms, strict=True):
        inverse = transform[:3, :3].T
        matrix[:3, :3] = matrix[3:, 3:] = inverse
        matrix[:3, 3:] = -inverse @ skew(transform[:3, 3])
    return matrices


def set_features(features: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> None:
    """Set what wrenches are linear in, (12, N), of motion vectors (6, N).

    The acceleration of the point at the origin, which the spatial one is not; the angular acceleration; the squares of
    the angular velocity and its products xy, yz, zx.
    """
    v, w = velocity[[0, 1, 2, 0, 1]], velocity[[3, 4, 5, 3, 4]]
    features[:6] = acceleration
    features[:3] += w[1:4] * v[2:]
    features[:3] -= w[2:] * v[1:4]
    np.multiply(w[:3], w[:3], out=features[6:9])
    np.multiply(w[:3], w[1:4], out=features[9:])


def _wrench_tensor() -> np.ndarray:
    """Tensor (10, 6, 12) from parameters and features to force and moment about the frame's origin."""
    ax, ay, az, bx, by, bz, xx, yy, zz, xy, yz, xz = np.eye(N_FEATURES)
    columns = (
        {0: ax, 1: ay, 2: az},
        {0: -yy - zz, 1: xy + bz, 2: xz - by, 4: -az, 5: ay},
        {0: xy - bz, 1: -xx - zz, 2: yz + bx, 3: az, 5: -ax},
        {0: xz + by, 1: yz - bx, 2: -xx - yy, 3: -ay, 4: ax},
        {3: bx, 4: xz, 5: -xy},
        {3: by - xz, 4: bx + yz, 5: xx - yy},
        {3: bz + xy, 4: zz - xx, 5: bx - yz},
        {3: -yz, 4: by, 5: xy},
        {3: yy - zz, 4: bz - xy, 5: by + xz},
        {3: yz, 4: -xz, 5: bz},
    )
    tensor = np.zeros((PARAMETERS_PER_LINK, 6, N_FEATURES))
    for column, entries in enumerate(columns):
        for row, entry in entries.items():
            tensor[column, row] = entry
    return tensor


WRENCH = _wrench_tensor()
