"""Regressors: torques as linear functions of the ten parameters of each link.

The torque of joint i is the sum over the links j that it moves of the power of the wrench on link j times the twist
that a unit velocity of joint i gives the link; joints that mimic joint i add to the twist. Both are in the joint frame
of link j, where the wrench is a 6x10 matrix times the parameters (Atkeson, An and Hollerbach 1986, eq. 8). This matrix
is linear in accelerations and products of angular velocities, the features.

Twists, velocities and accelerations are motion vectors (Featherstone, Rigid Body Dynamics Algorithms, 2008), here with
the linear part first: one constant 6x6 matrix takes all of them to the next frame. In memory, samples are next to each
other, and dimensions to sum over come next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynid_ros.model.arrays import blocks
from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, STATIC, skew, transformed

N_FEATURES = 12
N_MOTION = 2
"""Number of motion vectors before the twists: velocity and acceleration."""


def torque_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Return the matrix (N, n, 10 m) from the parameters about the link frames to the torques of q, qd and qdd.

    It is a view of an array (n, 10 m, N), in which samples of one entry are next to each other.
    """
    n_samples, n = motion[0].shape
    matrix = np.zeros((n, PARAMETERS_PER_LINK * chain.n_links, n_samples))
    rows = RegressorRows(chain, gravity)
    for block in blocks(n_samples):
        q, qd, qdd = (array[block] for array in motion)
        rows.fill(matrix[:, :, block], q, qd, qdd)
    return matrix.transpose(2, 0, 1)


class RecordedLink(NamedTuple):
    """Motion vectors (k, 6, N) of a link in its joint frame, in the order of `LinkRecursion`, and features (12, N)."""

    vectors: np.ndarray
    features: np.ndarray


ContiguousSlices = list[tuple[slice, slice]]
"""Slices of joints, and of their twists among the motion vectors of a link, that are contiguous in both."""


class LinkRecursion(NamedTuple):
    """Passage of motion vectors from the parent to a link: velocity, acceleration and twists of joints that move it.

    Attributes:
        source: buffer of the parent's vectors.
        target: buffer of the link's vectors.
        size: number of vectors that pass.
        joint: independent joint that moves the link.
        place: index of this joint's twist among the vectors; it is `size` unless the joint moves the parent, too.
        before: joints whose twists pass.
        all: these joints and the joint of the link.
    """

    source: int
    target: int
    size: int
    joint: int
    place: int
    before: ContiguousSlices
    all: ContiguousSlices


@lru_cache(maxsize=16)
def link_recursions(chain: Chain) -> list[LinkRecursion]:
    """Return the recursions to all links; a buffer is reused after all children of its link are computed."""
    n_waiting = [int(np.sum(chain.parents == link)) for link in range(-1, chain.n_links)]
    buffer_of: dict[int, int] = {-1: 0}
    movers: dict[int, list[int]] = {-1: []}
    recursions = []
    for link, parent in enumerate(chain.parents.tolist()):
        target = min(set(range(len(buffer_of) + 1)) - set(buffer_of.values()))
        before = movers[parent]
        joint = int(chain.drivers[link])
        movers[link] = before if joint in before else [*before, joint]
        recursions.append(
            LinkRecursion(
                source=buffer_of[parent],
                target=target,
                size=N_MOTION + len(before),
                joint=joint,
                place=N_MOTION + movers[link].index(joint),
                before=_contiguous_slices(before),
                all=_contiguous_slices(movers[link]),
            )
        )
        n_waiting[parent + 1] -= 1
        if n_waiting[link + 1]:
            buffer_of[link] = target
        if not n_waiting[parent + 1]:
            del buffer_of[parent]
    return recursions


def _contiguous_slices(joints: Sequence[int]) -> ContiguousSlices:
    slices: ContiguousSlices = []
    for place, joint in enumerate(joints, N_MOTION):
        if slices and slices[-1][0].stop == joint:
            rows, vectors = slices.pop()
            slices.append((slice(rows.start, joint + 1), slice(vectors.start, place + 1)))
        else:
            slices.append((slice(joint, joint + 1), slice(place, place + 1)))
    return slices


class RegressorRows:
    """Regressors of one arm, filled a block of samples at a time.

    Args:
        gravity: (3,) in the base frame, m/s².
        columns: (p,) indices among the 10 m parameters, ascending; None: all.

    Attributes:
        to_joint: (m, 6, 6) matrices that take motion vectors from the parent's joint frame to each joint frame at zero.
        starts: (m + 1,) the first column of each link, and the number of columns.
        recursions: passages of motion vectors from link to link.
        wrenches: for each link two arrays (columns, rows, 12) from features to wrenches of unit parameters: with six
            rows for mass and mass moments, and with the three rows of the moment for the inertia.
    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self.chain = chain
        self.gravity = gravity
        chosen = np.arange(PARAMETERS_PER_LINK * chain.n_links) if columns is None else np.asarray(columns, dtype=int)
        self.to_joint = motion_matrices(chain.transforms)
        self.starts = np.searchsorted(chosen, PARAMETERS_PER_LINK * np.arange(chain.n_links + 1))
        self.recursions = link_recursions(chain)
        # The parameters about the joint frame follow from those about the link frame, and the wrench from both.
        about_joint = transformed(np.eye(PARAMETERS_PER_LINK), chain.link_offsets[:, None])
        self.wrenches = []
        for link, parameters in enumerate(about_joint):
            kept = chosen[self.starts[link] : self.starts[link + 1]] % PARAMETERS_PER_LINK
            wrench = (parameters[kept] @ WRENCH_TENSOR.reshape(PARAMETERS_PER_LINK, -1)).reshape(-1, 6, N_FEATURES)
            self.wrenches.append((wrench[kept < STATIC], wrench[kept >= STATIC, 3:]))
        n_buffers = max(step.target for step in self.recursions) + 1
        self._size = n_buffers + 1, max(step.size for step in self.recursions) + 1, 6
        self._vectors = np.empty((*self._size, 0))

    def fill(
        self, matrix: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tape: list[RecordedLink] | None = None
    ) -> None:
        """Set the matrix (n, p, N) from the chosen parameters to the torques of q, qd and qdd, each (N, n).

        Entries of links that a joint does not move are zero for any motion and are not set. Motion vectors and features
        of each link are added to the `tape`, if there is one.
        """
        n_samples = len(q)
        if self._vectors.shape[-1] != n_samples:
            self._vectors = np.empty((*self._size, n_samples))
        # The buffers hold velocity, acceleration and twists: `still` before a joint moves, the others after it.
        still, *buffers = self._vectors
        buffers[0][:N_MOTION] = 0.0
        # Gravity enters as an upward acceleration of the base.
        buffers[0][1, :3] = -self.gravity[:, None]
        features = np.empty((N_FEATURES, n_samples))
        motion = JointMotion(self.chain, q, qd, qdd)
        for j, (step, parts) in enumerate(zip(self.recursions, self.wrenches, strict=True)):
            k = step.size
            before = buffers[step.source]
            after = buffers[step.target]
            np.matmul(self.to_joint[j], before[:k], out=still[:k])
            motion.through(j, still[:k], after[:k])
            axis = 2 if self.chain.slides[j] else 5
            ratio = self.chain.ratios[j]
            is_new = step.place == k
            if is_new:
                after[k] = 0.0
            after[step.place, axis] += ratio
            set_features(features, *after[:N_MOTION])
            if tape is not None:
                tape.append(RecordedLink(after[: k + is_new].copy(), features.copy()))
            column = self.starts[j]
            for part in parts:
                n_columns, n_rows, _ = part.shape
                wrenches = part @ features
                columns = slice(column, column + n_columns)
                if is_new:
                    # The twist of the joint itself is one component.
                    row = axis - (6 - n_rows)
                    matrix[step.joint, columns] = wrenches[:, row] if row >= 0 else 0.0
                    if ratio != 1.0:
                        matrix[step.joint, columns] *= ratio
                for rows, vectors in step.before:
                    np.einsum("irm,crm->icm", after[vectors, -n_rows:], wrenches, out=matrix[rows, columns])
                column += n_columns


class JointMotion:
    """Effect of the joints on motion vectors, for a block of samples; q, qd and qdd are (N, n)."""

    def __init__(self, chain: Chain, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray):
        self.slides = chain.slides
        q, qd, qdd = chain.of_links(q, qd, qdd)
        angle = q.T.copy()
        angle[self.slides] = 0.0
        # Cosine and sine follow from the tangent of half the angle, for which numpy has a vector instruction.
        half = np.tan(0.5 * angle)
        scale = 1.0 / (1.0 + half * half)
        cos = 2.0 * scale - 1.0
        sin = 2.0 * half * scale
        self.turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
        self.rates = np.stack([qd.T, qdd.T], axis=1)
        signs = np.array([[1.0], [-1.0]])
        self.slide = q.T[:, None] * signs
        self.slip = qd.T[:, None] * signs

    def through(self, j: int, still: np.ndarray, moved: np.ndarray) -> None:
        """Compute motion vectors (k, 6, N) after the joint of link j from those before it.

        The joint adds to velocity and acceleration, which come first.
        """
        shape = (len(still), 2, 3, still.shape[-1])
        still = still.reshape(shape)
        moved = moved.reshape(shape)
        np.einsum("abm,klbm->klam", self.turn[j], still[:, :, :2], out=moved[:, :, :2])
        moved[:, :, 2] = still[:, :, 2]
        velocity, acceleration = moved[:2]
        # The cross product with the axis takes x from y, and y from x with the opposite sign.
        if self.slides[j]:
            moved[:, 0, :2] += still[:, 1, 1::-1] * self.slide[j]
            acceleration[0, :2] += velocity[1, 1::-1] * self.slip[j]
            moved[:2, 0, 2] += self.rates[j]
        else:
            acceleration[:, :2] += velocity[:, 1::-1] * self.slip[j]
            moved[:2, 1, 2] += self.rates[j]


def motion_matrices(transforms: np.ndarray) -> np.ndarray:
    """Return the matrices (n, 6, 6) that take motion vectors to frames with poses `transforms` (n, 4, 4)."""
    matrices = np.zeros((len(transforms), 6, 6))
    for matrix, transform in zip(matrices, transforms, strict=True):
        inverse = transform[:3, :3].T
        matrix[:3, :3] = matrix[3:, 3:] = inverse
        matrix[:3, 3:] = -inverse @ skew(transform[:3, 3])
    return matrices


def set_features(features: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> None:
    """Set the features (12, N), in which wrenches are linear, from motion vectors (6, N).

    The features are the acceleration of the point at the origin (not the spatial acceleration), the angular
    acceleration, the squares of the components of the angular velocity, and their products xy, yz, zx.
    """
    v = velocity[[0, 1, 2, 0, 1]]
    w = velocity[[3, 4, 5, 3, 4]]
    features[:6] = acceleration
    features[:3] += w[1:4] * v[2:]
    features[:3] -= w[2:] * v[1:4]
    np.multiply(w[:3], w[:3], out=features[6:9])
    np.multiply(w[:3], w[1:4], out=features[9:])


def _wrench_tensor() -> np.ndarray:
    """Return the tensor (10, 6, 12) from parameters and features to force and moment about the frame's origin."""
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


WRENCH_TENSOR = _wrench_tensor()


# Gradients of scalar functions of the regressor by the motion. The adjoint method carries the derivatives with respect
# to the regressor's entries back, link by link, to motion vectors and from those to joint positions, velocities and
# accelerations. All gradients together cost some two evaluations of the regressor, for any number of joints.


class DifferentiableRegressor:
    """Regressor of chosen parameters, and gradients of functions of it.

    Args:
        gravity: (3,) in the base frame, m/s².
        columns: (p,) indices among the 10 m parameters, ascending; None: all.
    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self._rows = RegressorRows(chain, gravity, columns)
        self._tape: list[RecordedLink] = []

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the last motion."""
        return {"_rows": self._rows}

    def matrix(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the regressor (n, p, N) of a motion, each array (N, n), and record it for `gradient`."""
        n_samples, n = q.shape
        matrix = np.zeros((n, int(self._rows.starts[-1]), n_samples))
        self._motion = q, qd, qdd
        self._tape = []
        self._rows.fill(matrix, q, qd, qdd, self._tape)
        return matrix

    def gradient(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradients (N, n) of sum(weights * matrix) by q, qd and qdd; `weights` are (n, p, N)."""
        chain = self._rows.chain
        joints = JointMotion(chain, *self._motion)
        n_samples = len(self._motion[0])
        by_motion = np.empty((3, chain.n_links, n_samples))
        # Derivatives with respect to the motion vectors of each link, of all entries of links after it.
        by_vectors: list[np.ndarray | None] = [None] * chain.n_links
        for j in reversed(range(chain.n_links)):
            step = self._rows.recursions[j]
            vectors, features = self._tape[j]
            k = step.size
            after = by_vectors[j]
            carried = np.zeros((k, 6, n_samples)) if after is None else after[:k]
            by_features = np.zeros_like(features)
            column = self._rows.starts[j]
            for part in self._rows.wrenches[j]:
                n_columns, n_rows, n_features = part.shape
                if not n_columns:
                    continue
                part_weights = weights[:, column : column + n_columns]
                twists, *others = (
                    np.einsum("icm,irm->crm", part_weights[i], vectors[v, -n_rows:]) for i, v in step.all
                )
                for other in others:
                    twists += other
                by_features += part.reshape(-1, n_features).T @ twists.reshape(-1, n_samples)
                for rows, places in step.before:
                    carried[places, -n_rows:] += np.einsum("icm,crm->irm", part_weights[rows], part @ features)
                column += n_columns
            _add_features(carried[:N_MOTION], by_features, vectors[0])
            by_motion[:, j] = _carry_back(joints, j, carried, vectors[:k])
            parent = chain.parents[j]
            if parent >= 0:
                moved = self._rows.to_joint[j].T @ carried
                siblings = by_vectors[parent]
                by_vectors[parent] = moved if siblings is None else siblings + moved
        by_q, by_qd, by_qdd = (chain.of_joints(by_link).T for by_link in by_motion)
        return by_q, by_qd, by_qdd


def _add_features(carried: np.ndarray, by_features: np.ndarray, velocity: np.ndarray) -> None:
    """Add the part that passes through the features (12, N) to derivatives by velocity and acceleration (2, 6, N)."""
    by_velocity, by_acceleration = carried
    by_acceleration += by_features[:6]
    force = by_features[:3]
    squares = by_features[6:9]
    products = by_features[9:]
    v = velocity[[0, 1, 2, 0, 1]]
    w = velocity[[3, 4, 5, 3, 4]]
    f = force[[0, 1, 2, 0, 1]]
    # Derivatives of force . (w x v).
    by_velocity[:3] += f[1:4] * w[2:] - f[2:] * w[1:4]
    by_velocity[3:] += v[1:4] * f[2:] - v[2:] * f[1:4]
    # Derivatives of the squares of w, and of its products xy, yz, zx.
    by_velocity[3:] += 2.0 * squares * w[:3] + products * w[1:4] + products[[2, 0, 1]] * w[2:]


def _carry_back(
    joints: JointMotion, j: int, carried: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Carry derivatives (k, 6, N) back through the joint of link j, in place; return those (N,) by its motion."""
    shape = (len(carried), 2, 3, carried.shape[-1])
    back = carried.reshape(shape)
    moved = vectors.reshape(shape)
    slides = joints.slides[j]
    part = 0 if slides else 1
    by_velocity = back[0, part, 2].copy()
    by_acceleration = back[1, part, 2].copy()
    rate = joints.slip[j, 0]
    velocity = moved[0]
    accelerated = back[1]
    turning = moved
    if slides:
        x, y = accelerated[0, :2]
        by_velocity += x * velocity[1, 1] - y * velocity[1, 0]
        back[0, 1, 1] += x * rate
        back[0, 1, 0] -= y * rate
        x = back[:, 0, 0]
        y = back[:, 0, 1]
        by_position = np.einsum("km,km->m", x, moved[:, 1, 1]) - np.einsum("km,km->m", y, moved[:, 1, 0])
        slide = joints.slide[j, 0]
        back[:, 1, 1] += x * slide
        back[:, 1, 0] -= y * slide
    else:
        x = accelerated[:, 0]
        y = accelerated[:, 1]
        by_velocity += np.sum(x * velocity[:, 1] - y * velocity[:, 0], axis=0)
        back[0, :, 1] += x * rate
        back[0, :, 0] -= y * rate
        # The vectors that the joint turned, without the part of the acceleration that the joint's velocity added.
        turning = moved.copy()
        turning[1, :, 0] -= velocity[:, 1] * rate
        turning[1, :, 1] += velocity[:, 0] * rate
        x = back[:, :, 0]
        y = back[:, :, 1]
        by_position = np.einsum("klm,klm->m", x, turning[:, :, 1]) - np.einsum("klm,klm->m", y, turning[:, :, 0])
        back[:, :, :2] = np.einsum("bam,klbm->klam", joints.turn[j], back[:, :, :2])
    return by_position, by_velocity, by_acceleration
