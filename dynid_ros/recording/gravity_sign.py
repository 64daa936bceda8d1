"""Which way torques turn, judged by gravity: it acts one way, whatever friction and the time of sampling feign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid_ros.recording.effort_check import GravityShare, loaded_joints, partial_fit
from dynid_ros.recording.motion_samples import MotionSamples
from dynid_ros.recording.torque_fit import ENOUGH_ROWS, Terms, TorqueEquations, TorqueFit

if TYPE_CHECKING:
    from dynid_ros.model import RobotModel

FOLLOWS = 0.5
"""Correlation of a torque with the URDF's gravity torque from which its sign is known: sound torques of arms whose
masses are wrong by 30 % have 0.85 and more, and 0.57 where an arm jumps after stalls."""
NOT_SEEN = GravityShare(0.0, 0.0, 0.0, 0.0)


class GravitySigns:
    """Signs of the torques against the gravity torque of the URDF.

    Args:
        robot: with the inertial parameters of its URDF; without masses gravity shows in no joint.
        samples: of its motion.
        terms: of the torque model on them.

    Attributes:
        as_recorded: (n,) 1 where a torque follows gravity, -1 where it opposes it, 0 where gravity does not show.

    """

    def __init__(self, robot: RobotModel, samples: MotionSamples, terms: Terms):
        self._robot, self._samples, self._terms = robot, samples, terms
        self.as_recorded = self._of_positions(np.ones(robot.n_joints))

    def oppose(self, torques: NDArray, positions: NDArray) -> bool:
        """Whether torques and positions times these signs (n,) turn against gravity what follows it as recorded."""
        turned = torques * (self._of_positions(positions) if np.any(positions < 0) else self.as_recorded)
        return bool(np.any((self.as_recorded > 0) & (turned < 0)))

    def friction_pushes(self, equations: TorqueEquations, given: TorqueFit) -> bool:
        """Whether no torque opposes gravity and some follow it, but friction would rather have them all turned.

        Effort that is sampled at another time than the position, or before the damping of the servo acts, has a part
        along the velocity that looks like friction that pushes. It tells no sign then. In one joint alone, in which
        gravity does not show, it does: that one may be connected the wrong way round.

        Args:
            equations: of a model whose friction brakes.
            given: their fit to the torques as recorded.

        """
        follows = self.as_recorded > 0
        if not np.any(follows) or np.any(self.as_recorded < 0):
            return False
        gains = given.misfits - equations.fit(signs=-np.ones(equations.n)).misfits
        return bool(max(np.sum(gains[follows]), np.sum(gains) - np.max(gains)) > 0.0)

    def _of_positions(self, signs: NDArray) -> NDArray:
        robot, samples = self._robot, self._samples
        q, qd, qdd = (array * signs for array in (samples.position, samples.velocity, samples.acceleration))
        gravity = robot.gravity_torque(q)
        inertial = robot.inverse_dynamics(q, qd, qdd) - gravity
        fits = []
        for j in range(robot.n_joints):
            rows = self._terms.moving[:, j]
            others = np.column_stack([np.ones(len(rows)), self._terms.drive[:, j], inertial[:, j]])[rows]
            enough = np.sum(rows) >= ENOUGH_ROWS
            fits.append(partial_fit(samples.torque[rows, j], gravity[rows, j], others) if enough else NOT_SEEN)
        seen = np.zeros(robot.n_joints)
        for j in loaded_joints(robot, fits):
            correlation = fits[j].correlation
            seen[j] = np.sign(correlation) * (abs(correlation) >= FOLLOWS)
        return seen
