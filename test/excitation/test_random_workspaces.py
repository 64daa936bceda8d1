"""Check designed motions in random workspaces with Pinocchio and Coal; benchmarks/excitation_workspaces.py has more."""

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

TORQUE_FRACTION = 0.8


@pytest.fixture(name="robot", scope="module")
def fixture_robot():
    return RobotModel.from_urdf(demo_arm_urdf())


def design_motion(case, starts=1):
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
        torque_fraction=TORQUE_FRACTION,
    ).plan()


@pytest.mark.parametrize(("kind", "seed"), [("walls", 0), ("weak motors", 1), ("payload", 2)])
def test_motion_in_random_workspace_respects_limits(robot, kind, seed):
    case = draw(robot, kind, np.random.default_rng(seed))
    room = CoalRoom(case)
    plan = design_motion(case)
    q, qd, qdd = plan.trajectory.at(np.arange(0.0, plan.duration, 0.02))
    for name, lack in room.too_near(q).items():
        assert lack.max() <= 1e-9, name
    assert np.all(np.abs(room.torques(q, qd, qdd)) <= TORQUE_FRACTION * case.limits.torque * (1 + 1e-6))
    assert np.all(q >= case.limits.lower)
    assert np.all(q <= case.limits.upper)
    assert np.isfinite(plan.condition_number)


def test_reports_the_obstacle_that_prevents_motion(robot):
    low = draw(robot, "ceiling", np.random.default_rng(0))
    (ceiling,) = low.obstacles
    pose = np.array(ceiling.pose)
    pose[2, 3] = 0.3
    low = replace(low, obstacles=(replace(ceiling, pose=pose),))
    poses = np.random.default_rng(0).uniform(low.limits.lower, low.limits.upper, (200, 6))
    assert np.all(CoalRoom(low).too_near(poses)["obstacle 'ceiling'"] > 0)
    with pytest.raises(TrajectoryError, match="obstacle 'ceiling'"):
        design_motion(low)
