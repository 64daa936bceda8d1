"""What every planned experiment has in common."""

from typing import Protocol

from numpy.typing import ArrayLike

from dynid_ros.trajectories.limits import MotionLimits
from dynid_ros.trajectories.trajectory import Trajectory
from dynid_ros.trajectories.workspace import Workspace


class Plan(Protocol):
    """A motion that was planned, and what there is to say about it."""

    @property
    def trajectory(self) -> Trajectory:
        """The whole motion; how the arm gets to its start is not part of it."""

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML."""

    def summary(self) -> str:
        """Lines of text."""


class OfTrajectory:
    """What plans have in common that hold their whole motion."""

    trajectory: Trajectory

    @property
    def duration(self) -> float:
        """Duration of the motion, s."""
        return self.trajectory.duration


class Experiment(Protocol):
    """Plans a motion within limits and workspace."""

    limits: MotionLimits
    workspace: Workspace

    def plan(self) -> Plan:
        """Plan the motion."""

    def approach_motion(self, measured: ArrayLike, plan: Plan) -> Trajectory:
        """Slow motion from where the arm is, `measured` (n,), to where `plan` starts."""
