"""Gravity torque of one sample, of an arm and of the load that it carries, where its links are."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.control.carried_load import CarriedLoad, LoadFrames
from dynid_ros.control.joint_springs import JointSprings
from dynid_ros.errors import ControlError
from dynid_ros.model.gravity import GravityModel


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
