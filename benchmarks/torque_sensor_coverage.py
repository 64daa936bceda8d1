"""Whether 95 % intervals of torque sensors hold the truth, on arms that nothing was tuned on, moved slowly and fast.

    python -m benchmarks.torque_sensor_coverage [--repetitions 52] [--arm alex] [--speed slow] [--seed 0]
        [--coulomb 0.02 0.1]

Calibrations with a mass of unknown centre; friction is not the one that is fitted, see `torque_sensor_experiments`.

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


def held(conditions: SensorConditions, seeds: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """Whether intervals hold, NaN where nothing is stated, and their half widths, (runs, 2 n) each.

    Gains first, then offsets; widths are parts of the gain and of the range.
    """
    found, widths = [], []
    for seed in seeds:
        experiment = draw(conditions, seed)
        calibration = TorqueSensorCalibration(experiment.robot, reference_mass=experiment.mass)
        result = calibration.fit_samples(experiment.samples, experiment.loaded)
        truth = np.concatenate([experiment.gain, experiment.offset])
        low, high = result.confidence_intervals()[: len(truth)].T
        found.append(np.where(np.isfinite(low), (low <= truth) & (truth <= high), np.nan))
        widths.append((high - low) / 2 / np.concatenate([experiment.gain, experiment.size]))
    return np.array(found), np.array(widths)


def main() -> None:
    """Print a line for each arm and speed, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=52)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arm", action="append", help="several; default: those that nothing was tuned on")
    parser.add_argument("--speed", action="append", choices=SPEEDS, help="several; default: all")
    parser.add_argument(
        "--coulomb", nargs=2, type=float, default=COULOMB, help="friction in parts of the largest gravity torque"
    )
    options = parser.parse_args()
    total = []
    for arm in options.arm or JUDGED:
        for name in options.speed or SPEEDS:
            seeds = range(1000 * options.seed, 1000 * options.seed + options.repetitions)
            conditions = SensorConditions(arm, SPEEDS[name], coulomb=tuple(options.coulomb))
            found, widths = held(conditions, tqdm(seeds, disable=None))
            n = found.shape[1] // 2
            print(
                f"{arm}, {name}: {_share(found)}; gains {_share(found[:, :n])}, "
                f"median ± {100 * np.nanmedian(widths[:, :n]):.2g} % of it; offsets {_share(found[:, n:])}, "
                f"± {100 * np.nanmedian(widths[:, n:]):.2g} % of the range",
                flush=True,
            )
            total.append(found.ravel())
    print(f"all: {_share(np.concatenate(total))}")


def _share(found: np.ndarray) -> str:
    return f"{100 * np.nanmean(found):.1f} % of {np.isfinite(found).sum()}"


if __name__ == "__main__":
    main()
