"""A load that an arm carries, as far as gravity feels it."""

import math
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import ControlError
from dynid_ros.identified.identified_file import is_number
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import PARAMETERS_PER_LINK, from_center_of_mass, transformed
from dynid_ros.model.link_tree import LinkTree
from dynid_ros.model.urdf import parse_urdf

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
