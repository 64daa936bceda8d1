"""After a motion, joint by joint, the one that shows friction: slow reversals with rests, at several speeds."""

from dataclasses import dataclass

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, Plan, TrajectoryPlan
from dynid_ros.excitation.joint_by_joint import JointByJoint, JointByJointPlan
from dynid_ros.information.friction_needs import sentences, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.trajectory import Trajectory

RATE = 100.0
"""Samples per second at which it is looked at what the motion shows."""


@dataclass(frozen=True, eq=False)
class FrictionPlan(TrajectoryPlan):
    """A plan, and what shows friction after it.

    Attributes:
        plan: what comes first.
        reversals: joint by joint.
        trajectory: both, with the way between them.
        start: when the reversals begin, s.
    """

    plan: Plan
    reversals: JointByJointPlan
    trajectory: Trajectory
    start: float

    def as_dict(self) -> dict[str, object]:
        """Plain data for YAML: that of both parts, whose times are from the start of each in `starts` (s)."""
        return {
            "format": "dynid-sequence/1",
            "duration": round(self.duration, 4),
            "starts": [0.0, round(self.start, 4)],
            "parts": [self.plan.as_dict(), self.reversals.as_dict()],
        }

    def summary(self) -> str:
        """Lines of text."""
        first = f"{self.duration:.1f} s in two parts; from {self.start:.1f} s on friction, joint by joint"
        return "\n".join([first, self.plan.summary(), self.reversals.summary()])


def show_friction(plan: Plan, experiment: Experiment, reversals: JointByJoint, friction: JointFriction) -> FrictionPlan:
    """`plan` and then reversals, by which the terms are shown.

    Args:
        plan: what comes first.
        experiment: knows the safe way from its end.
        reversals: of all joints.
        friction: terms of all joints.

    Raises:
        TrajectoryError: there is no safe way, or a term is not shown within the limits: says of which joint, and why.
    """
    added = reversals.plan()
    way = experiment.approach_motion(plan.trajectory.position[-1], added)
    start = plan.duration + way.duration
    trajectory = Trajectory.join([plan.trajectory, way, added.trajectory])
    robot = reversals.robot
    motion = trajectory.select(robot.joint_names).sample(RATE)
    model = FrictionModel(friction, (), robot.parameters)
    for unseen in sentences(unseen_terms(robot, model, [(motion.position, motion.velocity, motion.acceleration)])):
        raise TrajectoryError(f"no motion within limits and workspace shows it: {unseen}")
    return FrictionPlan(plan, added, trajectory, start)
