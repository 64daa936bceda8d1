"""Designed motions in random workspaces, judged by Pinocchio and Coal; benchmarks/excitation_workspaces.py has more."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.coal_room import CoalRoom
from helpers.random_workspaces import draw

from dynid_ros.collision import Bodies
from dynid_ros.errors import TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf

pytestmark = pytest.mark.slow

TORQUE = 0.8


@pytest.fixture(name="robot", scope="module")
def fixture_robot():
    return RobotModel.from_urdf(demo_arm_urdf())


def design(case, starts=1):
    return FourierExcitation(
        case.robot,
        case.limits,
        case.workspace(Bodies.of(case.robot)),
        base_frequency=0.1,
        harmonics=2,
        workers=1,
        candidates=1,
        starts=starts,
        design_time=60.0,
        torque_fraction=TORQUE,
    ).plan()


@pytest.mark.parametrize(("kind", "seed"), [("walls", 0), ("weak motors", 1), ("payload", 2)])
def test_motion_touches_nothing_and_keeps_to_limits(robot, kind, seed):
    case = draw(robot, kind, np.random.default_rng(seed))
    room, plan = CoalRoom(case), design(case)
    q, qd, qdd = plan.trajectory.at(np.arange(0.0, plan.duration, 0.02))
    for thing, lack in room.too_near(q).items():
        assert lack.max() <= 1e-9, thing
    assert np.all(np.abs(room.torques(q, qd, qdd)) <= TORQUE * case.limits.torque * (1 + 1e-6))
    assert np.all(q >= case.limits.lower)
    assert np.all(q <= case.limits.upper)
    assert np.isfinite(plan.condition_number)


def test_no_room_is_refused_by_name(robot):
    low = draw(robot, "ceiling", np.random.default_rng(0))
    (ceiling,) = low.obstacles
    pose = np.array(ceiling.pose)
    pose[2, 3] = 0.3
    low = replace(low, obstacles=(replace(ceiling, pose=pose),))
    poses = np.random.default_rng(0).uniform(low.limits.lower, low.limits.upper, (200, 6))
    assert np.all(CoalRoom(low).too_near(poses)["obstacle 'ceiling'"] > 0)
    with pytest.raises(TrajectoryError, match="obstacle 'ceiling'"):
        design(low)
