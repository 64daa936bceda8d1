"""The mass that torque sensors are calibrated with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import IdentificationError


@dataclass(frozen=True)
class ReferenceMass:
    """A body of known weight, fixed to the tip link.

    Attributes:
        mass: kg, with all that is attached together with it.
        center: (3,) its centre of mass in the frame of the tip link, m; None: not known, and estimated.

    Raises:
        IdentificationError: a mass that is not positive, or a centre that is not three numbers.

    """

    mass: float
    center: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mass) and self.mass > 0):
            raise IdentificationError(
                f"the reference mass is {self.mass:g} kg; expected more than 0: weigh it on a balance, holder included"
            )
        if self.center is not None and not (np.shape(self.center) == (3,) and np.isfinite(self.center).all()):
            raise IdentificationError(
                f"the centre of the reference mass is {self.center}; expected x, y and z in the frame of the tip link, "
                "m, or none if it is not known"
            )
