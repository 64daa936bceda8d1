"""Friction at rest on three simulated arms: unintended motion, and motion after a push.

`python -m benchmarks.friction_at_rest --minutes 1000` takes about 40 minutes of processor time; it prints each part
when it is finished.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from helpers.floating_arm import STRANGERS
from helpers.guided_arm import SCENARIOS, spontaneous_motion, starting_motion

from dynid_ros.control.rest_friction import MAX_REST_SCALE

MIN_MOTION_RAD = 1e-3
"""Motion that counts as unintended motion."""
PUSHES = (0.3, 0.5)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=24, help="Simulated minutes without a hand, over all arms")
    parser.add_argument("--arms", nargs="+", default=list(STRANGERS), choices=STRANGERS, help="Arms")
    parser.add_argument("--processes", type=int, default=2, help="Processes that simulate minutes without a hand")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the first minute")
    arguments = parser.parse_args()
    minutes = -(-arguments.minutes // (len(arguments.arms) * len(SCENARIOS)))
    print("| arm | scenario | minutes | moved | largest motion, rad |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(arguments.processes) as pool:
        for arm in arguments.arms:
            for scenario in SCENARIOS:
                seeds = range(arguments.seed, arguments.seed + minutes)
                motion = np.fromiter(pool.map(_minute, repeat(arm), repeat(scenario), seeds), float)
                moved = np.count_nonzero(motion > MIN_MOTION_RAD)
                print(f"| {arm} | {scenario} | {minutes} | {moved} | {motion.max():.2g} |", flush=True)
    print("\n| arm | joint | motion by a push of 30 % and 50 % of its dry friction for 2 s, without and with, mrad |")
    print("|---|---|---|")
    for arm in arguments.arms:
        for joint in (0, 1, 3):
            motions = [
                1e3 * abs(starting_motion(STRANGERS[arm], joint, push, rest=rest))
                for push in PUSHES
                for rest in (0.0, MAX_REST_SCALE)
            ]
            print(f"| {arm} | {joint + 1} | {', '.join(f'{motion:.2g}' for motion in motions)} |", flush=True)


def _minute(arm: str, scenario: str, seed: int) -> float:
    return spontaneous_motion(STRANGERS[arm], scenario, seed=seed)


if __name__ == "__main__":
    main()
