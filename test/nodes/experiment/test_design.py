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
SERIES = {"motion": "fourier", "base_frequency": 0.2, "harmonics": 3, "design_time": 0.0, "workers": 1}

SHAPE = '<collision><origin xyz="0.2 0 0" rpy="0 1.5707963 0"/><geometry>{}</geometry></collision></link>'
CYLINDER = SHAPE.format('<cylinder radius="0.05" length="0.4"/>')
MESH = SHAPE.format('<mesh filename="package://nowhere/arm.stl"/>')
REST = [0.4, -0.6, 0.5]


def settings(**given) -> SimpleNamespace:
    values = {parameter.name: parameter.default for parameter in PARAMETERS}
    return SimpleNamespace(**values | {"robot_description": planar_arm.urdf(), "acceleration_limits": [12.0]} | given)


def design(**given) -> Design:
    values = settings(**given)
    return Design(ROBOT, Safety(ROBOT, values), values, values.point_rate)


def planned(**given) -> FourierPlan:
    return design(**SERIES | given).plan(lambda fraction, best: None)[1]


def recording(path, duration: float):
    """A motion of the middle joint alone, with its torques and friction; what it leaves is far from known."""
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


def test_what_is_recorded_is_added_to(tmp_path):
    alone = planned()
    more = planned(recordings=[recording(tmp_path / "long.npz", 120.0)])
    assert more.facts["base_parameters"] == alone.facts["base_parameters"]
    assert more.condition_number != pytest.approx(alone.condition_number, rel=0.05)
    with pytest.raises(DynidError, match="nowhere"):
        planned(recordings=["nowhere"])
    with pytest.raises(DynidError, match="recordings is for motion fourier, not poses; leave it empty"):
        design(motion="poses", recordings=["run"]).experiment()


def test_repeats_join_the_periods():
    plan = planned(repeats=2, periods=2)
    assert plan.duration == pytest.approx(20.0)
    assert plan.as_dict()["starts"] == [0.0, 10.0]


def test_a_search_takes_what_the_parameters_say():
    experiment = design(**SERIES | {"starts": 3, "seed": 5, "criterion": "determinant", "target": "load"}).experiment()
    assert (experiment.starts, experiment.workers, experiment.design_time) == (3, 1, 0.0)
    assert len(experiment.information.names) <= 10
    assert design(**SERIES).experiment().starts is None


def test_the_controller_has_the_same_joints_in_any_order():
    order = ["joint_3", "joint_1", "joint_2"]
    assert controller_joints(settings(controller_joints=order), ROBOT.joint_names) == tuple(order)
    assert controller_joints(settings(), ROBOT.joint_names) == ROBOT.joint_names
    with pytest.raises(DynidError, match=re.escape("expected joint_1, joint_2, joint_3 in any order")):
        controller_joints(settings(controller_joints=[*order, "finger"]), ROBOT.joint_names)


FLEXIBLE = {"motion": "flexible", "stiffness": [3e3], "motor_inertia": [2.0], "harmonics": 3, "design_time": 0.0}


def test_motion_for_flexible_joints(tmp_path):
    plan = planned(**FLEXIBLE, base_frequency=1.0, point_rate=100.0, viscous=[2.0])
    assert plan.series.base_frequency == 1.0
    assert np.all(np.ptp(plan.trajectory.position, axis=0) > 0.01)
    held = planned(**FLEXIBLE, base_frequency=1.0, point_rate=100.0, held=[0.2, math.nan, -0.3])
    np.testing.assert_allclose(np.ptp(held.trajectory.position, axis=0)[[0, 2]], 0.0, atol=1e-9)
    assert held.trajectory.position[0, 0] == pytest.approx(0.2)
    with pytest.raises(DynidError, match=r"harmonics is .* Hz; with point_rate 10 it may be 1 Hz"):
        design(**SERIES | FLEXIBLE | {"base_frequency": math.nan, "point_rate": 10.0}).experiment()
    with pytest.raises(DynidError, match="motor_inertia of the joints is not known"):
        design(**FLEXIBLE | {"motor_inertia": [math.nan]}).experiment()
    with pytest.raises(DynidError, match="stiffness"):
        design(**FLEXIBLE | {"stiffness": [1e4, 1e4]}).experiment()
    with pytest.raises(DynidError, match=r"nowhere\.yaml"):
        design(**FLEXIBLE, flexible_file=str(tmp_path / "nowhere.yaml")).experiment()
    with pytest.raises(DynidError, match="target is 'links'; motion flexible has none"):
        design(**FLEXIBLE, target="links").experiment()


def safety(links=("", "", ""), **given):
    """Of the planar arm with `links` shaped as given."""
    urdf = planar_arm.urdf()
    for number, shape in enumerate(links, start=1):
        start = urdf.index(f'<link name="link_{number}">')
        end = urdf.index("</link>", start)
        urdf = urdf[:end] + (shape or "</link>") + urdf[end + len("</link>") :]
    settings = {parameter.name: parameter.default for parameter in PARAMETERS}
    settings |= {
        "robot_description": urdf,
        "acceleration_limits": [12.0],
        "floor_height": 0.1,
        "clearance": 0.1,
    } | given
    return Safety(RobotModel.from_urdf(urdf), SimpleNamespace(**settings))


def rest(pose):
    return move(planar_arm.JOINTS, pose, pose, 1.0)


def test_links_are_what_their_shapes_occupy():
    # The tip of link_3, 0.4 m beyond its origin, is under the floor; lines end at the origin.
    low = [0.0, 0.2, 0.6]
    safety().check(rest(low))
    with pytest.raises(TrajectoryError, match="'link_3' would be at height"):
        safety([CYLINDER] * 3).check(rest(low))
    safety([CYLINDER] * 3, link_shapes="none").check(rest(low))


def test_limits_of_a_file_stand_in_for_parameters_that_are_nan(tmp_path):
    path = tmp_path / "joint_limits.yaml"
    path.write_text("joint_limits: {joint_2: {max_acceleration: 3.0, max_velocity: 1.5}}")
    given = {"joint_limits_file": str(path), "acceleration_limits": [4.0, np.nan, 5.0]}
    limits = safety(**given).limits
    np.testing.assert_allclose(limits.acceleration, [4.0, 3.0, 5.0])
    np.testing.assert_allclose(limits.velocity, [3.0, 1.5, 3.0])
    path.write_text("joint_limits: {elbow: {max_acceleration: 3.0}}")
    with pytest.raises(TrajectoryError, match=r"joint_limits\.yaml.*elbow"):
        safety(**given)


@pytest.mark.parametrize("shapes", ["available", "required"])
def test_a_mesh_that_is_not_found(shapes):
    links = [CYLINDER, CYLINDER, MESH]
    if shapes == "required":
        with pytest.raises(DynidError, match=r"arm\.stl.* \(parameters mesh_directories, link_shapes\)"):
            safety(links, link_shapes=shapes)
        return
    found = safety(links, link_shapes=shapes, clearance=0.0)
    assert "package://nowhere/arm.stl" in found.warnings[0]
    assert "these are lines; leave room for their thickness" in found.warnings[1]
    assert "link_3" in found.warnings[1]
    assert "link_2" not in found.warnings[1]
    found.check(rest([0.0, 0.2, 0.6]))


def test_links_without_shape_are_told_of():
    assert safety().warnings == ("no link has a shape that is known: links are lines; leave room for their thickness",)
    assert safety(link_shapes="none").warnings[0].startswith("link_shapes is none")


def test_box_and_obstacles_are_kept_to(tmp_path):
    boxes = tmp_path / "boxes.yaml"
    boxes.write_text("[{name: crate, size: [0.2, 0.2, 0.2], position: [0.35, 0.15, 0.5]}]")
    safety().check(rest(REST))
    with pytest.raises(TrajectoryError, match="crate"):
        safety(obstacles_file=str(boxes)).check(rest(REST))
    with pytest.raises(TrajectoryError, match=r"beyond upper side 0\.2 m of the box"):
        safety(box_upper=[0.2, np.inf, np.inf]).check(rest(REST))
    with pytest.raises(DynidError, match="corners"):
        safety(box_upper=[0.2])


def test_clearance_is_kept_from_obstacles(tmp_path):
    boxes = tmp_path / "boxes.yaml"
    boxes.write_text("[{name: crate, size: [0.2, 0.2, 0.2], position: [0.35, -0.4, 0.5]}]")
    pose = rest([0.0, 0.0, 0.0])
    for clearance, allowed in ((0.2, True), (0.3, False)):
        near = safety(["", CYLINDER, ""], obstacles_file=str(boxes), clearance=clearance)
        if allowed:
            near.check(pose)
            continue
        with pytest.raises(TrajectoryError, match=r"within 0\.2\d\d m of obstacle 'crate'.*; clearance is 0\.3 m"):
            near.check(pose)


def test_torque_is_checked_where_the_description_has_masses():
    with pytest.raises(TrajectoryError, match="joint 'joint_2' would need"):
        safety(torque_limits=[50.0, 5.0, 50.0]).check(rest([0.0, 0.0, 0.0]))
    massless = planar_arm.urdf()
    for mass in planar_arm.MASS:
        massless = massless.replace(f'<mass value="{mass}"/>', '<mass value="0"/>')
    settings = {parameter.name: parameter.default for parameter in PARAMETERS}
    settings |= {"robot_description": massless, "acceleration_limits": [12.0]}
    found = Safety(RobotModel.from_urdf(massless), SimpleNamespace(**settings))
    found.check(rest(REST))
    assert found.warnings[-1] == (
        "torques are not checked of joint_1, joint_2, joint_3: the robot's description has no mass there"
    )


def test_a_start_that_is_not_allowed_is_told_apart():
    with pytest.raises(TrajectoryError, match="the arm cannot start from where it is: 'link_3' would be at height"):
        safety().check_start(np.array([0.4, 0.9, 0.2]))
    safety().check_start(np.array(REST))
