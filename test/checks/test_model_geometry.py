"""Test detection of wrong position ratios, base tilts and link origins, which friction must not imitate."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
from clean_recordings import set_gravity
from gate_recordings import sound_case
from scipy.signal import butter, sosfilt
from scipy.spatial.transform import Rotation

from dynid_ros.model import RobotModel
from dynid_ros.model.chain import JointLimits
from dynid_ros.recording import check


@pytest.fixture(scope="module")
def case():
    return sound_case(np.random.default_rng(3), "develop", "fourier", "ur10", "stribeck")


def list_kinds(case):
    return [finding.kind for finding in check(case.recording, case.robot, motion=True)]


@pytest.mark.parametrize(("factor", "ratio"), [(0.5, "half"), pytest.param(2.0, "twice", marks=pytest.mark.slow)])
def test_reports_the_position_ratio_of_a_joint(case, factor, ratio):
    position = case.recording.position * np.where(np.arange(6) == 2, factor, 1.0)
    changed = replace(case.recording, position=position, velocity=np.full_like(position, np.nan))
    robot = case.robot
    unlimited = RobotModel(replace(robot.chain, limits=JointLimits.unlimited(6)), robot.parameters, robot.gravity)
    (finding,) = check(changed, unlimited)
    assert (finding.kind, finding.severity) == ("position ratio", "error")
    assert finding.where.endswith("joint 'elbow_joint'")
    assert f"its position is {ratio} of" in finding.message


def test_reports_a_base_tilted_by_five_degrees(case):
    gravity = Rotation.from_rotvec(np.radians([3.0, 4.0, 0.0])).apply(case.robot.gravity)
    (finding,) = check(set_gravity(case, gravity).recording, set_gravity(case, gravity).robot)
    assert (finding.kind, finding.severity) == ("gravity direction", "warning")
    assert float(finding.message.split(" degrees")[0].split()[-1]) == pytest.approx(5.0, abs=1.5)


@pytest.mark.parametrize("seed", [12, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (19, 25))])
def test_does_not_report_a_tilt_from_short_or_small_motions(seed):
    """Presliding friction or few segments make gravity fit better when rotated by 66, 4.0 or 4.5°."""
    small = sound_case(np.random.default_rng([77, seed]), "develop", "small", name="panda")
    findings = check(small.recording, small.robot)
    assert not [finding for finding in findings if finding.kind == "gravity direction"]


def test_reports_a_link_10_cm_longer_than_in_the_urdf():
    fast = sound_case(np.random.default_rng(3), "develop", "fast", "ur10", "coulomb", friction=0.01)
    chain = fast.robot.chain
    placements = chain.placements.copy()
    placements[2, :3, 3] *= 1 - 0.1 / np.linalg.norm(placements[2, :3, 3])
    wrong = RobotModel(replace(chain, placements=placements), fast.robot.parameters, fast.robot.gravity)
    assert list_kinds(fast) == []
    (finding,) = check(fast.recording, wrong)
    assert (finding.kind, finding.severity) == ("link origin", "warning")
    assert finding.where.endswith("joint 'elbow_joint'")


@pytest.mark.slow
def test_reports_link_origins_despite_parallel_axes():
    """Parameters absorb nearly all of a shift along parallel axes, which must not be reported as another fault."""
    fast = sound_case(np.random.default_rng(1), "develop", "fast", "ur3", "coulomb", friction=0.02)
    chain = fast.robot.chain
    placements = chain.placements.copy()
    placements[2, :3, 3] += [0.05, 0.05, 0.07]
    wrong = RobotModel(replace(chain, placements=placements), fast.robot.parameters, fast.robot.gravity)
    assert list_kinds(fast) == []
    (finding,) = check(fast.recording, wrong)
    assert (finding.kind, finding.severity) == ("link origin", "warning")
    assert finding.where.endswith("joint 'elbow_joint'")


@pytest.mark.parametrize(
    ("arm", "seed", "order"), [("ur10", 310, 2), pytest.param("panda", 311, 1, marks=pytest.mark.slow)]
)
def test_reports_the_cutoff_frequency_of_a_low_pass(arm, seed, order):
    case = sound_case(np.random.default_rng(seed), "develop", "fourier", arm, "stribeck")
    recording = case.recording
    rate = 1 / float(np.median(np.diff(recording.time)))
    low_passed = sosfilt(butter(order, 1.8, fs=rate, output="sos"), recording.torque, axis=0)
    (finding,) = check(replace(recording, torque=low_passed), case.robot)
    assert finding.kind == "low-passed"
    assert float(finding.message.split(" Hz")[0].split()[-1]) == pytest.approx(1.8, rel=0.2)


@pytest.mark.parametrize("arm", ["ur10", pytest.param("kinova", marks=pytest.mark.slow)])
def test_joints_turned_in_turn_are_not_reported_as_swapped(arm):
    """The gravity identification turns each joint through 12 angles and back while others are held; friction is 2 %."""
    turns = sound_case(np.random.default_rng(1), "develop", "turns", arm, "coulomb", friction=0.02)
    assert list_kinds(turns) == []


def create_case(name, seed, *choice, source="", slow=False):
    return pytest.param(seed, choice, source, id=name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("seed", "choice", "source"),
    [
        # Presliding delays friction only, and friction dominates the changes of slow motion.
        create_case("presliding friction", 5, "develop", "slow", "ur3", "dahl"),
        create_case("presliding friction 2", 9, "develop", "slow", "ur3", "dahl", slow=True),
        # Slowly changing rigid torques do not show whether they lag or only friction does.
        create_case("slow motion", [888, 5], "develop", "slow", source="baxter slow direction", slow=True),
        create_case("slow motion 2", [888, 89], "develop", "slow", source="kinova slow dahl", slow=True),
        # The torque of a joint at rest is easier to explain, except for friction of the moving joint.
        create_case("joint at rest", [10_000, 102], "held out", source="5864 turns lugre", slow=True),
        create_case("noise of positions", [777, 15], "develop", "turns", source="14 turns direction"),
        create_case("noise of positions 2", 51_033, "public", source="9352 turns lugre"),
    ],
)
def test_friction_and_noise_are_not_mistaken_for_faults(seed, choice, source):
    sound = sound_case(np.random.default_rng(seed), *choice)
    assert source in sound.recording.source
    assert list_kinds(sound) == []


def test_lists_faults_that_the_motion_cannot_show(case):
    slow = sound_case(np.random.default_rng(4), "develop", "slow", "ur10", "coulomb")
    undecided = []
    assert check(slow.recording, slow.robot, True, undecided) == []
    remarks = " | ".join(undecided)
    assert "a constant lag between torques and positions" in remarks
    assert "an origin that is 10 cm off in the URDF: shoulder_lift_joint" in remarks
    undecided.clear()
    assert check(case.recording, case.robot, True, undecided) == []
    assert "a base that is tilted" not in " | ".join(undecided)
    assert "a constant lag between torques and positions (shows from 30 ms)" in " | ".join(undecided)
