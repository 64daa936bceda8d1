"""Coverage of the 95 % intervals of torque sensors, on arms that were not used in development, in slow and fast motion.

    python -m benchmarks.torque_sensor_coverage [--repetitions 52] [--arm alex] [--speed slow] [--seed 0]
        [--coulomb 0.02 0.1]

The calibration uses a mass with unknown centre; friction differs from the model, see `torque_sensor_experiments`.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.identification import TorqueSensorCalibration

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from torque_sensor_experiments import COULOMB, FAST, JUDGED, SLOW, SensorConditions, draw

SPEEDS = {"slow": SLOW, "fast": FAST}


def judge_intervals(conditions: SensorConditions, seeds: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the coverage and the half widths of intervals, (runs, 2 n) each.

    Columns are gains, then offsets. The coverage is NaN without an interval; widths are relative to the gain and to the
    range.
    """
    covered = []
    widths = []
    for seed in seeds:
        experiment = draw(conditions, seed)
        calibration = TorqueSensorCalibration(experiment.robot, reference_mass=experiment.mass)
        result = calibration.fit_samples(experiment.samples, experiment.loaded)
        truth = np.concatenate([experiment.gain, experiment.offset])
        low, high = result.confidence_intervals()[: len(truth)].T
        covered.append(np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan))
        widths.append((high - low) / 2 / np.concatenate([experiment.gain, experiment.size]))
    return np.array(covered), np.array(widths)


def main() -> None:
    """Print a row for each arm and speed, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=52)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arm", action="append", help="arm, may be repeated (default: the held-out arms)")
    parser.add_argument("--speed", action="append", choices=SPEEDS, help="speed, may be repeated (default: all)")
    parser.add_argument(
        "--coulomb",
        nargs=2,
        type=float,
        default=COULOMB,
        help="range of Coulomb friction relative to the largest gravity torque",
    )
    options = parser.parse_args()
    total = []
    for arm in options.arm or JUDGED:
        for name in options.speed or SPEEDS:
            seeds = range(1000 * options.seed, 1000 * options.seed + options.repetitions)
            conditions = SensorConditions(arm, SPEEDS[name], coulomb=tuple(options.coulomb))
            covered, widths = judge_intervals(conditions, tqdm(seeds, disable=None))
            n = covered.shape[1] // 2
            print(
                f"{arm}, {name}: {_share(covered)}; gains {_share(covered[:, :n])}, "
                f"median ± {100 * np.nanmedian(widths[:, :n]):.2g} % of it; offsets {_share(covered[:, n:])}, "
                f"± {100 * np.nanmedian(widths[:, n:]):.2g} % of the range",
                flush=True,
            )
            total.append(covered.ravel())
    print(f"all: {_share(np.concatenate(total))}")


def _share(covered: np.ndarray) -> str:
    return f"{100 * np.nanmean(covered):.1f} % of {np.isfinite(covered).sum()}"


if __name__ == "__main__":
    main()
