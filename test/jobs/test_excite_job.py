"""Test the design job: limits, obstacles, earlier recordings, interrupts and refusals."""

import re
import signal
import time

import link_experiment
import numpy as np
import planar_arm
import pytest
from pinocchio_arm import PinocchioArm

from dynid_ros.collision import Obstacle
from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.jobs.excitation import excite
from dynid_ros.jobs.screen import search_progress
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import FrictionModel, JointFriction
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace

ROBOT, TRUTH = link_experiment.build_planar()
LIMITS = MotionLimits.of(ROBOT, 4.0, torque_limits=[50, 45, 30], jerk_limits=60)
TABLE = Obstacle("table", (0.3, -0.4, 0.0), (0.9, 0.4, 0.25))
QUICK_SEARCH = {"base_frequency": 0.2, "harmonics": 2, "workers": 1, "design_time": 100.0}


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory):
    workspace = Workspace(ROBOT, 0.0, 0.05, obstacles=[TABLE])
    return excite("fourier", ROBOT, LIMITS, workspace, tmp_path_factory.mktemp("designed"), starts=0, **QUICK_SEARCH)


def test_motion_keeps_limits_in_pinocchio(job):
    trajectory = Trajectory.read(job.files[0])
    time_ = np.arange(0, trajectory.duration, 0.001)
    q, qd, qdd = trajectory.at(time_)
    assert np.all((q >= LIMITS.lower) & (q <= LIMITS.upper))
    assert np.all(np.abs(qd) <= LIMITS.velocity)
    assert np.all(np.abs(qdd) <= LIMITS.acceleration)
    assert np.all(np.abs(np.gradient(qdd, 0.001, axis=0)) <= LIMITS.jerk)
    arm = PinocchioArm(planar_arm.urdf(), ROBOT.joint_names, ROBOT.gravity)
    torque = np.array([arm.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
    assert np.all(np.abs(torque) <= LIMITS.torque)
    used = np.abs(torque).max(axis=0) / LIMITS.torque
    np.testing.assert_allclose(job.design.use.fractions["torque"], used, rtol=1e-3)


def test_motion_keeps_the_clearance_to_the_table(job):
    q = Trajectory.read(job.files[0]).at(np.arange(0, 5, 0.02))[0]
    frames = ROBOT.forward_kinematics(q)[:, :, :3, 3]
    points = np.linspace(frames[:, 1], frames[:, 2], 50).reshape(-1, 3)
    outside = np.linalg.norm(np.maximum(np.abs(points - TABLE.centre) - TABLE.half, 0.0), axis=1)
    assert outside.min() >= 0.05
    nearest = min(a.margin for a in job.design.use.approaches if a.names == "'link_2' and obstacle 'table'")
    assert outside.min() == pytest.approx(0.05 + nearest, abs=2e-3)


def stack_regressor(q, qd, qdd):
    """Return the base regressor with friction that reverses at once, unlike the design's smooth friction."""
    friction = FrictionModel(JointFriction(offset=True, rotor_inertia=True))
    regressor = np.concatenate([ROBOT.torque_regressor(q, qd, qdd), friction.regressor(qd, qdd)], axis=-1)
    return regressor[..., ROBOT.base_parameters(friction).columns].reshape(len(q) * 3, -1)


def evaluate_regressor(matrix):
    """Return condition number with unit columns, and standard errors for unit noise."""
    singular = np.linalg.svd(matrix / np.linalg.norm(matrix, axis=0), compute_uv=False)
    return singular[0] / singular[-1], np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))


CONDITION_SEARCH = QUICK_SEARCH | {"criterion": "condition", "noise": 1.0, "periods": 1}


@pytest.mark.slow
def test_design_complements_earlier_recordings(tmp_path):
    """Joint 3 rests in the first recording, so the next motion must move joint 3 in particular."""
    recorded = link_experiment.record(ROBOT, TRUTH, still=(2,))
    recorded_rows = stack_regressor(recorded.position, recorded.velocity, np.gradient(recorded.velocity, 0.01, axis=0))
    assert np.linalg.matrix_rank(recorded_rows) == recorded_rows.shape[1] - 3
    results = {}
    for name, earlier in (("alone", ()), ("added", (recorded,))):
        limits = MotionLimits.of(ROBOT, 4.0)
        workspace = Workspace(ROBOT)
        job = excite(
            "fourier", ROBOT, limits, workspace, tmp_path / name, recorded=earlier, starts=1, **CONDITION_SEARCH
        )
        motion = job.design.plan.trajectory.sample(100.0)
        all_rows = np.vstack([recorded_rows, stack_regressor(motion.position, motion.velocity, motion.acceleration)])
        results[name] = (*evaluate_regressor(all_rows), job)
    alone, alone_errors, _ = results["alone"]
    added, added_errors, job = results["added"]
    assert added < 0.7 * alone
    assert np.exp(np.mean(np.log(added_errors / alone_errors))) < 1
    assert job.design.plan.condition_number == pytest.approx(added, rel=0.05)
    summary = job.screen().full()
    assert re.search(
        r"recorded before: run_0; parameters undetermined alone, condition number [\d.]+ with this motion", summary
    )
    assert "by itself it determines" in summary
    assert "warning: run_0, joint 'joint_3': it rests" in summary


def test_interrupt_returns_the_best_motion_so_far():
    excitation = FourierExcitation(ROBOT, LIMITS, **(QUICK_SEARCH | {"design_time": 60.0}))
    start = time.monotonic()
    values = []
    before = signal.getsignal(signal.SIGINT)
    with search_progress() as report:

        def report_and_interrupt(fraction, best):
            values.append(best.value)
            signal.raise_signal(signal.SIGINT)
            report(fraction, best)

        plan = excitation.plan(report_and_interrupt)
    assert time.monotonic() - start < 30
    assert plan.value <= values[0]
    assert signal.getsignal(signal.SIGINT) is before


def test_second_interrupt_ends_the_program():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a parallel test process may ignore it
    try:
        with search_progress():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_arm_without_masses_is_designed_without_torque_check(tmp_path):
    robot = RobotModel.from_urdf(re.sub("<inertial>.*?</inertial>", "", planar_arm.urdf()))
    job = excite("fourier", robot, MotionLimits.of(robot, 4.0), Workspace(robot), tmp_path, starts=0, **QUICK_SEARCH)
    assert "not checked: No torque is predicted: the URDF has no masses." in job.screen().full()
    assert "torque" not in job.design.use.fractions


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static_rotation", "poses"])
def test_other_motions_keep_torque_limits(kind, tmp_path):
    """The stretched arm would need 9.81 · (1.4 + 0.3) N m at joint 2."""
    limits = MotionLimits.of(ROBOT, 4.0, torque_limits=[50, 10, 30])
    job = excite(kind, ROBOT, limits, Workspace(ROBOT), tmp_path)
    position, velocity, acceleration = job.design.plan.trajectory.at(np.arange(0.0, job.design.plan.duration, 0.01))
    truth = PinocchioArm(planar_arm.urdf(), ROBOT.joint_names, ROBOT.gravity)
    torque = [truth.inverse_dynamics(*sample) for sample in zip(position, velocity, acceleration, strict=True)]
    assert np.abs(torque)[:, 1].max() <= 8.0


@pytest.mark.parametrize("kind", ["static_rotation", "poses"])
def test_other_motions_are_judged_for_gravity(kind, tmp_path):
    settings = {} if kind == "static_rotation" else {"count": 6}
    job = excite(kind, ROBOT, LIMITS, Workspace(ROBOT), tmp_path, **settings)
    assert job.design.target == "gravity"
    assert job.design.quality.enough
    assert "Search" not in job.files[3].read_text()


def test_table_has_even_samples_at_a_given_rate(tmp_path):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 8.0)
    excite("payload", robot, limits, Workspace(robot), tmp_path, rate=100.0)
    with pytest.raises(TrajectoryError, match="rate is -1 Hz"):
        excite("payload", robot, limits, Workspace(robot), tmp_path, rate=-1.0)
    time = np.loadtxt(tmp_path / "trajectory.csv", delimiter=",", skiprows=1)[:, 0]
    np.testing.assert_allclose(np.diff(time), 0.01, atol=1e-6)


def test_unwritable_folder_and_wrong_motion_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(FourierExcitation, "plan", lambda self, progress: pytest.fail("it searches"))
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DynidError, match=f"{file}.*choose a writable folder"):
        excite("fourier", ROBOT, LIMITS, Workspace(ROBOT), file, **QUICK_SEARCH)
    with pytest.raises(TrajectoryError, match="only a fourier motion adds to what is recorded, not poses"):
        excite("poses", ROBOT, LIMITS, Workspace(ROBOT), tmp_path, recorded=[link_experiment.record(ROBOT, TRUTH)])
