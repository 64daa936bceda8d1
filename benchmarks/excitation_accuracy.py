"""Benefit of a designed motion: links identified from it, compared with links identified from a random motion.

    python -m benchmarks.excitation_accuracy [--repetitions 20] [--starts 2] [--jobs 1]

The demo arm is designed for and identified with a URDF that is up to a fifth off. Every repetition draws other friction
(more than Coulomb, viscous and offset terms describe), other noise of torques and encoders, as in
`benchmarks.link_coverage`, and other motions; all motions of a repetition meet the same friction and noise. MuJoCo
computes the torques. All motions take 20 s, two periods of 5 harmonics of 0.1 Hz, and respect the same limits and
workspace. The random motion is the first feasible one of its seed, with amplitudes as large as the limits allow.
"best of 10" is the one of ten such motions with the smallest condition number; the others are designed.

Errors are evaluated on ten other random motions in the same workspace, for estimates from the data alone, without the
regularization towards the URDF. Each is relative to the RMS torque of MuJoCo's links on these motions.

parameters: error of each base parameter, expressed as a torque, RMS over the parameters
std errors: standard errors of the same, as reported by the identification; an undetermined parameter counts as zero
with infinite standard error
link torque: torque of links and rotors together, RMS over the joints
torque: torque with friction and offset, as the drives measure it

"ratio" is the median over the repetitions, with the interval of the sign test for the median (95 % or more), the number
of repetitions in which the first motion was better, and the two-sided probability of that count if both were equal.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np
from scipy.stats import binom, binomtest
from tqdm import tqdm

from dynid_ros.collision import Bodies
from dynid_ros.excitation import FourierExcitation
from dynid_ros.identification import LinkIdentification, LinkResult
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording
from dynid_ros.simulation import Drives, SimulatedArm, demo_arm_urdf, misjudged_urdf
from dynid_ros.trajectories import MotionLimits, Trajectory, Workspace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from coverage_experiments import ENCODER, ENCODER_STEP, NOISE, Experiment, coloured_noise, friction

ROTOR_INERTIAS = np.array([0.8, 0.8, 0.4, 0.04, 0.04, 0.02])
MAX_ACCELERATIONS = np.array([5.0, 5.0, 8.0, 12.0, 12.0, 15.0])
FRICTION = JointFriction(offset=True, rotor_inertia=True, smoothing=0.02)
URDF_ERROR = 0.2
SAMPLE_RATE_HZ = 250.0
NOISE_CORRELATION_S = 0.05
FRICTION_MISMATCH = 1.0
MAX_RELATIVE_OFFSET = 0.05
TEST_MOTIONS = 10
TEST_STEP_S = 0.04
RANDOM = "random"
DESIGNS: dict[str, dict[str, Any]] = {
    RANDOM: {"design_time": 0.0, "candidates": 1},
    "best of 10": {"design_time": 0.0, "candidates": 10, "criterion": "condition"},
    "condition": {"criterion": "condition"},
    "determinant": {"criterion": "determinant"},
}
"""Settings of each kind of motion."""


@dataclass(frozen=True)
class Errors:
    """Errors of one identification, relative to the RMS torque of the test motions (see the module's docstring)."""

    parameters: float
    standard_errors: float
    link_torque: float
    torque: float


LABELS = ("parameters", "std errors", "link torque", "torque")


class Bench:
    """The true arm, the robot model of its inaccurate URDF, and test motions."""

    def __init__(self, starts: int) -> None:
        true = RobotModel.from_urdf(demo_arm_urdf())
        self.starts = starts
        self.truth = SimulatedArm(true, drives=Drives(0.0, 0.0, ROTOR_INERTIAS)).truth
        self.robot = RobotModel.from_urdf(misjudged_urdf(true, URDF_ERROR, np.random.default_rng(0)))
        self.limits = MotionLimits.of(self.robot, MAX_ACCELERATIONS)
        self.workspace = Workspace(self.robot, 0.0, 0.05, Bodies.of(self.robot))
        self.size = np.ones(true.n_joints)  # random motions do not depend on it
        motions = [
            self.motion(RANDOM, 1000 + seed).at(np.arange(0.0, 10.0, TEST_STEP_S)) for seed in range(TEST_MOTIONS)
        ]
        self.unseen = tuple(np.concatenate(parts) for parts in zip(*motions, strict=True))
        self.links = self.truth.drive_torque(*self.unseen)
        self.rms = np.sqrt(np.mean(self.links**2, axis=0))
        largest = np.abs(self.links).max(axis=0)
        self.size = np.maximum(largest, 0.05 * largest.max())

    def motion(self, design: str, seed: int) -> Trajectory:
        """Return a motion of two periods."""
        settings = {"starts": self.starts, "design_time": 600.0} | DESIGNS[design]
        experiment = FourierExcitation(
            self.robot,
            self.limits,
            self.workspace,
            base_frequency=0.1,
            harmonics=5,
            periods=2,
            workers=1,
            seed=seed,
            speed_fraction=0.8,
            noise=1.0,
            **settings,
        )
        return experiment.plan().trajectory

    def experiment(self, motion: Trajectory, seed: int) -> Experiment:
        """Return a recording of a motion; friction and noise depend on the seed only."""
        time = np.arange(0.0, motion.duration, 1 / SAMPLE_RATE_HZ)
        q, qd, qdd = motion.at(time)
        rng = np.random.default_rng([seed, 1])
        torque = self.drive(q, qd, self.truth.drive_torque(q, qd, qdd), seed)
        torque += (
            self.size
            * rng.uniform(*NOISE, len(self.size))
            * coloured_noise(q.shape, NOISE_CORRELATION_S * SAMPLE_RATE_HZ, rng)
        )
        measured = np.round((q + rng.normal(0, ENCODER, q.shape)) / ENCODER_STEP) * ENCODER_STEP
        unknown = np.full_like(q, np.nan)
        recording = Recording(self.robot.joint_names, time, measured, unknown, torque, source=f"repetition {seed}")
        return Experiment(self.robot, recording, self.truth.parameters, ROTOR_INERTIAS)

    def drive(self, q: np.ndarray, qd: np.ndarray, links: np.ndarray, seed: int) -> np.ndarray:
        """Return the torque (N, n) with the friction and the offset of a repetition."""
        rng = np.random.default_rng([seed, 2])
        offset = self.size * rng.uniform(-MAX_RELATIVE_OFFSET, MAX_RELATIVE_OFFSET, len(self.size))
        return links + friction(q, qd, links, self.size, FRICTION_MISMATCH, rng) + offset

    def errors(self, design: str, seed: int) -> Errors:
        """Return the errors of an identification from one motion."""
        experiment = self.experiment(self.motion(design, seed), seed)
        identification = LinkIdentification(self.robot, friction=FRICTION, estimator="weighted", torque_gain_error=0.0)
        return self.compare(identification.fit(experiment.recording), experiment, seed)

    def compare(self, result: LinkResult, experiment: Experiment, seed: int) -> Errors:
        """Return the errors of the estimates."""
        q, qd, qdd = self.unseen
        estimate, truth = result.base_parameters, experiment.truth(result.base)
        finite = np.isfinite(truth)
        rows = np.concatenate([self.robot.torque_regressor(*self.unseen), result.friction.regressor(qd, qdd)], axis=-1)
        rows = rows[..., result.base.columns[finite]] / self.rms[:, None]
        determined = np.isfinite(estimate.values[finite])
        error = np.where(determined, estimate.values[finite], 0.0) - truth[finite]
        deviation = np.where(determined, estimate.standard_errors[finite], np.inf)
        weight = np.sqrt(np.mean(rows**2, axis=(0, 1)))
        torque = result.predict(*self.unseen) - self.drive(q, qd, self.links, seed)
        return Errors(
            parameters=_rms(weight * error),
            standard_errors=_rms(weight * deviation),
            link_torque=_rms(rows @ error),
            torque=_rms(torque / self.rms),
        )


def compare_designs(starts: int, designs: tuple[str, ...], seed: int) -> np.ndarray:
    """Return the errors (D, 4) of the motions of a repetition."""
    return np.array([astuple(_bench(starts).errors(design, seed)) for design in designs])


@cache
def _bench(starts: int) -> Bench:
    return Bench(starts)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def report(designs: tuple[str, ...], errors: np.ndarray) -> None:
    """Print the medians of errors (R, D, 4), and the ratios between designs."""
    print(f"{'median of ' + str(len(errors)):<22}" + "".join(f"{label:>14}" for label in LABELS))
    for number, design in enumerate(designs):
        print(f"{design:<22}" + "".join(f"{value:>14.2%}" for value in np.median(errors[:, number], axis=0)))
    compared = [(design, RANDOM) for design in designs[1:]]
    if {"determinant", "condition"} <= set(designs):
        compared.append(("determinant", "condition"))
    for design, other in compared:
        print(f"{design} over {other}:")
        ratios = np.sort(errors[:, designs.index(design)] / errors[:, designs.index(other)], axis=0)
        for label, column in zip(LABELS, ratios.T, strict=True):
            better = int(np.sum(column < 1))
            low, high = median_interval(column)
            chance = binomtest(better, len(column)).pvalue
            print(
                f"  {label:<12} ratio {np.median(column):.2f} ({low:.2f} to {high:.2f}), better in {better} of "
                f"{len(column)} (p = {chance:.2g})"
            )


def median_interval(ordered: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Return the order statistics of sorted values (R,) that enclose the median, by the sign test."""
    count = len(ordered)
    skipped = max(int(binom.ppf((1 - level) / 2, count, 0.5)) - 1, 0)
    return float(ordered[skipped]), float(ordered[count - 1 - skipped])


def main() -> None:
    """Print the errors and the ratios of designed to random motions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--starts", type=int, default=2, help="searches per designed motion")
    parser.add_argument("--jobs", type=int, default=1, help="parallel repetitions")
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS)[1:], default=list(DESIGNS)[1:])
    options = parser.parse_args()
    designs = (RANDOM, *options.designs)
    run = partial(compare_designs, options.starts, designs)
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        seeds = range(options.repetitions)
        errors = [*tqdm(pool.map(run, seeds), total=options.repetitions, disable=None)]
    report(designs, np.array(errors))


if __name__ == "__main__":
    main()
