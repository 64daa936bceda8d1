"""Conversion of recorded effort to torque: conventions, gains, and torques of MIT-mode drives."""

import numpy as np
import pytest

from dynid_ros.errors import IdentificationError, RecordingError
from dynid_ros.recording import CommandSeries, EffortConvention, Recording
from dynid_ros.recording.effort import at_delay, equivalent_positions, with_impedance_torque
from dynid_ros.recording.uniform_motion import require_torque

EFFORT = np.array([[1.0, 2.0], [3.0, -4.0]])

TIME = 0.01 * np.arange(101)
STIFFNESS = [40.0, 5.0]
DAMPING = [2.0, 0.5]
NAMES = ("a", "b")


def test_multiplies_current_by_the_gain_of_its_joint():
    convention = EffortConvention("motor_current", np.array([10.0, -0.5]))
    np.testing.assert_array_equal(convention.to_torque(EFFORT), [[10.0, -1.0], [30.0, 2.0]])
    np.testing.assert_array_equal(EffortConvention("torque").to_torque(EFFORT), EFFORT)
    with pytest.raises(RecordingError, match="3 gains for 2 joints"):
        EffortConvention("motor_current", [1.0, 2.0, 3.0]).to_torque(EFFORT)


@pytest.mark.parametrize(
    ("kind", "gains", "match"),
    [
        ("", None, "effort_convention '' is unknown; expected one of torque, motor_current, gravity_compensated"),
        ("amps", None, "'amps' is unknown"),
        ("motor_current", None, "'motor_current' needs gains"),
        ("torque", [1.0], "'torque' takes no gains"),
        ("motor_current", [1.0, 0.0], "finite and not zero"),
        ("motor_current", [1.0, np.nan], "finite and not zero"),
        ("motor_current", [[1.0]], "finite and not zero"),
    ],
)
def test_refuses_wrong_conventions(kind, gains, match):
    with pytest.raises(RecordingError, match=match):
        EffortConvention(kind, gains)


def test_gains_have_the_order_of_the_joint_names(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t,a_position,b_position,a_current,b_current\n0,0,0,1,2\n")
    convention = EffortConvention("motor_current", [10.0, 100.0])
    for names, torque in ((["b", "a"], [20.0, 100.0]), (["a", "b"], [10.0, 200.0])):
        np.testing.assert_array_equal(Recording.read(path, names, effort_convention=convention).torque, [torque])
    with pytest.raises(RecordingError, match="in the order of joint_names; give joint_names"):
        Recording.read(path, effort_convention=convention)


def test_refuses_the_name_of_a_convention(tmp_path):
    (tmp_path / "run.csv").write_text("t,a_position\n0,0\n1,0\n")
    with pytest.raises(RecordingError, match=r"^effort_convention is 'torque'; give EffortConvention\('torque'\)"):
        Recording.read(tmp_path / "run.csv", effort_convention="torque")


def make_recording(**changes):
    position = np.column_stack([np.sin(3 * TIME), 0.2 * TIME])
    velocity = np.column_stack([3 * np.cos(3 * TIME), 0.2 + 0 * TIME])
    command = CommandSeries(TIME, position + 0.1, velocity + 0.5, np.full((len(TIME), 2), 1.5))
    arguments = {"velocity": velocity, "torque": np.full_like(position, np.nan), "command": command, **changes}
    return Recording(NAMES, TIME, position, **arguments)


def impedance(**options):
    return EffortConvention("impedance", **{"stiffness": STIFFNESS, "damping": DAMPING, "delay": 0.0, **options})


def test_impedance_torque_equals_that_of_the_drive():
    torque = with_impedance_torque(make_recording(), impedance()).torque
    expected = [40.0 * 0.1 + 2.0 * 0.5 + 1.5, 5.0 * 0.1 + 0.5 * 0.5 + 1.5]
    mean = torque[5:-5].mean(axis=0)
    np.testing.assert_allclose(mean, expected, rtol=0.06)  # held commands lag by half a period


def test_command_acts_after_its_delay():
    command = CommandSeries([0.1, 0.5], [[1.0], [2.0]])
    still = Recording(["a"], TIME, np.zeros((101, 1)), np.zeros((101, 1)), np.full((101, 1), np.nan), command=command)
    torque = with_impedance_torque(still, impedance(stiffness=[10.0], damping=[0.0], delay=0.1)).torque[:, 0]
    np.testing.assert_allclose(torque[(TIME > 0.11) & (TIME < 0.59)], 10.0)
    np.testing.assert_allclose(torque[TIME > 0.61], 20.0)
    assert np.isnan(torque[TIME < 0.09]).all()


def test_missing_velocities_are_computed_from_positions():
    with_speeds = with_impedance_torque(make_recording(), impedance())
    without = with_impedance_torque(make_recording(velocity=np.full((101, 2), np.nan)), impedance())
    np.testing.assert_allclose(without.torque[5:-5], with_speeds.torque[5:-5], atol=0.05)


def test_reads_gains_from_commands(tmp_path):
    gains = np.tile(STIFFNESS, (101, 1)), np.tile(DAMPING, (101, 1))
    plain = make_recording()
    whole = CommandSeries(TIME, plain.command.position, plain.command.velocity, plain.command.effort, *gains)
    expected = with_impedance_torque(plain, impedance()).torque
    for name in ("run.npz", "run.csv"):
        path = tmp_path / name
        getattr(make_recording(command=whole), f"write_{path.suffix[1:]}")(path)
        read = Recording.read(path, NAMES, effort_convention=EffortConvention("impedance", delay=0.0))
        np.testing.assert_allclose(read.torque, expected, atol=1e-9)
        np.testing.assert_allclose(read.select(["b"]).command.damping[:, 0], 0.5)


def test_refuses_to_fit_torques_with_unknown_delay():
    unknown = with_impedance_torque(make_recording(), impedance(delay=None))
    assert unknown.delay_is_unknown
    with pytest.raises(IdentificationError, match="the delay with which they act is unknown; give it"):
        require_torque(unknown)
    converted = with_impedance_torque(make_recording(), impedance())
    require_torque(converted)
    np.testing.assert_array_equal(at_delay(unknown, converted.command_delay).torque, converted.torque)


def test_equivalent_positions_yield_the_same_torque():
    whole = with_impedance_torque(make_recording(), impedance()).command
    np.testing.assert_allclose(equivalent_positions(whole).position[0], [0.1 + (2 * 3.5 + 1.5) / 40, 0.1 + 1.85 / 5])


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (None, {}, "there are none; name their topic"),
        ("plain", {"stiffness": None}, "the stiffness of the drive of a, b is unknown; give stiffness"),
        ("plain", {"damping": [1.0, 2.0, 3.0]}, "3 values of damping for 2 joints"),
        ("plain", {"stiffness": [-1.0]}, "stiffness must be finite and not negative"),
        ("plain", {"delay": 2.0}, "delay of commands is 2 s; expected 0 to 1 s"),
        ("plain", {"gains": [1.0]}, "takes no gains"),
    ],
)
def test_refuses_missing_or_impossible_gains(command, options, words):
    recording = make_recording() if command else make_recording(command=None)
    with pytest.raises(RecordingError, match=words) as error:
        with_impedance_torque(recording, impedance(**options))
    assert "\n" not in str(error.value)


def test_refuses_drive_gains_of_other_conventions():
    with pytest.raises(RecordingError, match="'torque' takes no stiffness"):
        EffortConvention("torque", stiffness=[1.0])
    with pytest.raises(RecordingError, match="which joint states do not contain"):
        impedance().to_torque(np.ones((1, 2)))
