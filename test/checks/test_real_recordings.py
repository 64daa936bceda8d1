"""Recordings of real robots, in the folder that DYNID_DATA names."""

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
TRUE_OF_THEM = {"franka_panda": {"repeated rows"}}
RUNS = sorted((robot, file.name) for robot in ROBOTS for file in (DATA / robot / "develop").glob("*.npz"))


def quick_first(cases, *others):
    """Cases as parameters; the first of each robot and `others` are quick, the rest show that it was no chance."""
    quick = {*dict(reversed(cases)).values(), *others}
    return [pytest.param(robot, name, marks=[] if name in quick else [pytest.mark.slow]) for robot, name in cases]


def model(robot):
    return RobotModel.from_urdf(DATA / robot / ROBOTS[robot], TIPS.get(robot))


def run(robot, name, convention=None):
    path = DATA / robot / "develop" / name
    return Recording.read(path, model(robot).joint_names, effort_convention=convention or CONVENTIONS[robot])


@pytest.mark.parametrize(("robot", "name"), quick_first(RUNS, "20_01_22-joint_3.npz"))
def test_it_is_read_as_numpy_has_it_and_passes_the_checks(robot, name):
    it = run(robot, name)
    arrays = np.load(DATA / robot / "develop" / name)
    np.testing.assert_array_equal(it.position, arrays["q"])
    np.testing.assert_array_equal(it.velocity, arrays["dq"])
    np.testing.assert_allclose(it.time + it.start_time, arrays["t"], atol=1e-9)
    if robot == "ur10e":
        np.testing.assert_allclose(it.torque, arrays["current"] * np.array(UR10E_GAINS.gains))
    else:
        np.testing.assert_array_equal(it.torque, arrays["torque"])
    undecided = []
    found = check(it, model(robot), undecided=undecided)
    assert {finding.kind for finding in found} == TRUE_OF_THEM.get(robot, set())
    if np.sum(np.ptp(it.position, axis=0) > 0.01) == 1:
        assert any("joints that hardly move" in text for text in undecided)


@pytest.mark.parametrize("name", [name for robot, name in RUNS if robot == "ur10e"])
def test_currents_of_the_ur10e_are_not_read_as_torques(name):
    with pytest.raises(RecordingError, match="has motor currents and no torques"):
        run("ur10e", name, TORQUE)


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
def test_currents_declared_as_torques_are_found(names):
    robot = model("ur10e")
    assert check([run("ur10e", name) for name in names], robot) == []
    (finding,) = check([run("ur10e", name, UR10E_AS_TORQUE) for name in names], robot)
    assert finding.severity == "error"
    assert "effort follows gravity, but is no joint torque" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "name"), [(robot, name) for robot, name in RUNS if robot != "ur10e"])
def test_compensated_torques_are_found(robot, name):
    arm = model(robot)
    it = run(robot, name)
    rest = Recording(it.joint_names, it.time, it.position, it.velocity, it.torque - arm.gravity_torque(it.position))
    (finding,) = (finding for finding in check(rest, arm) if finding.severity == "error")
    assert "there is no gravity in the effort" in finding.message


def test_a_counterbalance_is_no_compensation():
    """Of the KR300, whose second axis is the only one that gravity loads by more than a fifth of the most.

    Its motion is slow first and fast then, and its friction grows less at speed: that is no drift either.
    """
    assert not check(real_recordings.real_recording("kuka_kr300", "ff_A"), real_recordings.real_robot("kuka_kr300"))


def test_tables_of_other_shapes_are_refused_by_name():
    path = DATA / "kuka_kr300" / "develop" / "ff_A.npz"
    with pytest.raises(RecordingError, match=r"has no array position; it has t, q_motor_deg"):
        Recording.read(path)
    with pytest.raises(RecordingError, match=r"must name one column 't'.*it has x1, y1"):
        Recording.read(DATA / "tiago_mocap" / "develop" / "qualisys_hand.csv")
