"""Coverage of the 95 % intervals of gravity moments, with friction outside the model.

    python -m benchmarks.gravity_coverage [--repetitions 24] [--seed 0] [--processes 2] [--arm humanoid --arm human]

The arms are those of package example-robot-data in `ARMS`; Pinocchio computes their gravity. Joints stick: while a
joint is held, its stiction carries any part of a change of its load, until it slips. Coulomb friction of 1 to 5 % of
the largest torque varies with the angle and the direction, grows with the load and scatters from motion to motion.

The motions turn joints one by one through 12 angles and back while the others are held, in one pose and in two (the
experiment of Ma and Hollerbach); do the same with every joint approached from a known side; visit 12 poses, each from
both sides; or visit 30 poses from arbitrary sides. Two more motions leave moments unobservable: the experiment in two
poses with one joint that never moves, and with one that turns through a tenth of its range.

"error" is the RMS error of the torque in new poses over all joints, in per cent of each joint's largest torque, median
over the runs. "worse" counts the runs in which the error of the global fit exceeds that of the recursion by more than a
tenth, among the runs in which both determine the same moments. The line "recursive" below each motion has the intervals
of the recursion.

Needs `pip install pin pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.gravity.gravity_result import GravityResult
from dynid_ros.model import RobotModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from pinocchio_arm import example_urdf
from sticking_arms import StickingArm, Way

ARMS = {
    "humanoid": ("simple_humanoid_description/urdf/simple_humanoid.urdf", "torso", "r_wrist"),
    "romeo leg": ("romeo_description/urdf/romeo_small.urdf", "body", "l_ankle"),
    "g1 leg": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "pelvis", "left_ankle_roll_link"),
    "human": ("human_description/robots/human.urdf", "left_clavicle", "left_hand"),
}
MOTIONS = (
    "one by one, 1 pose",
    "one by one, 2 poses",
    "from known sides, 1 pose",
    "12 poses, both sides",
    "30 poses",
    "one joint still",
    "one joint hardly turned",
)
SMALL_RANGE_FRACTION = 0.1
"""Fraction of its range through which the joint turns in the last motion."""


@dataclass(frozen=True)
class Sample:
    """Outcome of one experiment.

    Attributes:
        covered: (k,) whether each interval contains the true value; NaN without an interval.
        recursive: (k,) the corresponding values of the recursion; NaN where it refuses the data.
        half: (k,) half widths of the intervals, relative to the arm's largest moment.
        error: RMS errors of the torque in new poses by the global fit and by the recursion, %; NaN where undetermined.
        warned: whether a remark states that the two disagree.
    """

    covered: np.ndarray
    recursive: np.ndarray
    half: np.ndarray
    error: tuple[float, float]
    warned: bool


@cache
def sticking_arm(name: str) -> StickingArm:
    """Return one of `ARMS` with sticking joints."""
    path, base, tip = ARMS[name]
    return StickingArm(RobotModel.from_urdf(example_urdf(path), base=base, tip=tip))


def motion_of(arm: StickingArm, name: str, rng: np.random.Generator) -> Way:
    """Return the named motion through random poses."""
    if name in MOTIONS[:2]:
        return arm.one_by_one(arm.holds(1 + MOTIONS.index(name), rng))
    if name in MOTIONS[5:]:
        way = arm.one_by_one(arm.holds(2, rng))
        joint = rng.integers(1, arm.robot.n_joints)
        fraction = 0.0 if name == MOTIONS[5] else SMALL_RANGE_FRACTION
        center = arm.holds(1, rng)[0][joint]
        is_joint = np.arange(arm.robot.n_joints) == joint
        way.points = [np.where(is_joint, center + fraction * (point - center), point) for point in way.points]
        return way
    if name == MOTIONS[2]:
        return arm.approached(arm.holds(1, rng))
    return arm.both_sides(arm.holds(12, rng)) if name == MOTIONS[3] else arm.straight(arm.holds(30, rng))


def sample(name: str, way: str, seed: int) -> Sample | None:
    """Return the outcome of one experiment, or None if it was refused."""
    arm, rng = sticking_arm(name), np.random.default_rng([seed, MOTIONS.index(way), list(ARMS).index(name)])
    samples = arm.samples(motion_of(arm, way, rng), arm.friction(rng), rng)
    try:
        result = GravityIdentification(arm.robot, torque_gain_error=0.0).fit_samples(samples)
    except IdentificationError as error:
        print(f"{name}, {way}, seed {seed}: {error}", file=sys.stderr)
        return None
    low, high = result.confidence_intervals().T
    covered = _covered(result, arm)
    fresh = rng.uniform(*arm.reach, (40, arm.robot.n_joints))
    truth = np.array([arm.pinocchio.gravity_torque(q) for q in fresh])
    errors = [_error(result.predict(fresh), truth, arm)]
    try:
        recursion = GravityIdentification(arm.robot, estimator="recursive", torque_gain_error=0.0).fit_samples(samples)
        recursive = _covered(recursion, arm)
        same_moments = np.array_equal(np.isfinite(result.parameters), np.isfinite(recursion.parameters))
        errors.append(_error(recursion.predict(fresh), truth, arm) if same_moments else np.nan)
    except IdentificationError:
        recursive = np.full(len(covered), np.nan)
        errors.append(np.nan)
    half = (high - low) / 2 / np.nanmax(np.abs(arm.truth))
    return Sample(
        covered, recursive, half, (errors[0], errors[1]), any("turning joints" in remark for remark in result.remarks)
    )


def _covered(result: GravityResult, arm: StickingArm) -> np.ndarray:
    low, high = result.confidence_intervals().T
    return np.where(np.isfinite(low), (low <= arm.truth) & (arm.truth <= high), np.nan)


def _error(predicted: np.ndarray, truth: np.ndarray, arm: StickingArm) -> float:
    return 100 * float(np.sqrt(np.nanmean(((predicted - truth) / arm.largest) ** 2)))


def row(name: str, samples: Sequence[Sample]) -> str:
    """Return a row of the global fit."""
    covered = np.array([one.covered for one in samples])
    half = np.array([one.half for one in samples])
    errors = np.array([one.error for one in samples])
    finite = np.isfinite(covered)
    in_both = np.isfinite(errors).all(axis=1)
    recursion = f"{np.median(errors[in_both, 1]):9.2f}" if in_both.any() else f"{'':>9}"
    return (
        f"{name:<36}{len(samples):>5}{finite.sum():>7}{np.mean(covered[finite]):>9.1%}{finite.mean():>8.0%}"
        f"{np.median(half[finite]):>11.2%}{np.nanmedian(errors[:, 0]):>9.2f}{recursion}"
        f"{np.sum(errors[in_both, 0] > 1.1 * errors[in_both, 1]):>5} of {in_both.sum():<4}"
        f"{sum(one.warned for one in samples):>5}"
    )


def coverage_row(name: str, covered: Sequence[np.ndarray]) -> str:
    """Return a row with the coverage of intervals."""
    values = np.concatenate(covered)
    finite = np.isfinite(values)
    return f"{name:<36}{len(covered):>5}{finite.sum():>7}{np.mean(values[finite]) if finite.any() else np.nan:>9.1%}"


def run(arms: Sequence[str], ways: Sequence[str], seeds: Sequence[int], processes: int = 1) -> dict:
    """Return the outcomes by arm and motion, and print them as they come."""
    print(
        f"{'':<36}{'runs':>5}{'known':>7}{'covered':>9}{'of all':>8}{'half/large':>11}{'error':>9}{'recurs.':>9}"
        f"{'worse':>11}{'warned':>7}",
        flush=True,
    )
    outcomes = {}
    with ProcessPoolExecutor(processes) as pool:
        for name in arms:
            for way in ways:
                samples = [one for one in pool.map(partial(sample, name, way), seeds) if one is not None]
                outcomes[name, way] = samples
                if samples:
                    print(row(f"{name}: {way}", samples), flush=True)
                    print(coverage_row("  recursive", [one.recursive for one in samples]), flush=True)
    return outcomes


def main() -> None:
    """Print a row for each arm and motion, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--arm", action="append", choices=tuple(ARMS), help="arm, may be repeated (default: all)")
    options = parser.parse_args()
    seeds = range(1000 * options.seed, 1000 * options.seed + options.repetitions)
    outcomes = run(options.arm or tuple(ARMS), MOTIONS, seeds, options.processes)
    for way in MOTIONS:
        samples = [one for (_, name), some in outcomes.items() for one in some if name == way]
        print(coverage_row(f"{way}, global", [one.covered for one in samples]))
        print(coverage_row(f"{way}, recursive", [one.recursive for one in samples]))
    all_samples = [one for samples in outcomes.values() for one in samples]
    print(coverage_row("all, global", [one.covered for one in all_samples]))
    print(coverage_row("all, recursive", [one.recursive for one in all_samples]))


if __name__ == "__main__":
    main()
