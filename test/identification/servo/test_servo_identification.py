"""Servo identification in MuJoCo from commands and positions only, and refusals of unusable recordings."""

from dataclasses import replace

import numpy as np
import pytest
from mit_arms import tiago
from servo_arms import compared_poses, motion, one, record, slide, so101, truth

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import ServoIdentification
from dynid_ros.identification.servo import servo_identification
from dynid_ros.identification.servo.servo_runs import ServoModel
from dynid_ros.identified.identified_file import load_identified
from dynid_ros.recording import CommandSeries
from dynid_ros.report.servos import write_result_report

CENTER = (0.2, 0.0, 0.03)
MASS = 0.25


@pytest.fixture(name="arm", scope="module")
def fixture_arm():
    return one(seed=5)


@pytest.fixture(name="command", scope="module")
def fixture_command(arm):
    return motion(arm, 12.0, 50.0)


@pytest.fixture(name="recording", scope="module")
def fixture_recording(arm, command):
    return record(arm, command)


@pytest.fixture(name="heavy", scope="module")
def fixture_heavy(arm, command):
    return record(arm, command, mass=MASS, center=CENTER)


def assert_close(estimates, true, max_errors=4.0):
    """Check that estimates (value, standard error) are within a number of standard errors of the true values."""
    for label, (value, error) in estimates.items():
        if label in true:
            assert abs(value - true[label]) < max_errors * error, (label, value, error, true[label])


def test_identifies_parameters_over_the_gain(arm, recording, tmp_path):
    result = ServoIdentification(arm.robot).fit(recording)
    joint = result.joints["lift"]
    true = {name: values[0] for name, values in truth(arm, recording.position).items()}
    over = {name: value / (1.0 if name == "delay" else true["gain"]) for name, value in true.items()}
    assert_close(joint.over_gain, over)
    assert abs(joint.over_gain["delay"][0] - true["delay"]) < 1e-3
    for label in ("inertia", "viscous", "coulomb"):
        assert joint.over_gain[label][0] == pytest.approx(over[label], rel=0.05)
    assert "armature" not in joint.over_gain  # the rotor of a single joint is inseparable from its link
    assert joint.in_torque == {}
    assert "no torque and no known mass" in joint.undetermined["gain"]
    document = load_identified(result.save(tmp_path / "identified.yaml", [result.validate(recording)]))
    assert "gravity" not in document
    assert "in_torque" not in document["servos"]["lift"]
    assert document["servos"]["lift"]["delay"] == pytest.approx(true["delay"], abs=1e-3)
    assert document["validation"][0]["unit"] == "rad"
    assert document["validation"][0]["r2"]["lift"] > 0.999


def test_known_mass_determines_parameters_in_newton_metres(arm, recording, heavy, tmp_path):
    identification = ServoIdentification(arm.robot, reference_mass=MASS, reference_center=CENTER)
    result = identification.fit(recording, with_mass=[heavy])
    joint = result.joints["lift"]
    true = {name: values[0] for name, values in truth(arm, recording.position).items()}
    assert_close(joint.in_torque, true)
    assert joint.in_torque["gain"][0] == pytest.approx(true["gain"], rel=0.02)
    assert joint.in_torque["coulomb"][0] == pytest.approx(true["coulomb"], rel=0.05)
    largest = np.abs(arm.robot.gravity_torque(recording.position, arm.parameters)).max()
    assert abs(joint.in_torque["gravity"][0]) == pytest.approx(largest, rel=0.02)
    saved = load_identified(result.save(tmp_path / "identified.yaml"))["servos"]["lift"]["in_torque"]
    assert saved["gain"] == pytest.approx(joint.in_torque["gain"][0])


def test_mass_without_effect_on_a_joint_determines_no_gain(arm, recording):
    identification = ServoIdentification(arm.robot, reference_mass=1e-4, reference_center=(0.0, 0.0, 0.0))
    joint = identification.fit(recording, with_mass=[recording]).joints["lift"]
    assert joint.in_torque == {}
    assert "does not load this joint enough" in joint.undetermined["gain"]


def test_joint_without_motion_is_held(recording):
    arm = so101(seed=2)
    command = motion(arm, 8.0, 50.0)
    still = command.position.copy()
    still[:, [0, 1, 2, 4]] = 0.0
    whole = record(arm, CommandSeries(command.time, still))
    noisy = whole.position.copy()
    noisy[:, [0, 1, 2, 4]] = noisy[:1, [0, 1, 2, 4]]  # held by brakes
    result = ServoIdentification(arm.robot).fit(replace(whole, position=noisy))
    assert list(result.joints) == ["wrist_flex"]
    assert "shoulder_pan did not move" in result.summary()
    true = truth(arm, whole.position)
    delay, error = result.joints["wrist_flex"].over_gain["delay"]
    assert abs(delay - true["delay"][3]) < max(4 * error, 1e-3)


def test_remarks_on_saturated_torque(arm):
    weak = replace(arm, servos=replace(arm.servos, force=1.2))
    result = ServoIdentification(arm.robot).fit(record(weak, motion(arm, 6.0, 50.0)))
    assert "times the encoder's noise" in result.summary()
    assert "saturate" in result.summary()


@pytest.mark.slow
def test_refuses_servos_with_early_saturation():
    arm = so101(seed=2)
    weak = replace(arm, servos=replace(arm.servos, force=1.0))
    with pytest.raises(IdentificationError, match=r"far behind .*shoulder_lift by up to .*the torque ends") as error:
        ServoIdentification(arm.robot).fit(record(weak, motion(arm, 8.0, 50.0)))
    assert "\n" not in str(error.value)


def test_interpolates_between_commands(arm, command):
    fine = np.arange(0.0, command.time[-1], 0.002)
    fine_command = CommandSeries(fine, np.interp(fine, command.time, command.position[:, 0])[:, None])
    recording = replace(record(arm, fine_command, jitter=0.0), command=command)
    line = ServoIdentification(arm.robot, between_commands="line").fit(recording).joints["lift"]
    hold = ServoIdentification(arm.robot).fit(recording).joints["lift"]
    true = truth(arm, recording.position)["delay"][0] + 0.001  # the simulated commands are held for 2 ms
    assert line.over_gain["delay"][0] == pytest.approx(true, abs=5e-4)
    assert hold.over_gain["delay"][0] == pytest.approx(true - 0.01, abs=2e-3)  # half the period of the commands


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda r: replace(r, command=None), "simulated: no commands of joint\\(s\\) lift; record the topic"),
        (lambda r: replace(r, command=CommandSeries(r.time, np.full_like(r.position, np.nan))), "no commands of joint"),
        (lambda r: replace(r, command=CommandSeries(r.time, r.position)), "'lift' are its commands, not measured"),
        (lambda r: replace(r, command=CommandSeries(r.time, np.zeros_like(r.position))), "the command never changes"),
        (lambda r: replace(r, position=np.maximum.accumulate(r.position)), "joint 'lift' never reverses"),
        (lambda r: replace(r, position=0 * r.position), "no joint moves by more than 0.01"),
        (lambda r: r.slice(np.arange(r.n_samples) % 100 < 80), "no stretch with commands lasts 1 s without a gap"),
    ],
)
def test_refuses_unusable_recordings(arm, recording, spoil, message):
    with pytest.raises(IdentificationError, match=message) as error:
        ServoIdentification(arm.robot).fit(spoil(recording))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference_mass": 0.0, "reference_center": CENTER}, "reference_mass is 0 kg; expected a weight above 0"),
        ({"reference_mass": 1.0}, "reference_center is not given; give the place of its centre"),
        ({"reference_center": CENTER}, "reference_center is given without reference_mass"),
        ({"between_commands": "jump"}, "between_commands is 'jump'; expected one of hold, line"),
        ({"longest_delay": 0.0}, "longest_delay is 0.0; expected a number above 0"),
    ],
)
def test_refuses_invalid_settings(arm, settings, message):
    with pytest.raises(IdentificationError, match=message):
        ServoIdentification(arm.robot, **settings)


def test_refuses_masses_that_do_not_match_the_recordings(arm, recording):
    with pytest.raises(IdentificationError, match="recordings with a mass, but no reference_mass"):
        ServoIdentification(arm.robot).fit(recording, with_mass=[recording])
    with pytest.raises(IdentificationError, match="no recording was made with it attached"):
        ServoIdentification(arm.robot, reference_mass=1.0, reference_center=CENTER).fit(recording)
    with pytest.raises(IdentificationError, match="no recording given"):
        ServoIdentification(arm.robot).fit()


@pytest.mark.slow
def test_intervals_of_an_arm_cover_the_truth():
    covered = 0
    total = 0
    for seed in range(100, 104):
        arm = so101(seed)
        recording = record(arm, motion(arm, 12.0, 50.0))
        result = ServoIdentification(arm.robot).fit(recording)
        true = truth(arm, compared_poses(result))
        for j, joint in enumerate(result.joints.values()):
            for label in ("delay", "inertia", "viscous", "coulomb"):
                value, error = joint.over_gain[label]
                expected = true[label][j] / (1.0 if label == "delay" else true["gain"][j])
                covered += abs(value - expected) <= joint.half(error)
                total += 1
                assert value == pytest.approx(expected, rel=0.05)
    assert covered >= 0.85 * total


@pytest.mark.slow
def test_identifies_links_of_a_joint_without_gravity():
    """The effects of the links nearly cancel at this joint, so derivatives must be accurate."""
    arm = so101(3)
    mass = {"mass": 0.2, "center": (0.0, 0.02, 0.08)}
    plain = record(arm, motion(arm, 14.0, 50.0))
    loaded = record(arm, motion(arm, 14.0, 50.0), **mass)
    identification = ServoIdentification(arm.robot, reference_mass=mass["mass"], reference_center=mass["center"])
    joint = identification.fit(plain, with_mass=[loaded]).joints["shoulder_pan"]
    base = ServoModel(arm.robot, None, 1.0).base[0]
    true = base.combinations @ [*arm.parameters, arm.per_joint("armature")[0]] / arm.per_joint("stiffness")[0]
    covered = [
        abs(value - expected) <= joint.half(error)
        for (_, value, error), expected in zip(joint.base(), true, strict=True)
    ]
    assert np.mean(covered) > 0.85


@pytest.mark.slow
def test_prismatic_joint_has_units_of_newton_and_metre(tmp_path):
    arm = slide()
    command = motion(arm, 12.0, 50.0)
    plain = record(arm, command)
    loaded = record(arm, command, mass=MASS, center=CENTER)
    identification = ServoIdentification(arm.robot, reference_mass=MASS, reference_center=CENTER)
    result = identification.fit(plain, with_mass=[loaded])
    assert result.joints["lift"].in_torque["gain"][0] == pytest.approx(arm.per_joint("stiffness")[0], rel=0.1)
    validation = result.validate(plain)
    assert validation.unit == "m"
    summary = result.summary()
    assert "N/m" in summary
    assert "rad" not in summary
    assert "N m" not in summary.replace("N m or N", "")
    page = write_result_report(tmp_path / "report.html", result, {"recordings": (plain,)}, [validation]).read_text()
    assert "Parameters in torque" in page
    assert "N m/rad" not in page
    assert "mrad" not in page


def test_search_starts_at_delays_up_to_the_longest(arm, command, monkeypatch):
    recording = record(replace(arm, servos=replace(arm.servos, delay=0.22)), command)

    def begin(loops, start, steps):
        raise IdentificationError(f"begins at {start[0][0]:.3f}")

    monkeypatch.setattr("dynid_ros.identification.servo.servo_identification.output_error", begin)
    for longest, expected in ((0.3, r"0\.2[12]"), (0.1, r"0\.0")):
        with pytest.raises(IdentificationError, match=f"begins at {expected}"):
            ServoIdentification(arm.robot, longest_delay=longest).fit(recording)


def test_known_gains_determine_parameters_in_newton_metres(arm, recording):
    stiffness = arm.per_joint("stiffness")
    damping = 0.1
    result = ServoIdentification(arm.robot, stiffness=stiffness, damping=[damping]).fit(recording)
    joint = result.joints["lift"]
    true = {name: values[0] for name, values in truth(arm, recording.position).items()}
    true["viscous"] -= damping
    assert joint.in_torque["gain"] == (pytest.approx(stiffness[0]), 0.0)
    for label, max_error in (("delay", 0.005), ("inertia", 0.005), ("viscous", 0.005), ("coulomb", 0.02)):
        value, error = joint.in_torque[label]
        assert abs(value - true[label]) < 4 * error
        assert error < max_error * true[label]
    assert "gain" not in joint.undetermined
    assert result.document()["servos"]["lift"]["in_torque"]["gain"] == pytest.approx(stiffness[0])
    assert result.validate(recording).r2[0] > 0.999


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stiffness": [0.0], "damping": [1.0]}, "damping is given without stiffness"),
        ({"stiffness": [1.0, 2.0]}, "stiffness: 2 values; give one for all"),
        ({"stiffness": [-1.0]}, "stiffness of .*lift"),
        ({"stiffness": [9.0], "reference_mass": 1.0, "reference_center": CENTER}, "both give the gains"),
    ],
)
def test_refuses_invalid_gains(arm, recording, settings, message):
    with pytest.raises(IdentificationError, match=message):
        ServoIdentification(arm.robot, **settings).fit(recording)


@pytest.mark.slow
def test_search_starts_near_the_delay_with_little_friction(monkeypatch):
    arm = tiago(2005)
    starts = []

    def stop(_loops, start, _steps):
        starts.extend(values[0] for values in start)
        raise IdentificationError("begun")

    monkeypatch.setattr(servo_identification, "output_error", stop)
    gains = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    with pytest.raises(IdentificationError, match="begun"):
        ServoIdentification(arm.robot, **gains).fit(record(arm, motion(arm, 12.0, 50.0)))
    assert starts[2] == pytest.approx(arm.per_joint("delay")[2], abs=0.006)
