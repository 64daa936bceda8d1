"""What is watched in the joint states while the arm moves."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sensor_msgs.msg import JointState

from dynid_ros.errors import DynidError
from dynid_ros.trajectories import MotionLimits
from dynid_ros.trajectories.limits import per_joint

MOVING = 0.1
"""Speed above which the arm is not at rest, rad/s or m/s."""
JITTER = 0.05
"""s by which a joint state may be late, or early."""
ROUNDING = 1e-9
"""Of times, s."""


class EffortWatch:
    """Tells when an effort has been too large for too long; efforts that are not finite or not there are not watched.

    Args:
        limits: their torque limits hold where the next gives none.
        effort_limit: one value or (n,), in the driver's unit; NaN: the torque limit; infinite: none.
        grace: how long an effort may be above its limit, s: impacts and noise pass.

    Raises:
        DynidError: a limit that is not positive, another number of them, or a negative or infinite grace.

    """

    def __init__(self, limits: MotionLimits, effort_limit: ArrayLike, grace: float) -> None:
        self._names = limits.joint_names
        given = per_joint(effort_limit, self._names, "effort_limit")
        self._limit = np.where(np.isnan(given), limits.torque, given)
        for name, limit in zip(self._names, self._limit, strict=True):
            if not limit > 0:
                raise DynidError(f"Parameter effort_limit of joint '{name}' is {limit:g}; it must be positive")
        if not 0 <= grace < np.inf:
            raise DynidError(f"Parameter effort_grace is {grace:g}; it must be zero or more, and finite, s")
        self._grace = grace
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._since = np.full(len(self._names), np.nan)

    def check(self, effort: NDArray, now: float) -> None:
        """Look at efforts (n,), NaN where unknown, at a time of some clock (s).

        Raises:
            DynidError: names the joint whose effort has been above its limit for longer than the grace.

        """
        high = np.abs(effort) > self._limit
        self._since = np.where(high, np.where(np.isnan(self._since), now, self._since), np.nan)
        late = high & (now - self._since >= self._grace - ROUNDING)
        if late.any():
            i = int(np.argmax(np.where(late, np.abs(effort) / self._limit, 0.0)))
            raise DynidError(
                f"effort of joint '{self._names[i]}' is {effort[i]:.4g}, above effort_limit {self._limit[i]:.4g} for "
                f"{now - self._since[i]:.2f} s"
            )


def disagreement(limits: MotionLimits, received: float, before: NDArray, position: NDArray) -> str:
    """Whether an arm that was at `before` (n,) at `received` (s, monotonic) cannot be at `position` now.

    Text that names the joint; empty: it may have gone there since.
    """
    span = time.monotonic() - received + JITTER
    jumped = np.flatnonzero(np.abs(position - before) > limits.velocity * span)
    if not jumped.size:
        return ""
    i = jumped[0]
    return (
        f"joint_states disagree: joint '{limits.joint_names[i]}' is at {before[i]:.4g} and at {position[i]:.4g} within "
        f"{span:.2g} s; check the encoder, and that one driver publishes them alone"
    )


def efforts(message: JointState, joint_names: Sequence[str]) -> NDArray:
    """Efforts (n,) by name; NaN where there is none."""
    given = dict(zip(message.name, message.effort, strict=False))
    return np.array([given.get(name, np.nan) for name in joint_names])


def moving_joint(message: JointState, joint_names: Sequence[str]) -> str:
    """Name and speed of a joint that moves; empty where none does or velocities are not published."""
    for name, velocity in zip(message.name, message.velocity, strict=False):
        if name in joint_names and abs(velocity) > MOVING:
            return f"'{name}' at {velocity:.2g}"
    return ""
