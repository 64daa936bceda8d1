"""Gravity torque of one sample, of an arm and of the load that it carries."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.control.carried_load import CarriedLoad, LoadFrames
from dynid_ros.errors import ControlError
from dynid_ros.model.gravity import GravityModel


class LoadedGravity:
    """Torque (n,) in N m (N) from positions (n,) in rad (m), for a control loop.

    Args:
        model: of the arm.
        moments: (k,) minimal moments of the arm alone.
        frames: links that a load may be fixed to; None: those of the model's robot.
        load: that is carried; None: nobody has told of one.
        largest_load: largest mass of a load that is believed, kg.

    Attributes:
        load: as given.

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
        largest_load: float = math.inf,
    ) -> None:
        if load is not None and not load.mass <= largest_load:
            raise ControlError(
                f"its mass is {load.mass:g} kg; at most {largest_load:g} kg are believed (parameter largest_load)"
            )
        self.load = load
        self._largest_load = largest_load
        self._model = model
        self._moments = np.asarray(moments, dtype=float)
        self._frames = frames or LoadFrames(model.robot)
        carried = 0.0 if load is None else model.project(self._frames.parameters(load))
        self._torque = model.bind(self._moments + carried)

    def __call__(self, position: Sequence[float]) -> list[float]:
        """Torque for one sample."""
        return self._torque(np.array(position)).tolist()

    def carrying(self, load: CarriedLoad | None) -> "LoadedGravity":
        """The same arm with another load; takes microseconds."""
        return LoadedGravity(self._model, self._moments, self._frames, load, self._largest_load)
