import numpy as np
import pytest

from dynid_ros.errors import RecordingError
from dynid_ros.recording import EffortConvention, Recording

EFFORT = np.array([[1.0, 2.0], [3.0, -4.0]])


def test_torque_stays():
    np.testing.assert_array_equal(EffortConvention("torque").to_torque(EFFORT), EFFORT)


def test_current_is_multiplied_by_the_gain_of_its_joint():
    convention = EffortConvention("motor_current", np.array([10.0, -0.5]))
    np.testing.assert_array_equal(convention.to_torque(EFFORT), [[10.0, -1.0], [30.0, 2.0]])


def test_compensated_effort_gives_no_torque():
    with pytest.raises(RecordingError, match=r"gravity is not in the recorded effort.*torque_topic"):
        EffortConvention("gravity_compensated").to_torque(EFFORT)


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
def test_wrong_settings(kind, gains, match):
    with pytest.raises(RecordingError, match=match):
        EffortConvention(kind, gains)


def test_number_of_gains():
    with pytest.raises(RecordingError, match="3 gains for 2 joints"):
        EffortConvention("motor_current", [1.0, 2.0, 3.0]).to_torque(EFFORT)


def test_gains_go_with_the_names_given_not_with_the_order_of_the_file(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t,a_position,b_position,a_current,b_current\n0,0,0,1,2\n")
    convention = EffortConvention("motor_current", [10.0, 100.0])
    np.testing.assert_array_equal(
        Recording.read(path, ["b", "a"], effort_convention=convention).torque, [[20.0, 100.0]]
    )
    np.testing.assert_array_equal(
        Recording.read(path, ["a", "b"], effort_convention=convention).torque, [[10.0, 200.0]]
    )
    with pytest.raises(RecordingError, match="in the order of joint_names; give joint_names"):
        Recording.read(path, effort_convention=convention)


def test_a_mere_name_is_said_to_be_none(tmp_path):
    (tmp_path / "run.csv").write_text("t,a_position\n0,0\n1,0\n")
    with pytest.raises(RecordingError, match=r"^effort_convention is 'torque'; give EffortConvention\('torque'\)"):
        Recording.read(tmp_path / "run.csv", effort_convention="torque")
