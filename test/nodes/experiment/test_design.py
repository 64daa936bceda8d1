"""Test the design of a motion from node parameters, and the safety checks of a motion."""

import math
import re
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest

from dynid_ros.errors import DynidError, TrajectoryError
from dynid_ros.excitation.fourier_excitation import FourierPlan
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.design import PARAMETERS, Design, Safety, controller_joints
from dynid_ros.recording import Recording
from dynid_ros.trajectories.trajectory import move

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
FOURIER = {"motion": "fourier", "base_frequency": 0.2, "harmonics": 3, "design_time": 0.0, "workers": 1}

SHAPE = '<collision><origin xyz="0.2 0 0" rpy="0 1.5707963 0"/><geometry>{}</geometry></collision></link>'
CYLINDER = SHAPE.format('<cylinder radius="0.05" length="0.4"/>')
MESH = SHAPE.format('<mesh filename="package://nowhere/arm.stl"/>')
REST = [0.4, -0.6, 0.5]


def build_settings(**overrides) -> SimpleNamespace:
    values = {parameter.name: parameter.default for parameter in PARAMETERS}
    values |= {"robot_description": planar_arm.urdf(), "acceleration_limits": [12.0]}
    return SimpleNamespace(**values | overrides)


def build_design(**overrides) -> Design:
    values = build_settings(**overrides)
    return Design(ROBOT, Safety(ROBOT, values), values, values.point_rate)


def plan_motion(**overrides) -> FourierPlan:
    return build_design(**FOURIER | overrides).plan(lambda fraction, best: None)[1]


def write_recording(path, duration: float):
    """Write a recording in which only the middle joint moves."""
    time = np.arange(0.0, duration, 0.01)
    q, qd, qdd = np.zeros((3, len(time), 3))
    rate = 2 * np.pi * 0.3
    q[:, 1] = -0.5 + 0.4 * np.sin(rate * time)
    qd[:, 1] = 0.4 * rate * np.cos(rate * time)
    qdd[:, 1] = -0.4 * rate**2 * np.sin(rate * time)
    torque = ROBOT.inverse_dynamics(q, qd, qdd) + 0.5 * np.sign(qd) + 0.2 * qd
    noise = np.random.default_rng(0).normal(size=(2, *q.shape))
    Recording(ROBOT.joint_names, time, q + 1e-5 * noise[0], qd, torque + 0.02 * noise[1], source="run").write_npz(path)
    return str(path)


def test_design_complements_earlier_recordings(tmp_path):
    alone = plan_motion()
    complementing = plan_motion(recordings=[write_recording(tmp_path / "long.npz", 120.0)])
    assert complementing.facts["base_parameters"] == alone.facts["base_parameters"]
    assert complementing.condition_number != pytest.approx(alone.condition_number, rel=0.05)
    with pytest.raises(DynidError, match="nowhere"):
        plan_motion(recordings=["nowhere"])
    with pytest.raises(DynidError, match="recordings is for motion fourier, not poses; leave it empty"):
        build_design(motion="poses", recordings=["run"]).experiment()


def test_repeats_concatenate_the_periods():
    plan = plan_motion(repeats=2, periods=2)
    assert plan.duration == pytest.approx(20.0)
    assert plan.as_dict()["starts"] == [0.0, 10.0]


def test_search_settings_come_from_parameters():
    experiment = build_design(
        **FOURIER | {"starts": 3, "seed": 5, "criterion": "determinant", "target": "load"}
    ).experiment()
    assert (experiment.starts, experiment.workers, experiment.design_time) == (3, 1, 0.0)
    assert len(experiment.information.names) <= 10
    assert build_design(**FOURIER).experiment().starts is None


def test_controller_joints_may_have_any_order():
    order = ["joint_3", "joint_1", "joint_2"]
    assert controller_joints(build_settings(controller_joints=order), ROBOT.joint_names) == tuple(order)
    assert controller_joints(build_settings(), ROBOT.joint_names) == ROBOT.joint_names
    with pytest.raises(DynidError, match=re.escape("expected joint_1, joint_2, joint_3 in any order")):
        controller_joints(build_settings(controller_joints=[*order, "finger"]), ROBOT.joint_names)


FLEXIBLE = {"motion": "flexible", "stiffness": [3e3], "motor_inertia": [2.0], "harmonics": 3, "design_time": 0.0}


def test_motion_for_flexible_joints_needs_drive_parameters(tmp_path):
    plan = plan_motion(**FLEXIBLE, base_frequency=1.0, point_rate=100.0, viscous=[2.0])
    assert plan.series.base_frequency == 1.0
    assert np.all(np.ptp(plan.trajectory.position, axis=0) > 0.01)
    held = plan_motion(**FLEXIBLE, base_frequency=1.0, point_rate=100.0, held=[0.2, math.nan, -0.3])
    np.testing.assert_allclose(np.ptp(held.trajectory.position, axis=0)[[0, 2]], 0.0, atol=1e-9)
    assert held.trajectory.position[0, 0] == pytest.approx(0.2)
    with pytest.raises(DynidError, match=r"harmonics is .* Hz; with point_rate 10 it may be 1 Hz"):
        build_design(**FOURIER | FLEXIBLE | {"base_frequency": math.nan, "point_rate": 10.0}).experiment()
    with pytest.raises(DynidError, match="motor_inertia of the joints is not known"):
        build_design(**FLEXIBLE | {"motor_inertia": [math.nan]}).experiment()
    with pytest.raises(DynidError, match="stiffness"):
        build_design(**FLEXIBLE | {"stiffness": [1e4, 1e4]}).experiment()
    with pytest.raises(DynidError, match=r"nowhere\.yaml"):
        build_design(**FLEXIBLE, flexible_file=str(tmp_path / "nowhere.yaml")).experiment()
    with pytest.raises(DynidError, match="target is 'links'; motion flexible has none"):
        build_design(**FLEXIBLE, target="links").experiment()


def build_safety(links=("", "", ""), **overrides):
    """Return the safety checks of the planar arm with these collision shapes of its links."""
    urdf = planar_arm.urdf()
    for number, shape in enumerate(links, start=1):
        start = urdf.index(f'<link name="link_{number}">')
        end = urdf.index("</link>", start)
        urdf = urdf[:end] + (shape or "</link>") + urdf[end + len("</link>") :]
    settings = {"robot_description": urdf, "floor_height": 0.1, "clearance": 0.1} | overrides
    return Safety(RobotModel.from_urdf(urdf), build_settings(**settings))


def rest_at(pose):
    return move(planar_arm.JOINTS, pose, pose, 1.0)


def test_floor_check_uses_collision_shapes():
    # The tip of link_3, 0.4 m beyond its origin, is below the floor. Without a shape the link ends at its origin.
    low = [0.0, 0.2, 0.6]
    build_safety().check(rest_at(low))
    with pytest.raises(TrajectoryError, match="'link_3' would be at height"):
        build_safety([CYLINDER] * 3).check(rest_at(low))
    build_safety([CYLINDER] * 3, link_shapes="none").check(rest_at(low))


def test_limits_file_replaces_nan_parameters(tmp_path):
    path = tmp_path / "joint_limits.yaml"
    path.write_text("joint_limits: {joint_2: {max_acceleration: 3.0, max_velocity: 1.5}}")
    parameters = {"joint_limits_file": str(path), "acceleration_limits": [4.0, np.nan, 5.0]}
    limits = build_safety(**parameters).limits
    np.testing.assert_allclose(limits.acceleration, [4.0, 3.0, 5.0])
    np.testing.assert_allclose(limits.velocity, [3.0, 1.5, 3.0])
    path.write_text("joint_limits: {elbow: {max_acceleration: 3.0}}")
    with pytest.raises(TrajectoryError, match=r"joint_limits\.yaml.*elbow"):
        build_safety(**parameters)


@pytest.mark.parametrize("shapes", ["available", "required"])
def test_missing_mesh_is_an_error_only_if_shapes_are_required(shapes):
    links = [CYLINDER, CYLINDER, MESH]
    if shapes == "required":
        with pytest.raises(DynidError, match=r"arm\.stl.* \(parameters mesh_directories, link_shapes\)"):
            build_safety(links, link_shapes=shapes)
        return
    safety = build_safety(links, link_shapes=shapes, clearance=0.0)
    assert "package://nowhere/arm.stl" in safety.warnings[0]
    assert "these are lines; leave room for their thickness" in safety.warnings[1]
    assert "link_3" in safety.warnings[1]
    assert "link_2" not in safety.warnings[1]
    safety.check(rest_at([0.0, 0.2, 0.6]))


def test_links_without_shapes_cause_a_warning():
    assert build_safety().warnings == (
        "no link has a shape that is known: links are lines; leave room for their thickness",
    )
    assert build_safety(link_shapes="none").warnings[0].startswith("link_shapes is none")


def test_poses_in_an_obstacle_or_beyond_the_box_are_refused(tmp_path):
    boxes = tmp_path / "boxes.yaml"
    boxes.write_text("[{name: crate, size: [0.2, 0.2, 0.2], position: [0.35, 0.15, 0.5]}]")
    build_safety().check(rest_at(REST))
    with pytest.raises(TrajectoryError, match="crate"):
        build_safety(obstacles_file=str(boxes)).check(rest_at(REST))
    with pytest.raises(TrajectoryError, match=r"beyond upper side 0\.2 m of the box"):
        build_safety(box_upper=[0.2, np.inf, np.inf]).check(rest_at(REST))
    with pytest.raises(DynidError, match="corners"):
        build_safety(box_upper=[0.2])


def test_clearance_is_kept_from_obstacles(tmp_path):
    boxes = tmp_path / "boxes.yaml"
    boxes.write_text("[{name: crate, size: [0.2, 0.2, 0.2], position: [0.35, -0.4, 0.5]}]")
    pose = rest_at([0.0, 0.0, 0.0])
    links = ["", CYLINDER, ""]
    build_safety(links, obstacles_file=str(boxes), clearance=0.2).check(pose)
    with pytest.raises(TrajectoryError, match=r"within 0\.2\d\d m of obstacle 'crate'.*; clearance is 0\.3 m"):
        build_safety(links, obstacles_file=str(boxes), clearance=0.3).check(pose)


def test_torque_is_checked_for_joints_with_mass():
    with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
        build_safety(torque_limits=[50.0, 5.0, 50.0]).check(rest_at([0.0, 0.0, 0.0]))
    massless = planar_arm.urdf()
    for mass in planar_arm.MASS:
        massless = massless.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    massless_safety = Safety(RobotModel.from_urdf(massless), build_settings(robot_description=massless))
    massless_safety.check(rest_at(REST))
    assert massless_safety.warnings[-1] == (
        "torques are not checked of joint_1, joint_2, joint_3: the robot's description has no mass there"
    )


def test_forbidden_start_pose_has_its_own_error():
    with pytest.raises(TrajectoryError, match="the arm cannot start from where it is: 'link_3' would be at height"):
        build_safety().check_start(np.array([0.4, 0.9, 0.2]))
    build_safety().check_start(np.array(REST))
