"""Test external torques by the momentum observer with friction, loads, driver filters and uncertainty."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.known_arm import ALL_TERMS, BANDWIDTH, BASIC_TERMS, RATE, build_model, make_motion
from planar_arm import urdf as planar_urdf

from dynid_ros.control.external_torque import MAX_GAP_S, MomentumObserver, TorqueUncertainty
from dynid_ros.errors import ControlError
from dynid_ros.identified.links import KnownArm, LinkModel
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import transformed
from dynid_ros.signals.driver_filter import DriverFilter


def external_step(time: np.ndarray, n: int) -> np.ndarray:
    """Return the external torque (N, n): 5 N m on joint 2 from 1 s on."""
    return 5.0 * np.outer(time >= 1.0, np.arange(n) == 1)


def run_observer(observer: MomentumObserver, time, q, qd, torque) -> np.ndarray:
    velocities = [None] * len(time) if qd is None else qd.tolist()
    samples = zip(time, q.tolist(), velocities, torque.tolist(), strict=True)
    return np.array([observer.update(*sample) for sample in samples])


@pytest.mark.parametrize("friction", [BASIC_TERMS, ALL_TERMS])
@pytest.mark.parametrize("measured", [True, False])
def test_residual_is_the_low_passed_external_torque(friction, measured):
    robot = RobotModel.from_urdf(planar_urdf())
    model = build_model(robot, friction)
    time, q, qd, qdd = make_motion(3)
    external = external_step(time, 3)
    torque = model.predict(q, qd, qdd) - external
    residual = run_observer(MomentumObserver(model, BANDWIDTH), time, q, qd if measured else None, torque)
    # The step, half a sample earlier or later, is low-passed: 1 - exp(-t bandwidth).
    expected = 5.0 * (1.0 - np.exp(-BANDWIDTH * np.maximum(time + (0.5 if measured else -0.5) / RATE - 1.0, 0.0)))
    # Gear friction depends on the push; the direction of friction is known after its first displacement.
    settled = time > 0.5
    error = 0.6 if friction is ALL_TERMS else 0.15
    assert np.abs(residual[settled, 1] - expected[settled]).max() < error
    assert np.abs(residual[settled][:, [0, 2]]).max() < error
    assert residual[np.searchsorted(time, 1.0 + np.log(2.0) / BANDWIDTH), 1] == pytest.approx(2.5, abs=0.2)


@pytest.mark.parametrize("driver", [DriverFilter(3.0, order=2), DriverFilter(6.0, delay=0.03)])
def test_driver_filter_causes_no_external_torque(driver):
    robot = RobotModel.from_urdf(planar_urdf())
    plain = build_model(robot)
    time, q, qd, qdd = make_motion(3)
    torque = driver.filter(plain.predict(q, qd, qdd), RATE)
    model = replace(plain, signals=replace(plain.signals, driver=driver))
    settled = time > 0.5
    assert np.abs(run_observer(MomentumObserver(plain), time, q, qd, torque)[settled]).max() > 1.0
    assert np.abs(run_observer(MomentumObserver(model), time, q, qd, torque)[settled]).max() < 0.15
    external = driver.filter(external_step(time, 3), RATE)
    pushed = run_observer(MomentumObserver(model), time, q, qd, torque - external)
    assert pushed[-1, 1] == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize("tip", ["link_3", "flange"])
def test_carried_load_is_subtracted(tip):
    flange = """<link name="flange"/><joint name="fixed" type="fixed"><parent link="link_3"/><child link="flange"/>
        <origin xyz="0.2 0.1 0" rpy="0.3 0.5 0"/></joint></robot>"""
    robot = RobotModel.from_urdf(planar_urdf().replace("</robot>", flange), tip=tip)
    load = np.array([1.5, 0.1, 0.0, 0.3, 0.05, 0.0, 0.0, 0.06, 0.0, 0.03])
    model = build_model(robot)
    loaded = robot.parameters.copy()
    loaded[robot.tip_columns] += transformed(load, robot.tip_offset)
    carrying = LinkModel(robot, loaded, model.friction, model.coefficients, model.signals)
    time, q, qd, qdd = make_motion(3)
    observer = MomentumObserver(model)
    without = run_observer(observer, time, q, qd, carrying.predict(q, qd, qdd))
    observer.carry(load)
    subtracted = run_observer(observer, time, q, qd, carrying.predict(q, qd, qdd))
    assert np.abs(without[250:]).max() > 1.0
    assert np.abs(subtracted[250:]).max() < 0.03


def test_encoder_noise_does_not_release_friction_at_standstill():
    robot = RobotModel.from_urdf(planar_urdf())
    model = build_model(robot, JointFriction(sliding_length=1e-3, viscous=False))
    time = np.arange(0.0, 2.0, 1 / RATE)
    displacement = np.minimum(time, 0.5)[:, None] * np.ones(3)
    speed = (time < 0.5)[:, None] * np.ones(3)
    torque = model.predict(displacement, speed, np.zeros_like(displacement))
    noise = np.random.default_rng(0).normal(0, 1e-5, displacement.shape)
    residual = run_observer(MomentumObserver(model), time, displacement + noise, speed, torque)
    assert np.abs(residual[time > 1.0]).max() < 0.1 * model.coefficients.max()


def test_observer_restarts_after_a_gap_and_refuses_earlier_times():
    robot = RobotModel.from_urdf(planar_urdf())
    observer = MomentumObserver(build_model(robot))
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
def test_invalid_bandwidth_is_refused(bandwidth):
    with pytest.raises(ControlError, match="bandwidth is"):
        MomentumObserver(build_model(RobotModel.from_urdf(planar_urdf())), bandwidth)


def test_uncertainty_agrees_with_parameters_drawn_from_covariance():
    robot = RobotModel.from_urdf(planar_urdf())
    model = build_model(robot)
    rng = np.random.default_rng(2)
    exact_arm = KnownArm(model)
    size = exact_arm.decided_columns.size
    root = 0.002 * rng.normal(size=(size, size))
    shifts = 0.3 * rng.normal(size=(3, size))
    arm = KnownArm(model, root @ root.T, shifts)
    _, *moving = make_motion(3)
    q, qd, qdd = (series[::250] for series in moving)
    torque = rng.normal(size=q.shape)
    std = TorqueUncertainty(arm, [0.1, 0.2, 0.3], 0.1).std(q, qd, qdd, torque)
    columns = np.concatenate([robot.torque_regressor(q, qd, qdd), model.friction.of_motion(robot, q, qd, qdd)], axis=2)
    columns = columns[..., exact_arm.terms]
    gains = 0.1 * rng.normal(size=(20000, 3))
    errors = rng.normal(size=(20000, size)) @ root.T + gains @ shifts
    drawn = np.einsum("ijk,rk->rij", columns, errors) - gains[:, None] * torque
    expected = np.sqrt(drawn.var(axis=0) + np.square([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(std, expected, rtol=0.03)
