"""Centre of mass, gravity torques and load of an arm at one position, for display."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.control.gravity_feedforward import CarriedLoad, LoadedGravity, LoadFrames, load_gravity_torque
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model import RobotModel
from dynid_ros.model.arm import arm_from_urdf
from dynid_ros.model.chain import joint_frames
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.link_tree import held_positions

PROBE_POSES = 200


@dataclass(frozen=True)
class GravityPicture:
    """Gravity of an arm at one position, in the base frame; units m, kg, N m (N).

    Attributes:
        mass: mass of all moving links and of the load.
        center: (3,) centre of that mass; None if the mass is zero.
        rotations: (n, 3, 3) axes of the joint frames in columns; the last column is the joint axis.
        origins: (n, 3) origins of the joint frames.
        torque: (n,) torques that hold the arm at rest.
        load: (3,) centre of the load; None without a load.
    """

    mass: float
    center: NDArray | None
    rotations: NDArray
    origins: NDArray
    torque: NDArray
    load: NDArray | None


class GravityView:
    """Gravity torques and masses of an arm from a model file, or from its URDF.

    A gravity identification does not estimate masses; they are then from the URDF.

    Args:
        torque: gravity torque of the arm.
        parameters: (10 n,) inertial parameters of the links.
        masses_identified: whether `parameters` are from a link identification.
        torque_identified: whether `torque` is from a model file.

    Attributes:
        full_scale: (n,) effort limits of the joints, N m (N), or the largest gravity torque for a joint without limit.
    """

    def __init__(
        self,
        robot: RobotModel,
        torque: LoadedGravity,
        parameters: NDArray,
        *,
        masses_identified: bool,
        torque_identified: bool,
    ) -> None:
        self.robot = robot
        self.masses_identified = masses_identified
        self.torque_identified = torque_identified
        self._torque = torque
        self._parameters = parameters
        self._frames = LoadFrames(robot)
        poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE_POSES, robot.n_joints))
        largest = np.abs(robot.gravity_torque(poses, parameters)).max(axis=0)
        limits = robot.limits.effort
        self.full_scale = np.where(np.isfinite(limits) & (limits > 0), limits, np.maximum(largest, 1e-9))

    @classmethod
    def from_settings(cls, settings: SimpleNamespace, urdf: str) -> GravityView:
        """Build the view from node parameters; without `model_file`, from the URDF.

        Args:
            settings: parameters `model_file`, `base_link`, `tip_link`, `gravity` and `held_joints`.
            urdf: text of the URDF.

        Raises:
            DynidError: model file or URDF cannot be used.
        """
        base = settings.base_link or None
        tip = settings.tip_link or None
        held = held_positions([settings.held_joints])
        if not settings.model_file:
            robot, _ = arm_from_urdf(urdf, tip, base, settings.gravity, held=held)
            model = GravityModel(robot)
            torque = LoadedGravity(model, model.project(robot.parameters))
            return cls(robot, torque, robot.parameters, masses_identified=False, torque_identified=False)
        path = Path(settings.model_file)
        robot, torque = load_gravity_torque(path, urdf, base, tip, settings.gravity, held=held)
        document = load_identified(path)
        identified = "links" in document
        parameters = link_model(document, robot).parameters if identified else robot.parameters
        return cls(robot, torque, parameters, masses_identified=identified, torque_identified=True)

    @property
    def load(self) -> CarriedLoad | None:
        """Load in force; None before one was published."""
        return self._torque.load

    def carry(self, load: CarriedLoad) -> None:
        """Change the load.

        Raises:
            ControlError: the frame of the load is not fixed to the arm's last link.
        """
        self._torque = self._torque.carrying(load)

    def at(self, position: ArrayLike) -> GravityPicture:
        """Return the gravity of the arm at one position (n,), rad (m)."""
        q = np.asarray(position, dtype=float)
        rotations, origins = (frames[..., 0] for frames in joint_frames(self.robot.chain, q[None]))
        carried = np.zeros_like(self._parameters) if self.load is None else self._frames.parameters(self.load)
        poses = self.robot.forward_kinematics(q[None])[0]
        mass, center = _center(poses, self._parameters + carried)
        _, load = _center(poses, carried)
        return GravityPicture(mass, center, rotations, origins, np.array(self._torque(q.tolist())), load)


def _center(poses: NDArray, parameters: NDArray) -> tuple[float, NDArray | None]:
    """Return mass and centre of the links at poses (n, 4, 4), in the base frame; None for the centre of no mass."""
    links = parameters.reshape(-1, PARAMETERS_PER_LINK)
    mass = float(links[:, 0].sum())
    if not mass > 0:
        return mass, None
    moment = np.einsum("nij,nj->i", poses[:, :3, :3], links[:, 1:4]) + links[:, 0] @ poses[:, :3, 3]
    return mass, moment / mass
