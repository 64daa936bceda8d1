"""Against the real meshes in coal."""

import arm_meshes
import numpy as np
import pytest

from dynid_ros.trajectories import Workspace


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most_cautious"), [("ur10", 0.13), ("panda", 0.08)])
def test_no_collision_of_real_meshes_is_missed_and_few_poses_are_lost(name, most_cautious):
    """Link by link: wherever two meshes touch, their capsules do."""
    robot, bodies = arm_meshes.arm(name)
    workspace = Workspace(robot, bodies=bodies)
    coal = arm_meshes.CoalArm(name)
    poses = arm_meshes.poses(robot, 500, seed=11)
    touching = coal.colliding(poses)
    room = workspace.distances(poses).room
    pairs = workspace._checks[0]
    ours = np.column_stack([pairs.link, pairs.other_link])
    for links in np.unique(coal.links, axis=0):
        truth = touching[:, np.all(coal.links == links, axis=1)].any(axis=1)
        found = (room[:, np.all(ours == links, axis=1)] < 0).any(axis=1)
        assert not np.any(truth & ~found), links
    truth = touching.any(axis=1)
    assert truth.mean() > 0.1
    assert np.mean(~workspace.allowed(poses) & ~truth) < most_cautious


@pytest.mark.parametrize("name", ["ur10", "panda"])
def test_clearance_by_design_locks_nothing(name):
    """The wrists have less than 5 cm between links that are two joints apart; the arm must still be able to move."""
    robot, bodies = arm_meshes.arm(name)
    poses = arm_meshes.poses(robot, 300, seed=12)
    close, near = (Workspace(robot, clearance=clearance, bodies=bodies).allowed(poses) for clearance in (0.0, 0.05))
    assert np.all(close | ~near)
    assert near.mean() > 0.5 * close.mean()
