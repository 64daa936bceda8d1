"""Estimators of the papers on real robots, compared with weighted least squares; needs the real recordings."""

import os
from pathlib import Path

import numpy as np
import pytest

from dynid_ros.estimation.least_squares import fit_with_prior, triangular_factor
from dynid_ros.estimation.robust import solve_robust
from dynid_ros.identification.integral_equations import integral_blocks
from dynid_ros.identification.links.link_estimators import sequential
from dynid_ros.model import FrictionModel, JointFriction, RobotModel
from dynid_ros.model.base_parameters import parameter_names
from dynid_ros.signals import LowPass, central_differences, filtered_motion, resample, sample_times

pytestmark = pytest.mark.skipif("DYNID_DATA" not in os.environ, reason="no real recordings: DYNID_DATA is not set")
DATA = Path(os.environ.get("DYNID_DATA", ""))
UR10E_GAINS = np.array([11.976, 11.976, 9.839, 10.763, 10.763, 10.763])  # N m/A, from poses at rest
FRICTION = FrictionModel(JointFriction(offset=True))


class Arm:
    """A robot and two recordings as filtered regressors and torques; the second recording is held out."""

    def __init__(self, robot: RobotModel, files: list[Path], torque: str, gains, cutoff: float):
        self.robot = robot
        self.names = parameter_names(robot, FRICTION)
        self.uniform = []
        for file in files:
            data = np.load(file)
            time = sample_times(data["t"], data["q"]).time
            resampled = resample(time, np.hstack([data["q"], data[torque] * gains]))
            self.rate = resampled.rate
            longest = max(resampled.segments, key=lambda segment: len(segment.time)).values
            self.uniform.append(np.hsplit(longest, 2))
        self.blocks = [self.rows(q, tau, LowPass(cutoff, self.rate)) for q, tau in self.uniform]
        self.prior = np.zeros(len(self.names))
        self.prior[: robot.parameters.size] = robot.parameters

    def rows(self, q, torque, low_pass):
        motion = filtered_motion(q, low_pass)
        regressor = np.concatenate(
            [self.robot.torque_regressor(*motion), FRICTION.regressor(motion.velocity, motion.acceleration)], axis=-1
        )
        return low_pass.reduce(regressor), low_pass.reduce(torque)

    def factors(self, regressor, torque) -> list[np.ndarray]:
        return [
            triangular_factor([np.column_stack([regressor[:, j], torque[:, j]])]) for j in range(self.robot.n_joints)
        ]

    def weighted(self, factors) -> tuple[np.ndarray, np.ndarray]:
        """Return all equations, those of each joint divided by the residual of an ordinary fit."""
        stacked = np.concatenate(factors)
        ordinary = fit_with_prior(stacked[:, :-1], stacked[:, -1]).solution
        scaled = [factor / np.linalg.norm(factor @ np.append(ordinary, -1.0)) for factor in factors]
        return np.concatenate(scaled)[:, :-1], np.concatenate(scaled)[:, -1]

    def error(self, solution) -> np.ndarray:
        """Return the relative RMS error (n,) of the torque of the held-out recording."""
        regressor, torque = self.blocks[1]
        return np.linalg.norm(torque - regressor @ solution, axis=0) / np.linalg.norm(torque, axis=0)


@pytest.fixture(name="kuka", scope="module")
def fixture_kuka():
    folder = DATA / "kuka_lwr4"
    robot = RobotModel.from_urdf(folder / "kuka_lwr4.urdf", tip="lwr_7_link")
    return Arm(robot, [folder / f"develop/measurements_{i}.npz" for i in (1, 2)], "torque", 1.0, 10.0)


@pytest.fixture(name="ur10e", scope="module")
def fixture_ur10e():
    folder = DATA / "ur10e"
    robot = RobotModel.from_urdf(folder / "ur10e.urdf", base="base_link", tip="wrist_3_link")
    files = [folder / f"develop/{name}.npz" for name in ("20_02_19_14harm50sec", "20_02_10-30sec_12harm")]
    return Arm(robot, files, "current", UR10E_GAINS, 8.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuka", "ur10e"])
def test_regularized_and_robust_fits_are_as_accurate(name, request):
    arm = request.getfixturevalue(name)
    R, z = arm.weighted(arm.factors(*arm.blocks[0]))
    weighted = fit_with_prior(R, z)
    assert weighted.rank == arm.robot.base_parameters(FRICTION).rank
    assert weighted.condition_number < 200
    expected = arm.error(weighted.solution).mean()
    assert expected < 0.22
    weight = 1e-2 * weighted.singular_values[weighted.rank - 1] ** 2
    assert arm.error(fit_with_prior(R, z, arm.prior, weight=weight).solution).mean() == pytest.approx(
        expected, rel=0.01
    )
    robust = solve_robust(lambda: [arm.blocks[0]])
    assert robust.rank == weighted.rank
    assert arm.error(robust.solution).mean() == pytest.approx(expected, rel=0.08)


def test_sequential_fit_is_as_accurate_with_a_precise_wrist(ur10e):
    factors = ur10e.factors(*ur10e.blocks[0])
    fit = sequential(factors, ur10e.names, [len(ur10e.blocks[0][1])] * 6)
    together = fit_with_prior(*ur10e.weighted(factors))
    assert fit.rank == together.rank
    assert ur10e.error(fit.solution).mean() == pytest.approx(ur10e.error(together.solution).mean(), rel=0.05)


def test_sequential_fit_propagates_errors_of_the_wrist(kuka):
    """Wrong estimates of weakly determined combinations of the wrist ruin joint 1, which the residual shows."""
    factors = kuka.factors(*kuka.blocks[0])
    counts = [len(kuka.blocks[0][1])] * 7
    fit = sequential(factors, kuka.names, counts)
    assert kuka.error(fit.solution)[0] > 3
    assert fit.noise[0] > 5


@pytest.mark.parametrize(("name", "worse"), [("kuka", 1.04), ("ur10e", 1.12)])
def test_integral_equations_are_nearly_as_accurate_as_filtered(name, worse, request):
    arm = request.getfixturevalue(name)
    q, torque = arm.uniform[0]
    qd, _ = central_differences(q, 1 / arm.rate)
    windows = integral_blocks(arm.robot, FRICTION, 1 / arm.rate, (q, qd), torque, window=0.1)
    integral = arm.factors(*map(np.concatenate, zip(*windows, strict=True)))
    errors = [
        arm.error(fit_with_prior(*arm.weighted(factors)).solution).mean()
        for factors in (arm.factors(*arm.blocks[0]), integral)
    ]
    assert errors[1] < worse * errors[0]
