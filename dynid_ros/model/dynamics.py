"""Torques and tip wrenches of many samples; torques by the generated code of `model.recursion`, called with arrays.

One function per chain takes the parameters and gravity as arguments, so that it serves every set of parameters of the
arm. Writing and compiling it takes some 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid_ros.model.arrays import blocks
from dynid_ros.model.chain import Chain
from dynid_ros.model.generated_code import (
    FUNCTIONS_OF_ARRAYS,
    FUNCTIONS_OF_FLOATS,
    ZERO,
    Lines,
    Term,
    compiled,
    function_text,
    variable,
)
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.recursion import (
    gravity_lines,
    inverse_dynamics_lines,
    link_moments,
    lumped_bodies,
)
from dynid_ros.model.regressor import N_FEATURES, WRENCH_TENSOR, JointMotion, motion_matrices, set_features

MAX_CACHED_CHAINS = 32


def inverse_dynamics(chain: Chain, gravity: NDArray, parameters: NDArray, motion: Sequence[NDArray]) -> NDArray:
    """Return the torques and forces (N, n) of a motion.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s².
        parameters: (10 m,) about the link frames.
        motion: positions, velocities and accelerations, each (N, n).
    """
    function, lumping = inverse_dynamics_function(chain, _acting_axes(gravity))
    return _evaluate(chain, function, motion, (gravity.tolist(), (lumping @ parameters).tolist()))


def gravity_torque(chain: Chain, gravity: NDArray, parameters: NDArray, q: NDArray) -> NDArray:
    """Return the torques and forces (N, n) that hold an arm at rest in poses q (N, n); see `inverse_dynamics`."""
    function, moments = _gravity_function(chain, _acting_axes(gravity))
    return _evaluate(chain, function, [q], (gravity.tolist(), *(moments @ parameters).T.tolist()))


def _acting_axes(gravity: NDArray) -> tuple[bool, ...]:
    """Return along which axes of the base frame gravity acts: terms of the others are left out of the code."""
    return tuple((gravity != 0.0).tolist())


def _gravity_terms(acts: Sequence[bool]) -> list[Term]:
    return [variable(f"g{k}") if acting else ZERO for k, acting in enumerate(acts)]


@lru_cache(maxsize=MAX_CACHED_CHAINS)
def inverse_dynamics_function(
    chain: Chain, acts: tuple[bool, ...], *, one_sample: bool = False
) -> tuple[Callable[..., tuple], NDArray]:
    """Return a function to the torques (n,), and the matrix (k, 10 m) from the parameters to the k that it takes.

    The arguments of the function are positions, velocities and accelerations (n,), gravity (3,) and the k parameters.

    Args:
        chain: the arm.
        acts: whether gravity acts along each axis of the base frame.
        one_sample: whether the function takes floats; otherwise it takes arrays.
    """
    every = np.eye(PARAMETERS_PER_LINK * chain.n_links).reshape(-1, chain.n_links, PARAMETERS_PER_LINK)
    lumping = lumped_bodies(chain, every).reshape(len(every), -1).T
    remains = lumping.any(axis=1)
    names = iter(f"b{k}" for k in range(np.count_nonzero(remains)))
    terms = [variable(next(names)) if remaining else ZERO for remaining in remains.tolist()]
    bodies = [terms[k : k + PARAMETERS_PER_LINK] for k in range(0, len(terms), PARAMETERS_PER_LINK)]
    lines = Lines()
    torques = inverse_dynamics_lines(lines, chain, _gravity_terms(acts), bodies)
    arguments = {"q": "q", "v": "qd", "a": "qdd", "g": "gravity", "b": "bodies"}
    sizes = {"g": 3, "b": int(remains.sum())}
    source = function_text(
        "torque", arguments, lines, torques, chain.n_joints, given="", sizes=sizes, frees=not one_sample
    )
    functions = FUNCTIONS_OF_FLOATS if one_sample else FUNCTIONS_OF_ARRAYS
    return compiled(source, "torque", tuple, functions), lumping[remains]


@lru_cache(maxsize=MAX_CACHED_CHAINS)
def _gravity_function(chain: Chain, acts: tuple[bool, ...]) -> tuple[Callable[..., tuple], NDArray]:
    """Return the function and the matrix (m, 2, 10 m) from the parameters to the moments that it takes."""
    lines = Lines()
    moments = [[variable(f"x{link}"), variable(f"y{link}")] for link in range(chain.n_links)]
    torques = gravity_lines(lines, chain, _gravity_terms(acts), moments)
    sizes = {"g": 3, "x": chain.n_links, "y": chain.n_links}
    arguments = {"q": "q", "g": "gravity", "x": "x", "y": "y"}
    source = function_text("torque", arguments, lines, torques, chain.n_joints, given="", sizes=sizes, frees=True)
    return compiled(source, "torque", tuple, FUNCTIONS_OF_ARRAYS), link_moments(chain)


def _evaluate(
    chain: Chain, function: Callable[..., tuple], motion: Sequence[NDArray], constants: Sequence[list[float]]
) -> NDArray:
    """Return the torques (N, n), computed a block of samples at a time.

    A sample that is not finite gives NaN for all joints that share a link with the joint concerned.
    """
    torques = np.empty_like(motion[0])
    coupled = chain.moved.astype(int) @ chain.moved.T > 0
    for block in blocks(len(torques)):
        samples = [array[block] for array in motion]
        values = function(*(np.ascontiguousarray(array.T) for array in samples), *constants)
        for joint, torque in enumerate(values):
            torques[block, joint] = torque
        finite = np.logical_and.reduce([np.isfinite(array) for array in samples])
        if not finite.all():
            torques[block][~finite @ coupled] = np.nan
    return torques


# The wrench that moves a body at the tip is linear in the body's ten parameters. A load on a wrist force sensor is the
# last link of a chain. Of its wrench all six components are measured, not only one (Atkeson, An and Hollerbach 1986,
# eqs 4, 7 and 8).


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
