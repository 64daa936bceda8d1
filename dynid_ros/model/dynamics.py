"""Inverse dynamics by the recursive Newton-Euler method, for many samples at once."""

from collections.abc import Sequence

import numpy as np

from dynid_ros.model.arrays import blocks, cross
from dynid_ros.model.chain import Chain
from dynid_ros.model.inertia import inertia_matrix, transformed


def inverse_dynamics(
    chain: Chain, gravity: np.ndarray, parameters: np.ndarray, motion: Sequence[np.ndarray]
) -> np.ndarray:
    """Torques and forces (N, n) of a motion.

    Args:
        chain: the arm.
        gravity: (3,) in the base frame, m/s^2.
        parameters: (m, 10) about the link frames.
        motion: positions, velocities and accelerations, each (N, n).
    """
    bodies = np.array([transformed(*pair) for pair in zip(parameters, chain.link_offsets, strict=True)])
    torques = np.empty_like(motion[0])
    for block in blocks(len(torques)):
        torques[block] = _newton_euler(chain, gravity, bodies, [array[block] for array in motion]).T
    return torques


def _newton_euler(chain: Chain, gravity: np.ndarray, bodies: np.ndarray, motion: Sequence[np.ndarray]) -> np.ndarray:
    """Torques (n, N) of bodies (m, 10) about their joint frames, where all vectors (3, N) are; the motion is (N, n)."""
    q, qd, qdd = (array.T for array in chain.of_links(*motion))
    steps = [_Step(chain, i, position) for i, position in enumerate(q)]
    # Gravity enters as an acceleration of the base upwards.
    up = np.repeat(-gravity[:, None], q.shape[1], axis=1)
    moved = [(*np.zeros((2, 3, q.shape[1])), up)] * (chain.n_links + 1)  # the last is the base, of index -1
    forces, moments = [], []
    for i, (step, parent) in enumerate(zip(steps, chain.parents, strict=True)):
        omega, alpha, acceleration = moved[parent]
        acceleration = step.inward(acceleration + cross(alpha, step.arm) + cross(omega, cross(omega, step.arm)))
        omega, alpha = step.inward(omega), step.inward(alpha)
        along_z = np.zeros_like(omega)
        along_z[2] = qd[i]
        if chain.slides[i]:
            acceleration += 2.0 * cross(omega, along_z)
            acceleration[2] += qdd[i]
        else:
            alpha += cross(omega, along_z)
            alpha[2] += qdd[i]
            omega += along_z
        moved[i] = omega, alpha, acceleration
        mass, moment, inertia = bodies[i, 0], bodies[i, 1:4, None], inertia_matrix(bodies[i])
        forces.append(mass * acceleration + cross(alpha, moment) + cross(omega, cross(omega, moment)))
        moments.append(cross(moment, acceleration) + inertia @ alpha + cross(omega, inertia @ omega))
    torques = np.empty_like(q)
    for i in reversed(range(len(q))):
        torques[i] = forces[i][2] if chain.slides[i] else moments[i][2]
        if (parent := chain.parents[i]) >= 0:
            force, moment = steps[i].outward(forces[i]), steps[i].outward(moments[i])
            forces[parent] += force
            moments[parent] += moment + cross(steps[i].arm, force)
    return chain.of_joints(torques)


class _Step:
    """The step from one joint frame to the next, at positions (N,)."""

    def __init__(self, chain: Chain, i: int, position: np.ndarray):
        transform = chain.transforms[i]
        self.rotation = transform[:3, :3]
        slide = position if chain.slides[i] else np.zeros_like(position)
        angle = position - slide
        self.arm = transform[:3, 3:] + self.rotation[:, 2:] * slide
        self.cos, self.sin = np.cos(angle), np.sin(angle)

    def inward(self, vector: np.ndarray) -> np.ndarray:
        """Vector in the next frame, given in the one before."""
        x, y, z = self.rotation.T @ vector
        return np.stack([self.cos * x + self.sin * y, self.cos * y - self.sin * x, z])

    def outward(self, vector: np.ndarray) -> np.ndarray:
        """Vector in the frame before, given in the next."""
        x, y, z = vector
        return self.rotation @ np.stack([self.cos * x - self.sin * y, self.sin * x + self.cos * y, z])
