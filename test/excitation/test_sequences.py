"""Test sequences of plans: repetitions, and added motions that excite friction."""

import numpy as np
import planar_arm
import pytest
from helpers.mujoco_room import DEMO_ARM, check_demo_arm

from dynid_ros.errors import IdentificationError, TrajectoryError
from dynid_ros.excitation import FourierExcitation, StaticRotation
from dynid_ros.excitation.joint_by_joint import GivenMotion, repeat_plan
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.links.friction_choice import refuse_unseen
from dynid_ros.jobs.experiments import with_friction
from dynid_ros.jobs.judging import unseen_friction
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel
from dynid_ros.model.friction_terms import friction_terms
from dynid_ros.simulation import KnownFriction, Sensors, SimulatedArm, record
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace, check_limits
from dynid_ros.trajectories.trajectory import move

DEMO = RobotModel.from_urdf(DEMO_ARM)
FRICTION_TERMS = "coulomb,viscous,offset,rotor_inertia,load,sliding_length=0.001,stribeck_velocity=0.1"
LIMITS = MotionLimits.of(DEMO, 4.0)
PLANAR = RobotModel.from_urdf(planar_arm.urdf())
PLANAR_LIMITS = MotionLimits.of(PLANAR, 8.0)
WORKSPACE = Workspace(PLANAR, 0.1, 0.1)


def test_repetitions_return_safely_to_the_start():
    experiment = StaticRotation(PLANAR, PLANAR_LIMITS, WORKSPACE, steps=3, dwell=0.1, sweep=1.0)
    once = experiment.plan()
    assert np.abs(once.trajectory.position[-1] - once.trajectory.position[0]).max() > 0.1
    plan = repeat_plan(once, experiment, 3)
    check_limits(plan.trajectory, PLANAR_LIMITS)
    WORKSPACE.check(plan.trajectory)
    assert plan.duration > 3 * once.duration
    starts = plan.facts["starts"]
    assert len(starts) == 3
    time = np.linspace(0.0, once.duration, 500)
    for start in starts:
        for value, first in zip(plan.trajectory.at(start + time)[:2], once.trajectory.at(time)[:2], strict=True):
            np.testing.assert_allclose(value, first, atol=1e-3)
    content = plan.as_dict()
    assert content["starts"] == starts
    assert content["repeat_duration"] == pytest.approx(once.duration, abs=1e-4)
    assert content["dwells"] == once.as_dict()["dwells"]
    assert plan.summary().startswith(f"{plan.duration:.1f} s, 3 times the motion of {once.duration:.1f} s")


def test_repetitions_equal_several_periods():
    settings = {"base_frequency": 0.4, "harmonics": 3, "design_time": 0.0}
    experiment = FourierExcitation(PLANAR, PLANAR_LIMITS, WORKSPACE, **settings)
    plan = repeat_plan(experiment.plan(), experiment, 3)
    periods = FourierExcitation(PLANAR, PLANAR_LIMITS, WORKSPACE, **settings, periods=3).plan()
    time = np.linspace(0.0, periods.duration, 500)
    for values, expected in zip(plan.trajectory.at(time), periods.trajectory.at(time), strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-9)


def test_one_repetition_returns_the_plan():
    experiment = FourierExcitation(PLANAR, PLANAR_LIMITS, WORKSPACE, base_frequency=0.4, harmonics=3, design_time=0.0)
    plan = experiment.plan()
    assert repeat_plan(plan, experiment, 1) is plan
    with pytest.raises(TrajectoryError, match="repeats is 0; it must be at least 1"):
        repeat_plan(plan, experiment, 0)
    with pytest.raises(TrajectoryError, match=r"repeats is 4611686018427387904: .* more than 8 h"):
        repeat_plan(plan, experiment, 2**62)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return the file, experiment and plan of a motion in one direction."""
    path = tmp_path_factory.mktemp("plan") / "trajectory.yaml"
    start = np.array([-0.5, -0.6, 0.6, -0.4, -0.3, -0.5])
    move(DEMO.joint_names, start, start + 0.5, 4.0).sample(50.0).save(path)
    experiment = GivenMotion(DEMO, LIMITS, Workspace(DEMO, 0.1, 0.05), path=path)
    return path, experiment, experiment.plan()


@pytest.fixture(scope="module")
def friction_plan(first):
    _, experiment, plan = first
    return with_friction(plan, experiment, DEMO, friction_terms(FRICTION_TERMS))


def sample_motion(trajectory: Trajectory):
    """Return positions, velocities and accelerations at 100 Hz as the only recording."""
    motion = trajectory.sample(100.0)
    return [(motion.position, motion.velocity, motion.acceleration)]


def test_added_reversals_excite_all_friction_terms(first, friction_plan):
    path, *_ = first
    terms = friction_terms(FRICTION_TERMS)
    remarks = unseen_friction(DEMO, path, terms)
    assert any("a sliding length shows where the joint reverses" in remark for remark in remarks)
    assert unseen_friction(DEMO, friction_plan.trajectory, terms) == []
    model = FrictionModel(terms, (), DEMO.parameters)
    with pytest.raises(IdentificationError, match=r"plan: friction of joint_1: .*record"):
        refuse_unseen(DEMO, model, sample_motion(Trajectory.read(path)), "plan")
    refuse_unseen(DEMO, model, sample_motion(friction_plan.trajectory), "plan")
    assert "sliding length" in " ".join(unseen_friction(DEMO, path))  # terms chosen automatically


def test_friction_motion_respects_limits_and_workspace_in_mujoco(friction_plan):
    start = friction_plan.facts["starts"][1]
    reversals = friction_plan.facts["parts"][1]
    check_limits(friction_plan.trajectory, LIMITS.scaled(1.0, 0.8))
    position, velocity, _ = friction_plan.trajectory.at(np.arange(start, friction_plan.duration, 0.02))
    check_demo_arm(position, margin=0.0, floor=0.1)
    assert np.all(np.abs(velocity) <= 0.5 * DEMO.limits.velocity + 1e-9)
    for swing in reversals["moves"]:
        joint = DEMO.joint_names.index(swing["joint"])
        _, velocity, _ = friction_plan.trajectory.at(start + np.linspace(swing["start"], swing["end"], 4000))
        assert np.abs(velocity[:, joint]).max() > 0.25 * DEMO.limits.velocity[joint]
    rests = [rest for rest in reversals["dwells"] if rest["joint"] == "joint_1"]
    assert len(rests) == 6
    assert [rest["direction"] for rest in rests] == [1, -1] * 3
    for rest in rests:
        _, velocity, _ = friction_plan.trajectory.at(start + np.array([rest["start"], rest["end"]]) + [1e-3, -1e-3])
        np.testing.assert_allclose(velocity, 0.0, atol=1e-9)


def test_summary_and_dictionary_describe_both_parts(friction_plan):
    assert "friction, joint by joint" in friction_plan.summary()
    assert "there and back, slowly to fast" in friction_plan.summary()
    document = friction_plan.as_dict()
    assert document["format"] == "dynid-sequence/1"
    assert [part["format"] for part in document["parts"]] == ["dynid-given-motion/1", "dynid-joint-by-joint/1"]
    assert document["starts"][1] > 4.0


def test_refuses_terms_that_no_motion_can_excite(first):
    _, experiment, plan = first
    with pytest.raises(TrajectoryError, match=r"no motion within limits.*joint_2.*: a harmonic"):
        with_friction(plan, experiment, DEMO, friction_terms("coulomb,viscous,harmonic=1"))


@pytest.mark.slow
def test_intervals_contain_the_friction_of_mujoco():
    """Intervals contain nearly all coefficients of MuJoCo's joints; those of velocity terms are narrow."""
    robot = RobotModel.from_urdf(planar_arm.urdf())
    terms = friction_terms("coulomb,viscous,offset,load,sliding_length=0.001,stribeck_velocity=0.1")
    limits = MotionLimits.of(robot, 4.0)
    experiment = FourierExcitation(
        robot, limits, base_frequency=0.2, harmonics=4, periods=2, design_time=0, workers=1, starts=1
    )
    plan = with_friction(experiment.plan(), experiment, robot, terms)
    model = FrictionModel(terms, (), robot.parameters)
    names = model.names(robot)
    size = {"coulomb": 3.0, "viscous": 2.0, "offset": 1.0, "load": 0.1, "stribeck": 1.5}
    inside = []
    width = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = np.array([size[name.split()[0]] * rng.uniform(0.5, 1.5) for name in names])
        sensors = Sensors.draw(robot.limits.effort, rng, torque_gain_error=0.0, torque_offset=0.0)
        arm = SimulatedArm(robot, friction=KnownFriction(model, truth), sensors=sensors, seed=seed)
        recording = record(arm, plan.trajectory, 200.0)
        result = LinkIdentification(robot, terms, estimator="weighted", torque_gain_error=0.0).fit(recording)
        estimate = result.base_parameters
        low, high = estimate.confidence_intervals(0.95)[[estimate.names.index(name) for name in names]].T
        inside += list((low <= truth) & (truth <= high))
        excited = [name.split()[0] in ("coulomb", "viscous", "stribeck") for name in names]
        width += list(((high - low) / 2 / truth)[excited])
    assert np.mean(inside) >= 0.93
    assert np.max(width) < 0.2
