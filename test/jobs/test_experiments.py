"""Experiments by name."""

import numpy as np
import pa10
import planar_arm
import pytest

from dynid_ros.errors import IdentifiedFileError, TrajectoryError
from dynid_ros.identification import FlexibleJointIdentification
from dynid_ros.identified.flexible_joints import LINK_FRICTION_KEYS
from dynid_ros.identified.identified_file import new_document, save_identified
from dynid_ros.information.steady_state import FlexibleJoints
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.experiments import (
    CLEARANCE,
    EXPERIMENT_KINDS,
    MIN_DURATION_S,
    PRIOR,
    flexible_motion,
    flexible_prior,
    make_experiment,
    surroundings,
    usual_base_frequency,
)
from dynid_ros.model import RobotModel
from dynid_ros.simulation import Drives, SimulatedArm, Springs, demo_arm_urdf, simulate
from dynid_ros.trajectories import MotionLimits, Workspace

# Motions for flexible joints from files and arguments.


FLEXIBLE_MOTION_ROBOT, ROW = pa10.single_joint_robot(2), pa10.table_one(2)
VALUES = {name: getattr(ROW, name) for name in PRIOR}
RESONANCE = np.sqrt(ROW.stiffness / (pa10.LIGHTER * ROW.inertia)) / (2 * np.pi)
FLEXIBLE_MOTION_LIMITS = MotionLimits.of(FLEXIBLE_MOTION_ROBOT, acceleration_limits=30.0)
WORKSPACE = Workspace(FLEXIBLE_MOTION_ROBOT)
QUICK = {"design_time": 0.0, "workers": 1}


def identified(folder, decided=True, **changes):
    entry = {LINK_FRICTION_KEYS.get(name, name): value for name, value in (VALUES | changes).items()}
    document = new_document(FLEXIBLE_MOTION_ROBOT, ["run"], {})
    document["flexible_joints"] = {"joint_2": {**entry, "decided": {"stiffness": decided}}}
    return save_identified(folder / "identified.yaml", document)


def test_the_file_is_the_prior_and_arguments_overrule_it(tmp_path):
    found = flexible_prior(
        FLEXIBLE_MOTION_ROBOT, {"viscous": np.array([5.0]), "coulomb": None}, identified(tmp_path, motor_viscous=-0.1)
    )
    assert found.stiffness == pytest.approx(ROW.stiffness)
    assert found.coulomb == pytest.approx(ROW.coulomb)
    assert (found.viscous, found.motor_viscous) == (5.0, 0.0)


def test_harmonics_lie_on_both_sides_of_the_resonance():
    series = (
        flexible_motion(FLEXIBLE_MOTION_ROBOT, FLEXIBLE_MOTION_LIMITS, WORKSPACE, FlexibleJoints(**VALUES), **QUICK)
        .plan()
        .series
    )
    assert series.base_frequency < RESONANCE < 8 * series.base_frequency
    wanted = flexible_motion(
        FLEXIBLE_MOTION_ROBOT, FLEXIBLE_MOTION_LIMITS, WORKSPACE, FlexibleJoints(**VALUES), base_frequency=1.0, **QUICK
    )
    assert wanted.plan().series.base_frequency == 1.0


@pytest.mark.slow
def test_the_motion_that_is_designed_is_enough_to_identify_the_joint():
    """Gentle limits and priors that are off by half: the period is repeated, and wide enough."""
    limits = MotionLimits.of(FLEXIBLE_MOTION_ROBOT, acceleration_limits=5.0)
    prior = FlexibleJoints(1.5 * ROW.stiffness, 0.5 * ROW.motor_inertia)
    plan = flexible_motion(FLEXIBLE_MOTION_ROBOT, limits, WORKSPACE, prior, **QUICK, periods=1).plan()
    assert plan.duration >= MIN_DURATION_S
    true = RobotModel.from_urdf(pa10.single_joint_urdf(2))
    arm = SimulatedArm(
        true,
        drives=Drives([ROW.coulomb], [ROW.viscous], [ROW.motor_inertia]),
        springs=Springs([ROW.stiffness], motor_viscous=[ROW.motor_viscous]),
        timestep=5e-4,
        start=plan.trajectory.position[0],
    )
    recording = simulate(arm, plan.trajectory, 250.0, link_encoders=True)
    result = FlexibleJointIdentification(FLEXIBLE_MOTION_ROBOT).fit(recording)
    assert result.stiffness[0] == pytest.approx(ROW.stiffness, rel=0.05)


@pytest.mark.slow
def test_held_joints_stand_still():
    arm = pa10.arm_robot()
    limits = MotionLimits.of(arm, acceleration_limits=30.0)
    joints = FlexibleJoints(11900.0, 2.0, 5.0, 5.0, 10.0)
    held = np.array([0.3, np.nan, 1.2, 0.3, 0.9, 0.2])
    motion = flexible_motion(arm, limits, Workspace(arm), joints, held, **QUICK).plan().trajectory.position
    assert np.ptp(motion[:, 1]) > 0.05
    assert np.ptp(np.delete(motion, 1, axis=1), axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    assert np.delete(motion[0], 1) == pytest.approx(np.delete(held, 1))


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(TrajectoryError, match="motor_inertia of the joints is not known"):
        flexible_prior(FLEXIBLE_MOTION_ROBOT, {"stiffness": np.array([1e4])})
    with pytest.raises(IdentifiedFileError, match="stiffness of joint 'joint_2' is undetermined"):
        flexible_prior(FLEXIBLE_MOTION_ROBOT, {}, identified(tmp_path, decided=False))
    with pytest.raises(IdentifiedFileError, match="joint 'joint_2': motor_inertia is None"):
        flexible_prior(FLEXIBLE_MOTION_ROBOT, {}, identified(tmp_path, motor_inertia=None))
    with pytest.raises(IdentifiedFileError, match="is of robot 'pa10_joint_2'"):
        flexible_prior(pa10.single_joint_robot(3), {}, identified(tmp_path))
    arguments = ("flexible", FLEXIBLE_MOTION_ROBOT, FLEXIBLE_MOTION_LIMITS, WORKSPACE, tmp_path)
    for settings, words in (
        ({}, "needs prior values of the joints"),
        ({"joints": FlexibleJoints(**VALUES), "target": "links"}, "shows flexible joints, not links"),
        ({"joints": FlexibleJoints(**VALUES), "sweep": 1.0}, "motion flexible has no setting sweep"),
    ):
        with pytest.raises(TrajectoryError, match=words):
            excite(*arguments, **settings)


ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 4.0)


def make(kind, target=None, **settings):
    return make_experiment(kind, ROBOT, LIMITS, Workspace(ROBOT), target, **settings)


@pytest.mark.parametrize("kind", EXPERIMENT_KINDS)
def test_settings_reach_the_experiment(kind):
    made = make(kind, speed_fraction=0.3, dwell=None)
    assert isinstance(made, EXPERIMENT_KINDS[kind].make)
    assert made.workspace.floor_height == -float("inf")


@pytest.mark.parametrize(
    ("velocity", "frequency"),
    [(3.0, 0.05), (0.6, 0.038), (1e-3, 0.01)],
    ids=["quick", "slow", "no longer than 100 s"],
)
def test_a_period_is_long_enough_for_a_slow_joint(velocity, frequency):
    limits = MotionLimits.of(ROBOT, 4.0, velocity_limits=velocity)
    assert usual_base_frequency(limits, 0.5) == frequency
    experiment = make_experiment("fourier", ROBOT, limits, Workspace(ROBOT), harmonics=4)
    assert experiment.highest_frequency == pytest.approx(4 * frequency)
    wanted = make_experiment("fourier", ROBOT, limits, Workspace(ROBOT), harmonics=4, base_frequency=0.2)
    assert wanted.highest_frequency == pytest.approx(0.8)


def test_joints_move_in_steps_where_steps_are_asked_for():
    assert make("joint_by_joint", frequencies=[0.2]).motion == "sinusoid"
    assert make("joint_by_joint", steps=4).motion == "steps"


@pytest.mark.parametrize(
    ("kind", "target", "settings", "words"),
    [
        ("dance", None, {}, "motion is 'dance'; expected fourier, static_rotation"),
        ("poses", "links", {}, "target is 'links'; motion poses shows gravity or load"),
        ("poses", None, {"harmonics": 3}, "motion poses has no setting harmonics, which is one of fourier"),
        ("payload", None, {"known": [1.0]}, "motion payload has no setting known"),
        ("fourier", None, {"harmonics": 1}, "harmonics is 1; it must be at least 2"),
    ],
)
def test_refusals(kind, target, settings, words):
    with pytest.raises(TrajectoryError, match=words):
        make(kind, target, **settings)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("static_rotation", "steps"),
        ("poses", "count"),
        ("fourier", "harmonics"),
        ("fourier", "workers"),
        ("payload", "repeats"),
    ],
)
def test_numbers_that_no_memory_holds_are_refused(kind, name):
    with pytest.raises(TrajectoryError, match=rf"{name} is 4611686018427387904; expected at most (1000|64)"):
        make(kind, **{name: 2**62})


# The workspace.


LEANING = [0.0, 0.6, 0.4, 0.0, 0.3, 0.0]
"""Pose of the demo arm whose links are 0.08 m and more apart from each other."""


def demo_surroundings(folder, wall=None, **settings):
    """Return the workspace of the demo arm, with a wall that begins at a place on the x axis of the base."""
    obstacles = []
    if wall is not None:
        obstacles = [folder / "wall.yaml"]
        obstacles[0].write_text(f"- {{name: wall, size: [0.2, 4, 4], position: [{wall + 0.1}, 0, 0]}}")
    robot = RobotModel.from_urdf(demo_arm_urdf())
    return surroundings(robot, folder / "arm.urdf", obstacles=obstacles, **settings)


def least_room(workspace, words):
    """Return the least room in the pose, m, of the checks whose names hold the words."""
    room = workspace.distances([LEANING]).room[0]
    return min(value for name, value in zip(workspace.names, room, strict=True) if words in name)


def test_the_clearance_to_obstacles_is_kept(tmp_path):
    far = least_room(demo_surroundings(tmp_path, 1.5, clearance=0.0), "wall")
    near = 1.5 - far + 0.03
    assert least_room(demo_surroundings(tmp_path, near, clearance=0.0), "wall") == pytest.approx(0.03)
    allowed = [
        demo_surroundings(tmp_path, near, clearance=clearance).allowed([LEANING])[0] for clearance in (0.029, 0.031)
    ]
    assert allowed == [True, False]


@pytest.mark.parametrize(("settings", "clearance"), [({"clearance": 0.02}, 0.02), ({}, CLEARANCE)])
def test_the_clearance_between_links_is_kept(tmp_path, settings, clearance):
    without, kept = (
        least_room(demo_surroundings(tmp_path, **each), "'link_6' and 'link_3'")
        for each in ({"clearance": 0.0}, settings)
    )
    assert without - kept == pytest.approx(clearance)


def test_the_floor_is_where_it_is_said_to_be(tmp_path):
    usual, low = (
        least_room(demo_surroundings(tmp_path, **settings), "'tool' and the floor")
        for settings in ({}, {"floor_height": -0.4})
    )
    assert low == pytest.approx(usual + 0.4)
    assert not any("floor" in name for name in demo_surroundings(tmp_path, floor_height=-np.inf).names)


@pytest.mark.parametrize("side", range(6))
def test_each_side_of_the_box_is_where_it_is_said_to_be(tmp_path, side):
    sides = [f"'tool' and the {end} {axis} side" for end in ("lower", "upper") for axis in "xyz"]
    wide = [-9.0] * 3 + [9.0] * 3
    narrow = list(wide)
    narrow[side] *= 1 / 3
    before, after = (demo_surroundings(tmp_path, box=box) for box in (wide, narrow))
    for each, words in enumerate(sides):
        change = 6.0 if each == side else 0.0
        assert least_room(before, words) - least_room(after, words) == pytest.approx(change)


def test_pairs_that_may_touch_are_not_kept_apart(tmp_path):
    """By their names, or by an SRDF."""
    srdf = tmp_path / "arm.srdf"
    name = RobotModel.from_urdf(demo_arm_urdf()).name
    srdf.write_text(f'<robot name="{name}"><disable_collisions link1="link_6" link2="link_3"/></robot>')
    for settings in ({"allowed": ["link_6:link_3"]}, {"srdf": srdf}):
        assert "'link_6' and 'link_3'" not in demo_surroundings(tmp_path, **settings).names
