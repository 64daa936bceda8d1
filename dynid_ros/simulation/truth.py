"""True parameters of a simulated arm, read from MuJoCo, as the reference for identifications.

The regressors and projections of `dynid_ros.model` are not used here, so that the reference is independent of them.
"""

from collections.abc import Iterable, Iterator
from copy import copy

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.simulation.mujoco_model import LINK, derive_constants, put_load

PARAMETERS_PER_LINK = 10


class ArmTruth:
    """True inertial parameters of the n links of an arm, with everything fixed to them, and of its load.

    Torques and wrenches include the load at the time of the call; all other values are those of the arm only. Positions
    are those of the links. Joints are rigid here, so each rotor moves with its link.

    Args:
        arm: model of the arm without load.
        base: link in whose frame marker positions are expressed.
    """

    def __init__(self, arm: mujoco.MjModel, base: str) -> None:
        self._model = arm
        self._data = mujoco.MjData(arm)
        self._loaded = copy(arm)
        self._loaded_data = mujoco.MjData(self._loaded)
        self._links = list(arm.jnt_bodyid)
        self._base = arm.body(base).id
        self._load = arm.body(LINK).id

    def carry(self, load: np.ndarray | None) -> None:
        """Set the parameters (10,) of the load; None: no load."""
        put_load(self._loaded, load)
        derive_constants(self._loaded)

    @property
    def parameters(self) -> np.ndarray:
        """(10 n,) `[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]` per link about the link frame, without rotors."""
        self._pose(np.zeros(self._model.nq))
        fixed = [np.flatnonzero(self._model.body_weldid == link) for link in self._links]
        return np.concatenate(
            [_parameters(self._model, self._data, *pair) for pair in zip(fixed, self._links, strict=True)]
        )

    @property
    def load(self) -> np.ndarray:
        """(10,) inertial parameters of the load about the tip link's frame; zero without load."""
        mujoco.mj_kinematics(self._loaded, self._loaded_data)
        return _parameters(self._loaded, self._loaded_data, [self._load], self._load)

    @property
    def carried_masses(self) -> np.ndarray:
        """(n,) mass of all links that each joint carries, kg: the gravity parameter of a prismatic joint."""
        return self._model.body_subtreemass[self._links].copy()

    def gravity_torque(self, position: ArrayLike) -> np.ndarray:
        """Return the torque (N, n), N m, that holds the arm at rest at positions (N, n), without friction."""
        position = np.atleast_2d(np.asarray(position, dtype=float))
        return self.drive_torque(position, np.zeros_like(position), np.zeros_like(position))

    def drive_torque(self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> np.ndarray:
        """Return the torque (N, n), N m, without friction, of a motion with position and its derivatives (N, n)."""
        torques = []
        for data, acceleration_now in self._motion(position, velocity, acceleration):
            torque = np.empty(self._loaded.nv)
            mujoco.mj_mulM(self._loaded, data, torque, acceleration_now)
            torques.append(torque + data.qfrc_bias)
        return np.array(torques)

    def wrench(self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> np.ndarray:
        """Return force (N) and torque (N m), (N, 6), of the load on the tip link, in the tip link's frame."""
        wrenches = []
        for data, acceleration_now in self._motion(position, velocity, acceleration):
            data.qacc[:] = acceleration_now
            mujoco.mj_rnePostConstraint(self._loaded, data)
            # Wrench on the load by its parent, in the axes of the world, about the centre of mass of the arm.
            torque, force = data.cfrc_int[self._load].reshape(2, 3)
            center = data.subtree_com[self._loaded.body_rootid[self._load]]
            torque = torque + np.cross(center - data.xpos[self._load], force)
            wrenches.append(-np.stack([force, torque]) @ data.xmat[self._load].reshape(3, 3))
        return np.array(wrenches).reshape(-1, 6)

    def gravity_moments(self) -> np.ndarray:
        """Return the minimal gravity moments (n, 3), kg m, in the link frames, perpendicular to the joint axes.

        The gravity torque of joint i depends on the first moment of all links that it carries. The minimal moment is
        the mean of this moment over all angles of the joints beyond i: r_i of the recursion of Ma and Hollerbach
        (1996). The remaining part turns with a joint beyond, and is a gravity moment of that joint. The mean of all
        rotations about an axis a is the projection a aᵀ, so the means follow link by link from the tip to the base. If
        the joint axis is z of the link frame, the first two columns are n_x and n_y. Prismatic joints have NaN.
        """
        model = self._model
        moments = np.zeros((model.nbody, 3))
        for body in range(model.nbody - 1, 0, -1):
            moments[body] += model.body_mass[body] * model.body_ipos[body]
            mass = model.body_subtreemass[body]
            mean = moments[body]
            if model.body_jntnum[body] and model.jnt_type[model.body_jntadr[body]] == mujoco.mjtJoint.mjJNT_HINGE:
                axis = model.jnt_axis[model.body_jntadr[body]]
                anchor = mass * model.jnt_pos[model.body_jntadr[body]]
                mean = anchor + axis * (axis @ (mean - anchor))
            rotation = np.empty(9)
            mujoco.mju_quat2Mat(rotation, model.body_quat[body])
            moments[model.body_parentid[body]] += rotation.reshape(3, 3) @ mean + mass * model.body_pos[body]
        axes = model.jnt_axis
        joint_moments = moments[self._links]
        joint_moments -= np.sum(joint_moments * axes, axis=1, keepdims=True) * axes
        joint_moments[model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE] = np.nan
        return joint_moments

    def marker_positions(self, position: ArrayLike, markers: MarkerSet) -> np.ndarray:
        """Return marker positions (N, P, 3), m, in the base's frame for positions (N, n) of the links."""
        bodies = np.array([*self._links, self._base])[markers.links]
        places = []
        for pose in np.atleast_2d(np.asarray(position, dtype=float)):
            self._pose(pose)
            turned = self._data.xmat[bodies].reshape(-1, 3, 3) @ markers.places[:, :, np.newaxis]
            place = self._data.xpos[bodies] + turned[:, :, 0] - self._data.xpos[self._base]
            places.append(place @ self._rotation(self._base))
        return np.array(places)

    def _motion(self, *motion: ArrayLike) -> Iterator[tuple[mujoco.MjData, np.ndarray]]:
        """Yield MuJoCo's data and the acceleration at each sample of position, velocity and acceleration (N, n)."""
        data = self._loaded_data
        for position, velocity, acceleration in zip(*(np.asarray(part, dtype=float) for part in motion), strict=True):
            data.qpos[:] = position
            data.qvel[:] = velocity
            mujoco.mj_fwdPosition(self._loaded, data)
            mujoco.mj_fwdVelocity(self._loaded, data)
            yield data, acceleration

    def _pose(self, position: np.ndarray) -> None:
        self._data.qpos[:] = position
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)

    def _rotation(self, body: int) -> np.ndarray:
        return self._data.xmat[body].reshape(3, 3)


def _parameters(model: mujoco.MjModel, data: mujoco.MjData, bodies: Iterable[int], frame: int) -> np.ndarray:
    """Return the inertial parameters (10,) of `bodies` together about the frame of the body `frame`."""
    parameters = np.zeros(PARAMETERS_PER_LINK)
    rotation = data.xmat[frame].reshape(3, 3).T
    for body in bodies:
        mass = model.body_mass[body]
        center = rotation @ (data.xipos[body] - data.xpos[frame])
        axes = rotation @ data.ximat[body].reshape(3, 3)
        inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
        inertia += mass * (center @ center * np.eye(3) - np.outer(center, center))
        parameters += np.concatenate([[mass], mass * center, inertia[np.triu_indices(3)]])
    return parameters
