"""Is this motion enough? What it shows, how well, what it does not, and what would help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.helpful_motions import HelpfulMotion, MotionSearch
from dynid_ros.information.judged_motion import JudgedMotion
from dynid_ros.information.quality_words import quality_dict, summary_lines
from dynid_ros.information.shown_parameters import MATTERS, ShownParameters
from dynid_ros.information.torque_columns import LINKS, TorqueColumns
from dynid_ros.model import RobotModel
from dynid_ros.model.arrays import joint_samples
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.limits import MotionLimits, per_joint

USUAL_SAMPLES = 1000


@dataclass(frozen=True, eq=False)
class MotionQuality(ShownParameters):
    """Whether a motion is enough, and what would help.

    Attributes:
        allowed: tells of positions (N, n) whether the arm may be there; None: it may be anywhere.
        assumed_noise: whether nothing is known of the noise, and 1 N m or N was taken for it.

    """

    allowed: Callable[[NDArray], NDArray] | None = None
    assumed_noise: bool = False

    @classmethod
    def of(
        cls,
        robot: RobotModel,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        friction: FrictionModel | JointFriction | None = None,
        *,
        noise: ArrayLike | None = None,
        rate: float | None = None,
        model: str = LINKS,
        limits: MotionLimits | None = None,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> MotionQuality:
        """Judge samples of a motion, (N, n) each.

        Args:
            robot: the arm.
            q: positions, rad or m.
            qd: velocities, per s.
            qdd: accelerations, per s².
            friction: terms of the joints; None: those of `torque_columns.FRICTION`.
            noise: standard deviation of each sample of torque, one or (n,), N m or N; None: 1.
            rate: samples per second; None: not known.
            model: "links", "gravity" or "load", see `TorqueColumns`.
            limits: what the joints might do; None: see `usual_limits`.
            allowed: tells of positions (N, n) whether the arm may be there, (N,) bool, as `Workspace.allowed` does.

        Raises:
            TrajectoryError: too few samples, values that are not finite, no motion, a setting that makes no sense.
            ModelError: arrays of unlike shapes, or of another number of joints.

        """
        columns = TorqueColumns(robot, friction, model)
        return cls.of_columns(columns, q, qd, qdd, noise=noise, rate=rate, limits=limits, allowed=allowed)

    @classmethod
    def of_columns(
        cls,
        columns: TorqueColumns,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        noise: ArrayLike | None = None,
        rate: float | None = None,
        limits: MotionLimits | None = None,
        allowed: Callable[[NDArray], NDArray] | None = None,
    ) -> MotionQuality:
        """As `of`, of what is asked by `columns`."""
        robot = columns.robot
        position, velocity, acceleration = joint_samples(robot.joint_names, q=q, qd=qd, qdd=qdd)
        motion = JudgedMotion.of(robot, [(position, velocity, acceleration)], len(position), rate, limits)
        known = checked_noise(robot, noise)
        information = columns.information((position, velocity, acceleration))
        return cls.of_information(columns, motion, known, information, allowed, assumed_noise=noise is None)

    @classmethod
    def of_information(
        cls,
        columns: TorqueColumns,
        motion: JudgedMotion,
        noise: NDArray,
        information: NDArray,
        allowed: Callable[[NDArray], NDArray] | None = None,
        *,
        assumed_noise: bool = False,
    ) -> MotionQuality:
        """Judge normal equations (n, k, k) of `columns` that were summed already; the noise is (n,)."""
        limits = motion.limits
        rng = np.random.default_rng(0)
        position, velocity, acceleration = rng.uniform(-1.0, 1.0, (3, USUAL_SAMPLES, len(noise)))
        middle, half = (limits.lower + limits.upper) / 2, (limits.upper - limits.lower) / 2
        spread = (middle + half * position, limits.velocity * velocity, limits.acceleration * acceleration)
        usual = columns.information(spread) * motion.samples / USUAL_SAMPLES
        return cls(columns, motion, noise, information, usual, allowed, assumed_noise)

    @property
    def enough(self) -> bool:
        """Whether the motion decides all parameters, and none so badly that it would show in torques."""
        return not self.missing and not self.weak

    @cached_property
    def helpful(self) -> tuple[HelpfulMotion, ...]:
        """Motions to add, each after those before it; of what is missing and weak, else of the worst tenth."""
        open_ = np.flatnonzero(~(self.effects <= MATTERS))
        if not len(open_):
            open_ = np.argsort(self.effects)[-max(1, self.full_rank // 10) :]
        search = MotionSearch(self.columns, self.motion, self.noise, self.usual, self.allowed)
        return search.best(self.information, open_)

    @property
    def advice(self) -> list[str]:
        """Sentences, what helps most first."""
        return [motion.text for motion in self.helpful]

    def summary(self) -> str:
        """Lines of text."""
        return "\n".join(summary_lines(self))

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML; infinite numbers are None."""
        return quality_dict(self)


def checked_noise(robot: RobotModel, noise: ArrayLike | None) -> NDArray:
    """(n,) standard deviations of the torques; 1 where nothing is known.

    Raises:
        TrajectoryError: another number of them, or one that is not positive and finite; names the joint.

    """
    known = per_joint(1.0 if noise is None else noise, robot.joint_names, "noise")
    for name, value in zip(robot.joint_names, known, strict=True):
        if not (np.isfinite(value) and value > 0):
            raise TrajectoryError(
                f"the noise of {name} is {value:g}; it must be positive and finite, the standard deviation of its "
                "torque in N m or N"
            )
    return known
