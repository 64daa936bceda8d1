"""Insert faults into motions of the demo arm in MuJoCo and test that joint, angle or time is reported correctly."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")
import recording_faults
from clean_recordings import arm, clean_case, perturb_links, set_gravity
from gate_arms import SPLITS
from gate_recordings import sound_case
from gravity_experiment import demo_robot
from live_load_experiments import friction
from scipy.spatial.transform import Rotation

from dynid_ros.checks.model_faults import check_model
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording, check


@pytest.fixture(scope="module")
def case():
    """Return a clean recording with sufficient friction, long enough for a drift."""
    rng = np.random.default_rng(5)
    case = clean_case(rng, "demo")
    while case.recording.duration < 20 or np.max(case.friction / case.recording.torque.std(axis=0)) < 0.2:
        case = clean_case(rng, "demo")
    return case


def find_error(case, kind):
    """Return the only finding, an error of this kind."""
    (finding,) = check(case.recording, case.robot)
    assert (finding.severity, finding.kind) == ("error", kind)
    return finding


def create_signs(joint):
    return np.where(np.arange(6) == joint, -1.0, 1.0)


def reverse_channels(case, joint, *channels):
    values = {channel: getattr(case.recording, channel) * create_signs(joint) for channel in channels}
    return replace(case, recording=replace(case.recording, **values))


def test_unchanged_recording_has_no_findings(case):
    assert check(case.recording, case.robot, motion=True) == []


@pytest.mark.parametrize(
    ("joint", "channels", "message"),
    [
        (0, ["torque"], "its torque has the wrong sign"),
        pytest.param(4, ["torque"], "its torque has the wrong sign", marks=pytest.mark.slow),
        (3, ["position", "velocity"], "its position has the wrong sign"),
        (2, ["position", "velocity", "torque"], "position and torque both have the wrong sign"),
    ],
)
def test_reports_the_joint_of_a_wrong_sign(case, joint, channels, message):
    finding = find_error(reverse_channels(case, joint, *channels), "wrong sign")
    assert finding.where == f"demo, joint '{case.robot.joint_names[joint]}'"
    assert message in finding.message


@pytest.mark.parametrize(
    ("channels", "quantity"),
    [(("torque",), "torques"), pytest.param(("position", "velocity"), "positions", marks=pytest.mark.slow)],
)
def test_reports_swapped_joints(case, channels, quantity):
    values = {channel: getattr(case.recording, channel)[:, [0, 2, 1, 3, 4, 5]] for channel in channels}
    finding = find_error(replace(case, recording=replace(case.recording, **values)), "swapped joints")
    names = case.robot.joint_names
    assert finding.where == f"demo, joints '{names[1]}' and '{names[2]}'"
    assert finding.message == f"their {quantity} are swapped"


@pytest.mark.parametrize(
    ("angle", "axis"),
    [
        (30, [0.6, 0.8, 0]),
        *(pytest.param(*turn, marks=pytest.mark.slow) for turn in ((90, [1, 0, 0]), (180, [0, 1, 0]))),
    ],
)
def test_reports_the_direction_of_gravity(case, angle, axis):
    gravity = Rotation.from_rotvec(np.radians(angle) * np.array(axis)).apply([0, 0, -9.80665])
    finding = find_error(set_gravity(case, gravity), "gravity direction")
    reported = float(finding.message.split(" degrees")[0].split()[-1])
    assert reported == pytest.approx(angle, abs=3)
    direction = np.array([float(v) for v in finding.message.split("(")[1].split(")")[0].split(",")])
    np.testing.assert_allclose(direction, [0, 0, -9.80665], atol=0.5)


@pytest.mark.parametrize("lag", [0.02, *(pytest.param(lag, marks=pytest.mark.slow) for lag in (-0.1, 0.2))])
def test_reports_a_time_lag(case, lag):
    recording = case.recording
    torque = np.column_stack([np.interp(recording.time - lag, recording.time, column) for column in recording.torque.T])
    inside = (recording.time > 0.3) & (recording.time < recording.time[-1] - 0.3)
    (finding,) = check(replace(recording, torque=torque).slice(inside), case.robot)
    assert (finding.severity, finding.kind) == ("warning", "time lag")
    assert finding.message.startswith("torques" if lag > 0 else "positions")
    assert float(finding.message.split(" ms")[0].split()[-1]) == pytest.approx(1e3 * abs(lag), abs=3)


def test_reports_drift_of_friction(case):
    recording = case.recording
    direction = np.tanh(recording_faults._velocity(recording) / 0.01)
    size = recording.torque.std(axis=0)
    joint = int(np.argmax(case.friction / size * (size > 0.05 * size.max())))
    share = 0.3 * (np.arange(6) == joint) * (recording.time / recording.duration)[:, None]
    fall = share * case.friction * direction
    (finding,) = check(replace(recording, torque=recording.torque - fall), case.robot)
    assert (finding.severity, finding.kind) == ("warning", "drift")
    assert finding.where == f"demo, joint '{case.robot.joint_names[joint]}'"
    reported = float(finding.message.split(" N m")[0].split()[-1])
    assert reported == pytest.approx(0.3 * case.friction[joint], rel=0.3)


@pytest.mark.parametrize(
    ("split", "number"),
    [
        pytest.param("public", 81, id="drift of slow motion without repeated poses", marks=pytest.mark.slow),
        pytest.param("develop", 44, id="swapped joints of a lift with presliding friction"),
        pytest.param("develop", 65, id="link origin of wrong torque gains", marks=pytest.mark.slow),
        pytest.param("public", 130, id="encoder offset of delayed torques"),
    ],
)
def test_sound_recordings_have_no_findings(split, number):
    case = sound_case(np.random.default_rng([SPLITS[split].seed, number]), split)
    assert check(case.recording, case.robot, motion=True) == []


def test_friction_that_saturates_with_speed_is_not_drift():
    """The arm moves faster and faster: friction that grows less at high speed resembles friction that decreases."""
    robot = demo_robot()
    time = np.arange(0, 20, 0.01)
    growth = 0.3 + 0.7 * (time[:, None] / 20) ** 2
    position = 0.8 * growth * np.sin(2 * np.pi * np.linspace(0.2, 0.45, 6) * time[:, None] + np.arange(6))
    velocity = np.gradient(position, time, axis=0)
    torque = robot.inverse_dynamics(position, velocity, np.gradient(velocity, time, axis=0))
    size = torque.std(axis=0)
    torque += size * (0.2 * np.tanh(velocity / 0.01) + 3 * velocity / (1 + np.abs(velocity) / 0.1))
    torque += np.random.default_rng(5).normal(0, 0.01, torque.shape) * size
    assert check_model([Recording(robot.joint_names, time, position, velocity, torque, source="demo")], robot) == []


def test_reports_low_pass_of_all_channels(case):
    faulty = recording_faults.FAULTS["all low-passed"].put(case, np.random.default_rng(1))
    (finding,) = check(faulty.recording, faulty.robot)
    assert (finding.severity, finding.kind) == ("warning", "low-passed")


def test_reports_the_model_of_another_robot():
    """The recording is of a KUKA-like chain of seven joints, the model has another elbow and wrist."""
    rng = np.random.default_rng(2)
    case = clean_case(rng, "panda")
    robot = perturb_links(arm("z1"), rng)
    recording = replace(case.recording, joint_names=robot.joint_names)
    assert any(finding.severity == "error" for finding in check_model([recording], robot))


def test_judges_several_recordings_together(case):
    recording = case.recording
    middle = recording.duration / 2
    halves = [recording.slice(recording.time < middle), recording.slice(recording.time > middle)]
    turned_halves = [replace(half, torque=half.torque * create_signs(1)) for half in halves]
    (finding,) = check(turned_halves, case.robot)
    assert finding.kind == "wrong sign"


def test_judges_arms_without_inertial_parameters(case):
    massless = RobotModel(case.robot.chain, np.zeros_like(case.robot.parameters))
    assert check_model([case.recording], massless) == []
    (finding,) = check_model([reverse_channels(case, 2, "torque").recording], massless)
    assert finding.message.startswith("its torque has the wrong sign (judged by inertia and friction")


def test_judges_arms_of_a_single_joint():
    time = np.arange(0, 20, 0.01)
    q = np.sin(time)[:, None] + 0.3 * np.sin(3.3 * time)[:, None]
    qd = np.gradient(q, time, axis=0)
    qdd = np.gradient(qd, time, axis=0)
    row = {"a": 0.5, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}
    robot = RobotModel.from_dh([row], (0, -9.81, 0), [2.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1])
    torque = robot.inverse_dynamics(q, qd, qdd) + np.sign(qd) + np.random.default_rng(0).normal(0, 0.05, q.shape)
    recording = Recording(robot.joint_names, time, q, qd, torque)
    assert check(recording, robot, motion=True) == []
    (finding,) = check(replace(recording, torque=-torque), robot)
    assert finding.kind == "wrong sign"


@pytest.mark.slow
def test_presliding_motion_is_not_mistaken_for_another_robot():
    """The whole motion, of one degree, stays within the displacement over which friction reverses."""
    robot = demo_robot()
    rng = np.random.default_rng(18)
    time = np.arange(0.0, 40.0, 0.008)
    rates = 2 * np.pi * np.array([0.1, 0.15, 0.2, 0.25, 0.3, 0.4])[:, None]
    size = rng.normal(0.0, 0.005, (6, 6))
    phase = rng.uniform(0, 2 * np.pi, (6, 6))
    angle = rates * time[:, None, None] + phase
    q = np.sum(size * np.sin(angle), axis=1) + np.array([0.3, -0.6, 0.9, 0.4, 0.5, 0.3])
    qd = np.sum(size * rates * np.cos(angle), axis=1)
    qdd = -np.sum(size * rates**2 * np.sin(angle), axis=1)
    rigid = robot.inverse_dynamics(q, qd, qdd)
    largest = np.maximum(np.abs(robot.gravity_torque(rng.uniform(-2, 2, (50, 6)))).max(axis=0), 1.0)
    torque = rigid + friction(q, qd, rigid, largest, rng) + 0.0005 * largest * rng.normal(size=q.shape)
    assert check_model([Recording(robot.joint_names, time, q, qd, torque)], robot) == []
