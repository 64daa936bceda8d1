"""Fuzzing targets: commands to the simulated arm and its controllers."""

# ruff: noqa: E501 - tables of inputs

import math
from pathlib import Path
from typing import Any

import numpy as np
import planar_arm
import pytest
from fuzzing import arms
from fuzzing.outcome import require
from fuzzing.target import Target
from hypothesis import strategies as st

pytest.importorskip("rclpy")
pytest.importorskip("mujoco")

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dynid_ros.errors import DynidError
from dynid_ros.nodes.simulated_arm.controllers import trajectory_points
from dynid_ros.simulation import ControlledArm, GoalTolerances, SimulatedArm, TrajectorySettings
from dynid_ros.simulation.controlled_arm import FORWARD, TRAJECTORY

NAMES = list(planar_arm.JOINTS)
GOAL = (0.05, -0.1, 0.15)
STEP_S = 0.01

_NUMBER = st.sampled_from([0.0, 0.1, -0.1, 0.5, 2.4, -2.6, 100.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 1e12])
_ORDERS = [NAMES] * 3 + [NAMES[::-1]] * 3
_NAMES = st.sampled_from(_ORDERS * 3 + [NAMES[:2], [], ["joint_1"] * 3, [*NAMES, "Δ\n"], ["a" * 1000] * 3])
_FIELD = st.sampled_from(["goal"] * 8 + ["rest"] * 4 + ["none"] * 4) | st.lists(_NUMBER, max_size=4)
_TIME = st.sampled_from(
    [(0, 500_000_000), (1, 0), (1, 500_000_000), (2, 0), (0, 0), (0, 1), (-1, 0), (2**31 - 1, 0), (0, 2**32 - 1)]
)
_POINT = st.tuples(
    _TIME, st.just("goal") | _FIELD, st.just("none") | _FIELD, st.just("none") | _FIELD, st.just("none") | _FIELD
)
_DELAY = st.sampled_from([0.0] * 6 + [0.3, -0.3, -1e9, 1e9, math.nan, math.inf])
_KIND = st.sampled_from(["trajectory", "trajectory", "goal"])
_TRAJECTORY = st.tuples(_KIND, _NAMES, st.lists(_POINT, max_size=4), _DELAY)
_PUSH = st.tuples(
    st.just("push"), st.lists(_NUMBER, min_size=6, max_size=6), st.sampled_from([None, "link_2", "tool", "", "\n", "world"]),
    st.sampled_from([None, "link_1", "base_link", "x"]), st.sampled_from([0.2, 0.01, 0.0, -1.0, math.nan, math.inf, 1e308, 1e-9]),
)  # fmt: skip
_EFFORT = st.tuples(st.just("effort"), st.lists(_NUMBER, min_size=3, max_size=3) | st.lists(_NUMBER, max_size=5))
_LOAD = st.tuples(
    st.just("load"),
    st.sampled_from([[2.0, 0, 0, 0.1, *[0.01, 0, 0, 0.01, 0, 0.01]], [0.0] * 10])
    | st.lists(_NUMBER, min_size=10, max_size=10),
)
EVENTS = st.lists(
    st.one_of(_TRAJECTORY, _TRAJECTORY, _PUSH, _EFFORT, _LOAD, st.tuples(st.sampled_from(["follow", "effort mode", "drop", "reset"]))),
    min_size=1, max_size=4,
)  # fmt: skip


def create_message(names: list[str], points: list[tuple]) -> JointTrajectory:
    """Return the message, with values in the order of its joint names."""
    goal = dict(zip(NAMES, GOAL, strict=True))

    def values(field: str | list[float], i: int) -> list[float]:
        if isinstance(field, list):
            return field
        if field == "goal":
            return [goal.get(name, 0.0) * (i + 1) / len(points) for name in names]
        return [0.0] * len(names) if field == "rest" else []

    message = JointTrajectory(joint_names=names)
    for i, ((sec, nanosec), *rows) in enumerate(points):
        position, velocity, acceleration, effort = (values(field, i) for field in rows)
        message.points.append(
            JointTrajectoryPoint(
                positions=position,
                velocities=velocity,
                accelerations=acceleration,
                effort=effort,
                time_from_start=Duration(sec=sec, nanosec=nanosec),
            )
        )
    return message


class Simulation:
    """One arm, reset before each input."""

    def __init__(self) -> None:
        self._arm: SimulatedArm | None = None

    def read(self, events: list[tuple], _folder: Path) -> None:
        """Require finite states after any command, and accepted trajectories that end at their last point."""
        arm = self._arm = self._arm or SimulatedArm(arms.create_robot(), timestep=0.002)
        arm.detach_load()
        arm.reset()
        forwards = any(kind in {"effort", "effort mode"} for kind, *_ in events)
        interfaces = ("position",) if forwards else ("position", "effort")
        settings = TrajectorySettings(command_interfaces=interfaces, trajectory=[0.5], cmd_timeout=0.02)
        controlled = ControlledArm(arm, settings, sums=not forwards)
        refused = []
        for kind, *details in events:
            try:
                self._act(controlled, kind, details)
            except DynidError as error:
                refused.append(error)
            for _ in range(3):
                try:
                    controlled.update(STEP_S)
                    arm.step(STEP_S)
                except DynidError as error:  # torques that cannot be followed: reset, as the node does
                    refused.append(error)
                    arm.reset()
                    controlled.reset()
                self._judge(controlled)
        if refused:
            raise refused[0]

    def _act(self, controlled: ControlledArm, kind: str, details: list[Any]) -> None:
        arm = controlled.arm
        controller = controlled.trajectory
        if kind in {"trajectory", "goal"}:
            names, points, delay = details
            message = create_message(names, points)
            before = controller._next, controller._holding, len(controller.goals)
            try:
                if kind == "goal":
                    tolerances = GoalTolerances([0.3], [-1.0], 0.05)
                    controller.goal(trajectory_points(message), arm.time, arm.time + delay, tolerances)
                else:
                    controller.topic(trajectory_points(message), arm.time, arm.time + delay)
            except DynidError:
                after = controller._next, controller._holding, len(controller.goals)
                require(after[0] is before[0] and after[1:] == before[1:], "a refused trajectory changes the motion")
                raise
            self._judge_motion(controlled, message)
        elif kind == "push":
            arm.push(*details)
        elif kind == "effort":
            assert controlled.forward is not None
            controlled.forward.command(details[0])
        elif kind == "load":
            arm.attach_load(details[0])
            require((arm.truth.load[0] >= 0) and np.isfinite(arm.truth.load).all(), "a load is invalid")
        elif kind == "reset":
            arm.reset()
            controlled.reset()
        elif kind == "drop":
            arm.detach_load()
        else:
            controlled.exchange(FORWARD if kind == "effort mode" else TRAJECTORY)

    def _judge_motion(self, controlled: ControlledArm, message: JointTrajectory) -> None:
        arm = controlled.arm
        motion = controlled.trajectory._begin(arm.time, arm.position, arm.velocity)
        last = dict(zip(message.joint_names, message.points[-1].positions, strict=True))
        end = motion.at(motion.end)[0]
        require(np.abs(end - [last[name] for name in arm.robot.joint_names]).max() < 1e-9, "the motion ends elsewhere")
        limits = arm.robot.limits
        require(
            (end >= limits.lower - 1e-6).all() and (end <= limits.upper + 1e-6).all(),
            "the motion ends beyond the limits",
        )
        for time in np.linspace(arm.time, motion.end, 9):
            require(np.isfinite(motion.at(time)).all(), "a motion is not finite")

    def _judge(self, controlled: ControlledArm) -> None:
        arm = controlled.arm
        commanded = np.isfinite(controlled.interfaces.position)
        require(commanded.all() or not commanded.any(), "a command is incomplete")
        for values in (arm.position, arm.velocity, arm.torque, arm.wrench, arm.link_position, *arm.measure()):
            require(np.isfinite(values).all(), "a state is not finite")
        require(arm.time >= 0, "the time is negative")


TARGETS = (Target("simulated arm", EVENTS, Simulation().read, share=1.0),)
