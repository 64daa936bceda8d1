"""External torques by the momentum observer: exact without errors, whatever the velocity, friction and load."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.known_arm import ALL, BANDWIDTH, PLAIN, RATE, model_of, motion
from planar_arm import urdf as planar_urdf

from dynid_ros.control.external_torque import MAX_GAP_S, MomentumObserver, TorqueUncertainty
from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import transformed
from dynid_ros.signals.driver_filter import DriverFilter


def push(time: np.ndarray, n: int) -> np.ndarray:
    """(N, n) torque from outside: 5 N m on the second joint from 1 s on."""
    return 5.0 * np.outer(time >= 1.0, np.arange(n) == 1)


def run(observer: MomentumObserver, time, q, qd, torque) -> np.ndarray:
    velocities = [None] * len(time) if qd is None else qd.tolist()
    return np.array(
        [observer.update(*each) for each in zip(time, q.tolist(), velocities, torque.tolist(), strict=True)]
    )


@pytest.mark.parametrize("friction", [PLAIN, ALL])
@pytest.mark.parametrize("measured", [True, False])
def test_the_residual_is_the_external_torque_through_a_low_pass(friction, measured):
    robot = RobotModel.from_urdf(planar_urdf())
    model = model_of(robot, friction)
    time, q, qd, qdd = motion(3)
    external = push(time, 3)
    torque = model.predict(q, qd, qdd) - external
    residual = run(MomentumObserver(model, BANDWIDTH), time, q, qd if measured else None, torque)
    # Of the step, which was half a sample before (or after), 1 - exp(-t bandwidth) has passed.
    wanted = 5.0 * (1.0 - np.exp(-BANDWIDTH * np.maximum(time + (0.5 if measured else -0.5) / RATE - 1.0, 0.0)))
    # Gears feel the push; the sense of friction with a memory is known after its first bend.
    settled = time > 0.5
    error = 0.6 if friction is ALL else 0.15
    assert np.abs(residual[settled, 1] - wanted[settled]).max() < error
    assert np.abs(residual[settled][:, [0, 2]]).max() < error
    assert residual[np.searchsorted(time, 1.0 + np.log(2.0) / BANDWIDTH), 1] == pytest.approx(2.5, abs=0.2)


@pytest.mark.parametrize("driver", [DriverFilter(3.0, order=2), DriverFilter(6.0, delay=0.03)])
def test_what_the_driver_did_to_the_torque_is_no_external_torque(driver):
    robot = RobotModel.from_urdf(planar_urdf())
    plain = model_of(robot)
    time, q, qd, qdd = motion(3)
    torque = driver.filter(plain.predict(q, qd, qdd), RATE)
    model = replace(plain, signals=replace(plain.signals, driver=driver))
    settled = time > 0.5
    assert np.abs(run(MomentumObserver(plain), time, q, qd, torque)[settled]).max() > 1.0
    assert np.abs(run(MomentumObserver(model), time, q, qd, torque)[settled]).max() < 0.15
    external = driver.filter(push(time, 3), RATE)
    pushed = run(MomentumObserver(model), time, q, qd, torque - external)
    assert pushed[-1, 1] == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize("tip", ["link_3", "flange"])
def test_a_load_counts_from_when_it_is_carried(tip):
    flange = """<link name="flange"/><joint name="fixed" type="fixed"><parent link="link_3"/><child link="flange"/>
        <origin xyz="0.2 0.1 0" rpy="0.3 0.5 0"/></joint></robot>"""
    robot = RobotModel.from_urdf(planar_urdf().replace("</robot>", flange), tip=tip)
    load = np.array([1.5, 0.1, 0.0, 0.3, 0.05, 0.0, 0.0, 0.06, 0.0, 0.03])
    model, time_of = model_of(robot), motion(3)
    loaded = robot.parameters.copy()
    loaded[robot.tip_columns] += transformed(load, robot.tip_offset)
    carrying = LinkModel(robot, loaded, model.friction, model.coefficients, model.signals)
    time, q, qd, qdd = time_of
    observer = MomentumObserver(model)
    without = run(observer, time, q, qd, carrying.predict(q, qd, qdd))
    observer.carry(load)
    counted = run(observer, time, q, qd, carrying.predict(q, qd, qdd))
    assert np.abs(without[250:]).max() > 1.0
    assert np.abs(counted[250:]).max() < 0.03


def test_encoder_noise_does_not_unbend_friction_of_a_joint_that_stands():
    robot = RobotModel.from_urdf(planar_urdf())
    model = model_of(robot, JointFriction(sliding_length=1e-3, viscous=False))
    time = np.arange(0.0, 2.0, 1 / RATE)
    way = np.minimum(time, 0.5)[:, None] * np.ones(3)
    speed = (time < 0.5)[:, None] * np.ones(3)
    torque = model.predict(way, speed, np.zeros_like(way))
    noise = np.random.default_rng(0).normal(0, 1e-5, way.shape)
    residual = run(MomentumObserver(model), time, way + noise, speed, torque)
    assert np.abs(residual[time > 1.0]).max() < 0.1 * model.coefficients.max()


def test_it_begins_anew_after_a_gap_and_refuses_time_that_goes_back():
    robot = RobotModel.from_urdf(planar_urdf())
    observer = MomentumObserver(model_of(robot))
    still = [0.0] * 3
    observer.update(0.0, still, still, [50.0] * 3)
    assert not any(observer.residual)
    observer.update(0.01, still, still, [50.0] * 3)
    assert any(observer.residual)
    with pytest.raises(ControlError, match="expected later ones"):
        observer.update(0.01, still, still, still)
    observer.update(0.02 + MAX_GAP_S, still, still, [50.0] * 3)
    assert not any(observer.residual)
    assert not observer.settled


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_that_is_none_is_refused(bandwidth):
    with pytest.raises(ControlError, match="bandwidth is"):
        MomentumObserver(model_of(RobotModel.from_urdf(planar_urdf())), bandwidth)


def test_uncertainty_is_that_of_parameters_drawn_from_their_covariance():
    robot = RobotModel.from_urdf(planar_urdf())
    model, rng = model_of(robot), np.random.default_rng(2)
    bare = KnownArm(model)
    size = bare.decided_columns.size
    root = 0.002 * rng.normal(size=(size, size))
    shifts = 0.3 * rng.normal(size=(3, size))
    arm = KnownArm(model, root @ root.T, shifts)
    _, *moving = motion(3)
    q, qd, qdd = (part[::250] for part in moving)
    torque = rng.normal(size=q.shape)
    found = TorqueUncertainty(arm, [0.1, 0.2, 0.3], 0.1).std(q, qd, qdd, torque)
    columns = np.concatenate([robot.torque_regressor(q, qd, qdd), model.friction.of_motion(robot, q, qd, qdd)], axis=2)
    columns = columns[..., bare.terms]
    gains = 0.1 * rng.normal(size=(20000, 3))
    errors = rng.normal(size=(20000, size)) @ root.T + gains @ shifts
    drawn = np.einsum("ijk,rk->rij", columns, errors) - gains[:, None] * torque
    wanted = np.sqrt(drawn.var(axis=0) + np.square([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(found, wanted, rtol=0.03)
