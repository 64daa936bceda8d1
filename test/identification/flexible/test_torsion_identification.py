"""Torsion identification, of simulated joints with known stiffness and of a real arm with motor and link encoders."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from real_recordings import DATA, MISSING
from torsion_recordings import KUKA, flexible_joint, kuka_parts, kuka_recording

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.flexible.spring_fit import Stiffness
from dynid_ros.identification.flexible.torsion_choice import MDEG, TorsionModels, combine_recordings
from dynid_ros.identification.flexible.torsion_identification import TorsionIdentification
from dynid_ros.identification.flexible.torsion_terms import torsion_cutoff
from dynid_ros.recording import Recording

real = pytest.mark.skipif(not DATA.is_dir(), reason=MISSING)


@pytest.fixture(name="soft", scope="module")
def fixture_soft():
    return flexible_joint(3e4, delay=0.003)


@pytest.fixture(name="result", scope="module")
def fixture_result(soft):
    return TorsionIdentification().fit(soft)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_interval_covers_the_stiffness(seed):
    stiffness = TorsionIdentification().fit(flexible_joint(3e4, seed=seed)).joints["joint"].stiffness
    assert stiffness.value == pytest.approx(3e4, rel=0.02)
    low, high = stiffness.interval
    assert low < 3e4 < high < 1.6 * low


def test_separates_a_link_encoder_delay_from_the_spring(result):
    """The delay minus b / k = 15 / 3e4 s is identified; the motor has 15 kg m² and half of the 20 N m of friction."""
    model = result.joints["joint"]
    estimates = {label: value for label, _, value, _, _ in model.estimates()}
    assert estimates["torque"] == pytest.approx(1 / 3e4, rel=0.02)
    assert estimates["acceleration"] == pytest.approx(-15 / 3e4, rel=0.05)
    assert estimates["coulomb"] == pytest.approx(-10 / 3e4, rel=0.15)
    assert model.delay == pytest.approx(0.003 - 15 / 3e4, abs=1e-4)
    assert model.stiffness.value == pytest.approx(3e4, rel=0.02)
    assert "ms times velocity" in result.summary()


def test_prediction_ignores_measured_torsion(result):
    other = flexible_joint(3e4, delay=0.003, seed=7)
    moved = replace(other, link_position=other.link_position + 0.02)
    prediction = result.predict(other)
    assert prediction.shape == (other.n_samples, 1)
    np.testing.assert_array_equal(result.predict(moved), prediction)
    np.testing.assert_array_equal(result.predict(replace(other, link_position=None)), prediction)
    validation = result.validate(other)
    shifted = result.validate(moved)
    assert validation.residual_rms[0] < 0.04 * validation.torsion_rms[0]
    assert shifted.offset[0] == pytest.approx(validation.offset[0] - 0.02, abs=1e-9)
    assert shifted.residual_rms[0] == pytest.approx(np.hypot(shifted.offset[0], validation.centred_residual_rms[0]))
    assert shifted.centred_residual_rms[0] == pytest.approx(validation.centred_residual_rms[0])


@pytest.fixture(name="rippled", scope="module")
def fixture_rippled():
    return flexible_joint(3e4, ripple=2e-4, amplitude=0.3)


def test_ripple_depends_on_the_reading_of_the_link_encoder(rippled):
    result = TorsionIdentification().fit(rippled)
    (ripple,) = result.joints["joint"].ripples
    assert ripple.frequency == pytest.approx(400, abs=0.5)
    assert ripple.amplitude == pytest.approx(2e-4, rel=0.1)
    assert 0 < ripple.error < 0.2 * ripple.amplitude
    other = flexible_joint(3e4, ripple=2e-4, amplitude=0.3, seed=3)
    validation = result.validate(other)
    assert validation.centred_residual_rms[0] < 0.7 * validation.plain_residual_rms[0]
    # The zero of the motor encoder does not matter; a link encoder shifted by half a period makes the ripple wrong.
    shifted = result.validate(replace(other, position=other.position + 0.01))
    assert shifted.centred_residual_rms[0] == pytest.approx(validation.centred_residual_rms[0], rel=0.02)
    moved = result.validate(replace(other, link_position=other.link_position + np.pi / 400))
    assert moved.centred_residual_rms[0] > 1.5 * moved.plain_residual_rms[0]


def test_omits_ripple_with_inconsistent_phase(rippled):
    other = flexible_joint(3e4, ripple=2e-4, amplitude=0.3, seed=3)
    moved = replace(other, link_position=other.link_position + np.pi / 400)
    assert len(TorsionIdentification().fit(rippled, other).joints["joint"].ripples) == 1
    assert TorsionIdentification().fit(rippled, moved).joints["joint"].ripples == ()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("stiff", {"stiffness": 5e7, "noise": 3e-6, "misfit": 0.05}),
        ("slow", {"stiffness": 3e5, "speed": 0.05, "amplitude": 0.05, "noise": 3e-4}),
        ("torque known badly", {"stiffness": 3e5, "misfit": 0.05, "delay": 0.003}),
    ],
)
def test_undetermined_stiffness_has_a_valid_bound(name, settings):
    stiffness = TorsionIdentification().fit(flexible_joint(**settings)).joints["joint"].stiffness
    assert not stiffness.determined, name
    assert stiffness.reason
    low, high = stiffness.interval
    assert low < settings["stiffness"] < high


def test_cutoff_is_well_below_the_nyquist_frequency_of_all_runs(soft):
    """The recordings have rates of 25 Hz and 250 Hz."""
    slow = soft.slice(slice(0, None, 10))
    assert torsion_cutoff((slow, soft)) == torsion_cutoff((soft, slow)) == pytest.approx(0.3 * 12.5)
    assert torsion_cutoff((soft,)) >= 5.0


def test_recordings_have_separate_zeros(soft):
    other = flexible_joint(3e4, delay=0.003, seed=4)
    moved = replace(other, link_position=other.link_position - 0.05)
    model = TorsionIdentification().fit(soft, moved).joints["joint"]
    assert model.stiffness.value == pytest.approx(3e4, rel=0.02)
    assert model.torsion_rms < 0.01
    assert model.zero == pytest.approx(-1e-3 + 0.05 / 2, abs=1e-4)


def test_refuses_unusable_recordings(soft, result):
    fit = TorsionIdentification().fit
    with pytest.raises(IdentificationError, match="no link positions"):
        fit(replace(soft, link_position=None))
    with pytest.raises(IdentificationError, match=r"joint: .*torque"):
        fit(replace(soft, torque=np.full_like(soft.torque, np.nan)))
    with pytest.raises(IdentificationError, match="expected joint as in"):
        fit(soft, replace(soft, joint_names=("other",)))
    with pytest.raises(IdentificationError, match="joints are other"):
        result.predict(replace(soft, joint_names=("other",)))
    with pytest.raises(IdentificationError, match="record longer"):
        fit(soft.slice(slice(0, 60)))
    with pytest.raises(IdentificationError, match="samples are missing"):
        fit(soft.slice((soft.time < 5) | (soft.time > 6)))
    with pytest.raises(IdentificationError, match="cutoff is 0"):
        TorsionIdentification(cutoff=0)


@pytest.fixture(name="kuka", scope="module")
def fixture_kuka():
    return kuka_recording(KUKA)


@real
def test_kuka_stiffness_is_determined_on_axis_3_only(kuka):
    """Plain fits to three recordings disagree on axes 1 and 2, with both signs; on axis 3 they yield 6.4e6 to 8.5e6."""
    result = TorsionIdentification().fit(kuka)
    assert list(result.joints) == ["axis_1", "axis_2", "axis_3"]
    assert not result.joints["axis_1"].stiffness.determined
    assert not result.joints["axis_2"].stiffness.determined
    low, high = result.joints["axis_3"].stiffness.interval
    assert low < 6.4e6
    assert high > 8.5e6
    assert high < 4 * low
    # The link encoders lag by 3 ms, which causes most of the torsion.
    assert all(2.5e-3 < model.delay < 3.3e-3 for model in result.joints.values())
    assert result.joints["axis_2"].ripples[0].amplitude * MDEG == pytest.approx(4.6, abs=0.4)


@real
@pytest.mark.parametrize("part", range(4))
def test_predicts_kuka_torsion_of_held_out_parts(kuka, part):
    """Half a recording moves in one direction only; a fit to all of it predicts better."""
    _, fitted, held_out = kuka_parts(kuka)[part]
    validation = TorsionIdentification().fit(kuka.slice(fitted)).validate(kuka.slice(held_out))
    assert np.all(validation.centred_residual_rms[:3] * MDEG < 5.3)
    assert np.all(validation.centred_residual_rms[:3] < 0.25 * validation.torsion_rms[:3])
    assert np.isnan(validation.residual_rms[3:]).all()


def test_uninformative_recordings_do_not_widen_the_interval():
    """Consistent fits of single recordings are combined if the common fit leaves the stiffness undetermined."""
    good = Stiffness.from_error(1e-5, 1e-6, 9)
    vague = Stiffness.from_error(1.5e-5, 1e-5, 9)
    assert good.determined
    assert not vague.determined
    together = combine_recordings(vague, {"a": good, "b": vague, "c": vague})
    assert together.determined
    assert together.interval[0] > 0.9 * good.interval[0]
    assert together.interval[1] < 1.1 * good.interval[1]
    assert combine_recordings(good, {"a": vague}) is good
    assert combine_recordings(vague, {"a": vague, "b": vague}) is vague


def test_names_contradicting_recordings():
    vague = Stiffness.from_error(1e-5, 1e-5, 9)
    soft = Stiffness.from_error(1e-5, 1e-6, 9)
    stiff = Stiffness.from_error(2e-6, 1e-6, 9)
    refused = combine_recordings(vague, {"first": soft, "second": stiff})
    assert not refused.determined
    assert refused.compliance_interval == vague.compliance_interval
    assert "contradict each other: first: 1e+05 N m/rad" in refused.reason
    assert "second: undetermined" in refused.reason


@real
def test_names_contradicting_parts_of_a_real_recording():
    """The parts yield 5.3e6 N m/rad and at least 1.1e7."""
    recording = kuka_recording(KUKA)
    third = recording.n_samples // 3
    parts = [recording.slice(slice(k * third, (k + 1) * third)) for k in range(3)]
    alone = [TorsionIdentification().fit(part).joints["axis_3"].stiffness for part in parts]
    together = TorsionIdentification().fit(*parts).joints["axis_3"].stiffness
    assert any(stiffness.determined for stiffness in alone)
    assert together.determined or "recordings contradict each other: recording 1" in together.reason


def test_missing_names_joints_that_hardly_move(soft):
    """A joint without a link encoder is not expected to be identified."""
    joined = Recording(
        ("joint", "still", "plain"),
        soft.time,
        np.hstack([soft.position, 0 * soft.position, soft.position]),
        np.hstack([soft.velocity, 0 * soft.velocity, soft.velocity]),
        np.hstack([soft.torque] * 3),
        link_position=np.hstack([soft.link_position, 0 * soft.position, np.full_like(soft.position, np.nan)]),
        source="run",
    )
    result = TorsionIdentification().fit(joined)
    assert list(result.joints) == ["joint"]
    (sentence,) = result.missing
    assert "still" in sentence
    assert "moves by" in sentence


def test_prismatic_joint_has_units_of_metre_and_newton(soft):
    """The linear encoder of a prismatic joint has no eccentricity."""
    result = TorsionIdentification().fit(soft, prismatic=("joint",))
    model = result.joints["joint"]
    units = {label: unit for label, unit, *_ in model.estimates()}
    assert units["torque"] == "m/N"
    assert not any("eccentricity" in label for label in units)
    assert str(model.stiffness).startswith(f"{model.stiffness.value:.3g} N/m")
    assert model.entry()["prismatic"] is True
    text = result.summary() + result.validate(soft).table()
    assert "µm" in text
    assert not any(unit in text for unit in ("mdeg", "N m", "rad", "per turn"))


@pytest.mark.parametrize("prismatic", [(), ("joint",)])
def test_saved_model_is_read_back(rippled, prismatic):
    fitted = TorsionIdentification().fit(rippled, prismatic=prismatic)
    read = TorsionModels.of_document(fitted.document())
    assert (read.joint_names, read.cutoff) == (fitted.joint_names, fitted.cutoff)
    (model,) = read.joints.values()
    saved = fitted.joints["joint"]
    assert (model.name, model.fastest, model.zero) == (saved.name, saved.fastest, saved.zero)
    assert model.display_unit == saved.display_unit
    assert [ripple[:3] for ripple in map(astuple, model.ripples)] == [r[:3] for r in map(astuple, saved.ripples)]
    np.testing.assert_allclose(read.predict(rippled), fitted.predict(rippled), rtol=0, atol=1e-12)
