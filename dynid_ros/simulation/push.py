"""A push on a link of a MuJoCo arm, as by somebody's hand: a force and a torque for a while."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from dynid_ros.errors import DynidError
from dynid_ros.model.arrays import finite_vector
from dynid_ros.simulation.load_body import LINK as LOAD
from dynid_ros.simulation.motor_bodies import MOTOR_OF

LONGEST = 3600.0
"""s"""


class Push:
    """Force and torque at the origin of a link's frame, which they follow; they keep the directions of given axes.

    Args:
        model: of the arm.
        link: that is pushed.
        wrench: (6,) force (N) and torque (N m).
        axes: link along whose axes `wrench` is given.
        duration: s.

    Raises:
        ModelError: not six finite numbers.
        DynidError: links that the arm does not have, or a duration that is none.

    """

    def __init__(self, model: mujoco.MjModel, link: str, wrench: ArrayLike, axes: str, duration: float) -> None:
        if not 0.0 < duration <= LONGEST:
            raise DynidError(f"a push for {duration} s; expected a time above 0, up to {LONGEST:g} s")
        self._force, self._torque = np.split(finite_vector(wrench, 6, "push (force, torque)"), 2)
        self._body, self._axes = _body(model, link), _body(model, axes)
        self._steps = round(duration / model.opt.timestep)

    def apply(self, data: mujoco.MjData) -> bool:
        """Act on the arm for one step; False when the time is over, and nothing acts any longer."""
        self._steps -= 1
        if self._steps < 0:
            data.xfrc_applied[self._body] = 0.0
            return False
        axes = data.xmat[self._axes].reshape(3, 3)
        force = axes @ self._force
        lever = data.xpos[self._body] - data.xipos[self._body]  # MuJoCo takes forces at the centre of mass
        data.xfrc_applied[self._body, :3] = force
        data.xfrc_applied[self._body, 3:] = axes @ self._torque + np.cross(lever, force)
        return True


def _body(model: mujoco.MjModel, link: str) -> int:
    # the first body is MuJoCo's world
    names = [model.body(i).name for i in range(1, model.nbody)]
    links = [name for name in names if name != LOAD and not name.startswith(MOTOR_OF)]
    if link not in links:
        raise DynidError(f"the arm has no link '{link}' to push; its links are {', '.join(links)}")
    return 1 + names.index(link)
