"""How often 95 % intervals of gravity moments hold the truth, where friction is more than the model has.

    python -m benchmarks.gravity_coverage [--repetitions 24] [--seed 0] [--processes 2] [--arm humanoid --arm human]

Two arms of package example-robot-data that serve nothing else here, their gravity by Pinocchio. Joints stick: while
one is held, its stiction takes any part of what its load changes by, until it slips. Coulomb friction of 1 to 5 % of
the largest torque ripples with the angle, differs by direction, grows with the load and scatters from motion to motion.

Two more conditions leave moments unobservable: the experiment in two poses with one joint that never moves, and with
one that turns through a tenth of its range. The chains "romeo leg" and "g1 leg" serve here alone.

Seven ways of moving: joints turned one by one through 12 angles there and back, the others held, in one pose and in two
(the experiment of Ma and Hollerbach); the same with every joint come to from a known side; 12 poses, each from both
sides; 30 poses from whatever side. "error" is that of the torque in fresh poses, RMS over all joints, in per cent of
each joint's largest torque, median over the runs; "worse" counts runs in which the global fit is further off than the
recursion, by more than a tenth, among those in which both know all moments that one of them knows. The line
"recursive" after each way has the intervals of the recursion.

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
WAYS = (
    "one by one, 1 pose",
    "one by one, 2 poses",
    "from known sides, 1 pose",
    "12 poses, both sides",
    "30 poses",
    "one joint still",
    "one joint hardly turned",
)
HARDLY = 0.1
"""Part of its range through which a joint turns that hardly turns."""


@dataclass(frozen=True)
class Sample:
    """Of one experiment.

    Attributes:
        covered: (k,) whether each interval holds the truth; NaN where there is none.
        recursive: (k,) the same of the recursion; NaN where it is refused.
        half: (k,) half intervals, in parts of the arm's largest moment.
        error: RMS of the torque in fresh poses by the global fit and by the recursion, %; NaN where it is not known.
        warned: whether the result says that both disagree.
    """

    covered: np.ndarray
    recursive: np.ndarray
    half: np.ndarray
    error: tuple[float, float]
    warned: bool


@cache
def sticking_arm(name: str) -> StickingArm:
    """One of `ARMS`."""
    path, base, tip = ARMS[name]
    return StickingArm(RobotModel.from_urdf(example_urdf(path), base=base, tip=tip))


def way_of(arm: StickingArm, name: str, rng: np.random.Generator) -> Way:
    """Motion of that name in random poses."""
    if name in WAYS[:2]:
        return arm.one_by_one(arm.holds(1 + WAYS.index(name), rng))
    if name in WAYS[5:]:
        way = arm.one_by_one(arm.holds(2, rng))
        joint, part = rng.integers(1, arm.robot.n_joints), 0.0 if name == WAYS[5] else HARDLY
        centre = arm.holds(1, rng)[0][joint]
        own = np.arange(arm.robot.n_joints) == joint
        way.points = [np.where(own, centre + part * (point - centre), point) for point in way.points]
        return way
    if name == WAYS[2]:
        return arm.approached(arm.holds(1, rng))
    return arm.both_sides(arm.holds(12, rng)) if name == WAYS[3] else arm.straight(arm.holds(30, rng))


def sample(name: str, way: str, seed: int) -> Sample | None:
    """One experiment; None if it was refused."""
    arm, rng = sticking_arm(name), np.random.default_rng([seed, WAYS.index(way), list(ARMS).index(name)])
    samples = arm.samples(way_of(arm, way, rng), arm.friction(rng), rng)
    try:
        found = GravityIdentification(arm.robot, torque_gain_error=0.0).fit_samples(samples)
    except IdentificationError as error:
        print(f"{name}, {way}, seed {seed}: {error}", file=sys.stderr)
        return None
    low, high = found.confidence_intervals().T
    covered = _covered(found, arm)
    fresh = rng.uniform(*arm.reach, (40, arm.robot.n_joints))
    truth = np.array([arm.pinocchio.gravity_torque(q) for q in fresh])
    errors = [_error(found.predict(fresh), truth, arm)]
    try:
        recursion = GravityIdentification(arm.robot, estimator="recursive", torque_gain_error=0.0).fit_samples(samples)
        recursive = _covered(recursion, arm)
        known = np.array_equal(np.isfinite(found.parameters), np.isfinite(recursion.parameters))
        errors.append(_error(recursion.predict(fresh), truth, arm) if known else np.nan)
    except IdentificationError:
        recursive = np.full(len(covered), np.nan)
        errors.append(np.nan)
    half = (high - low) / 2 / np.nanmax(np.abs(arm.truth))
    return Sample(
        covered, recursive, half, (errors[0], errors[1]), any("turning joints" in remark for remark in found.remarks)
    )


def _covered(result: GravityResult, arm: StickingArm) -> np.ndarray:
    low, high = result.confidence_intervals().T
    return np.where(np.isfinite(low), (low <= arm.truth) & (arm.truth <= high), np.nan)


def _error(predicted: np.ndarray, truth: np.ndarray, arm: StickingArm) -> float:
    return 100 * float(np.sqrt(np.nanmean(((predicted - truth) / arm.largest) ** 2)))


def row(name: str, samples: Sequence[Sample]) -> str:
    """One line."""
    covered, half = np.array([one.covered for one in samples]), np.array([one.half for one in samples])
    errors = np.array([one.error for one in samples])
    known, both = np.isfinite(covered), np.isfinite(errors).all(axis=1)
    recursion = f"{np.median(errors[both, 1]):9.2f}" if both.any() else f"{'':>9}"
    return (
        f"{name:<36}{len(samples):>5}{known.sum():>7}{np.mean(covered[known]):>9.1%}{known.mean():>8.0%}"
        f"{np.median(half[known]):>11.2%}{np.nanmedian(errors[:, 0]):>9.2f}{recursion}"
        f"{np.sum(errors[both, 0] > 1.1 * errors[both, 1]):>5} of {both.sum():<4}"
        f"{sum(one.warned for one in samples):>5}"
    )


def share(name: str, covered: Sequence[np.ndarray]) -> str:
    """Line of the share of intervals that hold the truth."""
    every = np.concatenate(covered)
    known = np.isfinite(every)
    return f"{name:<36}{len(covered):>5}{known.sum():>7}{np.mean(every[known]) if known.any() else np.nan:>9.1%}"


def run(arms: Sequence[str], ways: Sequence[str], seeds: Sequence[int], processes: int = 1) -> dict:
    """Samples by arm and way, printed as they come."""
    print(
        f"{'':<36}{'runs':>5}{'known':>7}{'covered':>9}{'of all':>8}{'half/large':>11}{'error':>9}{'recurs.':>9}"
        f"{'worse':>11}{'warned':>7}",
        flush=True,
    )
    found = {}
    with ProcessPoolExecutor(processes) as pool:
        for name in arms:
            for way in ways:
                samples = [one for one in pool.map(partial(sample, name, way), seeds) if one is not None]
                found[name, way] = samples
                if samples:
                    print(row(f"{name}: {way}", samples), flush=True)
                    print(share("  recursive", [one.recursive for one in samples]), flush=True)
    return found


def main() -> None:
    """Print a line for each arm and way, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--arm", action="append", choices=tuple(ARMS), help="default: both")
    options = parser.parse_args()
    seeds = range(1000 * options.seed, 1000 * options.seed + options.repetitions)
    found = run(options.arm or tuple(ARMS), WAYS, seeds, options.processes)
    for way in WAYS:
        samples = [one for (_, name), some in found.items() for one in some if name == way]
        print(share(f"{way}, global", [one.covered for one in samples]))
        print(share(f"{way}, recursive", [one.recursive for one in samples]))
    every = [one for samples in found.values() for one in samples]
    print(share("all, global", [one.covered for one in every]))
    print(share("all, recursive", [one.recursive for one in every]))


if __name__ == "__main__":
    main()
