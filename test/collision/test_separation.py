import arm_meshes
import numpy as np
import pytest
import random_chains

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.errors import CollisionError
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import Workspace


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
