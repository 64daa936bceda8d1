"""test_clearance."""

import arm_meshes
import numpy as np
import pytest
import random_chains

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import Workspace

# Against the real meshes in coal.


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


def scene():
    turned = np.eye(4)
    turned[:3, :3] = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turned[:3, 3] = [0.4, 0.3, 0.6]
    return [Obstacle("crate", [-0.2, -0.1, -0.3], [0.2, 0.1, 0.3], turned)]


def check_gradient(workspace, poses, share):
    """By central differences; where two parts take turns in being nearest, the distance has a kink."""
    weights = np.random.default_rng(1).normal(size=workspace.distances(poses).room.shape)
    gradient = workspace.distances(poses).gradient(weights)
    step = 1e-6
    for joint in range(poses.shape[1]):
        shift = step * np.eye(poses.shape[1])[joint]
        up, down = (workspace.distances(poses + s).room for s in (shift, -shift))
        difference = np.sum(weights * (up - down), axis=1) / (2 * step)
        assert np.mean(np.abs(difference - gradient[:, joint]) < 1e-5) >= share


@pytest.mark.parametrize("name", ["ur10", "panda"])
def test_gradient_of_real_arms(name):
    robot, bodies = arm_meshes.arm(name)
    workspace = Workspace(robot, -0.5, 0.01, bodies, box=([-0.6] * 3, [0.6] * 3), obstacles=scene())
    assert workspace.distances(arm_meshes.poses(robot, 3, 0)).room.shape == (3, len(workspace.names))
    check_gradient(workspace, arm_meshes.poses(robot, 40, 3), share=0.95)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_of_any_chain_with_sliding_joints(seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_chains.random_urdf(rng, 5, prismatic_share=0.5), tip=random_chains.TIP)
    lines = Bodies.lines(robot)
    bodies = Bodies(lines.link, lines.start, lines.end, lines.radius + 0.03, lines.hulls, lines.names)
    workspace = Workspace(robot, -9.0, 0.01, bodies, box=([-9] * 3, [9] * 3), obstacles=scene())
    check_gradient(workspace, rng.uniform(-1.5, 1.5, (60, 5)), share=0.95)


def test_weights_of_another_shape_are_refused():
    robot, bodies = arm_meshes.arm("panda")
    with pytest.raises(CollisionError, match=r"weights have shape \(2, 3\)"):
        Workspace(robot, bodies=bodies).distances(arm_meshes.poses(robot, 2, 0)).gradient(np.ones((2, 3)))
