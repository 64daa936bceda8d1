"""Gradients of scalar functions of the torque regressor with respect to the motion.

The adjoint method carries the derivatives with respect to the regressor's entries back, link by link, to motion vectors
and from those to joint positions, velocities and accelerations. All gradients together cost some two evaluations of the
regressor, however many joints and samples there are.
"""

from __future__ import annotations

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.regressor import N_MOTION, JointMotion, RecordedLink, RegressorRows


class DifferentiableRegressor:
    """Regressor of chosen parameters, and gradients of functions of it.

    Args:
        chain: the arm.
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
