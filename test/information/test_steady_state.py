"""Compare the predicted link motion behind springs with integration of eq. 10 and of MuJoCo's dynamics."""

import flexible_link
import numpy as np
import planar_arm
import pytest
from scipy.integrate import solve_ivp

from dynid_ros.errors import TrajectoryError
from dynid_ros.information.steady_state import FlexibleJoints, LinkPrediction, proposed_base_frequency, resonance
from dynid_ros.model import RobotModel
from dynid_ros.trajectories.fourier import FourierSeries

SMOOTHING = np.full(3, 0.3)
ARM = FlexibleJoints([3e3, 4e3, 1e3], coulomb=[2.0, 2.0, 1.0], viscous=[12.0, 15.0, 6.0])


def create_series(base_frequency, harmonics, speed=0.4, joints=("s2",), seed=0):
    """Return a random Fourier motion with the peak speed in rad/s."""
    sine, cosine = np.random.default_rng(seed).standard_normal((2, len(joints), harmonics))
    motion = FourierSeries.at_rest(joints, base_frequency, sine, cosine)
    return motion.scaled(speed / motion.peaks()[2]).shifted(np.linspace(0.3, -0.4, len(joints)))


def create_times(motion, per_cycle=24):
    """Return equidistant times of one period, `per_cycle` for each cycle of the highest harmonic."""
    count = per_cycle * motion.n_harmonics
    return np.arange(count) / count * motion.period


def create_prediction(
    coulomb=flexible_link.COULOMB,
    smoothing=0.02,
    stiffness=flexible_link.STIFFNESS,
    viscous=flexible_link.VISCOUS,
    **settings,
):
    prior = FlexibleJoints(stiffness, coulomb=coulomb, viscous=viscous)
    return LinkPrediction(flexible_link.robot(), prior, smoothing=np.array([smoothing]), **settings)


@pytest.mark.parametrize(
    ("base_frequency", "harmonics", "coulomb", "smoothing", "detail", "tolerance"),
    [
        (1.0, 5, 0.0, 0.02, 4, 1e-6),
        (3.5, 4, 0.0, 0.02, 4, 1e-6),  # the second harmonic is at the resonance
        (1.4, 5, flexible_link.COULOMB, 0.3, 16, 3e-6),  # smooth friction, which the series can represent
        (1.4, 5, flexible_link.COULOMB, 0.02, 4, 0.05),  # friction as in a design
    ],
)
def test_predicted_link_motion_matches_integration_of_eq_10(
    base_frequency, harmonics, coulomb, smoothing, detail, tolerance
):
    motor = create_series(base_frequency, harmonics)
    time = create_times(motor, per_cycle=6 * detail)
    prediction = create_prediction(
        coulomb, smoothing, base_frequency=base_frequency, harmonics=harmonics, detail=detail
    )
    q, qd, _ = prediction.motion(motor.at(time)[0])
    expected, velocity = flexible_link.steady_motion(motor, time, coulomb=coulomb, smoothing=smoothing)
    deflection = np.abs(expected - motor.at(time)[0][:, 0]).max()
    assert deflection > 0.005
    np.testing.assert_allclose(q[:, 0], expected, atol=tolerance * deflection, rtol=0)
    np.testing.assert_allclose(qd[:, 0], velocity, atol=5 * tolerance * np.abs(velocity).max(), rtol=0)


def test_predicted_arm_motion_matches_mujoco():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(planar_arm.urdf())
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    robot = RobotModel.from_urdf(planar_arm.urdf())
    motor = create_series(2.0, 2, joints=planar_arm.JOINTS)
    stiffness = np.array(ARM.stiffness)
    coulomb = np.array(ARM.coulomb)
    viscous = np.array(ARM.viscous)

    def derivative(t, state):
        data.qpos[:] = state[:3]
        data.qvel[:] = state[3:]
        friction = coulomb * np.tanh(state[3:] / SMOOTHING) + viscous * state[3:]
        data.qfrc_applied[:] = stiffness * (motor.at([t])[0][0] - state[:3]) - friction
        mujoco.mj_forward(model, data)
        return np.concatenate([state[3:], data.qacc])

    time = create_times(motor, per_cycle=120)
    prediction = LinkPrediction(robot, ARM, base_frequency=2.0, harmonics=2, smoothing=SMOOTHING, detail=16)
    q, qd, qdd = prediction.motion(motor.at(time)[0])
    # The steady motion is periodic and equals the prediction in between.
    state = np.concatenate([q[0], qd[0]])
    solved = solve_ivp(derivative, (0.0, 1.0), state, method="DOP853", t_eval=0.5 + time, rtol=1e-8, atol=1e-10)
    deflection = np.abs(q - motor.at(time)[0]).max()
    assert deflection > 0.005
    np.testing.assert_allclose(solved.y[:3].T, q, atol=5e-4 * deflection)
    np.testing.assert_allclose(solved.y[3:].T, qd, atol=1e-4)
    rates = np.array([derivative(t, s)[3:] for t, s in zip(0.5 + time, solved.y.T, strict=True)])
    np.testing.assert_allclose(rates, qdd, atol=0.02)


def test_prediction_does_not_depend_on_sampling():
    motor = create_series(1.4, 5)
    prediction = create_prediction(base_frequency=1.4, harmonics=5)
    dense = prediction.motion(motor.at(create_times(motor, 240))[0])
    for coarse, array in zip(prediction.motion(motor.at(create_times(motor))[0]), dense, strict=True):
        np.testing.assert_allclose(array[::10], coarse, atol=1e-7 * np.abs(coarse).max())


def test_refuses_motions_without_a_steady_state():
    motor = create_series(flexible_link.RESONANCE, 2)
    position = motor.at(create_times(motor))[0]
    with pytest.raises(TrajectoryError, match=r"no steady motion .* 7 to 14 Hz|wind up by"):
        create_prediction(coulomb=0.0, viscous=0.0, base_frequency=motor.base_frequency, harmonics=2).motion(position)
    with pytest.raises(TrajectoryError, match=r"the spring of joint 's2' would wind up by \d+°"):
        create_prediction(stiffness=200.0, base_frequency=0.1, harmonics=2).motion(position)
    with pytest.raises(TrajectoryError, match="10 samples of a period are too few for 2 harmonics"):
        create_prediction(base_frequency=1.0, harmonics=2).motion(position[:10])
    robot = flexible_link.robot()
    massless = RobotModel(robot.chain, None, robot.gravity)
    with pytest.raises(TrajectoryError, match="link_2's description has no masses"):
        LinkPrediction(massless, flexible_link.JOINTS, base_frequency=1.0, harmonics=2, smoothing=SMOOTHING[:1])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (FlexibleJoints(0.0), "stiffness of joint 'joint_1' is 0; it must be finite and positive"),
        (FlexibleJoints([1.0, np.inf, 1.0]), "stiffness of joint 'joint_2' is inf"),
        (FlexibleJoints(1.0, viscous=[0.0, 0.0, -1.0]), "viscous of joint 'joint_3' is -1; .* zero or more"),
        (FlexibleJoints([1.0, 2.0]), "stiffness: 2 values"),
    ],
)
def test_refuses_invalid_priors(prior, message):
    robot = RobotModel.from_urdf(planar_arm.urdf())
    with pytest.raises(TrajectoryError, match=message):
        LinkPrediction(robot, prior, base_frequency=1.0, harmonics=2, smoothing=SMOOTHING)


def test_resonance_of_single_and_double_pendulum():
    link = resonance(flexible_link.robot(), flexible_link.STIFFNESS, flexible_link.MOTOR_INERTIA, [0.3])
    assert link.driven == pytest.approx([flexible_link.RESONANCE])
    inverse_inertia = 1 / flexible_link.INERTIA + 1 / flexible_link.MOTOR_INERTIA
    assert link.free == pytest.approx([np.sqrt(flexible_link.STIFFNESS * inverse_inertia) / (2 * np.pi)])
    robot = RobotModel.from_urdf(planar_arm.urdf())
    # Joints 2 and 3 are parallel: a double pendulum without gravity.
    _, near_mass, far_mass = planar_arm.MASS
    near_center, far_center = planar_arm.CENTRE[1:]
    length = planar_arm.LENGTH
    far = 0.01 + far_mass * far_center**2
    cross = far_mass * length * far_center * np.cos(0.4)
    coupled = far + cross
    near = 0.01 + near_mass * near_center**2 + far_mass * length**2 + far + 2 * cross
    mass = np.array([[near, coupled], [coupled, far]])
    values = np.linalg.eigvals(np.linalg.solve(mass, np.diag([900.0, 400.0])))
    result = resonance(robot, [1.0, 900.0, 400.0], 0.1, [0.0, 0.2, 0.4], ["joint_2", "joint_3"])
    np.testing.assert_allclose(result.driven, np.sort(np.sqrt(values)) / (2 * np.pi))
    with pytest.raises(TrajectoryError, match="stiffness and motor_inertia must be positive"):
        resonance(robot, 0.0, 1.0, np.zeros(3))
    with pytest.raises(TrajectoryError, match="resonance: joints elbow; expected some of joint_1"):
        resonance(robot, 1.0, 1.0, np.zeros(3), ["elbow"])


def test_proposed_base_frequency():
    assert proposed_base_frequency(8.0, 5) == pytest.approx(2.0)  # the highest harmonic is at 10 Hz
    assert proposed_base_frequency([4.0, 8.0], 2) == pytest.approx(2.0)  # half the lowest resonance
    assert proposed_base_frequency(8.0, 5, rate=50.0) == pytest.approx(1.0)  # ten commands per cycle
    with pytest.raises(TrajectoryError, match="must be positive"):
        proposed_base_frequency([], 5)
