"""A motion that is made several times, so that repetitions can be compared and averaged."""

from dataclasses import dataclass

import numpy as np

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, OfTrajectory, Plan
from dynid_ros.trajectories.trajectory import LONGEST, Trajectory

SAME = 1e-9
"""Distance below which a motion ends where it starts, rad or m."""


@dataclass(frozen=True, eq=False)
class RepeatedPlan(OfTrajectory):
    """A plan, several times.

    Attributes:
        plan: what is repeated.
        trajectory: all repetitions, with the ways back between them.
        starts: when each repetition begins, s.

    """

    plan: Plan
    trajectory: Trajectory
    starts: tuple[float, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: that of the plan, whose times are from the start of each repetition in `starts` (s)."""
        return {
            **self.plan.as_dict(),
            "duration": round(self.duration, 4),
            "repeat_duration": round(self.plan.duration, 4),
            "starts": [round(start, 4) for start in self.starts],
        }

    def summary(self) -> str:
        """Lines of text."""
        return f"{self.duration:.1f} s, {len(self.starts)} times the motion of {self.plan.summary()}"


def repeated(plan: Plan, experiment: Experiment, times: int) -> Plan:
    """`plan` so many times; where it does not end as it starts, with the safe way back of `experiment` in between.

    Raises:
        TrajectoryError: fewer than one time, more than a working day, or there is no safe way back.

    """
    if times < 1:
        raise TrajectoryError(f"repeats is {times}; it must be at least 1")
    if times == 1:
        return plan
    once = plan.trajectory
    back: list[Trajectory] = []
    if np.abs(once.position[-1] - once.position[0]).max() > SAME:
        try:
            back = [experiment.approach_motion(once.position[-1], plan)]
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion cannot be repeated: back to its start, {error}") from error
    step = once.duration + sum(part.duration for part in back)
    if times * step > LONGEST:
        raise TrajectoryError(
            f"repeats is {times}: motions of {step:.1f} s each take more than {LONGEST / 3600:g} h; give fewer"
        )
    trajectory = Trajectory.join([once, *[*back, once] * (times - 1)])
    return RepeatedPlan(plan, trajectory, tuple(k * step for k in range(times)))
