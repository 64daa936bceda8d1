"""Test experiments made by name, motions for flexible joints, and workspaces."""

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

FLEXIBLE_ROBOT = pa10.single_joint_robot(2)
PA10_JOINT = pa10.table_one(2)
PRIOR_VALUES = {name: getattr(PA10_JOINT, name) for name in PRIOR}
RESONANCE_HZ = np.sqrt(PA10_JOINT.stiffness / (pa10.LIGHTER * PA10_JOINT.inertia)) / (2 * np.pi)
FLEXIBLE_LIMITS = MotionLimits.of(FLEXIBLE_ROBOT, acceleration_limits=30.0)
WORKSPACE = Workspace(FLEXIBLE_ROBOT)
QUICK_SEARCH = {"design_time": 0.0, "workers": 1}


def write_flexible_joints(folder, is_decided=True, **changes):
    """Write `identified.yaml` of a flexible joint with these changes and return its path."""
    entry = {LINK_FRICTION_KEYS.get(name, name): value for name, value in (PRIOR_VALUES | changes).items()}
    document = new_document(FLEXIBLE_ROBOT, ["run"], {})
    document["flexible_joints"] = {"joint_2": {**entry, "decided": {"stiffness": is_decided}}}
    return save_identified(folder / "identified.yaml", document)


def test_arguments_override_the_prior_of_the_file(tmp_path):
    prior = flexible_prior(
        FLEXIBLE_ROBOT,
        {"viscous": np.array([5.0]), "coulomb": None},
        write_flexible_joints(tmp_path, motor_viscous=-0.1),
    )
    assert prior.stiffness == pytest.approx(PA10_JOINT.stiffness)
    assert prior.coulomb == pytest.approx(PA10_JOINT.coulomb)
    assert (prior.viscous, prior.motor_viscous) == (5.0, 0.0)


def test_harmonics_lie_on_both_sides_of_the_resonance():
    series = (
        flexible_motion(FLEXIBLE_ROBOT, FLEXIBLE_LIMITS, WORKSPACE, FlexibleJoints(**PRIOR_VALUES), **QUICK_SEARCH)
        .plan()
        .series
    )
    assert series.base_frequency < RESONANCE_HZ < 8 * series.base_frequency
    chosen = flexible_motion(
        FLEXIBLE_ROBOT, FLEXIBLE_LIMITS, WORKSPACE, FlexibleJoints(**PRIOR_VALUES), base_frequency=1.0, **QUICK_SEARCH
    )
    assert chosen.plan().series.base_frequency == 1.0


@pytest.mark.slow
def test_designed_motion_identifies_the_joint():
    """The period is repeated and the motion is wide enough, with low limits and priors wrong by half."""
    limits = MotionLimits.of(FLEXIBLE_ROBOT, acceleration_limits=5.0)
    prior = FlexibleJoints(1.5 * PA10_JOINT.stiffness, 0.5 * PA10_JOINT.motor_inertia)
    plan = flexible_motion(FLEXIBLE_ROBOT, limits, WORKSPACE, prior, **QUICK_SEARCH, periods=1).plan()
    assert plan.duration >= MIN_DURATION_S
    robot = RobotModel.from_urdf(pa10.single_joint_urdf(2))
    arm = SimulatedArm(
        robot,
        drives=Drives([PA10_JOINT.coulomb], [PA10_JOINT.viscous], [PA10_JOINT.motor_inertia]),
        springs=Springs([PA10_JOINT.stiffness], motor_viscous=[PA10_JOINT.motor_viscous]),
        timestep=5e-4,
        start=plan.trajectory.position[0],
    )
    recording = simulate(arm, plan.trajectory, 250.0, link_encoders=True)
    result = FlexibleJointIdentification(FLEXIBLE_ROBOT).fit(recording)
    assert result.stiffness[0] == pytest.approx(PA10_JOINT.stiffness, rel=0.05)


@pytest.mark.slow
def test_held_joints_do_not_move():
    arm = pa10.arm_robot()
    limits = MotionLimits.of(arm, acceleration_limits=30.0)
    joints = FlexibleJoints(11900.0, 2.0, 5.0, 5.0, 10.0)
    held = np.array([0.3, np.nan, 1.2, 0.3, 0.9, 0.2])
    motion = flexible_motion(arm, limits, Workspace(arm), joints, held, **QUICK_SEARCH).plan().trajectory.position
    assert np.ptp(motion[:, 1]) > 0.05
    assert np.ptp(np.delete(motion, 1, axis=1), axis=0) == pytest.approx(np.zeros(5), abs=1e-9)
    assert np.delete(motion[0], 1) == pytest.approx(np.delete(held, 1))


def test_invalid_priors_and_settings_are_refused(tmp_path):
    with pytest.raises(TrajectoryError, match="motor_inertia of the joints is not known"):
        flexible_prior(FLEXIBLE_ROBOT, {"stiffness": np.array([1e4])})
    with pytest.raises(IdentifiedFileError, match="stiffness of joint 'joint_2' is undetermined"):
        flexible_prior(FLEXIBLE_ROBOT, {}, write_flexible_joints(tmp_path, is_decided=False))
    with pytest.raises(IdentifiedFileError, match="joint 'joint_2': motor_inertia is None"):
        flexible_prior(FLEXIBLE_ROBOT, {}, write_flexible_joints(tmp_path, motor_inertia=None))
    with pytest.raises(IdentifiedFileError, match="is of robot 'pa10_joint_2'"):
        flexible_prior(pa10.single_joint_robot(3), {}, write_flexible_joints(tmp_path))
    arguments = ("flexible", FLEXIBLE_ROBOT, FLEXIBLE_LIMITS, WORKSPACE, tmp_path)
    for settings, words in (
        ({}, "needs prior values of the joints"),
        ({"joints": FlexibleJoints(**PRIOR_VALUES), "target": "links"}, "shows flexible joints, not links"),
        ({"joints": FlexibleJoints(**PRIOR_VALUES), "sweep": 1.0}, "motion flexible has no setting sweep"),
    ):
        with pytest.raises(TrajectoryError, match=words):
            excite(*arguments, **settings)


ROBOT = RobotModel.from_urdf(planar_arm.urdf())
LIMITS = MotionLimits.of(ROBOT, 4.0)


def make_planar_experiment(kind, target=None, **settings):
    return make_experiment(kind, ROBOT, LIMITS, Workspace(ROBOT), target, **settings)


@pytest.mark.parametrize("kind", EXPERIMENT_KINDS)
def test_settings_reach_the_experiment(kind):
    experiment = make_planar_experiment(kind, speed_fraction=0.3, dwell=None)
    assert isinstance(experiment, EXPERIMENT_KINDS[kind].make)
    assert experiment.workspace.floor_height == -float("inf")


@pytest.mark.parametrize(
    ("velocity", "frequency"), [(3.0, 0.05), (0.6, 0.038), (1e-3, 0.01)], ids=["quick", "slow", "no longer than 100 s"]
)
def test_period_is_longer_for_slow_joints(velocity, frequency):
    limits = MotionLimits.of(ROBOT, 4.0, velocity_limits=velocity)
    assert usual_base_frequency(limits, 0.5) == frequency
    experiment = make_experiment("fourier", ROBOT, limits, Workspace(ROBOT), harmonics=4)
    assert experiment.highest_frequency == pytest.approx(4 * frequency)
    chosen = make_experiment("fourier", ROBOT, limits, Workspace(ROBOT), harmonics=4, base_frequency=0.2)
    assert chosen.highest_frequency == pytest.approx(0.8)


def test_number_of_steps_selects_motion_in_steps():
    assert make_planar_experiment("joint_by_joint", frequencies=[0.2]).motion == "sinusoid"
    assert make_planar_experiment("joint_by_joint", steps=4).motion == "steps"


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
def test_invalid_experiments_are_refused(kind, target, settings, words):
    with pytest.raises(TrajectoryError, match=words):
        make_planar_experiment(kind, target, **settings)


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
def test_numbers_beyond_any_memory_are_refused(kind, name):
    with pytest.raises(TrajectoryError, match=rf"{name} is 4611686018427387904; expected at most (1000|64)"):
        make_planar_experiment(kind, **{name: 2**62})


LEANING = [0.0, 0.6, 0.4, 0.0, 0.3, 0.0]
"""Pose of the demo arm with at least 0.08 m between its links."""


def demo_surroundings(folder, wall=None, **settings):
    """Return the workspace of the demo arm, with a wall that starts at `wall` on the base's x axis."""
    obstacles = []
    if wall is not None:
        obstacles = [folder / "wall.yaml"]
        obstacles[0].write_text(f"- {{name: wall, size: [0.2, 4, 4], position: [{wall + 0.1}, 0, 0]}}")
    robot = RobotModel.from_urdf(demo_arm_urdf())
    return surroundings(robot, folder / "arm.urdf", obstacles=obstacles, **settings)


def min_distance(workspace, words):
    """Return the smallest distance in m, beyond the clearance, of the checks whose names contain the words."""
    room = workspace.distances([LEANING]).room[0]
    return min(value for name, value in zip(workspace.names, room, strict=True) if words in name)


def test_clearance_to_obstacles_is_kept(tmp_path):
    far = min_distance(demo_surroundings(tmp_path, 1.5, clearance=0.0), "wall")
    near = 1.5 - far + 0.03
    assert min_distance(demo_surroundings(tmp_path, near, clearance=0.0), "wall") == pytest.approx(0.03)
    assert demo_surroundings(tmp_path, near, clearance=0.029).allowed([LEANING])[0]
    assert not demo_surroundings(tmp_path, near, clearance=0.031).allowed([LEANING])[0]


@pytest.mark.parametrize(("settings", "clearance"), [({"clearance": 0.02}, 0.02), ({}, CLEARANCE)])
def test_clearance_between_links_is_kept(tmp_path, settings, clearance):
    names = "'link_6' and 'link_3'"
    without = min_distance(demo_surroundings(tmp_path, clearance=0.0), names)
    assert without - min_distance(demo_surroundings(tmp_path, **settings), names) == pytest.approx(clearance)


def test_floor_height_shifts_the_floor(tmp_path):
    default = min_distance(demo_surroundings(tmp_path), "'tool' and the floor")
    low = min_distance(demo_surroundings(tmp_path, floor_height=-0.4), "'tool' and the floor")
    assert low == pytest.approx(default + 0.4)
    assert not any("floor" in name for name in demo_surroundings(tmp_path, floor_height=-np.inf).names)


@pytest.mark.parametrize("side", range(6))
def test_each_side_of_the_box_can_be_set(tmp_path, side):
    sides = [f"'tool' and the {end} {axis} side" for end in ("lower", "upper") for axis in "xyz"]
    wide = [-9.0] * 3 + [9.0] * 3
    narrow = list(wide)
    narrow[side] *= 1 / 3
    before, after = (demo_surroundings(tmp_path, box=box) for box in (wide, narrow))
    for number, words in enumerate(sides):
        change = 6.0 if number == side else 0.0
        assert min_distance(before, words) - min_distance(after, words) == pytest.approx(change)


def test_allowed_pairs_are_not_checked(tmp_path):
    srdf = tmp_path / "arm.srdf"
    name = RobotModel.from_urdf(demo_arm_urdf()).name
    srdf.write_text(f'<robot name="{name}"><disable_collisions link1="link_6" link2="link_3"/></robot>')
    for settings in ({"allowed": ["link_6:link_3"]}, {"srdf": srdf}):
        assert "'link_6' and 'link_3'" not in demo_surroundings(tmp_path, **settings).names
