"""The wrench that moves a body at the tip, as a linear function of the body's ten parameters.

A load on a wrist force sensor is the last link of a chain, of which all six components are measured, not one (Atkeson,
An and Hollerbach 1986, eqs. 4, 7 and 8).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.regressor import N_FEATURES, WRENCH, JointMotion, motion_matrices, set_features
from dynid_ros.model.samples import blocks

_BY_AXIS = WRENCH.transpose(1, 0, 2).reshape(-1, N_FEATURES)


class TipMotion(NamedTuple):
    """Motion vectors (6, N) in the frame of the tip link, linear part first.

    Attributes:
        velocity: twist of the tip.
        acceleration: its derivative by time in the tip's own axes, without gravity.
        weight: acceleration upwards that stands for gravity.

    """

    velocity: np.ndarray
    acceleration: np.ndarray
    weight: np.ndarray


def wrench_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix (N, 6, 10) from the parameters of a body at the tip to the wrench that q, qd and qdd, each (N, n), take.

    The tip exerts it on the body: force, and moment about the origin of the frame of the tip link, in that frame, about
    which the parameters are too. Without gravity it is zero at rest.
    """
    entries = np.empty((len(_BY_AXIS), len(motion[0])))
    for block in blocks(len(motion[0])):
        moved = tip_motion(chain, gravity, *(array[block] for array in motion))
        entries[:, block] = _BY_AXIS @ wrench_features(moved.velocity, moved.acceleration + moved.weight)
    return _matrices(entries)


def wrench_features(velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """What the wrench is linear in, (12, N), of the tip's motion vectors (6, N)."""
    features = np.empty((N_FEATURES, velocity.shape[1]))
    set_features(features, velocity, acceleration)
    return features


def of_features(features: np.ndarray) -> np.ndarray:
    """Wrench regressor (N, 6, 10) of features (12, N), or of sums of them."""
    return _matrices(_BY_AXIS @ features)


def tip_motion(chain: Chain, gravity: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> TipMotion:
    """Motion of the tip link at q, qd and qdd, each (N, n)."""
    n_samples, n = q.shape
    joints = JointMotion(chain.prismatic, q, qd, qdd)
    moved = np.zeros((3, 6, n_samples))
    moved[2, :3] = -gravity[:, None]
    after = np.empty_like(moved)
    for j, matrix in enumerate(motion_matrices(chain.transforms)):
        joints.through(j, matrix @ moved, after)
        moved, after = after, moved
    (matrix,) = motion_matrices((chain.link_offsets[n - 1] @ chain.tip_offset)[None])
    return TipMotion(*(matrix @ moved))


def _matrices(entries: np.ndarray) -> np.ndarray:
    """(N, 6, 10) of entries (60, N), axis by axis."""
    return entries.reshape(6, PARAMETERS_PER_LINK, -1).transpose(2, 0, 1)
