"""Recordings and settings of torque sensor calibrations, and refusals of unusable ones."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torque_sensor_bench as bench

from dynid_ros.errors import IdentificationError, IdentifiedFileError, RecordingError
from dynid_ros.identification import GravityIdentification, TorqueSensorCalibration
from dynid_ros.identified.gravity import KnownGravity
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.model import RobotModel
from dynid_ros.simulation import demo_arm_urdf


@cache
def record_dwells():
    rng = np.random.default_rng(11)
    return bench.recording(bench.Truth.draw(rng, bench.upright_robot()), rng, gravity=bench.UPRIGHT)


def make_calibration(**settings):
    return TorqueSensorCalibration(bench.upright_robot(), **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reference_mass": 0.0}, "reference mass is 0 kg"),
        ({"reference_mass": -1.0}, "reference mass is -1 kg"),
        ({"reference_mass": np.nan}, "reference mass is nan kg"),
        ({"reference_center": (0, 0, 0)}, "without reference_mass"),
        ({"reference_mass": 1.0, "reference_center": (0, 0)}, "expected x, y and z"),
        ({"gravity": KnownGravity(np.zeros(3), np.zeros((3, 3)))}, "3 moments; robot 'demo_arm' has 12"),
        ({"gain_range": (2.0, 0.5)}, "gain_range is"),
        ({"gain_range": (0.5, np.nan)}, "gain_range is"),
        ({"gain_range": (0.5,)}, "gain_range is"),
    ],
)
def test_refuses_invalid_settings(settings, words):
    with pytest.raises(IdentificationError, match=words):
        make_calibration(**settings)


def test_refuses_recordings_that_do_not_match_the_settings():
    recording = record_dwells()
    with pytest.raises(IdentificationError, match="no recording was made with it attached"):
        make_calibration(reference_mass=2.0).fit(recording)
    with pytest.raises(IdentificationError, match="no reference_mass; give its weight"):
        make_calibration().fit(recording, recording)
    with pytest.raises(IdentificationError, match="no recording without the reference mass"):
        make_calibration(reference_mass=2.0).fit([], recording)
    with pytest.raises(RecordingError, match="lacks joint"):
        make_calibration().fit(replace(recording, joint_names=tuple("abcdef")))
    moving = replace(recording, position=recording.position + 0.2 * np.sin(5 * recording.time[:, None]))
    with pytest.raises(IdentificationError, match="no dwells"):
        make_calibration().fit(moving)
    resting = replace(recording.slice(slice(100)), position=np.tile(recording.position[:1], (100, 1)))
    with pytest.raises(IdentificationError, match="no joint moved"):
        make_calibration().fit(resting)


def test_refuses_gravity_of_a_urdf_without_masses():
    bare = RobotModel.from_dh([{"a": 1.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}])
    with pytest.raises(IdentifiedFileError, match="no masses"):
        KnownGravity.of_urdf(bare)


def test_refuses_saturated_or_dead_sensors():
    recording = record_dwells()
    cut = np.minimum(recording.torque, np.quantile(recording.torque, 0.8, axis=0))
    with pytest.raises(RecordingError, match="its torque is cut off at"):
        make_calibration().fit(replace(recording, torque=cut))
    dead = recording.torque.copy()
    dead[:, 3] = 0.0
    with pytest.raises(RecordingError, match="'joint_4': its torque is 0 in all samples"):
        make_calibration().fit(replace(recording, torque=dead))


def test_file_of_the_arm_is_extended_by_the_sensors(tmp_path):
    result = make_calibration().fit(record_dwells())
    alone = load_identified(result.save(tmp_path / "sensors.yaml"))
    arm = {**alone, "remarks": ["of the arm"], "condition_number": 3.0, "torque_sensors": "old", "links": {"link_1": 1}}
    document = load_identified(replace(result, arm=arm).save(tmp_path / "both.yaml"))
    assert document["torque_sensors"] == alone["torque_sensors"]
    assert (document["remarks"], document["condition_number"], document["links"]) == (
        ["of the arm"],
        3.0,
        {"link_1": 1},
    )
    assert document["torque_sensor_calibration"]["remarks"] == alone["remarks"]


def test_calibration_corrects_recordings():
    rng = np.random.default_rng(12)
    robot = bench.aslant_robot()
    truth = bench.Truth.draw(rng, robot)
    plain, carrying = (bench.recording(truth, rng, loaded=loaded) for loaded in (False, True))
    result = TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit(plain, [carrying])
    np.testing.assert_allclose(result.gain, truth.gain, rtol=0.02)
    assert result.sources == ("static bench", "static bench")
    corrected = result.correct(plain)
    np.testing.assert_array_equal(corrected.torque, result.gain * (plain.torque - result.offset))
    off, calibrated = (GravityIdentification(robot).fit(recording) for recording in (plain, corrected))
    exact = KnownGravity.of_urdf(robot).moments
    assert np.abs(calibrated.parameters - exact).max() < 0.1 < 0.5 < np.abs(off.parameters - exact).max()


@pytest.mark.slow
def test_refuses_readings_of_another_robot():
    rng = np.random.default_rng(13)
    robot = bench.aslant_robot()
    samples, loaded = bench.experiment(bench.Truth.draw(rng, robot), rng)
    other = replace(samples, torque=samples.torque[:, [0, 2, 1, 3, 4, 5]])
    with pytest.raises(IdentificationError, match="do not follow the gravity torque of robot 'demo_arm'"):
        TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit_samples(other, loaded)
    turned = RobotModel.from_urdf(demo_arm_urdf(), gravity=(0.0, 9.0, 0.0))
    with pytest.raises(IdentificationError, match="gravity direction"):
        TorqueSensorCalibration(turned, reference_mass=bench.MASS).fit_samples(samples, loaded)


def test_omits_dwells_after_a_swing_back():
    """Friction has the wrong sign in a tenth of the dwells, which the direction of approach does not show."""
    robot = bench.aslant_robot()
    rng = np.random.default_rng(14)
    truth = bench.Truth.draw(rng, robot)
    samples, loaded = bench.experiment(truth, rng)
    from_above = rng.random(samples.torque.shape) < 0.1
    swung = replace(samples, torque=samples.torque - 2 * from_above * samples.direction * truth.coulomb / truth.gain)
    result = TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit_samples(swung, loaded)
    clean = TorqueSensorCalibration(robot, reference_mass=bench.MASS).fit_samples(samples, loaded)
    assert clean.fit.left_out.sum() == 0
    assert np.all(result.fit.left_out > 10)
    assert np.all(np.abs(result.gain - truth.gain) < 4 * result.per_joint("gain")[1])
    assert np.all(result.per_joint("gain")[1] < 2 * clean.per_joint("gain")[1])
    assert "pairs of dwells left out" in result.summary()


@pytest.mark.parametrize(
    ("again", "center"),
    [
        (True, None),
        (False, bench.CENTER),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((False, None), (True, bench.CENTER))),
    ],
)
def test_refuses_recordings_without_the_mass(again, center):
    """Two identical recordings, or two runs without the mass, do not determine the scale."""
    rng = np.random.default_rng(15)
    truth = bench.Truth.draw(rng, bench.aslant_robot())
    plain = bench.recording(truth, rng)
    other = bench.recording(truth, rng) if again else plain
    calibration = TorqueSensorCalibration(bench.aslant_robot(), reference_mass=bench.MASS, reference_center=center)
    with pytest.raises(IdentificationError, match=r"the reference mass of 2 kg is not seen.* attach it"):
        calibration.fit(plain, other)


def test_refuses_recordings_without_the_mass_after_a_drift():
    """The drift looks like a mass, but would imply impossible gains."""
    rng = np.random.default_rng(16)
    truth = bench.Truth.draw(rng, bench.aslant_robot())
    drifted = replace(truth, gain=truth.gain * 1.01)
    plain = bench.recording(truth, rng)
    other = bench.recording(drifted, rng)
    with pytest.raises(IdentificationError, match=r"outside gain_range, 0.5 to 2: .*mass was attached"):
        TorqueSensorCalibration(bench.aslant_robot(), reference_mass=bench.MASS).fit(plain, other)


def test_refuses_gains_outside_the_range():
    rng = np.random.default_rng(17)
    robot = bench.aslant_robot()
    truth = bench.Truth.draw(rng, robot)
    amperes = replace(truth, gain=truth.gain * 10, offset=truth.offset / 10, noise=truth.noise / 10)
    samples, loaded = bench.experiment(amperes, rng)
    for settings in ({"reference_mass": bench.MASS}, {"gravity": KnownGravity.of_urdf(robot)}):
        rows = np.full(len(samples), True) if "reference_mass" in settings else ~loaded
        chosen = samples.take(np.flatnonzero(rows)), loaded[rows]
        with pytest.raises(IdentificationError, match=r"joint_1 9\.\d+.*outside gain_range, 0.5 to 2"):
            TorqueSensorCalibration(robot, **settings).fit_samples(*chosen)
        result = TorqueSensorCalibration(robot, gain_range=(5.0, 20.0), **settings).fit_samples(*chosen)
        np.testing.assert_allclose(result.gain, amperes.gain, rtol=0.02)
        with pytest.raises(IdentificationError, match="outside gain_range, 15 to 20"):
            TorqueSensorCalibration(robot, gain_range=(15.0, 20.0), **settings).fit_samples(*chosen)
