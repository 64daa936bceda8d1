"""What an identification should find, read from MuJoCo.

Nothing here uses the regressors or projections of `dynid_ros.model`, so that the two can be held against each other.
"""

from itertools import product

import mujoco
import numpy as np
from numpy.typing import ArrayLike

PARAMETERS_PER_LINK = 10


class ArmTruth:
    """Inertial truth of the n links that joints of a MuJoCo model move; what is fixed to a link belongs to it."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._links = list(model.jnt_bodyid)

    @property
    def parameters(self) -> np.ndarray:
        """(10 n,) `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]` per link about the link frame, without rotors."""
        self._pose(np.zeros(self._model.nq))
        return np.concatenate([self._link_parameters(link) for link in self._links])

    @property
    def carried_masses(self) -> np.ndarray:
        """(n,) mass of all that each joint carries, kg: the gravity parameter of a prismatic joint."""
        return self._model.body_subtreemass[self._links].copy()

    def gravity_torque(self, position: ArrayLike) -> np.ndarray:
        """Torque (N, n) in N m that holds the arm at rest at positions (N, n), without friction."""
        position = np.atleast_2d(np.asarray(position, dtype=float))
        return self.drive_torque(position, np.zeros_like(position), np.zeros_like(position))

    def drive_torque(self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> np.ndarray:
        """Torque (N, n) in N m that links and rotors take for a motion, (N, n) each, without friction."""
        torques = []
        for q, qd, qdd in zip(position, velocity, acceleration, strict=True):  # type: ignore[arg-type]
            self._data.qpos[:], self._data.qvel[:] = q, qd
            mujoco.mj_fwdPosition(self._model, self._data)
            mujoco.mj_fwdVelocity(self._model, self._data)
            torque = np.empty(self._model.nv)
            mujoco.mj_mulM(self._model, self._data, torque, np.array(qdd, dtype=float))
            torques.append(torque + self._data.qfrc_bias)
        return np.array(torques)

    def gravity_moments(self) -> np.ndarray:
        """Minimal gravity moments (n, 3), kg m, in the link frames, square to the joint axes; NaN for prismatic joints.

        Joint i feels the first moment of all it carries, taken about its axis. Averaged over the joints beyond it at 0
        and pi, this moment keeps only what does not turn with them: r_i of the recursion of Ma and Hollerbach (1996).
        What the mean leaves out turns with a joint beyond and belongs to that joint. With the axis along z of the link
        frame the first two columns are n_x and n_y.
        """
        n = self._model.njnt
        prismatic = self._model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        poses = [np.where(prismatic, 0.0, pose) for pose in product((0.0, np.pi), repeat=n)]
        moments = np.zeros((n, 3))
        for pose in poses:
            self._pose(pose)
            for i, link in enumerate(self._links):
                arm = self._data.subtree_com[link] - self._data.xpos[link]
                moments[i] += self._rotation(link).T @ arm * self._model.body_subtreemass[link] / len(poses)
        axes = self._model.jnt_axis
        moments -= np.sum(moments * axes, axis=1, keepdims=True) * axes
        moments[prismatic] = np.nan
        return moments

    def _pose(self, position: np.ndarray) -> None:
        self._data.qpos[:] = position
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)

    def _rotation(self, body: int) -> np.ndarray:
        return self._data.xmat[body].reshape(3, 3)

    def _link_parameters(self, link: int) -> np.ndarray:
        parameters = np.zeros(PARAMETERS_PER_LINK)
        rotation = self._rotation(link).T
        for body in np.flatnonzero(self._model.body_weldid == link):
            mass = self._model.body_mass[body]
            center = rotation @ (self._data.xipos[body] - self._data.xpos[link])
            axes = rotation @ self._data.ximat[body].reshape(3, 3)
            inertia = axes @ np.diag(self._model.body_inertia[body]) @ axes.T
            inertia += mass * (center @ center * np.eye(3) - np.outer(center, center))
            parameters += np.concatenate([[mass], mass * center, inertia[np.triu_indices(3)]])
        return parameters
