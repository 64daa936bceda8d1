"""Direction of gravity, estimated with moments or with links, and from an IMU; torques by Pinocchio and MuJoCo."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from clean_recordings import arm
from coverage_experiments import Conditions, draw
from gravity_experiment import demo_robot, planned_recording
from scipy.spatial.transform import Rotation
from sticking_arms import StickingArm

from dynid_ros.control import load_gravity_torque
from dynid_ros.errors import DynidError, IdentificationError, ModelError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identification.gravity_direction import TiltCheck, imu_direction
from dynid_ros.identification.static_samples import Samples
from dynid_ros.identified.gravity_direction import GravityDirection
from dynid_ros.identified.identified_file import estimated_gravity, load_identified
from dynid_ros.model import RobotModel
from dynid_ros.model.gravity import angle_between, turn_axes, turned
from dynid_ros.model.robot import STANDARD_GRAVITY
from dynid_ros.recording import Recording
from dynid_ros.recording.series import ImuSeries
from dynid_ros.report.gravity import write_gravity_report

MOUNTS = {"level": (0.0, 0.0, 0.0), "tilted": (0.1, -0.05, 0.0), "wall": (0.02, np.pi / 2, 0.0)}


@cache
def identify_on(mount, source="estimated"):
    """Return the result for the demo arm on a mounting that is configured as level, the true gravity, and the arm."""
    rng = np.random.default_rng(3)
    gravity = turned(STANDARD_GRAVITY, MOUNTS[mount])
    arm = StickingArm(demo_robot().with_gravity(gravity))
    samples = arm.samples(arm.both_sides(arm.holds(12, rng)), arm.friction(rng), rng)
    samples = replace(samples, torque=samples.torque * (1 + 0.01 * rng.standard_normal(6)))
    identification = GravityIdentification(demo_robot(), gravity_direction=source)
    return identification.fit_samples(samples), gravity, arm


@pytest.mark.parametrize("mount", MOUNTS)
def test_estimates_the_direction_with_the_moments(mount):
    result, gravity, arm = identify_on(mount)
    angle_error = angle_between(result.direction.gravity, gravity)
    assert angle_error < np.radians(0.2)
    assert angle_error < 1.5 * result.direction.widest < np.radians(0.5)
    poses = np.random.default_rng(1).uniform(-2, 2, (20, 6))
    truth = np.array([arm.pinocchio.gravity_torque(pose) for pose in poses])
    error = result.predict(poses) - truth
    assert np.nanmax(np.abs(error) / arm.largest) < 0.06
    assert np.isfinite(error[:, 1:]).all()
    assert "by the torques" in result.summary()


def test_compensation_uses_the_estimated_direction_of_the_file(tmp_path):
    """Gravity of the file replaces the default; a different configured gravity is refused."""
    result, gravity, arm = identify_on("tilted")
    path = result.save(tmp_path / "identified.yaml")
    np.testing.assert_allclose(estimated_gravity(load_identified(path)), gravity, atol=0.05)
    section = load_identified(path)["robot"]["gravity_direction"]
    assert section["source"] == "estimated"
    assert np.shape(section["covariance"]) == (2, 2)
    assert str(GravityDirection.of_document(load_identified(path))) == str(result.direction)
    transform = section["static_transform"].split()
    assert transform[4:] == ["--frame-id", "world", "--child-frame-id", result.robot.base]
    base = Rotation.from_euler("xy", [float(transform[1]), float(transform[3])])  # tf2 rotates about fixed axes
    level = base.apply(estimated_gravity(load_identified(path)))
    np.testing.assert_allclose(level, [0.0, 0.0, -np.linalg.norm(gravity)], atol=1e-5)
    page = write_gravity_report(tmp_path / "report.html", result.robot, result.document(), result.samples).read_text()
    assert result.direction.sentence.split(":")[0].replace("'", "&#x27;") in page.replace("&#39;", "&#x27;")
    robot, torque = load_gravity_torque(path, demo_robot().urdf)
    assert angle_between(robot.gravity, gravity) < np.radians(0.2)
    pose = [0.3, -0.5, 0.7, 0.2, 0.9, 0.1]
    assert np.max(np.abs(np.array(torque(pose)) - arm.pinocchio.gravity_torque(np.array(pose))) / arm.largest) < 0.05
    with pytest.raises(DynidError, match="set the parameter gravity"):
        load_gravity_torque(path, demo_robot().urdf, gravity=(0.0, 5.0, -8.0))


def rests(position, torque, side):
    """Return samples at rest in positions that were approached from a side."""
    rows = np.arange(len(position))
    still = np.ones(len(position), bool)
    return Samples(position, 0 * position, torque, side, still, rows.astype(float), 0 * rows)


def test_refuses_unobservable_rotation_and_names_the_joint():
    rows = [{"a": 0.0, "alpha": np.pi / 2, "d": 0.3, "theta": 0.0, "type": "revolute"}]
    rows += [{"a": 0.4, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 2
    links = np.tile([0.0] * 10, (3, 1))
    links[:, 0], links[:, 1], links[:, 2] = (5.0, 3.0, 2.0), (0.1, 0.4, 0.3), (0.2, 0.1, 0.05)
    robot = RobotModel.from_dh(rows, parameters=links.ravel())
    pose = np.repeat(np.random.default_rng(0).uniform(-2, 2, (20, 3)), 2, axis=0)
    side = np.tile([[1.0], [-1.0]], (20, 3))

    def identify(q):
        torque = robot.gravity_torque(q) + 0.3 * side + np.random.default_rng(1).normal(0, 0.01, q.shape)
        return GravityIdentification(robot, gravity_direction="estimated").fit_samples(rests(q, torque, side))

    assert angle_between(identify(pose).direction.gravity, robot.gravity) < np.radians(0.2)
    with pytest.raises(IdentificationError, match=r"may be turned by .* turn 'joint_1' as far as it goes"):
        identify(pose * [0.0, 1.0, 1.0])
    with pytest.raises(IdentificationError, match="'recursive' takes the direction"):
        GravityIdentification(robot, "recursive", gravity_direction="estimated")


@pytest.mark.parametrize(("name", "seed"), [("ur10", 2), ("ur3", 2), ("panda", 1)])
@pytest.mark.parametrize("mount", [0.0, np.pi])
def test_gravity_keeps_its_sign_where_joint_1_hardly_moves(name, seed, mount):
    """The signs of undetermined moments must not decide the direction."""
    level = StickingArm(arm(name))
    rng = np.random.default_rng([seed, 5])
    gravity = turned(level.robot.gravity, [mount, np.radians(8.0), 0.0])
    true = StickingArm(level.robot.with_gravity(gravity))
    poses = level.holds(15, rng)
    poses[:, 0] = level.holds(1, rng)[0, 0] + 0.02 * rng.uniform(-1, 1, 15)
    samples = true.samples(true.both_sides(poses), true.friction(rng), rng)
    result = GravityIdentification(level.robot, gravity_direction="estimated").fit_samples(samples)
    assert angle_between(result.direction.gravity, gravity) < np.radians(1.0)


def tilted_samples(name, seed, tilt, motion, *, still):
    """Return a level arm, and samples of it on a base tilted by `tilt` degrees; with `still`, joint 1 is at rest."""
    level = StickingArm(arm(name))
    rng = np.random.default_rng([seed, 6])
    side = rng.uniform(0, 2 * np.pi)
    gravity = turned(level.robot.gravity, np.radians(tilt) * np.array([np.cos(side), np.sin(side), 0.0]))
    true = StickingArm(level.robot.with_gravity(gravity))
    motions = {"one_by_one": lambda: true.one_by_one(true.holds(1, rng))}
    path = motions.get(motion, lambda: true.both_sides(true.holds(15, rng)))()
    if still:
        path.points = [np.where(np.arange(len(point)) == 0, 0.1, point) for point in path.points]
    return level, true.samples(path, true.friction(rng), rng)


@pytest.mark.parametrize("name", ["ur10", "kinova", "demo"])
@pytest.mark.parametrize(("motion", "still"), [("both_sides", False), ("both_sides", True), ("one_by_one", True)])
def test_remarks_on_a_tilt_or_its_unobservability(name, motion, still):
    level, samples = tilted_samples(name, 0, 5.0, motion, still=still)
    result = GravityIdentification(level.robot).fit_samples(samples)
    remarks = [remark for remark in result.remarks if "tilt" in remark]
    assert remarks
    assert still or "gravity is tilted by" in remarks[0]
    level, samples = tilted_samples(name, 0, 0.0, motion, still=still)
    assert not any("is tilted" in remark for remark in GravityIdentification(level.robot).fit_samples(samples).remarks)


@pytest.mark.parametrize("name", ["ur10", "kinova", "demo"])
def test_level_base_with_all_joints_in_motion_has_no_remark(name):
    level, samples = tilted_samples(name, 1, 0.0, "both_sides", still=False)
    assert not GravityIdentification(level.robot).fit_samples(samples).remarks


def test_refuses_rotation_that_no_motion_determines():
    """The rotation of a planar vertical arm within its plane equals an offset of its first joint."""
    rows = [{"a": 0.4, "alpha": 0.0, "d": 0.0, "theta": 0.0, "type": "revolute"}] * 2
    links = np.zeros((2, 10))
    links[:, 0] = 3.0
    links[:, 1] = -0.5
    robot = RobotModel.from_dh(rows, gravity=(0.0, -9.81, 0.0), parameters=links.ravel())
    q = np.repeat(np.random.default_rng(0).uniform(-2, 2, (20, 2)), 2, axis=0)
    side = np.tile([[1.0], [-1.0]], (20, 2))
    torque = robot.gravity_torque(q) + 0.3 * side
    samples = rests(q, torque, side)
    with pytest.raises(IdentificationError, match="no motion of this arm shows that turn"):
        GravityIdentification(robot, gravity_direction="estimated").fit_samples(samples)


def record_imu(mean, frame="", *, turn=0.0, seed=0):
    """Return a recording of an IMU on the base, which rotates by `turn` rad during the recording."""
    time = np.arange(0.0, 20.0, 0.01)
    acceleration = [turned(mean, [turn * t / time[-1], 0.0, 0.0]) for t in time]
    acceleration += np.random.default_rng(seed).normal(0.0, 0.1, (len(time), 3))
    still = np.zeros((3, 6))
    imus = {"/imu": ImuSeries(time, acceleration, frame)}
    return Recording(demo_robot().joint_names, np.arange(3.0), still, still, still, imus=imus)


def test_interval_of_the_imu_direction_covers_the_truth():
    gravity = turned(STANDARD_GRAVITY, (0.1, 0.2, 0.0))
    miss = []
    half = []
    for seed in range(20):
        direction = imu_direction(demo_robot(), [record_imu(-gravity, seed=seed)], "")
        miss.append(direction.axes @ np.cross(direction.gravity, gravity) / (gravity @ gravity))
        half.append(direction.half_widths())
    assert 0.85 <= np.mean(np.abs(miss) <= half) <= 1.0
    assert np.max(half) < np.radians(0.05)
    flange = demo_robot().urdf.replace(
        "</robot>",
        '<link name="imu"/><joint name="m" type="fixed"><parent link="base_link"/><child link="imu"/>'
        '<origin rpy="0 0 1.5707963"/></joint></robot>',
    )
    mounted = RobotModel.from_urdf(flange, tip=demo_robot().tip)
    measured = record_imu(np.array([-gravity[1], gravity[0], -gravity[2]]), "imu")
    np.testing.assert_allclose(imu_direction(mounted, [measured], "imu").gravity, gravity, atol=0.02)


@pytest.mark.parametrize(
    ("recording", "topic", "error"),
    [
        (record_imu(np.array([0.0, 0.0, 9.81]), turn=0.1), "", "the base turned by"),
        (record_imu(np.array([0.0, 0.0, 1.0])), "", "feels 1.00 m/s"),
        (record_imu(np.array([0.0, 0.0, 9.81])), "other", "no sensor_msgs/Imu on /other; it has /imu"),
        (replace(record_imu(np.array([0.0, 0.0, 9.81])), imus={}), "", "0 topics of sensor_msgs/Imu"),
    ],
)
def test_refuses_ambiguous_imu(recording, topic, error):
    with pytest.raises(IdentificationError, match=error):
        imu_direction(demo_robot(), [recording], topic)
    with pytest.raises(ModelError, match="is no link that is fixed to 'base_link'"):
        imu_direction(demo_robot(), [record_imu(np.array([0.0, 0.0, 9.81]), "link_3")], "")


@pytest.mark.parametrize("identification", [GravityIdentification, LinkIdentification])
def test_refuses_imu_that_is_upside_down(identification):
    recording = planned_recording()
    time = np.arange(0.0, 20.0, 0.01)
    acceleration = np.tile([0.0, 0.0, 9.81], (len(time), 1)) + np.random.default_rng(0).normal(
        0.0, 0.05, (len(time), 3)
    )
    upright, reverse = (replace(recording, imus={"/imu": ImuSeries(time, sign * acceleration, "")}) for sign in (1, -1))
    assert imu_direction(demo_robot(), [upright], "").angle < np.radians(1.0)
    with pytest.raises(IdentificationError, match="upside down"):
        identification(demo_robot(), gravity_direction="imu").fit(reverse)


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [(0.06, -0.04, 0.0), (np.pi / 2, 0.0, 0.0)])
def test_estimates_the_direction_with_the_links(tilt):
    gravity = turned(STANDARD_GRAVITY, tilt)
    conditions = Conditions("ur10", mismatch=0.0)
    experiment = draw(conditions, np.random.default_rng(2), gravity)
    result = LinkIdentification(
        experiment.robot, conditions.friction, estimator="weighted", gravity_direction="estimated"
    ).fit(experiment.recording)
    assert angle_between(result.direction.gravity, gravity) < min(np.radians(0.2), 1.5 * result.direction.widest)
    low, high = result.base_parameters.confidence_intervals().T
    truth = experiment.truth(result.base)
    finite = np.isfinite(truth)
    assert np.mean((low <= truth)[finite] & (truth <= high)[finite]) > 0.85


@pytest.mark.parametrize("axis", [0, 1])
def test_covariance_of_moments_includes_that_of_the_imu(axis):
    """The added variance of a moment equals its sensitivity to gravity times the variance of the angle."""
    samples = identify_on("tilted")[0].samples
    down = turned(STANDARD_GRAVITY, MOUNTS["tilted"])
    std = np.radians(0.5)
    axes = turn_axes(down)
    identification = GravityIdentification(demo_robot(), gravity_direction="imu")

    def result(gravity, error):
        covariance = np.diag(error**2 * (np.arange(2) == axis))
        direction = GravityDirection("imu", gravity, np.array(STANDARD_GRAVITY), axes, covariance, 20.0, "base")
        return identification.fit_samples(samples, direction=direction)

    exact = result(down, 0.0)
    uncertain = result(down, std)
    moved = (result(turned(down, 1e-3 * axes[axis]), 0.0).values - exact.values) / 1e-3 * std
    added = np.diag(uncertain.covariance - exact.covariance)
    precise = np.diag(exact.covariance) < 0.02**2  # less precise moments depend more on the weights of the fit
    assert (added > np.diag(exact.covariance))[precise].any()
    np.testing.assert_allclose(np.sqrt(added)[precise], np.abs(moved)[precise], atol=0.1 * np.abs(moved[precise]).max())


@pytest.mark.parametrize(
    ("tilt", "half", "reported"), [(1.6, 0.5, True), (1.4, 0.5, False), (-1.2, 0.1, True), (0.9, 0.05, False)]
)
def test_reports_a_tilt_whose_interval_exceeds_one_degree(tilt, half, reported):
    variance = (np.radians(half) / 1.96) ** 2
    check = TiltCheck(demo_robot(), np.eye(2) / variance, np.radians([tilt, 0.0]), variance * np.eye(2), np.inf)
    angles = [np.degrees(angle) for _, angle, _ in check.tilts()]
    assert np.abs(angles) == pytest.approx([abs(tilt)] * reported)
    assert check.open_axes() == []
