"""Calibration of torque sensors, against the companion page of the papers, MuJoCo's torques and its own intervals."""

import re
from dataclasses import replace

import known_problems as known
import numpy as np
import pytest
import torque_sensor_bench as bench

from benchmarks.torque_sensors import static
from dynid_ros.identification import TorqueSensorCalibration
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.model import GravityModel, RobotModel

TILTED_GRAVITY = (3.0, 2.0, -9.1)
MASS = 1.5
CENTER = np.array([0.05, -0.08, 0.12])
STEPS = 10


def sarcos():
    return RobotModel.from_dh(known.sarcos_dh(), gravity=TILTED_GRAVITY)


def sarcos_torque(angles, *, loaded):
    masses = known.sarcos_masses()
    moments = known.SARCOS_MOMENTS.copy()
    if loaded:
        masses[6] += MASS
        moments[6] += MASS * CENTER
    return known.dh_gravity_torque(known.sarcos_dh(), masses, moments, angles, TILTED_GRAVITY)


def sarcos_gravity(robot):
    links = np.zeros((7, 10))
    links[:, 0] = known.sarcos_masses()
    links[:, 1:4] = known.SARCOS_MOMENTS
    return KnownGravity(GravityModel(robot).project(links.ravel()), np.zeros((14, 14)))


def sarcos_samples(poses, *, loaded, positions):
    """Return samples as in the paper: joints turn one by one, and only the torque of the turning joint is read."""
    rng = np.random.default_rng(poses)
    readings = known.single_rotations(rng.uniform(-1.5, 1.5, (poses, 7)), 6.0, STEPS)
    direction = known.approach_directions(STEPS, 7 * poses, 7)
    gain = rng.uniform(0.9, 1.1, 7)
    offset = rng.uniform(-1, 1, 7)
    angles = readings
    if positions:
        angles = rng.uniform(0.98, 1.02, 7) * readings + rng.uniform(-0.1, 0.1, 7)
    is_turning = np.repeat(np.tile(np.eye(7, dtype=bool), (poses, 1)), 2 * STEPS, axis=0)
    parts = []
    for with_mass in (False, True) if loaded else (False,):
        values = (sarcos_torque(angles, loaded=with_mass) + 0.3 * direction) / gain + offset
        values += rng.normal(0, 0.005, values.shape)
        parts.append(np.where(is_turning, values, np.nan))
    times = len(parts)
    q = np.tile(readings, (times, 1))
    samples = Samples(
        position=q,
        velocity=np.zeros_like(q),
        torque=np.vstack(parts),
        direction=np.tile(direction, (times, 1)),
        static=np.ones(len(q), bool),
        time=np.arange(len(q), dtype=float),
        part=np.repeat(np.arange(times), len(readings)),
    )
    return samples, samples.part == 1, gain


@pytest.mark.parametrize("poses", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("case", "nullity", "largest_condition"),
    [
        ("nothing attached", {1: 14, 3: 2}, {1: np.inf, 3: np.inf}),
        ("mass, arm unknown", {1: 3, 3: 1}, {1: np.inf, 3: np.inf}),
        ("mass, positions known", {1: 0, 3: 0}, {1: 2.6e3, 3: 67}),
        ("mass, arm known", {1: 0, 3: 0}, {1: 9e3, 3: 271}),
        ("gravity known", {1: 0, 3: 0}, {1: 331, 3: 15}),
        ("gravity and positions known", {1: 0, 3: 0}, {1: 1.4, 3: 1.4}),
    ],
)
def test_nullity_and_condition_number_match_the_paper(case, nullity, largest_condition, poses):
    robot = sarcos()
    settings = {}
    if case.startswith("mass"):
        settings["reference_mass"] = MASS
    if "arm known" in case:
        settings["reference_center"] = CENTER
    if case.startswith("gravity"):
        settings["gravity"] = sarcos_gravity(robot)
    positions = "positions known" not in case
    samples, loaded, gain = sarcos_samples(poses, loaded="reference_mass" in settings, positions=positions)
    result = TorqueSensorCalibration(robot, estimate_positions=positions, **settings).fit_samples(samples, loaded)
    assert result.nullity == nullity[poses]
    assert result.condition_number < largest_condition[poses]
    determined = np.isfinite(result.gain)
    if case == "nothing attached":
        assert not determined.any()
        assert all("attach a reference mass" in result.reasons[f"gain {joint}"] for joint in robot.joint_names)
        assert np.isfinite(result.offset).all()
    elif nullity[poses] == 0:
        assert determined.all()
    assert np.all(
        np.abs(result.gain / gain - 1)[determined] < 5 * result.per_joint("gain")[1][determined] / gain[determined]
    )
    if case == "mass, arm unknown" and poses == 3:
        assert determined.all()
        (gauge,) = result.freedoms
        assert {"position_offset joint_7", "center x", "center y", "n_x joint_7", "n_y joint_7"} == set(gauge.changes)
        assert np.isnan(result.position_offset[6])
        assert np.isfinite(result.position_offset[:6]).all()
        assert np.isnan(result.center[:2]).all()


@pytest.mark.slow
def test_undetermined_direction_changes_no_reading():
    robot = sarcos()
    samples, loaded, _ = sarcos_samples(3, loaded=True, positions=True)
    calibration = TorqueSensorCalibration(robot, reference_mass=MASS, estimate_positions=True)
    result = calibration.fit_samples(samples, loaded)
    (gauge,) = result.freedoms
    moved = result.fit.values.copy()
    for name, change in gauge.changes.items():
        moved[result.names.index(name)] += 1e-4 * change
    before, after = (result.model.at(values).readings() for values in (result.fit.values, moved))
    assert np.abs(after - before).max() < 1e-6
    assert np.abs(result.model.at(result.fit.values + 1e-4).readings() - before).max() > 1e-4


def calibrate(rng, *, positions=False, holds=2, joints=None, **settings):
    robot = bench.aslant_robot()
    truth = bench.Truth.draw(rng, robot, positions)
    loaded = "reference_mass" in settings
    samples, with_mass = bench.experiment(truth, rng, holds=holds, loaded=loaded, joints=joints)
    calibration = TorqueSensorCalibration(robot, estimate_positions=positions, **settings)
    return truth, calibration.fit_samples(samples, with_mass)


def rough_gravity(rng, relative=0.003):
    """Return moments with errors that match their standard errors."""
    exact = KnownGravity.of_urdf(bench.aslant_robot())
    std = relative * np.abs(exact.moments)
    return KnownGravity(exact.moments + std * rng.normal(0, 1, len(std)), np.diag(std**2))


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("center", [None, bench.CENTER])
def test_identifies_gains_and_offsets_with_a_mass(positions, center):
    rng = np.random.default_rng(3)
    truth, result = calibrate(rng, holds=4, positions=positions, reference_mass=bench.MASS, reference_center=center)
    assert np.abs(result.gain / truth.gain - 1).max() < 0.005
    assert np.abs((result.offset - truth.offset) / bench.aslant_robot().limits.effort).max() < 0.005
    np.testing.assert_allclose(result.coulomb, truth.coulomb, rtol=0.02)
    if positions:
        last = slice(None) if center is not None else slice(5)
        np.testing.assert_allclose(result.position_gain, truth.position_gain, atol=0.005)
        np.testing.assert_allclose(result.position_offset[last], truth.position_offset[last], atol=0.02)
    elif center is None:
        np.testing.assert_allclose(result.center, bench.CENTER, atol=2e-3)
        numbers = re.findall(r"[xyz] ([+-][\d.]+) ± ([\d.]+)", result.summary())
        value, half = np.array(numbers, dtype=float).T
        assert np.all(np.abs(value - bench.CENTER) < 2.0 * half)
        assert np.all(half < 5e-3)


def test_identifies_gains_and_offsets_from_known_gravity():
    truth, result = calibrate(np.random.default_rng(4), gravity=KnownGravity.of_urdf(bench.aslant_robot()))
    assert np.abs(result.gain / truth.gain - 1).max() < 0.005
    assert np.abs((result.offset - truth.offset) / bench.aslant_robot().limits.effort).max() < 0.005
    assert "gains are relative to the gravity parameters" in result.summary()


def test_uncertain_gravity_increases_gain_errors():
    rng = np.random.default_rng(5)
    _, sharp = calibrate(rng, gravity=KnownGravity.of_urdf(bench.aslant_robot()))
    _, rough = calibrate(rng, gravity=rough_gravity(rng))
    assert np.all(rough.per_joint("gain")[1][:3] > 1.2 * sharp.per_joint("gain")[1][:3])


@pytest.mark.slow
@pytest.mark.parametrize(("case", "runs"), [("mass", 30), ("gravity", 60)])
def test_intervals_have_nominal_coverage(case, runs):
    """`benchmarks.torque_sensors` has hundreds of runs."""
    errors = static(case, runs)
    assert 0.91 <= np.nanmean(errors.covered) <= 0.98


def calibrate_one_joint(rng, tremor=0.0, **settings):
    """Return truth and result of an experiment where only joint 3 turns and is read; the others may tremble."""
    truth = bench.Truth.draw(rng, bench.aslant_robot())
    samples, loaded = bench.experiment(truth, rng, holds=1, joints=(2,))
    others = np.arange(6) != 2
    samples = replace(
        samples,
        position=samples.position + rng.normal(0, tremor, samples.position.shape) * others,
        torque=np.where(others, np.nan, samples.torque),
    )
    return truth, TorqueSensorCalibration(bench.aslant_robot(), **settings).fit_samples(samples, loaded)


def test_one_joint_with_unknown_center_determines_no_gain():
    _, result = calibrate_one_joint(np.random.default_rng(7), reference_mass=bench.MASS)
    assert np.isnan(result.gain).all()
    assert any("gain joint_3" in line for line in result.missing)
    assert "turn more joints" in result.reasons["gain joint_3"]
    assert "center" in result.reasons["gain joint_3"]
    assert "not determined" in result.summary()
    truth, result = calibrate_one_joint(
        np.random.default_rng(7), reference_mass=bench.MASS, reference_center=bench.CENTER
    )
    assert abs(result.gain[2] / truth.gain[2] - 1) < 0.01


def test_one_joint_with_trembling_neighbours_determines_no_gain():
    """The trembling makes the problem formally solvable, but the solution would be arbitrary."""
    _, result = calibrate_one_joint(np.random.default_rng(8), tremor=2e-5, reference_mass=bench.MASS)
    assert np.isnan(result.gain).all()


def test_torques_of_all_joints_determine_gains_of_one_rotation():
    truth, result = calibrate(np.random.default_rng(7), holds=1, joints=(2,), reference_mass=bench.MASS)
    determined = np.isfinite(result.gain)
    assert determined[2]
    assert np.all(np.abs(result.gain - truth.gain)[determined] < 4 * result.per_joint("gain")[1][determined])


def test_identifies_gains_of_other_units_and_signs():
    rng = np.random.default_rng(9)
    robot = bench.aslant_robot()
    size = np.array([0.02, -0.02, 1e3, -5.0, 0.4, 1e-4])
    truth = bench.Truth.draw(rng, robot)
    truth = replace(truth, gain=truth.gain * size, offset=truth.offset / np.abs(size), noise=truth.noise / np.abs(size))
    samples, loaded = bench.experiment(truth, rng)
    calibration = TorqueSensorCalibration(robot, reference_mass=bench.MASS, gain_range=(-np.inf, np.inf))
    result = calibration.fit_samples(samples, loaded)
    np.testing.assert_allclose(result.gain, truth.gain, rtol=0.02)


def test_joint_about_the_vertical_has_no_gain():
    truth = bench.Truth.draw(np.random.default_rng(10), bench.upright_robot())
    samples, loaded = bench.experiment(truth, np.random.default_rng(10), gravity=bench.UPRIGHT)
    result = TorqueSensorCalibration(bench.upright_robot(), reference_mass=bench.MASS).fit_samples(samples, loaded)
    assert np.isnan(result.gain[0])
    assert "gravity does not load this joint" in result.reasons["gain joint_1"]
    assert abs(result.offset[0] - truth.offset[0]) < 0.5
    assert np.isfinite(result.gain[1:]).all()
    assert result.sensors.assumed[0] == ("gain",)
