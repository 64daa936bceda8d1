"""Ratios, a tilted base, wrong lengths; and what looks like a lag, a low-pass or an exchange, but is friction."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
from clean_recordings import turned
from gate_recordings import sound_case
from scipy.signal import butter, sosfilt
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.chain import JointLimits
from dynid_ros.recording import check


@pytest.fixture(scope="module")
def case():
    return sound_case(np.random.default_rng(3), "develop", "fourier", "ur10", "stribeck")


def kinds(case):
    return [finding.kind for finding in check(case.recording, case.robot, motion=True)]


@pytest.mark.parametrize(("factor", "said"), [(0.5, "half"), pytest.param(2.0, "twice", marks=pytest.mark.slow)])
def test_a_joint_with_another_ratio(case, factor, said):
    position = case.recording.position * np.where(np.arange(6) == 2, factor, 1.0)
    changed = replace(case.recording, position=position, velocity=np.full_like(position, np.nan))
    robot = case.robot
    endless = RobotModel(replace(robot.chain, limits=JointLimits.unlimited(6)), robot.parameters, robot.gravity)
    (finding,) = check(changed, endless)
    assert (finding.kind, finding.severity) == ("position ratio", "error")
    assert finding.where.endswith("joint 'elbow_joint'")
    assert f"its position is {said} of what the torques show" in finding.message


def test_a_base_that_is_tilted_by_five_degrees(case):
    gravity = Rotation.from_rotvec(np.radians([3.0, 4.0, 0.0])).apply(case.robot.gravity)
    (finding,) = check(turned(case, gravity).recording, turned(case, gravity).robot)
    assert (finding.kind, finding.severity) == ("gravity direction", "warning")
    assert float(finding.message.split(" degrees")[0].split()[-1]) == pytest.approx(5.0, abs=1.5)


@pytest.mark.parametrize("seed", [12, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (19, 25))])
def test_short_and_small_motions_leave_a_tilt_open(seed):
    """Gravity 66, 4.0 and 4.5° off fits better, by what friction that builds up or a few stretches make of it."""
    it = sound_case(np.random.default_rng([77, seed]), "develop", "small", name="panda")
    assert not [finding for finding in check(it.recording, it.robot) if finding.kind == "gravity direction"]


def test_a_link_that_is_10_cm_longer_than_its_urdf_has_it():
    fast = sound_case(np.random.default_rng(3), "develop", "fast", "ur10", "coulomb", friction=0.01)
    chain = fast.robot.chain
    placements = chain.placements.copy()
    placements[2, :3, 3] *= 1 - 0.1 / np.linalg.norm(placements[2, :3, 3])
    wrong = RobotModel(replace(chain, placements=placements), fast.robot.parameters, fast.robot.gravity)
    assert kinds(fast) == []
    (finding,) = check(fast.recording, wrong)
    assert (finding.kind, finding.severity) == ("link origin", "warning")
    assert finding.where.endswith("joint 'elbow_joint'")


@pytest.mark.slow
def test_what_hardly_shows_of_a_wrong_origin_does_not_hide_the_rest():
    """Parallel axes: along them, parameters absorb nearly all; no large shift that way is taken for another fault."""
    fast = sound_case(np.random.default_rng(1), "develop", "fast", "ur3", "coulomb", friction=0.02)
    chain = fast.robot.chain
    placements = chain.placements.copy()
    placements[2, :3, 3] += [0.05, 0.05, 0.07]
    wrong = RobotModel(replace(chain, placements=placements), fast.robot.parameters, fast.robot.gravity)
    assert kinds(fast) == []
    (finding,) = check(fast.recording, wrong)
    assert (finding.kind, finding.severity) == ("link origin", "warning")
    assert finding.where.endswith("joint 'elbow_joint'")


@pytest.mark.parametrize(
    ("arm", "seed", "order"), [("ur10", 310, 2), pytest.param("panda", 311, 1, marks=pytest.mark.slow)]
)
def test_the_cut_off_of_a_low_pass_is_stated(arm, seed, order):
    case = sound_case(np.random.default_rng(seed), "develop", "fourier", arm, "stribeck")
    recording = case.recording
    rate = 1 / float(np.median(np.diff(recording.time)))
    low_passed = sosfilt(butter(order, 1.8, fs=rate, output="sos"), recording.torque, axis=0)
    (finding,) = check(replace(recording, torque=low_passed), case.robot)
    assert finding.kind == "low-passed"
    assert float(finding.message.split(" Hz")[0].split()[-1]) == pytest.approx(1.8, rel=0.2)


@pytest.mark.parametrize("arm", ["ur10", pytest.param("kinova", marks=pytest.mark.slow)])
def test_joints_that_are_turned_one_by_one_are_not_exchanged(arm):
    """The experiment of the gravity identification: 12 angles there and back, the others held, friction of 2 %."""
    turns = sound_case(np.random.default_rng(1), "develop", "turns", arm, "coulomb", friction=0.02)
    assert kinds(turns) == []


def drawn(name, seed, *choice, source="", slow=False):
    return pytest.param(seed, choice, source, id=name, marks=[pytest.mark.slow] * slow)


@pytest.mark.parametrize(
    ("seed", "choice", "source"),
    [
        # Presliding delays friction alone: in slow motion it is most of what changes.
        drawn("friction that builds up", 5, "develop", "slow", "ur3", "dahl"),
        drawn("friction that builds up too", 9, "develop", "slow", "ur3", "dahl", slow=True),
        # Where rigid torques change too slowly to tell, what lags may be friction alone.
        drawn("slow motion", [888, 5], "develop", "slow", source="baxter slow direction", slow=True),
        drawn("slow motion too", [888, 89], "develop", "slow", source="kinova slow dahl", slow=True),
        # The torque of a joint at rest is the easier to explain, but for the friction of the one that turns.
        drawn("a joint that rests", [10_000, 102], "held out", source="5864 turns lugre", slow=True),
        drawn("noise of positions", [777, 15], "develop", "turns", source="14 turns direction"),
        drawn("noise of positions too", 51_033, "public", source="9352 turns lugre"),
    ],
)
def test_nothing_is_taken_for_a_lag_a_low_pass_or_an_exchange(seed, choice, source):
    it = sound_case(np.random.default_rng(seed), *choice)
    assert source in it.recording.source
    assert kinds(it) == []


def test_what_cannot_be_told_is_said(case):
    slow = sound_case(np.random.default_rng(4), "develop", "slow", "ur10", "coulomb")
    undecided = []
    assert check(slow.recording, slow.robot, True, undecided) == []
    said = " | ".join(undecided)
    assert "a constant lag between torques and positions" in said
    assert "an origin that is 10 cm off in the URDF: shoulder_lift_joint" in said
    undecided.clear()
    assert check(case.recording, case.robot, True, undecided) == []
    assert "a base that is tilted" not in " | ".join(undecided)
    assert "a constant lag between torques and positions (shows from 30 ms)" in " | ".join(undecided)
