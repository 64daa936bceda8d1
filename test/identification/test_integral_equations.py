"""Equations over windows, without accelerations: against Pinocchio, quadrature and other equations."""

import numpy as np
import pytest
from link_problems import Drive, Fourier, chain, record
from pinocchio_arm import PinocchioArm, example_urdf
from random_chains import TIP, random_urdf
from scipy.integrate import simpson

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.least_squares import fit_with_prior
from dynid_ros.identification.equations import LinkEquations
from dynid_ros.identification.integral_equations import IntegralEquations, integral_blocks
from dynid_ros.model import FrictionModel, JointFriction, RobotModel
from dynid_ros.model.link_columns import LinkColumns
from dynid_ros.recording.uniform_motion import LinkSignals
from dynid_ros.signals import central_differences, choose_cutoff, filtered_motion


def fourier(time, n_joints, seed, frequency=0.2, harmonics=5):
    """Return positions, velocities and accelerations (N, n) of a random finite Fourier series."""
    amplitude = np.random.default_rng(seed).normal(size=(2, harmonics, n_joints)) * 0.5
    amplitude /= np.arange(1, harmonics + 1)[:, None]
    rate = 2 * np.pi * frequency * np.arange(1, harmonics + 1)
    c = np.cos(np.outer(time, rate))
    s = np.sin(np.outer(time, rate))
    return (
        c @ amplitude[0] + s @ amplitude[1],
        -s * rate @ amplitude[0] + c * rate @ amplitude[1],
        -c * rate**2 @ amplitude[0] - s * rate**2 @ amplitude[1],
    )


def stacked(*args, **options):
    """Return the regressors (W, n, p) and impulses (W, n) of all windows."""
    return tuple(map(np.concatenate, zip(*integral_blocks(*args, **options), strict=True)))


def test_impulses_equal_pinocchio():
    path = example_urdf("ur_description/urdf/ur10_robot.urdf")
    robot = RobotModel.from_urdf(path, tip="wrist_3_link")
    pinocchio = PinocchioArm(path.read_text(), robot.joint_names, robot.gravity)
    step = 0.002
    q, qd, qdd = fourier(step * np.arange(1001), 6, seed=1)
    torque = np.array([pinocchio.inverse_dynamics(*sample) for sample in zip(q, qd, qdd, strict=True)])
    regressor, impulse = stacked(robot, None, step, (q, qd), torque, window=0.4)
    assert np.abs(regressor @ robot.parameters - impulse).max() < 2e-8 * np.abs(impulse).max()


def test_blocks_equal_the_integrated_regressor():
    """The error falls with the fourth power of the step, with friction, rotors and coupling."""
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(2), 4), tip=TIP)
    friction = FrictionModel(
        JointFriction(offset=True, rotor_inertia=True, smoothing=0.2, stribeck_velocity=0.1), coupled=[(2, 3)]
    )
    errors = []
    for step in (0.02, 0.01):
        size = round(0.4 / step) + 1
        q, qd, qdd = fourier(step * np.arange(round(2 / step) + 1), 4, seed=3)
        torque = np.random.default_rng(4).normal(size=q.shape)
        exact = np.concatenate([robot.torque_regressor(q, qd, qdd), friction.regressor(qd, qdd)], axis=-1)
        regressor, impulse = stacked(robot, friction, step, (q, qd), torque, window=0.4)
        w = np.sin(np.linspace(0, np.pi, size)) ** 2
        starts = range(0, len(q) - size + 1, (size - 1) // 2)
        assert len(regressor) == len(starts)
        for window_values, values in ((regressor, exact), (impulse, torque)):
            expected = [simpson((w * values[i : i + size].T).T, dx=step, axis=0) for i in starts]
            if window_values is impulse:
                np.testing.assert_allclose(window_values, expected, rtol=0, atol=1e-12)
            else:
                errors.append(np.abs(window_values - expected).max() / np.abs(expected).max())
    assert errors[1] < 1e-5
    assert errors[1] < errors[0] / 10


def test_windows_are_independent_of_the_blocks():
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(5), 3), tip=TIP)
    q, qd, _ = fourier(0.005 * np.arange(3001), 3, seed=6)
    pieces = list(integral_blocks(robot, None, 0.005, (q, qd), q, window=0.1))
    assert len(pieces) > 2
    regressor, impulse = map(np.concatenate, zip(*pieces, strict=True))
    later = slice(2500, 3001)
    delayed = stacked(robot, None, 0.005, (q[later], qd[later]), q[later], window=0.1)
    np.testing.assert_allclose(regressor[250:], delayed[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(impulse[250:], delayed[1], rtol=0, atol=1e-12)


def test_window_at_rest_contains_gravity_only():
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(7), 3), tip=TIP)
    q = np.tile(np.random.default_rng(8).uniform(-1, 1, 3), (21, 1))
    regressor, _ = stacked(robot, None, 0.1, (q, np.zeros_like(q)), q, window=2.0)
    np.testing.assert_allclose(regressor[0], robot.gravity_regressor(q[:1])[0], rtol=0, atol=1e-12)


def test_integral_equations_tolerate_encoder_noise():
    """Prediction of another motion of a UR10, with encoder noise of 0.1 mrad at 200 Hz and torque noise."""
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="wrist_3_link")
    friction = FrictionModel(JointFriction(smoothing=0.1))
    step = 0.005
    truth = np.concatenate([robot.parameters, np.tile([3.0, 5.0], 6)])

    def rows(q, qd, qdd):
        return np.concatenate([robot.torque_regressor(q, qd, qdd), friction.regressor(qd, qdd)], axis=-1)

    other = rows(*fourier(0.02 * np.arange(500), 6, seed=9))
    rng = np.random.default_rng(10)
    motion = fourier(step * np.arange(4000), 6, seed=11)
    torque = rows(*motion) @ truth + 0.5 * rng.normal(size=(4000, 6))
    encoder = motion[0] + 1e-4 * rng.normal(size=(4000, 6))
    qd, qdd = central_differences(encoder, step)

    def prediction_error(regressor, right):
        """Return the relative RMS error of the predicted torque, averaged over the joints."""
        fit = fit_with_prior(regressor.reshape(-1, regressor.shape[-1]), right.ravel())
        assert fit.rank == fit_with_prior(other.reshape(-1, 72), np.ones(3000)).rank
        error = other @ (fit.solution - truth)
        return np.mean(np.linalg.norm(error, axis=0) / np.linalg.norm(other @ truth, axis=0))

    low_pass = choose_cutoff(encoder, 1 / step).low_pass
    filtered = prediction_error(low_pass.reduce(rows(*filtered_motion(encoder, low_pass))), low_pass.reduce(torque))
    twice_differentiated = prediction_error(rows(encoder, qd, qdd), torque)
    integral = prediction_error(*stacked(robot, friction, step, (encoder, qd), torque, window=0.2))
    assert integral < twice_differentiated / 20
    assert integral < 1.1 * filtered


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "the step is 0 s"),
        ({"window": 0.1}, "choose one from 0.2 s to 2 s"),
        ({"window": 2.1}, "a window of 2.1 s is impossible with 21 samples every 0.1 s"),
    ],
)
def test_refuses_impossible_windows(options, message):
    robot = RobotModel.from_urdf(random_urdf(np.random.default_rng(12), 2), tip=TIP)
    q = np.zeros((21, 2))
    step = options.pop("step", 0.1)
    with pytest.raises(IdentificationError, match=message):
        stacked(robot, None, step, (q, q), q, **{"window": 1.0, **options})


SIGNALS = LinkSignals(7.0, 17.5)
DRIVE = Drive(rotor=0.3, smoothing=0.3)
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.3)
MOTION = Fourier(3, size=0.5)


@pytest.fixture(name="columns", scope="module")
def fixture_columns():
    return LinkColumns(chain(), [(FRICTION,)] * 3)


@pytest.mark.parametrize("rate", [50.0, 500.0])
def test_true_parameters_solve_the_equations(columns, rate):
    recordings = [record(chain(), motion, DRIVE, rate=rate, noise=0.0) for motion in (MOTION, Fourier(3, 1, size=0.5))]
    blocks = list(IntegralEquations(SIGNALS, recordings).blocks(columns))
    value = np.zeros(columns.size)
    value[columns.chosen(columns.first)] = [
        *columns.base.project(chain().parameters),
        *np.tile([1.0, 0.5, 0.2, 0.3], 3),
    ]
    for number, recording in enumerate(recordings):
        recording_blocks = [block for block in blocks if block.recording == number]
        torque = np.concatenate([block.torque for block in recording_blocks])
        for j, column_indices in enumerate(columns.of_joint):
            predicted = np.concatenate([block.rows[j] @ value[column_indices] for block in recording_blocks])
            size = np.sqrt(np.mean(torque[:, j] ** 2))
            assert np.sqrt(np.mean((predicted - torque[:, j]) ** 2)) < 2e-3 * size
            # The equations are means over a window, not impulses.
            assert size == pytest.approx(np.sqrt(np.mean(recording.torque[:, j] ** 2)), rel=0.1)


def test_times_of_windows_match_their_samples(columns):
    recording = record(chain(), MOTION, DRIVE, rate=200.0, noise=0.0)
    equations = IntegralEquations(SIGNALS, [recording])
    blocks = list(equations.blocks(columns))
    time = np.concatenate([block.time for block in blocks])
    torque = np.concatenate([block.torque for block in blocks])
    assert np.all(np.diff(time) > 0)
    np.testing.assert_allclose(np.diff(time), 0.07, atol=0.01)  # windows of 1/7 s overlap by half
    recorded = np.column_stack([np.interp(time, recording.time, column) for column in recording.torque.T])
    assert np.sqrt(np.mean((torque - recorded) ** 2)) < 0.05 * np.sqrt(np.mean(recorded**2))
    filtered = LinkEquations(SIGNALS, [recording])
    assert 0.2 < len(time) / filtered.n_samples < 5
    factors = equations.factors(columns)
    assert factors.counts.sum() == len(time)


def test_omits_segments_shorter_than_a_window(columns):
    whole = record(chain(), MOTION, DRIVE, rate=200.0, noise=0.0)
    keep = (whole.time < 10) | (whole.time > 11)
    torque = np.where(((whole.time > 12) & (whole.time < 12.3))[:, None], np.nan, whole.torque)
    split = type(whole)(whole.joint_names, whole.time, whole.position, whole.velocity, torque).slice(keep)
    blocks = list(IntegralEquations(LinkSignals(1.0, 17.5), [split]).blocks(columns))
    time = np.concatenate([block.time for block in blocks])
    assert len(time) > 10
    assert not np.any((time > 9.6) & (time < 12.6))
