"""Direction of dry friction: against hand calculations, and against scipy's integration with a narrow tanh."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from dynid_ros.identification.flexible.friction_directions import LinearMotion, march

SAMPLE_STEP_S = 0.004
MARCH_STEP_S = 0.001


def motion(time, mass, damping, stiffness, force, coulomb):
    """Return the linear motion with constant matrices (n, n) under a force (N, n)."""
    constant = [np.tile(np.asarray(matrix, dtype=float), (len(time), 1, 1)) for matrix in (mass, damping, stiffness)]
    return LinearMotion(*constant, force, np.asarray(coulomb, dtype=float), SAMPLE_STEP_S)


def directions(motion, start, longest_step):
    return march(motion, start, longest_step).averaged()


def integrate_by_scipy(time, mass, damping, stiffness, force, coulomb, width):
    """Return directions (N, n) averaged over the sample around each time, and velocities (N, n), from rest at zero."""
    spline = CubicSpline(time, force)
    n = len(coulomb)
    inverse = np.linalg.inv(mass)
    parts = 40
    fine = np.linspace(time[0], time[-1], parts * (len(time) - 1) + 1)

    def derivative(t, state):
        q = state[:n]
        qd = state[n:]
        resistance = damping @ qd + stiffness @ q + coulomb * np.tanh(qd / width)
        return np.concatenate([qd, inverse @ (spline(t) - resistance)])

    solution = solve_ivp(derivative, fine[[0, -1]], np.zeros(2 * n), "LSODA", fine, rtol=1e-8, atol=1e-11)
    velocity = solution.y[n:].T
    direction = np.tanh(velocity / width)
    around = np.arange(-parts // 2, parts // 2 + 1)
    rows = np.clip(parts * np.arange(len(time))[:, None] + around, 0, len(fine) - 1)
    return direction[rows].mean(axis=1), velocity[::parts]


def test_mass_sticks_until_the_force_exceeds_friction():
    """A mass at rest under 4 t N with friction of 2 N slips at 0.5 s; until then, friction equals the force."""
    time = SAMPLE_STEP_S * np.arange(250)
    ramp = motion(time, [[1.0]], [[0.0]], [[0.0]], 4.0 * time[:, None], [2.0])
    direction = directions(ramp, np.zeros((2, 1)), MARCH_STEP_S)[:, 0]
    expected = np.minimum(2.0 * time, 1.0)
    np.testing.assert_allclose(direction[1:], expected[1:], atol=0.01)


def test_friction_of_a_sticking_mass_equals_the_force():
    """The force is 1.5 sin(2 π 12 t) N against 2 N; the mean over a sample would be 0.4 % too small."""
    time = SAMPLE_STEP_S * np.arange(250)
    force = 1.5 * np.sin(2.0 * np.pi * 12.0 * time)[:, None]
    direction = directions(motion(time, [[1.0]], [[0.0]], [[0.0]], force, [2.0]), np.zeros((2, 1)), MARCH_STEP_S)
    peak = np.abs(direction[10:-10]).max()
    assert peak == pytest.approx(0.75, rel=1.5e-3)


def test_mass_on_a_spring_stops_within_the_friction_band():
    """k = 100 N/m, m = 1 kg, c = 2 N, released at 0.09 m: half swings about ±0.02 m that end at 0.05 and 0.01 m."""
    time = SAMPLE_STEP_S * np.arange(400)
    start = np.array([[0.09], [0.0]])
    direction = directions(motion(time, [[1.0]], [[0.0]], [[100.0]], np.zeros((400, 1)), [2.0]), start, MARCH_STEP_S)[
        :, 0
    ]
    half = np.pi / 10
    first = time < half - 2 * SAMPLE_STEP_S
    second = (time > half + 2 * SAMPLE_STEP_S) & (time < 2 * half - 2 * SAMPLE_STEP_S)
    after = time > 2 * half + 3 * SAMPLE_STEP_S
    np.testing.assert_allclose(direction[first], -1.0, atol=1e-9)
    np.testing.assert_allclose(direction[second], 1.0, atol=1e-9)
    # At 0.01 m the spring pulls with 1 N, half of the friction.
    np.testing.assert_allclose(direction[after], -0.5, atol=1e-3)


@pytest.mark.parametrize(
    ("mass", "damping", "stiffness", "coulomb", "rate"),
    [
        ([[2.0]], [[1.5]], [[800.0]], [9.0], 2.0),
        ([[2.0]], [[1.5]], [[800.0]], [14.0], 2.0),
        ([[2.0, 0.3], [0.3, 0.4]], [[1.5, 0.0], [0.0, 0.4]], [[800.0, 0.0], [0.0, 500.0]], [9.0, 3.0], 1.5),
    ],
)
def test_directions_agree_with_numerical_integration(mass, damping, stiffness, coulomb, rate):
    """A tanh lets a sticking link creep, so only moving links and the impulse of friction are compared."""
    time = SAMPLE_STEP_S * np.arange(300)
    n = len(coulomb)
    width = 1e-3
    phase = 2 * np.pi * rate * time[:, None] * (1 + 0.6 * np.arange(n))
    force = 20.0 * np.sin(phase) + 15.0 * np.sin(2.3 * phase)
    matrices = [np.array(matrix) for matrix in (mass, damping, stiffness)]
    expected, velocity = integrate_by_scipy(time, *matrices, force, np.array(coulomb), width)
    direction = directions(motion(time, *matrices, force, coulomb), np.zeros((2, n)), MARCH_STEP_S)
    assert np.abs(direction).max() < 1.1
    moves = np.abs(velocity) > 0.02
    assert 0.2 < moves.mean() < 0.98
    assert np.abs(direction - expected)[moves].mean() < 0.01
    # The impulse of friction moves a link; it is compared in units of the full friction of a sample.
    assert np.abs(np.cumsum(direction - expected, axis=0)).max() < 0.8
    assert np.sqrt(np.mean((direction - expected) ** 2)) < 0.04


def test_sticking_mass_creeps_or_bends_elastically():
    """Force 4 t N, friction 2 N, 1 kg, 20 N s/m: the velocity is q̇ = w s (creep) or q̇ = d ds/dt (elastic)."""
    time = SAMPLE_STEP_S * np.arange(140)
    damping = 20.0
    creep = 0.02
    bend = 0.01
    pulled = motion(time, [[1.0]], [[damping]], [[0.0]], 4.0 * time[:, None], [2.0])
    # After the transient, 2 s = 4 t - (20 w s + w ds/dt) or 2 s = 4 t - (20 d ds/dt + d d²s/dt²).
    slope = 4.0 / (2.0 + damping * creep)
    crept = slope * time - creep * slope / (2.0 + damping * creep)
    bent = 2.0 * time - damping * bend
    for law, expected in (((creep, 0.0, 0.0), crept), ((0.0, bend, 0.0), bent)):
        soft = pulled._replace(stiction=np.array(law)[:, None])
        direction = directions(soft, np.zeros((2, 1)), MARCH_STEP_S)[:, 0]
        settled = (time > 0.45) & (expected < 0.9)
        np.testing.assert_allclose(direction[settled], expected[settled], atol=0.02)


def test_lead_and_creep_reproduce_mujocos_friction():
    """Impedance 0.9 and time constant 0.02 s give 1/lead = 2 / (0.95 * 0.02 s), creep = c lead (1 - 0.9) / 0.9 / m."""
    mujoco = pytest.importorskip("mujoco")
    step = 1e-4
    substeps = 40
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{step}" gravity="0 0 0" tolerance="1e-14"/><worldbody><body>'
        '<joint type="slide" frictionloss="9" damping="1.5"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
        "</body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    time = SAMPLE_STEP_S * np.arange(300)
    fine = step * np.arange(substeps * (len(time) - 1))
    acting = np.empty(len(fine))
    for k, force in enumerate(20.0 * np.sin(13.0 * fine) + 15.0 * np.sin(29.0 * fine)):
        data.qfrc_applied[0] = force - 800.0 * data.qpos[0]
        mujoco.mj_step(model, data)
        acting[k] = -data.qfrc_constraint[0] / 9.0
    force = (20.0 * np.sin(13.0 * time) + 15.0 * np.sin(29.0 * time))[:, None]
    moved = motion(time, [[2.0]], [[1.5]], [[800.0]], force, [9.0])
    lead = 0.95 * 0.02 / 2
    soft = np.array([[9.0 * lead * 0.1 / 0.9 / 2.0], [0.0], [lead]])
    expected = acting[substeps // 2 : -substeps // 2].reshape(-1, substeps).mean(axis=1)
    errors = []
    for law in (soft, np.zeros((3, 1))):
        direction = directions(moved._replace(stiction=law), np.zeros((2, 1)), MARCH_STEP_S)[1:-1, 0]
        errors.append(np.sqrt(np.mean((direction - expected) ** 2)))
    assert errors[0] < 0.05
    assert errors[0] < 0.2 * errors[1]


@pytest.mark.parametrize("bend", [1e-5, 1e-4])
def test_divided_steps_are_as_exact_as_short_ones(bend):
    """A reversal at an elastic contact takes a few steps; only the steps around it are divided."""
    time = SAMPLE_STEP_S * np.arange(40)
    swung = motion(time, [[1.0]], [[0.0]], [[0.0]], 20.0 * np.cos(25.0 * time)[:, None], [2.0])
    swung = swung._replace(stiction=np.array([[0.0], [bend], [0.0]]))

    def impulse(step, divisions):
        marched = march(swung, np.zeros((2, 1)), step, divisions)
        assert len(marched.fine_steps) < 8
        return SAMPLE_STEP_S * marched.averaged()[5:].sum()

    short = impulse(MARCH_STEP_S / 64, 1)
    assert abs(impulse(MARCH_STEP_S, 8) - short) < 0.2 * abs(impulse(MARCH_STEP_S, 1) - short)


@pytest.mark.parametrize("law", [(0.0, 0.0, 0.0), (1e-3, 1e-5, 0.004)])
@pytest.mark.parametrize("shift", [0, 3])
def test_expected_sticking_changes_no_direction(law, shift):
    """Expectations that are right save steps; wrong ones, of another time, are noticed."""
    time = SAMPLE_STEP_S * np.arange(200)
    force = 6.0 * np.sin(2 * np.pi * time[:, None] * [1.7, 2.9])
    swung = motion(time, [[1.0, 0.2], [0.2, 0.5]], np.eye(2), 50.0 * np.eye(2), force, [3.0, 2.0])
    swung = swung._replace(stiction=np.tile(np.array(law)[:, None], 2))
    plain = march(swung, np.zeros((2, 2)), MARCH_STEP_S)
    assert 0.05 < plain.sticking.mean() < 0.95
    marched = march(swung, np.zeros((2, 2)), MARCH_STEP_S, sticking=np.roll(plain.sticking, shift, axis=0))
    np.testing.assert_allclose(marched.used, plain.used, atol=1e-5)
