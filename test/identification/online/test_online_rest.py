"""Load estimates at rest: stiction carries any torque up to its size, and is constant."""

import numpy as np
import pytest
from online_experiment import COULOMB, ENCODER, NOISE, Motion, block, identified_model, mujoco_torque

from dynid_ros.estimation.recursive_least_squares import EstimateWalk
from dynid_ros.identification import OnlineIdentification
from dynid_ros.model import RobotModel
from dynid_ros.simulation.descriptions import demo_arm_urdf

RATE_HZ = 100.0
DURATION_S = 20.0
MASS_KG = 2.0


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.from_urdf(demo_arm_urdf())


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_interval_at_rest_does_not_exclude_the_truth(robot, seed):
    rng = np.random.default_rng(seed)
    pose = rng.uniform(np.maximum(robot.limits.lower, -1.5), np.minimum(robot.limits.upper, 1.5))
    time = np.arange(0, DURATION_S, 1 / RATE_HZ)
    still = np.zeros((len(time), robot.n_joints))
    effort = robot.limits.effort
    torque = mujoco_torque(robot, Motion(time, pose + still, still, still), [(0.0, block(MASS_KG))])
    torque += COULOMB * effort * rng.uniform(-1, 1, robot.n_joints)
    torque += NOISE * effort * rng.standard_normal(torque.shape)
    position = pose + rng.normal(0, ENCODER, still.shape)
    online = OnlineIdentification(robot, "load", identified_model(robot), noise=NOISE * effort)
    for sample in zip(time, position, torque, strict=True):
        online.sample(*sample)
    low, high = online.estimate().load().confidence_intervals()[0]
    assert np.isnan(low) or low < MASS_KG < high


def test_innovations_of_a_resting_joint_do_not_count_as_motion(robot, monkeypatch):
    """The spread of such blocks is infinite, so that they do not count in the walk of the estimate."""
    spreads = []
    monkeypatch.setattr(EstimateWalk, "add", lambda self, innovation: spreads.append(innovation.spread))
    online = OnlineIdentification(robot, "load", identified_model(robot), noise=NOISE * robot.limits.effort)
    for time in np.arange(0.0, 3.0, 1 / RATE_HZ):
        q = np.full(robot.n_joints, 0.4)
        q[1] += 0.5 * np.sin(2.0 * time)
        online.sample(time, q, robot.gravity_torque(q))
    spread = np.array(spreads[len(spreads) // 3 :])
    assert np.isinf(np.delete(spread, 1, axis=1)).all()
    assert np.isfinite(spread[:, 1]).mean() > 0.8
