"""What gravity does to an arm at one position, to be shown: centre of mass, torque of each joint, load."""

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
from dynid_ros.model.chain import joint_frames
from dynid_ros.model.flange import arm_from_urdf
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK
from dynid_ros.model.link_tree import held_positions

PROBE_POSES = 200


@dataclass(frozen=True)
class GravityPicture:
    """In the base frame, m, kg, N m (N).

    Attributes:
        mass: of all that the joints move, the load with it.
        center: (3,) its centre; None: it has no mass.
        rotations: (n, 3, 3) of the joint frames; the columns are their axes, the last is the joint's.
        origins: (n, 3) of the joint frames.
        torque: (n,) that holds the arm at rest.
        load: (3,) centre of the load; None: there is none.
    """

    mass: float
    center: NDArray | None
    rotations: NDArray
    origins: NDArray
    torque: NDArray
    load: NDArray | None


class GravityView:
    """The arm of a model file, or of its URDF alone.

    Masses are those of the file's links; a gravity identification does not give them, then they are the URDF's.

    Args:
        robot: the arm.
        torque: its gravity torque.
        parameters: (10 n,) of its links.
        masses_identified: whether `parameters` are those of a link identification.
        torque_identified: whether `torque` is of a model file.

    Attributes:
        robot, masses_identified, torque_identified: as given.
        full_scale: (n,) the joints' effort limits, N m (N); where there is none, the largest gravity torque.
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
        self.masses_identified, self.torque_identified = masses_identified, torque_identified
        self._torque, self._parameters, self._frames = torque, parameters, LoadFrames(robot)
        poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE_POSES, robot.n_joints))
        largest = np.abs(robot.gravity_torque(poses, parameters)).max(axis=0)
        limits = robot.limits.effort
        self.full_scale = np.where(np.isfinite(limits) & (limits > 0), limits, np.maximum(largest, 1e-9))

    @classmethod
    def of(cls, settings: SimpleNamespace, urdf: str) -> GravityView:
        """The arm that `model_file`, `base_link`, `tip_link` and `gravity` of a node name; no model_file: the URDF's.

        Raises:
            DynidError: as `load_gravity_torque` and `RobotModel.from_urdf` do.
        """
        base, tip = settings.base_link or None, settings.tip_link or None
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
        """The load in force; None: none was published."""
        return self._torque.load

    def carry(self, load: CarriedLoad) -> None:
        """Show the arm with another load.

        Raises:
            ControlError: its frame is not fixed to the arm's last link.
        """
        self._torque = self._torque.carrying(load)

    def at(self, position: ArrayLike) -> GravityPicture:
        """The picture at one position (n,)."""
        q = np.asarray(position, dtype=float)
        rotations, origins = (frames[..., 0] for frames in joint_frames(self.robot.chain, q[None]))
        carried = np.zeros_like(self._parameters) if self.load is None else self._frames.parameters(self.load)
        poses = self.robot.forward_kinematics(q[None])[0]
        mass, center = _center(poses, self._parameters + carried)
        _, load = _center(poses, carried)
        return GravityPicture(mass, center, rotations, origins, np.array(self._torque(q.tolist())), load)


def _center(poses: NDArray, parameters: NDArray) -> tuple[float, NDArray | None]:
    """Mass and centre of links (n, 4, 4) in the base frame."""
    links = parameters.reshape(-1, PARAMETERS_PER_LINK)
    mass = float(links[:, 0].sum())
    if not mass > 0:
        return mass, None
    moment = np.einsum("nij,nj->i", poses[:, :3, :3], links[:, 1:4]) + links[:, 0] @ poses[:, :3, 3]
    return mass, moment / mass
