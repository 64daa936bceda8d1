import numpy as np
import pytest
from random_chains import TIP, random_urdf

from dynid_ros.errors import ModelError
from dynid_ros.model import RobotModel
from dynid_ros.model.inertia import central_moments, is_possible
from dynid_ros.simulation import misjudged_urdf


@pytest.mark.parametrize("seed", range(5))
def test_links_are_wrong_but_possible_and_joints_are_right(demo_robot, seed):
    wrong = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.2, np.random.default_rng(seed)))
    assert wrong.kinematics_sha256 == demo_robot.kinematics_sha256
    assert wrong.urdf_sha256 != demo_robot.urdf_sha256
    np.testing.assert_array_equal(wrong.limits.effort, demo_robot.limits.effort)
    links, true = (robot.parameters.reshape(-1, 10) for robot in (wrong, demo_robot))
    assert np.all(is_possible(links))
    factor = links[:, 0] / true[:, 0]
    assert np.all(np.abs(np.log(factor)) <= 0.2 + 1e-9)
    extent = np.sqrt(np.linalg.eigvalsh(central_moments(true) / true[:, :1, np.newaxis])[:, -1])
    moved = np.linalg.norm(links[:, 1:4] / links[:, :1] - true[:, 1:4] / true[:, :1], axis=1)
    assert np.all(moved <= 0.2 * np.sqrt(3) * extent)
    assert np.all(moved > 0)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 200, 6))
    torque, own = demo_robot.inverse_dynamics(q, qd, qdd), wrong.inverse_dynamics(q, qd, qdd)
    relative = np.sqrt(np.mean((own - torque) ** 2, axis=0) / np.mean(torque**2, axis=0))
    assert relative.max() > 0.05


def test_without_error_it_is_the_truth(demo_robot):
    same = RobotModel.from_urdf(misjudged_urdf(demo_robot, 0.0, np.random.default_rng(0)))
    np.testing.assert_allclose(same.parameters, demo_robot.parameters, rtol=1e-9, atol=1e-12)


def test_link_without_mass_is_named():
    massless = next(
        robot for seed in range(100) if not np.all(is_possible((robot := _random(seed)).parameters.reshape(-1, 10)))
    )
    with pytest.raises(ModelError, match=r"no real body has the inertia of link\(s\)"):
        misjudged_urdf(massless, 0.1, np.random.default_rng(0))


def _random(seed):
    return RobotModel.from_urdf(random_urdf(np.random.default_rng(seed), 3), tip=TIP)
