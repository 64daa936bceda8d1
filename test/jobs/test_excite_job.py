"""From an arm and its limits to the files of a motion, alone and after what is recorded already."""

import re
import signal
import time

import link_experiment as known
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

ROBOT, TRUTH = known.build_planar()
LIMITS = MotionLimits.of(ROBOT, 4.0, torque_limits=[50, 45, 30], jerk_limits=60)
TABLE = Obstacle("table", (0.3, -0.4, 0.0), (0.9, 0.4, 0.25))
QUICK = {"base_frequency": 0.2, "harmonics": 2, "workers": 1, "design_time": 100.0}


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory):
    workspace = Workspace(ROBOT, 0.0, 0.05, obstacles=[TABLE])
    return excite("fourier", ROBOT, LIMITS, workspace, tmp_path_factory.mktemp("designed"), starts=0, **QUICK)


def test_the_motion_keeps_to_limits_in_pinocchio(job):
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


def test_the_motion_keeps_clear_of_the_table(job):
    q = Trajectory.read(job.files[0]).at(np.arange(0, 5, 0.02))[0]
    frames = ROBOT.forward_kinematics(q)[:, :, :3, 3]
    points = np.linspace(frames[:, 1], frames[:, 2], 50).reshape(-1, 3)
    outside = np.linalg.norm(np.maximum(np.abs(points - TABLE.centre) - TABLE.half, 0.0), axis=1)
    assert outside.min() >= 0.05
    nearest = min(a.margin for a in job.design.use.approaches if a.names == "'link_2' and obstacle 'table'")
    assert outside.min() == pytest.approx(0.05 + nearest, abs=2e-3)


def rows(q, qd, qdd):
    """Equations of the arm with friction whose direction turns at once: not those that the design saw."""
    friction = FrictionModel(JointFriction(offset=True, rotor_inertia=True))
    regressor = np.concatenate([ROBOT.torque_regressor(q, qd, qdd), friction.regressor(qd, qdd)], axis=-1)
    return regressor[..., ROBOT.base_parameters(friction).columns].reshape(len(q) * 3, -1)


def rated(matrix):
    """Condition number with unit columns, and standard errors for unit noise."""
    singular = np.linalg.svd(matrix / np.linalg.norm(matrix, axis=0), compute_uv=False)
    return singular[0] / singular[-1], np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))


RATED = QUICK | {"criterion": "condition", "noise": 1.0, "periods": 1}


@pytest.mark.slow
def test_what_is_recorded_already_makes_the_next_motion_worth_more(tmp_path):
    """Joint 3 rested in the first motion: the next one has to make up for it, not to be good by itself."""
    recorded = known.record(ROBOT, TRUTH, still=(2,))
    seen = rows(recorded.position, recorded.velocity, np.gradient(recorded.velocity, 0.01, axis=0))
    assert np.linalg.matrix_rank(seen) == seen.shape[1] - 3
    found = {}
    for name, before in (("alone", ()), ("added", (recorded,))):
        limits, workspace = MotionLimits.of(ROBOT, 4.0), Workspace(ROBOT)
        job = excite("fourier", ROBOT, limits, workspace, tmp_path / name, recorded=before, starts=1, **RATED)
        motion = job.design.plan.trajectory.sample(100.0)
        together = np.vstack([seen, rows(motion.position, motion.velocity, motion.acceleration)])
        found[name] = (*rated(together), job)
    (alone, alone_errors, _), (added, added_errors, job) = found["alone"], found["added"]
    assert added < 0.7 * alone
    assert np.exp(np.mean(np.log(added_errors / alone_errors))) < 1
    assert job.design.plan.condition_number == pytest.approx(added, rel=0.05)
    summary = job.screen().full()
    assert re.search(
        r"recorded before: run_0; parameters undetermined alone, condition number [\d.]+ with this motion", summary
    )
    assert "by itself it determines" in summary
    assert "warning: run_0, joint 'joint_3': it rests" in summary


def test_an_interrupt_takes_the_best_motion_so_far():
    excitation = FourierExcitation(ROBOT, LIMITS, **(QUICK | {"design_time": 60.0}))
    begun, told = time.monotonic(), []
    before = signal.getsignal(signal.SIGINT)
    with search_progress() as tell:

        def interrupted(part, best):
            told.append(best.value)
            signal.raise_signal(signal.SIGINT)
            tell(part, best)

        plan = excitation.plan(interrupted)
    assert time.monotonic() - begun < 30
    assert plan.value <= told[0]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_the_program():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # one of several test processes ignores it
    try:
        with search_progress():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_arm_without_masses_is_planned_for_and_it_is_said(tmp_path):
    robot = RobotModel.from_urdf(re.sub("<inertial>.*?</inertial>", "", planar_arm.urdf()))
    job = excite("fourier", robot, MotionLimits.of(robot, 4.0), Workspace(robot), tmp_path, starts=0, **QUICK)
    assert "not checked: No torque is predicted: the URDF has no masses." in job.screen().full()
    assert "torque" not in job.design.use.fractions


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["static_rotation", "poses"])
def test_every_kind_of_motion_keeps_to_torque_limits(kind, tmp_path):
    """Stretched out, the arm would need 9.81 · (1.4 + 0.3) N m at joint 2."""
    limits = MotionLimits.of(ROBOT, 4.0, torque_limits=[50, 10, 30])
    job = excite(kind, ROBOT, limits, Workspace(ROBOT), tmp_path)
    position, velocity, acceleration = job.design.plan.trajectory.at(np.arange(0.0, job.design.plan.duration, 0.01))
    truth = PinocchioArm(planar_arm.urdf(), ROBOT.joint_names, ROBOT.gravity)
    torque = [truth.inverse_dynamics(*sample) for sample in zip(position, velocity, acceleration, strict=True)]
    assert np.abs(torque)[:, 1].max() <= 8.0


@pytest.mark.parametrize("kind", ["static_rotation", "poses"])
def test_other_motions_are_judged_by_what_they_are_for(kind, tmp_path):
    settings = {} if kind == "static_rotation" else {"count": 6}
    job = excite(kind, ROBOT, LIMITS, Workspace(ROBOT), tmp_path, **settings)
    assert job.design.target == "gravity"
    assert job.design.quality.enough
    assert "Search" not in job.files[3].read_text()


def test_the_table_has_even_samples_where_a_rate_is_given(tmp_path):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    limits = MotionLimits.of(robot, 8.0)
    excite("payload", robot, limits, Workspace(robot), tmp_path, rate=100.0)
    with pytest.raises(TrajectoryError, match="rate is -1 Hz"):
        excite("payload", robot, limits, Workspace(robot), tmp_path, rate=-1.0)
    time = np.loadtxt(tmp_path / "trajectory.csv", delimiter=",", skiprows=1)[:, 0]
    np.testing.assert_allclose(np.diff(time), 0.01, atol=1e-6)


def test_refusals(tmp_path, monkeypatch):
    monkeypatch.setattr(FourierExcitation, "plan", lambda self, progress: pytest.fail("it searches"))
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DynidError, match=f"{file}.*choose a writable folder"):
        excite("fourier", ROBOT, LIMITS, Workspace(ROBOT), file, **QUICK)
    with pytest.raises(TrajectoryError, match="only a fourier motion adds to what is recorded, not poses"):
        excite("poses", ROBOT, LIMITS, Workspace(ROBOT), tmp_path, recorded=[known.record(ROBOT, TRUTH)])
