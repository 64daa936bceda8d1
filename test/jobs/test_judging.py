"""Test how recordings and planned trajectories are judged before an identification."""

from dataclasses import replace

import link_experiment
import numpy as np
import pytest
from link_problems import chain, distort, loaded_torque, run as simulate_run
from real_recordings import DATA, MISSING, real_recording, real_robot

from dynid_ros.errors import DynidError, IdentificationError, RecordingError, TrajectoryError
from dynid_ros.excitation import StaticRotation
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.information.motion_quality import MotionQuality
from dynid_ros.information.torque_information import FRICTION, LINKS
from dynid_ros.jobs.judging import check_with_load, judge, load_change
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.recording import Recording
from dynid_ros.trajectories import FourierSeries, MotionLimits

real = pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)

ROBOT, TRUTH = link_experiment.build_planar()
NOISE_NM = 0.05
SMOOTH = JointFriction(offset=True, rotor_inertia=True, smoothing=0.05)


def draw_fourier_motion(joint_names=ROBOT.joint_names, amplitude=0.3):
    rng = np.random.default_rng(2)
    sine, cosine = amplitude * rng.standard_normal((2, len(joint_names), 4))
    return FourierSeries.at_rest(joint_names, 0.1, sine, cosine).trajectory(1)


def fit_without_gain_error(robot, recording, friction):
    """Return the result of the identification, which computes its errors independently of the job."""
    settings = {"estimator": "weighted", "errors": "white", "torque_gain_error": 0.0}
    return LinkIdentification(robot, friction=friction, **settings).fit(recording)


def assert_agrees_with_fit(quality, result):
    assert quality.columns.names == result.base_parameters.names
    np.testing.assert_allclose(quality.standard_errors, result.base_parameters.standard_errors, rtol=1e-3)
    assert quality.condition_number == pytest.approx(result.condition_number, rel=1e-6)
    assert quality.motion.samples == result.n_samples


def test_quality_of_a_recording_agrees_with_its_fit():
    recording = link_experiment.record(ROBOT, TRUTH, noise=NOISE_NM)
    quality = judge(ROBOT, recording, friction=SMOOTH)
    assert_agrees_with_fit(quality, fit_without_gain_error(ROBOT, recording, SMOOTH))
    assert quality.enough
    assert np.all(quality.noise < NOISE_NM)  # low-pass and decimation give fewer equations with less noise
    # Standard errors are proportional to the noise, which may be an argument.
    louder = judge(ROBOT, recording, friction=SMOOTH, noise=2 * quality.noise)
    np.testing.assert_allclose(louder.standard_errors, 2 * quality.standard_errors, rtol=1e-9)


def test_coupled_joints_have_their_own_columns():
    recording = link_experiment.record(ROBOT, TRUTH, noise=NOISE_NM)
    friction = FrictionModel(SMOOTH, [(1, 2)])
    assert_agrees_with_fit(
        judge(ROBOT, recording, friction=friction), fit_without_gain_error(ROBOT, recording, friction)
    )


def test_recordings_complement_each_other():
    parts = [link_experiment.record(ROBOT, TRUTH, seed=i, still=still) for i, still in enumerate([(1, 2), (0,)])]
    first, second, both = (judge(ROBOT, recordings) for recordings in (parts[0], parts[1:], parts))
    assert max(first.rank, second.rank) < both.rank
    assert "viscous joint_2" in first.missing
    assert "viscous joint_1" in second.missing
    assert set(both.missing) < {*first.missing, *second.missing}


def test_joints_are_assigned_by_name():
    recording = link_experiment.record(ROBOT, TRUTH)
    order = [2, 0, 1]
    reordered = Recording(
        tuple(ROBOT.joint_names[i] for i in order),
        recording.time,
        recording.position[:, order],
        recording.velocity[:, order],
        recording.torque[:, order],
    )
    np.testing.assert_array_equal(judge(ROBOT, reordered).standard_errors, judge(ROBOT, recording).standard_errors)


def test_plan_and_its_file_have_the_same_quality(tmp_path):
    plan = draw_fourier_motion()
    quality = judge(ROBOT, plan, rate=50.0, noise=NOISE_NM)
    sampled = plan.sample(50.0)
    direct = MotionQuality.of(
        ROBOT, sampled.position, sampled.velocity, sampled.acceleration, noise=NOISE_NM, rate=50.0
    )
    np.testing.assert_array_equal(quality.standard_errors, direct.standard_errors)
    read = judge(ROBOT, plan.save(tmp_path / "motion.yaml"), rate=50.0, noise=NOISE_NM)
    np.testing.assert_allclose(read.standard_errors, quality.standard_errors, rtol=1e-9)
    # Twice the samples of the same motion reduce the errors by the square root of two.
    faster = judge(ROBOT, plan, rate=100.0, noise=NOISE_NM)
    np.testing.assert_allclose(faster.standard_errors, quality.standard_errors / np.sqrt(2), rtol=0.05)


def test_plan_predicts_the_standard_errors_of_its_recording():
    """The prediction accounts for the noise and the rate after the filters."""
    plan = draw_fourier_motion()
    sampled = plan.sample(100.0)
    samples = sampled.position, sampled.velocity, sampled.acceleration
    torque = ROBOT.inverse_dynamics(*samples, TRUTH)
    torque += np.random.default_rng(0).normal(0, NOISE_NM, torque.shape)
    recording = Recording(ROBOT.joint_names, sampled.time, sampled.position, np.full_like(torque, np.nan), torque)
    recorded = judge(ROBOT, recording, friction=SMOOTH)
    planned = judge(ROBOT, plan, friction=SMOOTH, rate=100.0, noise=NOISE_NM)
    ratio = recorded.standard_errors / planned.standard_errors
    # The filters lose the ends of the motion and the sharp reversals of friction.
    assert np.all((ratio > 0.9) & (ratio < 1.3))


def test_gravity_is_judged_by_dwells():
    plan = StaticRotation(ROBOT, MotionLimits.of(ROBOT, 10.0)).plan().trajectory
    quality = judge(ROBOT, plan, "gravity", noise=NOISE_NM)
    assert quality.rank == quality.full_rank
    assert quality.motion.samples == 14 * 3 - 14  # the vertical joint 1 does not move
    sampled = plan.sample(100.0)
    torque = ROBOT.inverse_dynamics(sampled.position, sampled.velocity, sampled.acceleration)
    torque += np.random.default_rng(0).normal(0, NOISE_NM, torque.shape) + 0.3 * np.sign(sampled.velocity)
    recording = Recording(ROBOT.joint_names, sampled.time, sampled.position, sampled.velocity, torque)
    recorded = judge(ROBOT, recording, "gravity")
    assert recorded.rank == quality.rank
    assert len(GravityIdentification(ROBOT).extract(recording)) == recorded.motion.samples
    with pytest.raises(IdentificationError, match="no dwells"):
        judge(ROBOT, draw_fourier_motion(), "gravity")


def test_rank_of_a_load_in_a_recording():
    recording = link_experiment.record(ROBOT, TRUTH)
    quality = judge(ROBOT, recording, "load", noise=NOISE_NM)
    # Joint 1 is vertical, joints 2 and 3 are parallel: three torques show most of the ten load parameters.
    regressor = ROBOT.torque_regressor(*differentiate_motion(recording))[..., 20:]
    flat = regressor.reshape(-1, 10)
    norms = np.linalg.norm(flat, axis=0)
    assert quality.rank == np.linalg.matrix_rank(flat[:, norms > 1e-9] / norms[norms > 1e-9], tol=1e-3)
    assert judge(ROBOT, recording, "load").assumed_noise


def differentiate_motion(recording):
    """Return the motion with differentiated velocities; the rank of a load does not depend on them."""
    return recording.position, recording.velocity, np.gradient(recording.velocity, 0.01, axis=0)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ([], RecordingError, "no recording to judge"),
        ("missing.yaml", TrajectoryError, "missing.yaml"),
        (draw_fourier_motion(("joint_1", "joint_2", "elbow")), TrajectoryError, "no joint joint_3"),
        (draw_fourier_motion(amplitude=0.0), TrajectoryError, "no joint moves"),
        (
            replace(link_experiment.record(ROBOT, TRUTH), torque=np.full((1000, 3), np.nan)),
            IdentificationError,
            "no torque",
        ),
        (link_experiment.record(ROBOT, TRUTH, still=(0, 1, 2)), IdentificationError, "no joint moves"),
        (link_experiment.record(ROBOT, TRUTH).slice(slice(0, 8)), DynidError, "8 samples"),
    ],
)
def test_invalid_sources_are_refused(source, error, words):
    with pytest.raises(error, match=words):
        judge(ROBOT, source)


def test_recording_of_another_robot_is_refused():
    other = RobotModel.from_dh([{"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 2)
    recording = link_experiment.record(ROBOT, TRUTH)
    with pytest.raises(RecordingError, match="joint_4"):
        judge(RobotModel.from_dh([{"a": 0.3, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 4), recording)
    assert judge(other, recording).full_rank  # the recording contains the two joints of this robot


@real
def test_ur10e_excitation_is_enough_for_links():
    robot = real_robot("ur10e")
    recording = real_recording("ur10e", "20_02_10-30sec_12harm")
    quality = judge(robot, recording)
    assert quality.enough
    assert quality.rank == quality.full_rank
    assert quality.condition_number < 30
    assert np.all(quality.prediction < quality.noise)
    assert_agrees_with_fit(quality, fit_without_gain_error(robot, recording, FRICTION[LINKS]))
    assert quality.summary().startswith("enough")


@real
def test_ur10e_single_joint_is_not_enough_for_links():
    robot = real_robot("ur10e")
    recording = real_recording("ur10e", "20_01_22-joint_3")
    quality = judge(robot, recording)
    assert not quality.enough
    assert quality.rank < quality.full_rank
    for joint in {*robot.joint_names} - {"elbow_joint"}:
        assert f"viscous {joint}" in quality.without_effect
        assert any(joint in text for text in quality.missing)
    assert "viscous elbow_joint" not in quality.missing


@real
def test_ur10e_static_poses_are_not_enough_for_links_nor_five_for_gravity():
    robot = real_robot("ur10e")
    poses = [real_recording("ur10e", f"20_01_17-p{i}") for i in range(1, 6)]
    with pytest.raises(IdentificationError, match="no joint moves"):
        judge(robot, poses)
    quality = judge(robot, poses, "gravity")
    assert quality.motion.samples == 5
    assert not quality.enough
    assert {f"coulomb {joint}" for joint in robot.joint_names} <= set(quality.missing)


def test_load_change_is_reported_instead_of_a_drift():
    robot = chain()
    run = simulate_run(robot)
    loaded = replace(run, torque=run.torque + loaded_torque(robot, run) * (run.time >= 11.0)[:, None])
    (finding,) = check_with_load([loaded], distort(robot))
    assert finding.kind == "load change"
    assert finding.where == run.source
    assert "at about t = 11" in finding.message


def test_load_in_one_of_two_recordings_is_detected():
    robot = chain()
    bare = simulate_run(robot, 0)
    run = simulate_run(robot, 1)
    finding = load_change([bare, replace(run, torque=run.torque + loaded_torque(robot, run))], distort(robot))
    assert finding.where == run.source
    assert "kg more than in the recording before" in finding.message


@pytest.mark.parametrize("seed", [0, 1])
def test_constant_load_is_not_reported(seed):
    robot = chain()
    run = simulate_run(robot, seed)
    assert load_change([run], distort(robot)) is None
    at_rest = replace(run, position=0 * run.position, torque=0 * run.torque + 1.0)
    assert load_change([at_rest], distort(robot)) is None
