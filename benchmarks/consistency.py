"""Consistent least squares beside the same problem as a semidefinite program (cvxpy with Clarabel).

    python benchmarks/consistency.py [--problems 200] [--seed 0]

Random problems of one to three links, then robots of package example-robot-data with noise and a wrong prior, over
weights from 1e-4 up; then hostile data, for which only the consistency of the result counts. Needs
`pip install cvxpy clarabel pytest example-robot-data`.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.errors import IdentificationError
from dynid_ros.identification.physical_consistency import solve_consistent
from dynid_ros.model import RobotModel

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from consistency_problems import ROBOTS, Data, hostile_data, is_consistent, random_data, robot_data, sdp_objective  # noqa: E402
from pinocchio_arm import example_urdf  # noqa: E402

TOLERANCE = 1e-6
WEIGHTS = (1e-4, 1e-2, 1.0, 1e2)


def compared(data: Data, weight: float) -> tuple[float, float, float, bool]:
    """Relative difference of the objectives, our time and theirs in s, and whether our result is consistent."""
    start = time.perf_counter()
    fit = solve_consistent(data.R, data.z, data.prior, weight, nonnegative=data.nonnegative)
    middle = time.perf_counter()
    optimum = sdp_objective(data, weight)
    return fit.objective / optimum - 1, middle - start, time.perf_counter() - middle, is_consistent(data, fit.solution)


def report(name: str, results: list[tuple[float, float, float, bool]]) -> None:
    """One line for a set of problems."""
    difference, ours, theirs, consistent = np.array(results).T
    solved = np.isfinite(difference)
    difference = difference[solved]
    verdict = "met" if np.abs(difference).max() <= TOLERANCE and consistent.all() else "NOT MET"
    print(
        f"{name:8s} {len(results):4d} problems, {solved.sum()} solved by the SDP, objective {difference.min():+.1e} … "
        f"{difference.max():+.1e} of its, consistent {int(consistent.sum())}, longest {ours.max() * 1e3:.0f} ms "
        f"(SDP {theirs.max() * 1e3:.0f} ms): {verdict}"
    )


def main() -> None:
    """Print differences, times and the share of consistent results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)

    results = []
    for _ in tqdm(range(arguments.problems), "random"):
        data = random_data(rng, int(rng.integers(1, 4)))
        results.append(compared(data, 10 ** rng.uniform(-4, 2)))
    report("random", results)
    for name, (urdf, tip) in ROBOTS.items():
        data = robot_data(RobotModel.from_urdf(example_urdf(urdf), tip=tip), rng)
        report(name, [compared(data, weight) for weight in WEIGHTS])

    consistent = refused = 0
    for _ in tqdm(range(arguments.problems), "hostile"):
        data, weight = hostile_data(rng)
        try:
            solution = solve_consistent(data.R, data.z, data.prior, weight, nonnegative=data.nonnegative).solution
        except IdentificationError:
            refused += 1
        else:
            consistent += is_consistent(data, solution)
    verdict = "met" if consistent + refused == arguments.problems else "NOT MET"
    print(f"{'hostile':8s} {arguments.problems:4d} problems, consistent {consistent}, refused {refused}: {verdict}")


if __name__ == "__main__":
    main()
