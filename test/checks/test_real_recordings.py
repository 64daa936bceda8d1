"""Check recordings of real robots in the folder DYNID_DATA."""

import os
from pathlib import Path

import numpy as np
import pytest
import real_recordings

from dynid_ros.errors import RecordingError
from dynid_ros.model import RobotModel
from dynid_ros.recording import EffortConvention, Recording, check

DATA = Path(os.environ.get("DYNID_DATA", "DYNID_DATA is not set"))
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no folder of real recordings: {DATA}")
UR10E_GAINS = EffortConvention("motor_current", [11.976, 11.976, 9.839, 10.763, 10.763, 10.763])
UR10E_AS_TORQUE = EffortConvention("motor_current", [1.0] * 6)
TORQUE = EffortConvention("torque")
ROBOTS = {"ur10e": "ur10e.urdf", "kuka_lwr4": "kuka_lwr4.urdf", "franka_panda": "panda_dh.urdf"}
TIPS = {"ur10e": "tool0"}
CONVENTIONS = {"ur10e": UR10E_GAINS, "kuka_lwr4": TORQUE, "franka_panda": TORQUE}
EXPECTED_KINDS = {"exciting_1.npz": {"repeated rows"}, "measurements_1.npz": {"low-passed"}}
"""The authors of the recordings of the KUKA LWR4+ low-passed their torques without phase. In the second one the
positions have too little noise to tell this from a smooth motion."""
RECORDINGS = sorted((robot, file.name) for robot in ROBOTS for file in (DATA / robot / "develop").glob("*.npz"))


def mark_slow_cases(cases, *others):
    """Return the cases as parameters; all are slow except the first of each robot and `others`."""
    quick = {*dict(reversed(cases)).values(), *others}
    return [pytest.param(robot, name, marks=[] if name in quick else [pytest.mark.slow]) for robot, name in cases]


def load_robot(robot):
    return RobotModel.from_urdf(DATA / robot / ROBOTS[robot], TIPS.get(robot))


def read_recording(robot, name, convention=None):
    """Return a recording with effort as joint torque."""
    path = DATA / robot / "develop" / name
    return Recording.read(path, load_robot(robot).joint_names, effort_convention=convention or CONVENTIONS[robot])


@pytest.mark.parametrize(("robot", "name"), mark_slow_cases(RECORDINGS, "20_01_22-joint_3.npz"))
def test_real_recordings_equal_their_arrays_and_pass_the_checks(robot, name):
    recording = read_recording(robot, name)
    arrays = np.load(DATA / robot / "develop" / name)
    np.testing.assert_array_equal(recording.position, arrays["q"])
    np.testing.assert_array_equal(recording.velocity, arrays["dq"])
    np.testing.assert_allclose(recording.time + recording.start_time, arrays["t"], atol=1e-9)
    if robot == "ur10e":
        np.testing.assert_allclose(recording.torque, arrays["current"] * np.array(UR10E_GAINS.gains))
    else:
        np.testing.assert_array_equal(recording.torque, arrays["torque"])
    undecided = []
    findings = check(recording, load_robot(robot), undecided=undecided)
    assert {finding.kind for finding in findings} == EXPECTED_KINDS.get(name, set())
    if np.sum(np.ptp(recording.position, axis=0) > 0.01) == 1:
        assert any("joints that hardly move" in text for text in undecided)


@pytest.mark.parametrize("name", [name for robot, name in RECORDINGS if robot == "ur10e"])
def test_refuses_to_read_currents_as_torques(name):
    with pytest.raises(RecordingError, match="has motor currents and no torques"):
        read_recording("ur10e", name, TORQUE)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["20_01_22-joint_3.npz"], marks=pytest.mark.slow),
        pytest.param(["20_02_10-30sec_12harm.npz"], marks=pytest.mark.slow),
        pytest.param(["20_02_12-40sec_12harm.npz"], marks=pytest.mark.slow),
        pytest.param(["20_02_19_14harm50sec.npz"], marks=pytest.mark.slow),
        pytest.param(["20_02_19_14harm50secLoad.npz"], marks=pytest.mark.slow),
        pytest.param([f"20_01_17-p{i}.npz" for i in (1, 2, 3, 4)] + ["20_01_22-joint_1.npz"]),
    ],
    ids=lambda names: names[-1],
)
def test_reports_currents_declared_as_torques(names):
    robot = load_robot("ur10e")
    assert check([read_recording("ur10e", name) for name in names], robot) == []
    (finding,) = check([read_recording("ur10e", name, UR10E_AS_TORQUE) for name in names], robot)
    assert finding.severity == "error"
    assert "effort follows gravity, but is no joint torque" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "name"), [(robot, name) for robot, name in RECORDINGS if robot != "ur10e"])
def test_reports_torques_without_gravity(robot, name):
    arm = load_robot(robot)
    recording = read_recording(robot, name)
    compensated = recording.torque - arm.gravity_torque(recording.position)
    rest = Recording(recording.joint_names, recording.time, recording.position, recording.velocity, compensated)
    (finding,) = (finding for finding in check(rest, arm) if finding.severity == "error")
    assert "there is no gravity in the effort" in finding.message


def test_counterbalances_are_not_mistaken_for_compensation():
    """Gravity of the KR300 loads only the second axis by more than a fifth of the maximum.

    Its motion is slow first and then fast, and its friction saturates with speed, which is not drift.
    """
    assert not check(real_recordings.real_recording("kuka_kr300", "ff_A"), real_recordings.real_robot("kuka_kr300"))


def test_refuses_tables_of_other_formats():
    path = DATA / "kuka_kr300" / "develop" / "ff_A.npz"
    with pytest.raises(RecordingError, match=r"has no array position; it has t, q_motor_deg"):
        Recording.read(path)
    with pytest.raises(RecordingError, match=r"must name one column 't'.*it has x1, y1"):
        Recording.read(DATA / "tiago_mocap" / "develop" / "qualisys_hand.csv")
