"""The wrench that moves a body at the tip, as a linear function of the body's ten parameters.

A load on a wrist force sensor is the last link of a chain. Of its wrench all six components are measured, not only one
(Atkeson, An and Hollerbach 1986, eqs 4, 7 and 8).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid_ros.model.arrays import blocks
from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.regressor import N_FEATURES, WRENCH_TENSOR, JointMotion, motion_matrices, set_features

WRENCH_BY_AXIS = WRENCH_TENSOR.transpose(1, 0, 2).reshape(-1, N_FEATURES)


class TipMotion(NamedTuple):
    """Motion vectors (6, N) in the frame of the tip link, linear part first.

    Attributes:
        velocity: twist of the tip.
        acceleration: derivative of the twist in the tip's axes, without gravity.
        weight: upward acceleration that has the effect of gravity.
    """

    velocity: np.ndarray
    acceleration: np.ndarray
    weight: np.ndarray


def wrench_regressor(chain: Chain, gravity: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Return the matrix (N, 6, 10) from the parameters of a body at the tip to the wrench of a motion, each (N, n).

    The tip exerts the wrench on the body: force, and moment about the origin of the tip link's frame, in that frame.
    The parameters are about the same frame. Without gravity the wrench is zero at rest.
    """
    entries = np.empty((len(WRENCH_BY_AXIS), len(motion[0])))
    for block in blocks(len(motion[0])):
        moved = tip_motion(chain, gravity, *(array[block] for array in motion))
        entries[:, block] = WRENCH_BY_AXIS @ wrench_features(moved.velocity, moved.acceleration + moved.weight)
    return _matrices(entries)


def wrench_features(velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """Return the features (12, N), in which the wrench is linear, from the tip's motion vectors (6, N)."""
    features = np.empty((N_FEATURES, velocity.shape[1]))
    set_features(features, velocity, acceleration)
    return features


def regressor_of_features(features: np.ndarray) -> np.ndarray:
    """Return the wrench regressor (N, 6, 10) of features (12, N), or of sums of features."""
    return _matrices(WRENCH_BY_AXIS @ features)


def tip_motion(chain: Chain, gravity: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> TipMotion:
    """Return the motion of the tip link at q, qd and qdd, each (N, n)."""
    joints = JointMotion(chain, q, qd, qdd)
    moved = np.zeros((3, 6, len(q)))
    moved[2, :3] = -gravity[:, None]
    matrices = motion_matrices(chain.transforms)
    for j in chain.path(chain.tip_link):
        after = np.empty_like(moved)
        joints.through(j, matrices[j] @ moved, after)
        moved = after
    (matrix,) = motion_matrices((chain.link_offsets[chain.tip_link] @ chain.tip_offset)[None])
    return TipMotion(*(matrix @ moved))


def _matrices(entries: np.ndarray) -> np.ndarray:
    """Return matrices (N, 6, 10) from entries (60, N), axis by axis."""
    return entries.reshape(6, PARAMETERS_PER_LINK, -1).transpose(2, 0, 1)
