"""Load identification with a wrist sensor: MuJoCo's wrenches with realistic sensor errors."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from clean_recordings import arm
from scipy.interpolate import CubicSpline
from wrench_experiments import FT_300, TOPIC, CarriedMotion, Sensor, carried_motion, random_load, with_wrench, wrench_of

from dynid_ros.errors import DynidError, IdentificationError
from dynid_ros.identification.load.load_fit import LoadFit, LoadProblem, fit_load
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.identification.wrench_frame import tip_rotations, turned
from dynid_ros.model.inertia import LoadBody, transformed
from dynid_ros.recording import Recording, WrenchSeries
from dynid_ros.simulation import Sensors, SimulatedArm, WrenchSensor
from dynid_ros.simulation.replay import record
from dynid_ros.trajectories.trajectory import Trajectory, move

EXACT = Sensor(rate=250.0, noise=(0.0, 0.0), gain_error=0.0, turn=0.0, lag=0.0, step=(0.0, 0.0))


@pytest.fixture(name="carried", scope="module")
def fixture_carried() -> CarriedMotion:
    return carried_motion("ur10", 5.0, 3)


@pytest.fixture(name="recording", scope="module")
def fixture_recording(carried) -> Recording:
    return carried.record(FT_300, np.random.default_rng(5))


def identify_load(carried: CarriedMotion, *recordings: Recording, **settings: object) -> tuple[LoadProblem, LoadFit]:
    problem = WrenchSource(**settings).moving(carried.robot, recordings)
    return problem, fit_load(problem)


def value(fit: LoadFit, name: str) -> float:
    return float(fit.estimate.values[fit.estimate.names.index(name)])


@pytest.mark.parametrize("equations", ["filtered", "integral"])
def test_identifies_the_load_from_exact_readings(carried, equations):
    recording = carried.record(EXACT, np.random.default_rng(0), encoder=0.0)
    _, fit = identify_load(carried, recording, equations=equations, lag=0.0, sensor_turn=False)
    # The resolution of the encoder is 1.2e-5 rad.
    np.testing.assert_allclose(fit.estimate.values[:10], carried.load, atol=3e-4)
    assert np.all(fit.residual_rms < np.repeat([0.05, 0.003], 3))


@pytest.mark.parametrize("equations", ["filtered", "integral"])
def test_identifies_the_load_in_five_seconds_with_sensor_errors(carried, recording, equations):
    problem, fit = identify_load(carried, recording, equations=equations)
    body, truth = (LoadBody(x[:10], fit.estimate.covariance[:10, :10]) for x in (fit.estimate.values, carried.load))
    assert body.mass == pytest.approx(truth.mass, rel=0.01)
    assert np.linalg.norm(body.center - truth.center) < 0.002
    assert np.abs(body.inertia - truth.inertia).max() < 0.15 * truth.moments[-1]
    assert np.all(np.abs(fit.estimate.values[:10] - carried.load) < 4.5 * fit.estimate.standard_errors[:10])
    assert "late by 5.0 ms" in problem.remarks[1]
    assert fit.condition_number < 50


def test_identifies_the_load_of_the_simulated_arm():
    """A servo moves the load for 5.4 s; encoders and the wrist sensor have noise."""
    rng = np.random.default_rng(0)
    robot = arm("ur10")
    load = random_load(rng)
    poses = rng.uniform(-1.2, 1.2, (7, 6))
    moves = Trajectory.join([move(robot.joint_names, a, b, 0.9) for a, b in pairwise(poses)])
    sensors = Sensors.draw(np.full(6, 100.0), rng, position_noise=2e-5)
    simulated = SimulatedArm(robot, sensors=sensors, wrench_sensor=WrenchSensor.draw(rng))
    simulated.attach_load(load)
    problem = WrenchSource(gain_error=0.0, joint_deflection=0.0).moving(
        robot, [record(simulated, moves, wrench_topic=TOPIC)]
    )
    assert problem.known is None
    estimate = fit_load(problem._replace(known=None)).estimate
    assert np.all(np.abs(estimate.values[:10] - load) < 4.5 * estimate.standard_errors[:10])
    assert estimate.standard_errors[0] < 0.001 * load[0]


def test_estimates_lag_and_rotation_of_the_sensor(carried):
    sensor = replace(FT_300, lag=-0.02, gain_error=0.0)
    turn = np.array([0.03, -0.02, 0.01])
    recording = carried.record(sensor, np.random.default_rng(2), turn=turn)
    problem, fit = identify_load(carried, recording)
    assert "early by 20.0 ms" in problem.remarks[1]
    assert "turned by 2.1°" in problem.remarks[2]
    assert all(abs(value(fit, f"turn {axis}")) < 0.002 for axis in "xyz")
    np.testing.assert_allclose(fit.estimate.values[0], carried.load[0], rtol=0.01)
    _, bent = identify_load(carried, recording, sensor_turn=False)
    assert np.max(bent.residual_rms / fit.residual_rms) > 5


@pytest.mark.parametrize("turn", [(0.0, 0.0, np.pi / 2), (0.5, -0.5, 0.0)])
def test_estimates_a_large_rotation_of_the_sensor(carried, turn):
    """The tip link and the sensor have different axes."""
    recording = carried.record(replace(FT_300, gain_error=0.0), np.random.default_rng(2), turn=np.array(turn))
    problem, fit = identify_load(carried, recording)
    (angle,) = re.findall(r"turned by ([\d.]+)°", problem.remarks[2])
    assert float(angle) == pytest.approx(np.degrees(np.linalg.norm(turn)), abs=0.2)
    np.testing.assert_allclose(fit.estimate.values[:4], carried.load[:4], rtol=0.01, atol=0.002)


def test_uses_a_configured_lag(carried, recording):
    _, free = identify_load(carried, recording)
    _, configured = identify_load(carried, recording, lag=0.005)
    assert "lag" not in configured.estimate.names
    assert abs(value(free, "lag")) < 2e-4
    np.testing.assert_allclose(configured.estimate.values[:4], free.estimate.values[:4], atol=0.01)
    _, wrong = identify_load(carried, recording, lag=-0.03)
    assert np.max(wrong.residual_rms / configured.residual_rms) > 2


@pytest.mark.slow
def test_detects_wrong_frames_and_conventions(carried, recording):
    robot = carried.robot
    _, expected = identify_load(carried, recording, lag=0.005)
    series = recording.wrenches[TOPIC]
    time = np.clip(series.time - 0.005, recording.time[0], recording.time[-1])
    q = np.stack([np.interp(time, recording.time, column) for column in recording.position.T], axis=1)
    in_base = with_wrench(recording, turned(wrench_of(recording), tip_rotations(robot, q)), robot.base)
    opposite = with_wrench(recording, -wrench_of(recording))
    for other, message in (
        (replace_frame(in_base, robot.tip), "contradicts the data.*set frame='base'"),
        (replace_frame(recording, robot.base), "contradicts the data.*set frame='sensor'"),
        (opposite, "mass would be .*the other sign"),
    ):
        with pytest.raises(DynidError, match=message):
            identify_load(carried, other)
    for other, settings in ((in_base, {}), (opposite, {"convention": "sensor_on_load"})):
        _, fit = identify_load(carried, other, lag=0.005, **settings)
        np.testing.assert_allclose(fit.estimate.values[:4], expected.estimate.values[:4], atol=0.02)
        assert np.all(fit.residual_rms < 1.5 * expected.residual_rms)


def replace_frame(recording: Recording, frame_id: str) -> Recording:
    return with_wrench(recording, wrench_of(recording), frame_id)


def test_recordings_have_separate_biases(carried):
    rng = np.random.default_rng(3)
    first, second = (carried.record(FT_300, rng) for _ in range(2))
    _, fit = identify_load(carried, first, second)
    names = fit.estimate.names
    assert "bias of force x, recording 1" in names
    assert "bias of torque z, recording 2" in names
    np.testing.assert_allclose(fit.estimate.values[0], carried.load[0], rtol=0.01)


def test_refuses_or_estimates_a_drift_of_the_bias(carried):
    recording = carried.record(replace(FT_300, gain_error=0.0), np.random.default_rng(4))
    course = np.linspace(-1, 1, len(wrench_of(recording)))[:, None]
    drifting = with_wrench(recording, wrench_of(recording) + course * [2.0, 0, 0, 0, 0.1, 0])
    with pytest.raises(IdentificationError, match=r"the bias drifts \(force x by"):
        identify_load(carried, drifting)
    _, plain = identify_load(carried, recording)
    _, fit = identify_load(carried, drifting, drift=1)
    # The drift is stated for the wrench on the load, which is the reaction.
    assert value(fit, "drift 1 of force x") == pytest.approx(-2.0, abs=0.1)
    assert fit.residual_rms[0] < 1.2 * plain.residual_rms[0]


def test_readings_of_a_fast_sensor_are_not_aliased(carried):
    """The noise of 1 N at 2 kHz would remain in full if the readings were just sampled at 250 Hz."""
    sensor = replace(FT_300, rate=2000.0, noise=(1.0, 0.05), gain_error=0.0)
    _, fit = identify_load(carried, carried.record(sensor, np.random.default_rng(6)))
    assert np.all(fit.residual_rms[:3] < 1.3 * np.sqrt(7.0 / 1000.0) * 1.1)


def test_tolerates_gaps_and_missing_readings(carried, recording):
    wrench = wrench_of(recording)
    wrench[200:240] = np.nan
    wrench[::17, 2] = np.nan
    _, fit = identify_load(carried, with_wrench(recording, wrench))
    np.testing.assert_allclose(fit.estimate.values[0], carried.load[0], rtol=0.015)


def record_rests(carried: CarriedMotion, poses: int = 10) -> Recording:
    """Return a recording with a rest of one second in each pose."""
    rng = np.random.default_rng(8)
    stops = rng.uniform(-2.0, 2.0, (poses, 6))
    blend = np.clip(np.arange(200) / 100 - 1.0, 0.0, 1.0)[:, None]
    q = np.concatenate([a + (b - a) * blend for a, b in zip(stops, np.roll(stops, -1, axis=0), strict=True)])
    time = np.arange(len(q)) * 0.01
    still = np.zeros_like(q)
    wrench = -carried.robot.wrench_regressor(q, still, still) @ carried.load + [5, -3, 2, 0.1, 0.2, -0.3]
    wrench += np.repeat([0.1, 0.005], 3) * rng.standard_normal(wrench.shape)
    series = WrenchSeries(time, wrench[:, :3], wrench[:, 3:], carried.robot.tip)
    return Recording(carried.robot.joint_names, time, q, still, still, wrenches={TOPIC: series}, source="rests")


def test_static_poses_determine_mass_and_mass_moments(carried):
    problem = WrenchSource(sensor_turn=False).resting(carried.robot, [record_rests(carried)])
    assert problem.columns.names[:5] == ("m", "mcx", "mcy", "mcz", "bias of force x")
    fit = fit_load(problem)
    estimate = fit.estimate
    assert np.all(np.abs(estimate.values[:4] - carried.load[:4]) < 4.5 * estimate.standard_errors[:4])
    assert estimate.standard_errors[0] < 0.01
    np.testing.assert_allclose(estimate.values[4:7], [-5, 3, -2], atol=0.1)


def test_estimates_a_drift_of_the_bias_in_static_poses(carried):
    rests = record_rests(carried)
    course = np.linspace(-1.0, 1.0, rests.n_samples)[:, None]
    drifting = with_wrench(rests, wrench_of(rests) + course * [2.0, 0, 0, 0, 0.1, 0])
    problem = WrenchSource(sensor_turn=False, drift=1).resting(carried.robot, [drifting])
    assert problem.faults == (), "a drift is configured"
    fit = fit_load(problem)
    assert value(fit, "drift 1 of force x") == pytest.approx(-2.0, abs=0.2)
    assert fit.estimate.values[0] == pytest.approx(carried.load[0], rel=0.02)


def test_refuses_few_static_poses(carried):
    problem = WrenchSource(sensor_turn=False).resting(carried.robot, [record_rests(carried, 2)])
    with pytest.raises(IdentificationError, match=r"2 samples of force x.* record longer, or more poses"):
        fit_load(problem)


@pytest.mark.parametrize("shift", [0.006, pytest.param(0.03, marks=pytest.mark.slow)])
def test_refuses_a_load_that_slips(shift):
    """The load slips along x of the sensor 8 s after the start."""
    carried = carried_motion("ur10", 16.0, 3)
    recording = carried.record(FT_300, np.random.default_rng(0))
    pose = np.eye(4)
    pose[0, 3] = shift
    q = CubicSpline(carried.time, carried.position)
    time = recording.wrenches[TOPIC].time - FT_300.lag
    regressor = carried.robot.wrench_regressor(*(q(time, order) for order in range(3)))
    change = (time > 8.0)[:, None] * (regressor @ (carried.load - transformed(carried.load, pose)))
    slipped = with_wrench(recording, wrench_of(recording) + change)
    with pytest.raises(DynidError, match=r"the load changed at about t = [78]\.\d s, from .*it slipped") as error:
        identify_load(carried, slipped)
    before, after = (float(x) for x in re.findall(r"centre at \(([-\d.]+), ", str(error.value)))
    assert after - before == pytest.approx(1000 * shift, abs=2.5)


def test_refuses_unusable_recordings(carried, recording):
    (series,) = recording.wrenches.values()

    def refused(message: str, other: Recording, **settings: object) -> None:
        with pytest.raises(DynidError, match=message):
            WrenchSource(**settings).moving(carried.robot, [other])

    refused("has no wrench topic", replace(recording, wrenches={}))
    refused("several wrench topics: /a, /b", replace(recording, wrenches={"/a": series, "/b": series}))
    refused("no wrench topic /c; it has /wrench", recording, topic="/c")
    refused("build the robot with tip='ft_link'", with_wrench(recording, wrench_of(recording), "ft_link"))
    refused("is saturated", with_wrench(recording, np.clip(wrench_of(recording), -10, 10)))
    refused("is saturated", recording, sensor_range=[5, 500, 500, 50, 50, 50])
    refused("all its readings are the same", with_wrench(recording, np.ones_like(wrench_of(recording))))
    refused("0 finite readings of 500 are too few", with_wrench(recording, np.nan * wrench_of(recording)))
    short = recording.slice(slice(0, 60))
    refused("run: no spectrum of 60 positions", short)
    refused("3 finite readings of 3 are too few", recording.slice(slice(0, 8)))
    still = replace(recording, position=np.zeros_like(recording.position))
    refused("no joint moves|at rest", still)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"equations": "weak"}, "equations is 'weak'"),
        ({"frame": "tool"}, "frame is 'tool'"),
        ({"convention": "down"}, "convention is 'down'"),
        ({"drift": -1}, "drift is -1"),
        ({"lag": np.nan}, "lag is nan"),
        ({"sensor_range": [1, 2, 3]}, "sensor_range"),
    ],
)
def test_refuses_invalid_settings(settings, message):
    with pytest.raises(DynidError, match=message):
        WrenchSource(**settings)
