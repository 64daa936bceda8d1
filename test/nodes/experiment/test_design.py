import math
import re
from types import SimpleNamespace

import numpy as np
import planar_arm
import pytest

pytest.importorskip("rclpy")

from dynid_ros.errors import DynidError
from dynid_ros.excitation.fourier_excitation import FourierPlan
from dynid_ros.model import RobotModel
from dynid_ros.nodes.experiment.design import PARAMETERS, Design, controller_joints
from dynid_ros.nodes.experiment.safety import Safety
from dynid_ros.recording import Recording

ROBOT = RobotModel.from_urdf(planar_arm.urdf())
SERIES = {"motion": "fourier", "base_frequency": 0.2, "harmonics": 3, "design_time": 0.0, "workers": 1}


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
