"""Command interfaces of the simulated hardware: what controllers write, and what stays when they are gone."""

from __future__ import annotations

import numpy as np


class CommandInterfaces:
    """Values that controllers have written; nobody resets them when a controller is deactivated or released.

    Whoever claims one next finds the last value in it (ros2_control 4.46.0, handle.hpp: NaN at first;
    resource_manager.cpp: a release clears a flag only).

    Args:
        n_joints: of the arm.

    Attributes:
        position: (n,) rad or m in the arm's joint order; NaN: never commanded.
        velocity: (n,) of the same set-point, for drives that interpolate between two of them; zero: it rests.
        acceleration: (n,) likewise.
        effort: (n,) N m; NaN: never commanded.

    """

    def __init__(self, n_joints: int) -> None:
        self._n_joints = n_joints
        self.forget()

    def forget(self) -> None:
        """As before any command: the hardware was started anew."""
        self.position, self.effort = np.full(self._n_joints, np.nan), np.full(self._n_joints, np.nan)
        self.rest()

    def rest(self) -> None:
        """The set-point of the position moves no more."""
        self.velocity, self.acceleration = np.zeros(self._n_joints), np.zeros(self._n_joints)
