"""Torsion of simulated joints of known stiffness, and of a real arm with encoders on motors and links."""

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
def test_interval_holds_a_known_stiffness(seed):
    stiffness = TorsionIdentification().fit(flexible_joint(3e4, seed=seed)).joints["joint"].stiffness
    assert stiffness.value == pytest.approx(3e4, rel=0.02)
    low, high = stiffness.interval
    assert low < 3e4 < high < 1.6 * low


def test_late_link_encoder_is_told_from_the_spring(result):
    """Less b / k = 15 / 3e4 s; rotor 15 kg m^2, half of 20 N m of friction on the motor's side."""
    model = result.joints["joint"]
    found = {label: value for label, _, value, _, _ in model.estimates()}
    assert found["torque"] == pytest.approx(1 / 3e4, rel=0.02)
    assert found["acceleration"] == pytest.approx(-15 / 3e4, rel=0.05)
    assert found["coulomb"] == pytest.approx(-10 / 3e4, rel=0.15)
    assert model.delay == pytest.approx(0.003 - 15 / 3e4, abs=1e-4)
    assert model.stiffness.value == pytest.approx(3e4, rel=0.02)
    assert "ms times velocity" in result.summary()


def test_nothing_is_taken_from_the_recording_that_is_predicted(result):
    other = flexible_joint(3e4, delay=0.003, seed=7)
    moved = replace(other, link_position=other.link_position + 0.02)
    prediction = result.predict(other)
    assert prediction.shape == (other.n_samples, 1)
    np.testing.assert_array_equal(result.predict(moved), prediction)
    np.testing.assert_array_equal(result.predict(replace(other, link_position=None)), prediction)
    found, shifted = result.validate(other), result.validate(moved)
    assert found.residual_rms[0] < 0.04 * found.torsion_rms[0]
    assert shifted.offset[0] == pytest.approx(found.offset[0] - 0.02, abs=1e-9)
    assert shifted.residual_rms[0] == pytest.approx(np.hypot(shifted.offset[0], found.centred_residual_rms[0]))
    assert shifted.centred_residual_rms[0] == pytest.approx(found.centred_residual_rms[0])


@pytest.fixture(name="rippled", scope="module")
def fixture_rippled():
    return flexible_joint(3e4, ripple=2e-4, amplitude=0.3)


def test_ripple_goes_with_the_reading_of_the_link_encoder(rippled):
    result = TorsionIdentification().fit(rippled)
    (ripple,) = result.joints["joint"].ripples
    assert ripple.frequency == pytest.approx(400, abs=0.5)
    assert ripple.amplitude == pytest.approx(2e-4, rel=0.1)
    assert 0 < ripple.error < 0.2 * ripple.amplitude
    other = flexible_joint(3e4, ripple=2e-4, amplitude=0.3, seed=3)
    found = result.validate(other)
    assert found.centred_residual_rms[0] < 0.7 * found.plain_residual_rms[0]
    # Whatever the zero of the motor's encoder; with another one of the link's, half a period off, it is wrong.
    shifted = result.validate(replace(other, position=other.position + 0.01))
    assert shifted.centred_residual_rms[0] == pytest.approx(found.centred_residual_rms[0], rel=0.02)
    moved = result.validate(replace(other, link_position=other.link_position + np.pi / 400))
    assert moved.centred_residual_rms[0] > 1.5 * moved.plain_residual_rms[0]


def test_ripple_whose_phase_changes_between_recordings_predicts_none(rippled):
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
def test_undetermined_with_a_true_bound(name, settings):
    stiffness = TorsionIdentification().fit(flexible_joint(**settings)).joints["joint"].stiffness
    assert not stiffness.determined, name
    assert stiffness.reason
    low, high = stiffness.interval
    assert low < settings["stiffness"] < high


def test_a_slow_recording_is_filtered_well_below_half_its_rate(soft):
    """At 25 Hz, together with one at 250 Hz."""
    slow = soft.slice(slice(0, None, 10))
    assert torsion_cutoff((slow, soft)) == torsion_cutoff((soft, slow)) == pytest.approx(0.3 * 12.5)
    assert torsion_cutoff((soft,)) >= 5.0


def test_several_recordings_with_zeros_of_their_own(soft):
    other = flexible_joint(3e4, delay=0.003, seed=4)
    moved = replace(other, link_position=other.link_position - 0.05)
    model = TorsionIdentification().fit(soft, moved).joints["joint"]
    assert model.stiffness.value == pytest.approx(3e4, rel=0.02)
    assert model.torsion_rms < 0.01
    assert model.zero == pytest.approx(-1e-3 + 0.05 / 2, abs=1e-4)


def test_refusals(soft, result):
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
def test_kuka_says_what_one_recording_tells(kuka):
    """Plain fits to three recordings disagree on axes 1 and 2, with both signs; on axis 3 they give 6.4e6 to 8.5e6."""
    result = TorsionIdentification().fit(kuka)
    assert list(result.joints) == ["axis_1", "axis_2", "axis_3"]
    assert not result.joints["axis_1"].stiffness.determined
    assert not result.joints["axis_2"].stiffness.determined
    low, high = result.joints["axis_3"].stiffness.interval
    assert low < 6.4e6
    assert high > 8.5e6
    assert high < 4 * low
    # The link encoders are read 3 ms late: that is nearly all of the torsion.
    assert all(2.5e-3 < model.delay < 3.3e-3 for model in result.joints.values())
    assert result.joints["axis_2"].ripples[0].amplitude * MDEG == pytest.approx(4.6, abs=0.4)


@real
@pytest.mark.parametrize("part", range(4))
def test_kuka_torsion_of_other_parts(kuka, part):
    """Half a recording goes one way only: with all of it, other recordings are predicted better than here."""
    _, seen, unseen = kuka_parts(kuka)[part]
    found = TorsionIdentification().fit(kuka.slice(seen)).validate(kuka.slice(unseen))
    assert np.all(found.centred_residual_rms[:3] * MDEG < 5.3)
    assert np.all(found.centred_residual_rms[:3] < 0.25 * found.torsion_rms[:3])
    assert np.isnan(found.residual_rms[3:]).all()


def test_recordings_that_say_little_take_nothing_away():
    """Where the common fit leaves the stiffness open, recordings that agree say together what each says alone."""
    good, vague = Stiffness.from_error(1e-5, 1e-6, 9), Stiffness.from_error(1.5e-5, 1e-5, 9)
    assert good.determined
    assert not vague.determined
    together = combine_recordings(vague, {"a": good, "b": vague, "c": vague})
    assert together.determined
    assert together.interval[0] > 0.9 * good.interval[0]
    assert together.interval[1] < 1.1 * good.interval[1]
    assert combine_recordings(good, {"a": vague}) is good
    assert combine_recordings(vague, {"a": vague, "b": vague}) is vague


def test_recordings_that_contradict_each_other_are_named():
    vague, soft, stiff = (
        Stiffness.from_error(1e-5, 1e-5, 9),
        Stiffness.from_error(1e-5, 1e-6, 9),
        Stiffness.from_error(2e-6, 1e-6, 9),
    )
    refused = combine_recordings(vague, {"first": soft, "second": stiff})
    assert not refused.determined
    assert refused.compliance_interval == vague.compliance_interval
    assert "contradict each other: first: 1e+05 N m/rad" in refused.reason
    assert "second: undetermined" in refused.reason


@real
def test_parts_of_a_real_recording_that_contradict_each_other():
    """One says 5.3e6 N m/rad, another 1.1e7 at least: their common fit said no more than "undetermined"."""
    recording = kuka_recording(KUKA)
    third = recording.n_samples // 3
    parts = [recording.slice(slice(k * third, (k + 1) * third)) for k in range(3)]
    alone = [TorsionIdentification().fit(part).joints["axis_3"].stiffness for part in parts]
    together = TorsionIdentification().fit(*parts).joints["axis_3"].stiffness
    assert any(stiffness.determined for stiffness in alone)
    assert together.determined or "recordings contradict each other: recording 1" in together.reason


def test_missing_names_joints_that_hardly_move(soft):
    """A joint without a link encoder is not among those to be identified."""
    both = Recording(
        ("joint", "still", "plain"),
        soft.time,
        np.hstack([soft.position, 0 * soft.position, soft.position]),
        np.hstack([soft.velocity, 0 * soft.velocity, soft.velocity]),
        np.hstack([soft.torque] * 3),
        link_position=np.hstack([soft.link_position, 0 * soft.position, np.full_like(soft.position, np.nan)]),
        source="run",
    )
    result = TorsionIdentification().fit(both)
    assert list(result.joints) == ["joint"]
    (sentence,) = result.missing
    assert "still" in sentence
    assert "moves by" in sentence


def test_a_slide_has_m_and_n(soft):
    """And no eccentricity: its encoder is no disc that turns with it."""
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
def test_a_saved_model_is_read_as_it_was_fitted(rippled, prismatic):
    fitted = TorsionIdentification().fit(rippled, prismatic=prismatic)
    read = TorsionModels.of_document(fitted.document())
    assert (read.joint_names, read.cutoff) == (fitted.joint_names, fitted.cutoff)
    (model,) = read.joints.values()
    saved = fitted.joints["joint"]
    assert (model.name, model.fastest, model.zero) == (saved.name, saved.fastest, saved.zero)
    assert model.display_unit == saved.display_unit
    assert [ripple[:3] for ripple in map(astuple, model.ripples)] == [r[:3] for r in map(astuple, saved.ripples)]
    np.testing.assert_allclose(read.predict(rippled), fitted.predict(rippled), rtol=0, atol=1e-12)
