"""Regressors: torques as linear functions of the ten parameters of each link.

The torque of joint i is the power of the wrench on each link j >= i on the twist that a unit velocity of joint i gives
that link. Both are taken in the frame of link j, where its parameters are constant: the wrench is a 6x10 matrix times
the parameters (Atkeson, An and Hollerbach 1986, eq. 8).

Twists, velocities and accelerations are all motion vectors (Featherstone, Rigid Body Dynamics Algorithms, 2008), here
with the linear part first: one constant 6x6 matrix takes them all to the next frame. Several are held as (2, 3, k, N).
"""

from collections.abc import Sequence

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, skew
from dynid_ros.model.samples import BLOCK, blocks


def gravity_regressor(chain: Chain, gravity: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Matrix (N, n, 10 n) from the parameters about the link frames to the torques at rest in poses q (N, n)."""
    return torque_regressor(chain, gravity, (q, np.zeros_like(q), np.zeros_like(q)))


def torque_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix (N, n, 10 n) from the parameters about the link frames to the torques of q, qd and qdd, each (N, n)."""
    q, qd, qdd = motion
    n_samples, n = q.shape
    matrix = np.zeros((n_samples, n, PARAMETERS_PER_LINK * n))
    to_joint = [_motion_matrix(transform) for transform in chain.transforms]
    to_link = [_motion_matrix(offset) for offset in chain.link_offsets]
    # Filled anew by every block: a large array costs more to allocate than to fill.
    wrenches = np.zeros((n, min(BLOCK, n_samples), 6, PARAMETERS_PER_LINK))
    for block in blocks(n_samples):
        size = len(q[block])
        motions = np.empty((2, 3, 2, n, size))
        twists = []
        # Velocity, acceleration and the twists of the joints so far, in joint frame j.
        vectors = np.zeros((2, 3, 2, size))
        # Gravity enters as an acceleration of the base upwards.
        vectors[0, :, 1] = -gravity[:, None]
        for j in range(n):
            vectors = _through_joint(_transformed(to_joint[j], vectors), chain.prismatic[j], q[block, j])
            _add_joint(vectors, chain.prismatic[j], qd[block, j], qdd[block, j])
            of_link = _transformed(to_link[j], vectors)
            motions[:, :, :, j] = of_link[:, :, :2]
            twists.append(np.ascontiguousarray(of_link.reshape(6, j + 3, size)[:, 2:].transpose(2, 1, 0)))
        _fill_wrenches(wrenches[:, :size], motions[:, :, 0], motions[:, :, 1])
        for j in range(n):
            columns = slice(PARAMETERS_PER_LINK * j, PARAMETERS_PER_LINK * (j + 1))
            np.matmul(twists[j], wrenches[j, :size], out=matrix[block, : j + 1, columns])
    return matrix


def _motion_matrix(transform: np.ndarray) -> np.ndarray:
    """Matrix (6, 6) that takes motion vectors to a frame of pose `transform` (4, 4)."""
    rotation, position = transform[:3, :3], transform[:3, 3]
    return np.block([[rotation.T, -rotation.T @ skew(position)], [np.zeros((3, 3)), rotation.T]])


def _transformed(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrix @ vectors.reshape(6, -1)).reshape(vectors.shape)


def _through_joint(still: np.ndarray, prismatic: bool, q: np.ndarray) -> np.ndarray:
    """Motion vectors in the joint frame, given where it is at q = 0, with the twist of the joint as a last one."""
    moved = np.zeros((2, 3, still.shape[2] + 1, q.size))
    if prismatic:
        moved[:, :, :-1] = still
        moved[0, 0, :-1] += still[1, 1] * q
        moved[0, 1, :-1] -= still[1, 0] * q
    else:
        cos, sin = np.cos(q), np.sin(q)
        moved[:, 0, :-1] = cos * still[:, 0] + sin * still[:, 1]
        moved[:, 1, :-1] = cos * still[:, 1] - sin * still[:, 0]
        moved[:, 2, :-1] = still[:, 2]
    moved[0 if prismatic else 1, 2, -1] = 1.0
    return moved


def _add_joint(vectors: np.ndarray, prismatic: bool, qd: np.ndarray, qdd: np.ndarray) -> None:
    """Add to velocity and acceleration what the joint itself contributes, with the product of the two velocities."""
    velocity, acceleration = vectors[:, :, 0], vectors[:, :, 1]
    if prismatic:
        acceleration[0, 0] += velocity[1, 1] * qd
        acceleration[0, 1] -= velocity[1, 0] * qd
    else:
        acceleration[:, 0] += velocity[:, 1] * qd
        acceleration[:, 1] -= velocity[:, 0] * qd
    part = 0 if prismatic else 1
    velocity[part, 2] += qd
    acceleration[part, 2] += qdd


def _fill_wrenches(wrenches: np.ndarray, velocities: np.ndarray, accelerations: np.ndarray) -> None:
    """Matrices (n, N, 6, 10) from parameters to force and moment about the link origin, of motions (2, 3, n, N)."""
    (vx, vy, vz), (wx, wy, wz) = velocities
    (ax, ay, az), (bx, by, bz) = accelerations
    # The acceleration of the point at the origin, which the spatial one is not.
    ax, ay, az = ax + wy * vz - wz * vy, ay + wz * vx - wx * vz, az + wx * vy - wy * vx
    xx, yy, zz, xy, xz, yz = wx * wx, wy * wy, wz * wz, wx * wy, wx * wz, wy * wz
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
    for column, entries in enumerate(columns):
        for row, entry in entries.items():
            wrenches[:, :, row, column] = entry
