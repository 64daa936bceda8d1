"""Test distances between links and obstacles: against meshes in Coal, their gradient, and monotonic clearance."""

from itertools import pairwise

import arm_meshes
import numpy as np
import pytest
import random_chains
from urdf_parts import BODY, joint, link, robot

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.errors import CollisionError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.trajectories import MotionLimits, Workspace


@pytest.mark.slow
@pytest.mark.parametrize(("name", "max_false_share"), [("ur10", 0.13), ("panda", 0.08)])
def test_capsules_detect_all_collisions_of_real_meshes(name, max_false_share):
    """Capsules of two links touch wherever their meshes do."""
    robot, bodies = arm_meshes.arm(name)
    workspace = Workspace(robot, bodies=bodies)
    coal = arm_meshes.CoalArm(name)
    poses = arm_meshes.poses(robot, 500, seed=11)
    touching = coal.colliding(poses)
    room = workspace.distances(poses).room
    pairs = workspace._checks[0]
    pair_links = np.column_stack([pairs.link, pairs.other_link])
    for links in np.unique(coal.links, axis=0):
        truth = touching[:, np.all(coal.links == links, axis=1)].any(axis=1)
        detected = (room[:, np.all(pair_links == links, axis=1)] < 0).any(axis=1)
        assert not np.any(truth & ~detected), links
    truth = touching.any(axis=1)
    assert truth.mean() > 0.1
    assert np.mean(~workspace.allowed(poses) & ~truth) < max_false_share


@pytest.mark.parametrize("name", ["ur10", pytest.param("panda", marks=pytest.mark.slow)])
def test_larger_clearance_allows_fewer_poses(name):
    """Wrist links that are two joints apart have less than 5 cm between them; the arm must still be able to move."""
    robot, bodies = arm_meshes.arm(name)
    poses = arm_meshes.poses(robot, 150, seed=12)
    allowed = [Workspace(robot, clearance=c, bodies=bodies).allowed(poses) for c in (0.0, 0.01, 0.05)]
    assert all(np.all(closer | ~further) for closer, further in pairwise(allowed))
    assert allowed[-1].mean() > 0.3 * allowed[0].mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("with_bodies", [True, False])
def test_larger_clearance_allows_fewer_poses_of_random_chains(seed, with_bodies):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_urdf(random_chains.random_urdf(rng, 5), tip=random_chains.TIP)
    lines = Bodies.lines(robot)
    bodies = Bodies(lines.link, lines.start, lines.end, lines.radius + 0.02, lines.hulls, lines.names)
    poses = rng.uniform(-2.0, 2.0, (150, 5))
    allowed = [
        Workspace(robot, clearance=c, bodies=bodies if with_bodies else None).allowed(poses)
        for c in (0.001, 0.01, 0.03, 0.06, 0.12)
    ]
    assert allowed[0].any()
    assert all(np.all(closer | ~further) for closer, further in pairwise(allowed))


def test_larger_clearance_does_not_exempt_the_first_link():
    """The first link swings through a post at 5 cm from its axis."""
    robot = RobotModel.from_urdf(TWO_ARMS, "left_tip")
    post = Obstacle("post", [-0.05, 0.25, -1.0], [0.05, 0.3, 1.0])
    poses = np.random.default_rng(0).uniform(-np.pi, np.pi, (100, 2))
    near, far = (Workspace(robot, clearance=c, obstacles=[post]).allowed(poses) for c in (0.01, 0.06))
    assert 0 < near.sum() < len(poses)
    assert np.all(near | ~far)


def test_pedestals_near_the_first_link_allow_poses():
    robot, bodies = arm_meshes.arm("ur10")
    pedestal = Obstacle("pedestal", [-0.08, -0.05, -0.5], [0.08, 0.05, 0.0])
    poses = arm_meshes.poses(robot, 60, seed=12)
    allowed = [Workspace(robot, clearance=c, bodies=bodies, obstacles=[pedestal]).allowed(poses) for c in (0.01, 0.05)]
    assert np.all(allowed[0] | ~allowed[1])
    assert allowed[1].any()


def test_ignores_pairs_at_constant_distance():
    """A wrist turns in front of the forearm, always 2 cm from it."""
    turn = '<limit lower="-1" upper="1" velocity="3" effort="90"/>'
    parts = (
        ("base", "arm", "0 0 0", "0 0 1"),
        ("arm", "fork", "0.3 0 0", "0 0 1"),
        ("fork", "hand", "0.1 0 0", "1 0 0"),
    )
    text = robot(
        *(link(name) for name in ("base", "arm", "fork", "hand", "tip")),
        *(
            joint(f"joint_{i}", parent, child, content=f'<origin xyz="{xyz}"/>{turn}', axis=axis)
            for i, (parent, child, xyz, axis) in enumerate(parts)
        ),
        joint("flange", "hand", "tip", kind="fixed", content='<origin xyz="0.05 0 0"/>'),
    )
    wrist = RobotModel.from_urdf(text, tip="tip")
    lines = Bodies.lines(wrist)
    bodies = Bodies(lines.link, lines.start, lines.end, lines.radius + 0.04, lines.hulls, lines.names)
    workspace = Workspace(wrist, clearance=0.05, bodies=bodies)
    limits = MotionLimits.of(wrist, 2.0)
    poses = limits.poses(64)
    assert workspace.allowed(poses).all()
    assert workspace.distances(poses).room.min(initial=1.0) > 0.001
    FourierExcitation(wrist, limits, workspace, design_time=0.0, candidates=1).plan()


@pytest.mark.parametrize(("axis", "is_telescope"), [("1 0 0", True), ("0 1 0", False)])
def test_sections_of_a_telescope_may_overlap(axis, is_telescope):
    """The outer and inner section, 0.4 m long, overlap unless both prismatic joints are extended."""
    section = '<collision><geometry><box size="0.4 0.08 0.08"/></geometry></collision>'
    slide = '<limit lower="0" upper="0.25" velocity="1" effort="90"/>'
    text = robot(
        *(link(name, BODY + section) for name in ("outer", "middle", "inner")),
        joint("first", "outer", "middle", kind="prismatic", content=slide, axis="1 0 0"),
        joint("second", "middle", "inner", kind="prismatic", content=slide, axis=axis),
    )
    arm = RobotModel.from_urdf(text, tip="inner")
    workspace = Workspace(arm, bodies=Bodies.of(arm))
    assert workspace.allowed(MotionLimits.of(arm, 2.0).poses(64)).all() == is_telescope
    assert (("inner", "outer") in workspace.close_pairs) != is_telescope


def create_obstacles():
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    pose[:3, 3] = [0.4, 0.3, 0.6]
    return [Obstacle("crate", [-0.2, -0.1, -0.3], [0.2, 0.1, 0.3], pose)]


def assert_gradient(workspace, poses, share):
    """Compare the gradient with central differences in a share of poses; distances have kinks between nearest parts."""
    weights = np.random.default_rng(1).normal(size=workspace.distances(poses).room.shape)
    gradient = workspace.distances(poses).gradient(weights)
    step = 1e-6
    for column in range(poses.shape[1]):
        shift = step * np.eye(poses.shape[1])[column]
        up, down = (workspace.distances(poses + s).room for s in (shift, -shift))
        difference = np.sum(weights * (up - down), axis=1) / (2 * step)
        assert np.mean(np.abs(difference - gradient[:, column]) < 1e-5) >= share


TWO_ARMS = robot(
    *(link(name) for name in ("base", "left_arm", "left_hand", "right_arm", "right_hand", "left_tip", "right_tip")),
    *(
        joint(f"{side}_{i}", *ends, content=f'<origin xyz="0 {y} 0"/>', kind=kind)
        for side, y in (("left", 0.2), ("right", -0.2))
        for i, (*ends, kind) in enumerate(
            (
                ("base", f"{side}_arm", "continuous"),
                (f"{side}_arm", f"{side}_hand", "continuous"),
                (f"{side}_hand", f"{side}_tip", "fixed"),
            )
        )
    ),
)
"""Two planar arms with links of 0.2 m that point away from each other along y."""


@pytest.mark.parametrize("name", ["ur10", pytest.param("panda", marks=pytest.mark.slow)])
def test_distance_gradient_of_real_arms(name):
    robot, bodies = arm_meshes.arm(name)
    workspace = Workspace(robot, -0.5, 0.01, bodies, box=([-0.6] * 3, [0.6] * 3), obstacles=create_obstacles())
    assert workspace.distances(arm_meshes.poses(robot, 3, 0)).room.shape == (3, len(workspace.names))
    assert_gradient(workspace, arm_meshes.poses(robot, 40, 3), share=0.95)


@pytest.mark.parametrize("is_tree", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_distance_gradient_of_random_chains_and_trees(seed, is_tree):
    rng = np.random.default_rng(seed)
    if is_tree:
        robot = RobotModel.from_urdf(random_chains.random_tree_urdf(rng, 7), "all")
    else:
        robot = RobotModel.from_urdf(random_chains.random_urdf(rng, 5, prismatic_share=0.5), tip=random_chains.TIP)
    assert robot.chain.has_branches == is_tree
    lines = Bodies.lines(robot)
    bodies = Bodies(lines.link, lines.start, lines.end, lines.radius + 0.03, lines.hulls, lines.names)
    workspace = Workspace(robot, -9.0, 0.01, bodies, box=([-9] * 3, [9] * 3), obstacles=create_obstacles())
    assert_gradient(workspace, rng.uniform(-1.5, 1.5, (60, robot.n_joints)), share=0.95)


def test_branches_keep_apart_except_for_neighbours():
    robot = RobotModel.from_urdf(TWO_ARMS, "all")
    workspace = Workspace(robot, clearance=0.01)
    pairs = {tuple(sorted(name.split("'")[1::2])) for name in workspace.names if "' and '" in name}
    assert ("left_hand", "right_hand") in pairs
    assert ("base", "left_hand") in pairs
    assert ("base", "base") not in pairs  # these lines start at the same point
    quarter = np.pi / 4
    crossing = [3 * quarter, quarter, -3 * quarter, -quarter]
    poses = np.array([[0.0] * 4, [2 * quarter, 0.0, -2 * quarter, 0.0], crossing])
    assert workspace.allowed(poses).tolist() == [True, True, False]


def test_refuses_weights_of_another_shape():
    robot, bodies = arm_meshes.arm("panda")
    with pytest.raises(CollisionError, match=r"weights have shape \(2, 3\)"):
        Workspace(robot, bodies=bodies).distances(arm_meshes.poses(robot, 2, 0)).gradient(np.ones((2, 3)))
