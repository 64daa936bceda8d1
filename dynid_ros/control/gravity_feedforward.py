"""From `identified.yaml` and a URDF to the gravity torque of one sample."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.control.joint_springs import JointSprings
from dynid_ros.errors import ControlError, IdentifiedFileError
from dynid_ros.identified.gravity import gravity_moments
from dynid_ros.identified.identified_file import check_same_robot, is_number, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import GravityModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import parse_urdf

# A load that an arm carries, as far as gravity feels it.


LONGEST_LEVER = 2.0  # m; a centre of mass further away is one in millimetres


@dataclass(frozen=True)
class CarriedLoad:
    """Mass and place of a rigid body that is fixed to the arm's last link.

    Attributes:
        mass: kg; 0: none.
        center: centre of mass in the frame, m.
        frame: a link that no joint moves against the last one, such as the tip link.

    Raises:
        ControlError: no load has these numbers; the message is an end of a sentence about the load.

    """

    mass: float
    center: tuple[float, float, float]
    frame: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mass) and self.mass >= 0.0):
            raise ControlError(f"its mass is {self.mass} kg; expected a finite number of at least 0")
        if self.mass > 0.0 and not math.hypot(*self.center) <= LONGEST_LEVER:
            raise ControlError(
                f"its centre of mass is {list(self.center)} m from link '{self.frame}'; expected finite numbers, at "
                f"most {LONGEST_LEVER:g} m in all"
            )

    @classmethod
    def of_section(cls, section: object) -> "CarriedLoad":
        """Load of the section `load` of `identified.yaml`.

        Raises:
            ControlError: as above, or the section does not say mass, centre and frame.

        """
        entries = section if isinstance(section, dict) else {}
        mass, center, frame = (entries.get(key) for key in ("mass", "center", "frame"))
        if not is_number(mass) or not isinstance(frame, str):
            raise ControlError(f"its mass is {mass!r} kg in frame {frame!r}; expected a number and the name of a link")
        if not isinstance(center, list) or len(center) != 3 or not all(map(is_number, center)):
            raise ControlError(f"its center is {center!r}; expected three numbers, m")
        return cls(float(mass), (float(center[0]), float(center[1]), float(center[2])), frame)

    def __str__(self) -> str:
        if not self.mass:
            return "none"
        x, y, z = (1e3 * value for value in self.center)
        return f"{self.mass:.3f} kg at ({x:.0f}, {y:.0f}, {z:.0f}) mm from {self.frame}"


class LoadFrames:
    """The links that a load may be fixed to: the last link of an arm, and what no joint moves against it."""

    def __init__(self, robot: RobotModel) -> None:
        last = robot.link_names[-1]
        self._poses = LinkTree(parse_urdf(robot.urdf or "", robot.name), robot.name).fixed_to(last)
        self._others = PARAMETERS_PER_LINK * (robot.n_joints - 1)

    def parameters(self, load: CarriedLoad) -> np.ndarray:
        """(10 n,) of the load as a part of the last link; inertias, which gravity does not feel, are those of a point.

        Raises:
            ControlError: the load's frame is none of these links.

        """
        pose = self._poses.get(load.frame)
        if pose is None:
            raise ControlError(
                f"its frame '{load.frame}' is not fixed to the last link; expected {' or '.join(self._poses)}"
            )
        point = from_center_of_mass(load.mass, np.array(load.center) if load.mass else np.zeros(3), np.zeros((3, 3)))
        return np.concatenate([np.zeros(self._others), transformed(point, pose)])


# Gravity torque of one sample, of an arm and of the load that it carries, where its links are.


class LoadedGravity:
    """Torque (n,) in N m (N) from positions (n,) of the motors in rad (m), for a control loop.

    Gravity acts on links, and flexible joints give way: the links are where springs let them sag to, or where they are
    measured to be.

    Args:
        model: of the arm.
        moments: (k,) minimal moments of the arm alone.
        frames: links that a load may be fixed to; None: those of the model's robot.
        load: that is carried; None: nobody has told of one.
        largest_load: largest mass of a load that is believed, kg.
        springs: between motors and links; None: rigid joints.

    Attributes:
        load: as given.
        model: as given.
        arm_moments: as given.
        moments: (k,) of the arm with its load.

    Raises:
        ControlError: the load is heavier, or its frame is not fixed to the arm's last link; the message is an end of a
            sentence about the load.

    """

    def __init__(
        self,
        model: GravityModel,
        moments: ArrayLike,
        frames: LoadFrames | None = None,
        load: CarriedLoad | None = None,
        *,
        largest_load: float = math.inf,
        springs: JointSprings | None = None,
    ) -> None:
        if load is not None and not load.mass <= largest_load:
            raise ControlError(
                f"its mass is {load.mass:g} kg; at most {largest_load:g} kg are believed (parameter largest_load)"
            )
        self.load = load
        self._largest_load = largest_load
        self._springs = springs
        self.model = model
        self.arm_moments = np.asarray(moments, dtype=float)
        self._frames = frames or LoadFrames(model.robot)
        carried = 0.0 if load is None else model.project(self._frames.parameters(load))
        self.moments = self.arm_moments + carried
        self._torque = model.bind(self.moments)

    def __call__(self, position: Sequence[float], links: Sequence[float] | None = None) -> list[float]:
        """Torque for one sample; `links`: measured positions of the links, None: by the springs.

        Raises:
            ControlError: the arm is too heavy for its springs.

        """
        if links is None and self._springs is not None:
            return self._springs.settled(position, self._torque)
        return self._torque(position if links is None else links)

    def carrying(self, load: CarriedLoad | None) -> "LoadedGravity":
        """The same arm with another load; takes microseconds."""
        return LoadedGravity(
            self.model, self.arm_moments, self._frames, load, largest_load=self._largest_load, springs=self._springs
        )


def load_gravity_torque(
    model_file: str | Path,
    urdf: str,
    base: str | None = None,
    tip: str | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.80665),
    *,
    use_load: bool = True,
    largest_load: float = math.inf,
    use_springs: bool = True,
) -> tuple[RobotModel, LoadedGravity]:
    """Robot and its identified gravity torque, N m (N) from rad (m), both (n,) in the model's joint order.

    The torque is that of the arm and of the load in section `load`, where the file has one. Where it has a section
    `flexible_joints`, positions are those of the motors, from which the links sag.

    Args:
        model_file: `identified.yaml`.
        urdf: path or text.
        base: first link of the chain; None: that of the file.
        tip: last link of the chain; None: that of the file.
        gravity: in the base link's frame, m/s^2.
        use_load: False: the arm alone, whatever the file says of a load.
        largest_load: largest mass of a load that is believed, kg.
        use_springs: False: rigid joints, whatever the file says of springs.

    Raises:
        IdentifiedFileError: the file is malformed, of another robot, or a joint was not observable in it although its
            torque is not zero; or its load or its springs are none that can be counted with.
        ModelError: the URDF does not describe such a chain.

    """
    identified = load_identified(model_file)
    ends = {"base": base, "tip": tip}
    for end in [end for end, link in ends.items() if link is None]:
        ends[end] = identified["robot"].get(end)
        if not isinstance(ends[end], str):
            raise IdentifiedFileError(f"{model_file}: robot.{end} is {ends[end]!r}, expected the name of a link")
    robot = RobotModel.from_urdf(urdf, tip=ends["tip"], base=ends["base"], gravity=tuple(gravity))
    check_same_robot(identified, robot)
    model = GravityModel(robot)
    springs = JointSprings.of_document(identified, robot.joint_names) if use_springs else None
    arm = LoadedGravity(model, gravity_moments(identified, model), largest_load=largest_load, springs=springs)
    if not use_load or identified.get("load") is None:
        return robot, arm
    try:
        return robot, arm.carrying(CarriedLoad.of_section(identified["load"]))
    except ControlError as error:
        raise IdentifiedFileError(
            f"{model_file}: the load in it cannot be used: {error}. Identify it again, or do without: use_load false"
        ) from error
