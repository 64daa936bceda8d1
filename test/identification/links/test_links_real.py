"""Links of real robots, validated on held-out recordings, which are not in the repository."""

import numpy as np
import pytest
from real_recordings import DATA, MISSING, real_recording, real_robot

from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.link_prediction import validate
from dynid_ros.identification.repeated_motion import measure_repeatability
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.identified.links import link_model
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import is_possible
from dynid_ros.model.robot import RobotModel
from dynid_ros.recording.uniform_motion import LinkSignals

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)]

COUPLED = {"coupled": [("joint_5", "joint_6")]}
PLAIN = JointFriction(offset=True, rotor_inertia=True, smoothing=0.05)


@pytest.fixture(name="kuka", scope="module")
def fixture_kuka():
    return [real_recording("kuka_lwr4", f"measurements_{i}") for i in (1, 2)]


@pytest.fixture(name="tx40", scope="module")
def fixture_tx40():
    """Return seconds 0 to 4 and 4 to 6 of a recording at 5 kHz."""
    run = real_recording("staubli_tx40", "record_1")
    return run.slice(run.time < 4), run.slice(run.time >= 4)


@pytest.mark.parametrize(("estimator", "limit"), [("consistent", 1.95), ("weighted", 1.6)])
def test_kuka_lwr4_predicts_the_repetition(kuka, estimator, limit):
    result = LinkIdentification(real_robot("kuka_lwr4"), estimator=estimator).fit(kuka[0])
    validation = result.validate(kuka[1])
    assert validation.rms.sum() < limit
    assert validation.rms.sum() < 0.6 * validate(result.urdf_model, kuka[1]).rms.sum()
    assert result.condition_number < 1000


def test_ur10e_predicts_another_trajectory(tmp_path):
    robot = real_robot("ur10e")
    fitted = [real_recording("ur10e", name) for name in ("20_02_12-40sec_12harm", "20_02_19_14harm50sec")]
    held_out = real_recording("ur10e", "20_02_10-30sec_12harm")
    result = LinkIdentification(robot).fit(*fitted)
    assert np.all(result.validate(held_out).relative_rms < [0.06, 0.03, 0.04, 0.08, 0.11, 0.09])
    assert is_possible(result.parameters.reshape(6, 10)).all()
    # Torques from motor currents contain rotors and friction of the geared joints.
    assert sum(friction.rotor_inertia for friction in result.model.joints) >= 4
    path = result.save(tmp_path / "identified.yaml")
    restored = link_model(load_identified(path), robot)
    np.testing.assert_array_equal(restored.predict_recording(held_out), result.model.predict_recording(held_out))
    urdf = result.write_urdf(tmp_path / "identified.urdf")
    exported = RobotModel.from_urdf(urdf, tip=robot.tip, base=robot.base)
    np.testing.assert_allclose(exported.parameters, result.parameters, rtol=1e-6, atol=1e-8)


def test_panda_predicts_the_rest_of_its_trajectory():
    run = real_recording("franka_panda", "exciting_1")
    result = LinkIdentification(real_robot("franka_panda")).fit(run.slice(run.time < 10))
    held_out = run.slice(run.time >= 10)
    assert result.validate(held_out).rms.sum() < 1.25
    # The prediction of single samples has a similar error plus the sensor noise.
    error = held_out.torque - result.model.predict_recording(held_out)
    assert np.isfinite(error).all()
    assert np.sqrt(np.mean(error**2, axis=0)).sum() < 3.5


def test_tx40_predicts_its_last_seconds(tx40):
    result = LinkIdentification(real_robot("staubli_tx40")).fit(tx40[0])
    (remark,) = [remark for remark in result.remarks if "driven together" in remark]
    assert remark.startswith("joint_5 and joint_6")
    assert np.all(result.validate(tx40[1]).relative_rms < [0.06, 0.07, 0.11, 0.1, 0.16, 0.13])
    assert result.model.signals.cutoff == 20  # the servo vibrates up to 50 Hz
    error = tx40[1].torque - result.model.predict_recording(tx40[1])
    relative = np.sqrt(np.mean(error**2, axis=0) / np.mean(tx40[1].torque ** 2, axis=0))
    assert np.all(relative < 0.2)


def test_tx40_has_a_coupled_wrist(tx40):
    coupled, alone = (
        LinkIdentification(real_robot("staubli_tx40"), friction=PLAIN, estimator="weighted", **settings)
        .fit(tx40[0])
        .validate(tx40[1])
        .relative_rms
        for settings in (COUPLED, {})
    )
    assert np.all(coupled[4:] < 0.45 * alone[4:])
    np.testing.assert_allclose(coupled[:4], alone[:4], rtol=0.1)


def test_predicts_a_segment_of_motion_up_to_its_ends(kuka):
    """Held-out segments start and end in motion, where the filters have no samples outside."""
    result = LinkIdentification(real_robot("kuka_lwr4"), friction=PLAIN, estimator="weighted").fit(kuka[0])
    piece = (kuka[1].time > 8) & (kuka[1].time < 12)
    whole = result.model.predict_recording(kuka[1])[piece]
    alone = result.model.predict_recording(kuka[1].slice(piece))
    size = np.sqrt(np.mean(kuka[1].torque ** 2, axis=0))
    assert np.all(np.sqrt(np.mean((whole - alone) ** 2, axis=0)) < 0.02 * size)
    assert np.all(np.abs(whole - alone)[[0, -1]] < 0.3 * size)


def test_kuka_lwr4_residual_is_near_the_repeatability(kuka):
    robot = real_robot("kuka_lwr4")
    model = LinkIdentification(robot).fit(kuka[0]).model
    measured = measure_repeatability(robot, model.signals, kuka, model, judged=[1])
    assert np.sqrt(2) * measured.floor.sum() == pytest.approx(1.05, abs=0.03)
    assert measured.total_ratio < 1.75
    assert measured.total_interval[0] > 1.2


def test_same_motion_with_a_load_is_no_repetition():
    runs = [real_recording("ur10e", name) for name in ("20_02_19_14harm50sec", "20_02_19_14harm50secLoad")]
    assert measure_repeatability(real_robot("ur10e"), LinkSignals.choose(runs), runs) is None
