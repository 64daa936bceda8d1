"""Test the report of a designed motion: extreme values, distances, drawings, unchecked hazards and weak parameters."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest
from html_page import HOSTILE, Page, assert_self_contained, assert_themed
from pinocchio_arm import PinocchioArm

from dynid_ros.collision import Bodies, Obstacle
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.pose_set import PoseSet
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.model import RobotModel
from dynid_ros.report.motion import DesignedMotion, limit_sources, unchecked, write_design_report
from dynid_ros.report.motion_use import MotionUse, PathViews
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 4.0)
TABLE = Obstacle("table <b>", (0.5, -0.4, 0.0), (0.9, 0.4, 0.2))


def build_workspace(robot=ROBOT, **settings):
    return Workspace(robot, 0.0, 0.05, obstacles=[TABLE], box=([-2, -2, -2], [2, 2, 2]), **settings)


def write_page(folder, design):
    page = Page(write_design_report(folder / "new" / "report.html", design).read_text(encoding="utf-8"))
    assert_self_contained(page)
    assert_themed(page)
    return page


@pytest.fixture(name="problem", scope="module")
def fixture_problem(tmp_path_factory):
    workspace = build_workspace()
    plan = FourierExcitation(
        ROBOT,
        LIMITS,
        workspace,
        base_frequency=0.2,
        harmonics=3,
        criterion="condition",
        starts=1,
        workers=1,
        design_time=3.0,
        candidates=2,
    ).plan()
    motion = plan.trajectory.sample(50.0)
    quality = MotionQuality.of(ROBOT, motion.position, motion.velocity, motion.acceleration, limits=LIMITS)
    design = DesignedMotion(ROBOT, LIMITS, workspace, plan, "fourier", "links", {"harmonics": "3"}, quality)
    return SimpleNamespace(plan=plan, design=design, page=write_page(tmp_path_factory.mktemp("problem"), design))


def test_largest_torque_agrees_with_pinocchio(problem):
    arm = PinocchioArm(planar_arm.urdf(), ROBOT.joint_names, ROBOT.gravity)
    q, qd, qdd = problem.plan.trajectory.at(np.arange(0, 5, 0.002))
    torque = np.array([arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
    for joint, name in enumerate(ROBOT.joint_names):
        row = re.search(
            rf"{name} −?[\d.]+ to −?[\d.]+ °, (\d+) % ([\d.]+) rad/s, (\d+) % ([\d.]+) rad/s², (\d+) % "
            r"[\d.]+ rad/s³, no limit ([\d.]+) N m, (\d+) %",
            problem.page.text,
        )
        largest = [np.abs(values[:, joint]).max() for values in (q, qd, qdd, torque)]
        parts = [largest[0] / 2.5, largest[1] / 3, largest[2] / 4, largest[3] / 50]
        assert [float(row[k]) for k in (2, 4, 6)] == pytest.approx(largest[1:], rel=6e-3)
        assert [float(row[k]) for k in (1, 3, 5, 7)] == pytest.approx([100 * part for part in parts], abs=1)


def test_floor_distance_is_the_height_of_the_tip(problem):
    """The floor is at z = 0, and the tip of the planar arm is the origin of its last link."""
    use = problem.design.use
    height = ROBOT.forward_kinematics(use.motion[0])[:, 2, 2, 3]
    approach = next(a for a in use.approaches if a.names == "'link_3' and the floor")
    np.testing.assert_allclose(approach.course, height, atol=1e-9)
    assert use.time[np.argmin(height)] == pytest.approx(approach.time)
    text = problem.page.text
    assert f"'link_3' and the floor {1000 * height.min():.0f} mm" in text
    is_constant = [a.is_constant for a in use.approaches]
    assert is_constant == sorted(is_constant)


def test_obstacles_box_and_links_are_drawn_in_place(problem):
    views = PathViews.from_use(problem.design.use)
    np.testing.assert_allclose(views.boxes["table <b>"].min(axis=0), TABLE.lower)
    np.testing.assert_allclose(views.boxes["table <b>"].max(axis=0), TABLE.upper)
    np.testing.assert_allclose(views.walls.max(axis=0), [2, 2, 2])
    np.testing.assert_allclose(views.sticks[:, 0], 0.0)
    lengths = np.linalg.norm(np.diff(views.sticks, axis=1), axis=2)
    np.testing.assert_allclose(lengths[:, [0, 2]], [[0.3, 0.4]] * len(lengths), atol=1e-12)
    assert problem.page.text.count("table <b>") >= 2
    assert "box that contains the links" in problem.page.text
    assert "(-2, -2, -2) to (2, 2, 2) m" in problem.page.text


def test_arm_on_a_wall_is_drawn_with_gravity_down():
    robot = RobotModel.from_urdf(planar_arm.urdf(), gravity=(-9.8, 0.0, 0.0))
    q = np.linspace([-1, -1, -1], [1, 1, 1], 3)
    trajectory = Trajectory(robot.joint_names, [0, 1, 2], q, 0 * q, 0 * q)
    views = PathViews.from_use(MotionUse(robot, LIMITS, Workspace(robot), trajectory))
    np.testing.assert_allclose(views.frame @ [1.0, 0.0, 0.0], [0, 0, 1], atol=1e-12)
    assert np.linalg.det(views.frame) == pytest.approx(1.0)
    # The first link lies along the base's z axis, which is horizontal here.
    assert views.sticks[0, 1, 2] == pytest.approx(0.0)
    np.testing.assert_allclose(views.sticks[0, 1] @ views.frame, [0, 0, 0.3], atol=1e-12)


@pytest.mark.parametrize(
    ("condition_number", "words"), [(50.0, "condition number 50"), (np.inf, "parameters undetermined")]
)
def test_page_names_earlier_recordings_and_their_condition_number(problem, tmp_path, condition_number, words):
    page = write_page(tmp_path, replace(problem.design, recorded=("run 1", "run 2"), known_condition=condition_number))
    assert f"Recorded before: {words} alone, " in page.text


def test_page_lists_hazards_that_were_not_checked(problem):
    sentences = " ".join(problem.design.not_checked)
    for words in ("Cables", "The shapes of base_link", "without friction", "Jerk is not limited"):
        assert words in sentences
    assert "obstacles" not in sentences
    assert all(sentence in problem.page.text for sentence in problem.design.not_checked)
    sentences = list(unchecked(ROBOT, LIMITS, Workspace(ROBOT)))
    assert "No obstacles are known: tables, walls, fixtures and people are not considered." in sentences
    assert "No floor is known." in sentences
    assert any("with clearance 0 they are not kept apart" in sentence for sentence in sentences)


def test_unchecked_bodies_and_torques_are_named():
    tipless = re.sub(r'(<link name="link_3">)<inertial>.*?</inertial>', r"\1", planar_arm.urdf(), flags=re.DOTALL)
    robot = RobotModel.from_urdf(tipless)
    bodies = replace(Bodies.lines(robot), left_out=("finger",))
    workspace = Workspace(robot, 0.0, 0.1)
    workspace.bodies = bodies
    workspace.exempt = ("'link_1' and the floor",)
    limits = MotionLimits.of(robot, 4.0, jerk_limits=50)
    sentences = list(unchecked(robot, limits, workspace))
    assert "The places of finger are not known: they are not considered." in sentences
    assert "These pairs are too near in every pose, and not kept apart: 'link_1' and the floor." in sentences
    assert "No torque is predicted for joint_3: the URDF has no mass there." in sentences
    free = MotionLimits.of(RobotModel.from_urdf(planar_arm.urdf(effort=0.0)), 4.0, torque_limits=[math.nan, 9, 9])
    assert "No torque limit is known of joint_1." in list(unchecked(ROBOT, free, workspace))


def test_sources_of_limits():
    limits = MotionLimits.of(ROBOT, 4.0, velocity_limits=[1, math.nan, math.nan], position_lower=-1, jerk_limits=9)
    assert limit_sources(ROBOT, limits) == {
        "position": "given",
        "velocity": "from the URDF, given for joint_1",
        "acceleration": "given",
        "jerk": "given",
        "torque": "from the URDF",
    }
    bare = RobotModel.from_urdf(planar_arm.urdf(effort=0.0))
    assert limit_sources(bare, MotionLimits.of(bare, 4.0))["torque"] == "none"


def test_grade_of_condition_number_counts_weak_parameters(problem, tmp_path):
    weak = MotionQuality.of(ROBOT, *problem.plan.trajectory.at(np.arange(0, 5, 0.02)), noise=100.0, limits=LIMITS)
    assert weak.weak
    page = write_page(tmp_path, replace(problem.design, quality=weak))
    number = len(weak.weak)
    assert f"base parameters, {number} of them weakly." in page.text
    assert re.search(rf"Condition number \S+ (good|moderate|poor); {number} parameters? weakly determined", page.text)


def test_page_of_poses_escapes_names_and_explains_missing_verdict(tmp_path):
    names = (HOSTILE, "b", "c")
    text = planar_arm.urdf().replace("joint_2", "b").replace("joint_3", "c")
    robot = RobotModel.from_urdf(
        text.replace("joint_1", HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"))
    )
    assert robot.joint_names == names
    limits = MotionLimits.of(robot, 4.0)
    plan = PoseSet(robot, limits, count=3).plan()
    design = DesignedMotion(
        robot, limits, Workspace(robot), plan, "poses", "gravity", not_judged="too few", recorded=("run <i>",)
    )
    page = write_page(tmp_path, design)
    for words in (
        "The arm dwells in a set of poses",
        "The motion was not judged: too few",
        "run <i>",
        HOSTILE,
        "Nothing was kept apart",
    ):
        assert words in page.text
    assert "Search" not in page.text
    assert "Singular values" not in page.text
