"""Longer motions made of plans: repetitions of a plan, and a plan followed by a motion that shows friction."""

import numpy as np

from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation.experiment import Experiment, Plan
from dynid_ros.excitation.joint_by_joint import JointByJoint
from dynid_ros.information.friction_needs import describe_unseen_terms, unseen_terms
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories.trajectory import MAX_DURATION_S, Trajectory

CLOSED_MOTION_TOLERANCE = 1e-9
"""Largest distance between start and end of a motion that ends where it starts, rad or m."""
FRICTION_CHECK_RATE_HZ = 100.0
"""Sampling rate for the check that all friction terms show."""


def repeat_plan(plan: Plan, experiment: Experiment, times: int) -> Plan:
    """Repeat a plan, so that repetitions can be compared and averaged.

    Args:
        plan: the motion to repeat.
        experiment: plans the safe motion back to the start where the motion does not end there.
        times: number of repetitions.

    Returns:
        The whole motion. Times in its description count from the start of each repetition, listed in `starts` (s).
    """
    if times < 1:
        raise TrajectoryError(f"repeats is {times}; it must be at least 1")
    if times == 1:
        return plan
    once = plan.trajectory
    back: list[Trajectory] = []
    if np.abs(once.position[-1] - once.position[0]).max() > CLOSED_MOTION_TOLERANCE:
        try:
            back = [experiment.approach_motion(once.position[-1], plan)]
        except TrajectoryError as error:
            raise TrajectoryError(f"the motion cannot be repeated: back to its start, {error}") from error
    period = once.duration + sum(part.duration for part in back)
    if times * period > MAX_DURATION_S:
        raise TrajectoryError(
            f"repeats is {times}: motions of {period:.1f} s each take more than {MAX_DURATION_S / 3600:g} h; give fewer"
        )
    trajectory = Trajectory.join([once, *[*back, once] * (times - 1)])
    starts = [round(repetition * period, 4) for repetition in range(times)]
    first_line = f"{trajectory.duration:.1f} s, {times} times the motion of {plan.lines[0]}"
    return Plan(
        trajectory=trajectory,
        format=plan.format,
        facts={**plan.facts, "repeat_duration": round(plan.duration, 4), "starts": starts},
        lines=(first_line, *plan.lines[1:]),
        dwells=plan.dwells,
        skipped=plan.skipped,
        warnings=plan.warnings,
    )


def show_friction(plan: Plan, experiment: Experiment, reversals: JointByJoint, friction: JointFriction) -> Plan:
    """Append a motion of single joints that shows all terms of friction.

    Args:
        plan: the first part.
        experiment: plans the safe motion from the end of the first part.
        reversals: experiment with reversals of all joints, the second part.
        friction: terms of all joints.

    Returns:
        Both parts. Times in their descriptions count from the start of each part, listed in `starts` (s).

    Raises:
        TrajectoryError: there is no safe motion between the parts, or a term is not shown within the limits; names
            the joint and the reason.
    """
    second = reversals.plan()
    transit = experiment.approach_motion(plan.trajectory.position[-1], second)
    start = plan.duration + transit.duration
    trajectory = Trajectory.join([plan.trajectory, transit, second.trajectory])
    robot = reversals.robot
    motion = trajectory.select(robot.joint_names).sample(FRICTION_CHECK_RATE_HZ)
    model = FrictionModel(friction, (), robot.parameters)
    unseen = unseen_terms(robot, model, [(motion.position, motion.velocity, motion.acceleration)])
    if unseen:
        raise TrajectoryError(f"no motion within limits and workspace shows it: {describe_unseen_terms(unseen)[0]}")
    first_line = f"{trajectory.duration:.1f} s in two parts; from {start:.1f} s on friction, joint by joint"
    return Plan(
        trajectory=trajectory,
        format="dynid-sequence/1",
        facts={"starts": [0.0, round(start, 4)], "parts": [plan.as_dict(), second.as_dict()]},
        lines=(first_line, *plan.summary().splitlines(), *second.summary().splitlines()),
    )
