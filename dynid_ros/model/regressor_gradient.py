"""Gradients of scalar functions of the torque regressor with respect to the motion.

The adjoint method: what the function gains from each entry of the regressor is carried back, link by link, to motion
vectors and from those to joint positions, velocities and accelerations. All gradients together cost some two
evaluations of the regressor, however many joints and samples there are.
"""

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.regressor import JointMotion, RegressorRows, Taped


class DifferentiableRegressor:
    """Regressor of chosen parameters, and gradients of functions of it.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        columns: (p,) which of the 10 n parameters, ascending; None: all.

    """

    def __init__(self, chain: Chain, gravity: np.ndarray, columns: np.ndarray | None = None):
        self._rows = RegressorRows(chain, gravity, columns)
        self._tape: list[Taped] = []

    def matrix(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Regressor (n, p, N) of a motion of (N, n) each, remembered for `gradient`."""
        n_samples, n = q.shape
        matrix = np.zeros((n, int(self._rows.starts[-1]), n_samples))
        self._motion = q, qd, qdd
        self._tape = []
        self._rows.fill(matrix, q, qd, qdd, self._tape)
        return matrix

    def gradient(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gradients (N, n) of sum(weights * matrix) by q, qd and qdd, of the last matrix; weights (n, p, N)."""
        chain = self._rows.chain
        joints = JointMotion(chain.prismatic, *self._motion)
        n_samples, n = self._motion[0].shape
        by_motion = np.empty((3, n, n_samples))
        # By the motion vectors in the frame of a link, of all that comes after it.
        carried = np.zeros((n + 2, 6, n_samples))
        for j in reversed(range(n)):
            k = j + 2
            vectors, features = self._tape[j]
            by_features = np.zeros_like(features)
            column = self._rows.starts[j]
            for part in self._rows.wrenches[j]:
                n_columns, n_rows, n_features = part.shape
                if not n_columns:
                    continue
                own = weights[: j + 1, column : column + n_columns]
                twists = np.einsum("icm,irm->crm", own, vectors[2:, -n_rows:])
                by_features += part.reshape(-1, n_features).T @ twists.reshape(-1, n_samples)
                if j:
                    carried[2:k, -n_rows:] += np.einsum("icm,crm->irm", own[:j], part @ features)
                column += n_columns
            _add_features(carried[:2], by_features, vectors[0])
            by_motion[:, j] = _through(joints, j, carried[:k], vectors[:k])
            carried = self._rows.to_joint[j].T @ carried[:k]
        return by_motion[0].T, by_motion[1].T, by_motion[2].T


def _add_features(carried: np.ndarray, by_features: np.ndarray, velocity: np.ndarray) -> None:
    """Add to `carried` (2, 6, N), by velocity and acceleration, what comes by way of features (12, N)."""
    by_velocity, by_acceleration = carried
    by_acceleration += by_features[:6]
    force, squares, products = by_features[:3], by_features[6:9], by_features[9:]
    v, w = velocity[[0, 1, 2, 0, 1]], velocity[[3, 4, 5, 3, 4]]
    f = force[[0, 1, 2, 0, 1]]
    # Of force . (w x v).
    by_velocity[:3] += f[1:4] * w[2:] - f[2:] * w[1:4]
    by_velocity[3:] += v[1:4] * f[2:] - v[2:] * f[1:4]
    # Of the squares of w, and of its products xy, yz, zx.
    by_velocity[3:] += 2.0 * squares * w[:3] + products * w[1:4] + products[[2, 0, 1]] * w[2:]


def _through(
    joints: JointMotion, j: int, carried: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take `carried` (k, 6, N) back through joint j, in place; gradients (N,) by its position and its derivatives."""
    shape = (len(carried), 2, 3, carried.shape[-1])
    back, moved = carried.reshape(shape), vectors.reshape(shape)
    slides = joints.prismatic[j]
    part = 0 if slides else 1
    by_velocity, by_acceleration = back[0, part, 2].copy(), back[1, part, 2].copy()
    rate = joints.slip[j, 0]
    velocity, accelerated = moved[0], back[1]
    turning = moved
    if slides:
        x, y = accelerated[0, :2]
        by_velocity += x * velocity[1, 1] - y * velocity[1, 0]
        back[0, 1, 1] += x * rate
        back[0, 1, 0] -= y * rate
        x, y = back[:, 0, 0], back[:, 0, 1]
        by_position = np.einsum("km,km->m", x, moved[:, 1, 1]) - np.einsum("km,km->m", y, moved[:, 1, 0])
        slide = joints.slide[j, 0]
        back[:, 1, 1] += x * slide
        back[:, 1, 0] -= y * slide
    else:
        x, y = accelerated[:, 0], accelerated[:, 1]
        by_velocity += np.sum(x * velocity[:, 1] - y * velocity[:, 0], axis=0)
        back[0, :, 1] += x * rate
        back[0, :, 0] -= y * rate
        # What turned, without what the joint's own velocity added to the acceleration.
        turning = moved.copy()
        turning[1, :, 0] -= velocity[:, 1] * rate
        turning[1, :, 1] += velocity[:, 0] * rate
        x, y = back[:, :, 0], back[:, :, 1]
        by_position = np.einsum("klm,klm->m", x, turning[:, :, 1]) - np.einsum("klm,klm->m", y, turning[:, :, 0])
        back[:, :, :2] = np.einsum("bam,klbm->klam", joints.turn[j], back[:, :, :2])
    return by_position, by_velocity, by_acceleration
