"""Links of real robots, validated on kinds of motion that were not fitted. Needs the recordings in DYNID_DATA.

python -m benchmarks.real_links [--robot kuka_lwr4]

benchmarks/divisions.yaml has the division of the recordings. The identification selects all settings from the fitted
recordings, unless an option sets them. Torque and prediction pass the same low-pass; all samples from the first to the
last motion count. Each joint has the RMS error in N m, and its share of the RMS torque; the mean share is over the
joints that move in the predicted motion, since the friction of a joint at rest is undetermined. The last columns are
the ratios of the mean share, and of the pooled RMS error of these joints, to those of ordinary least squares with
Coulomb friction, viscous friction and an offset: below one, this package predicts better.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # known problems are shared with the tests

from real_recordings import DATA, MISSING, real_recording, real_robot

from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.link_prediction import compare
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model.friction import JointFriction
from dynid_ros.recording import Recording

DIVISIONS = Path(__file__).parent / "divisions.yaml"
COUPLED = {"staubli_tx40": [("joint_5", "joint_6")]}
"""Coupled joints for fits with a fixed friction model; a fit that selects friction detects them."""
ORDINARY_FRICTION = JointFriction(offset=True)
MIN_MOTION_RAD = 0.01


def stretches(robot: str, rows: list[list]) -> list[Recording]:
    """Return segments of recordings; a row has name, first and last second (None: the end)."""
    segments = []
    for name, first, last in rows:
        run = real_recording(robot, name)
        elapsed = run.time - run.time[0]
        segments.append(run.slice((elapsed >= first) & (elapsed < (np.inf if last is None else last))))
    return segments


def unseen_errors(result: LinkResult, held_out: Sequence[Recording]) -> tuple[NDArray, NDArray, NDArray]:
    """Return RMS error and RMS torque (n,) of held-out motion, and a mask (n,) of the joints that move in it."""
    parts = [compare(result.model, run)[1:] for run in held_out]
    measured, predicted = (np.concatenate(values) for values in zip(*parts, strict=True))
    moves = np.max([np.ptp(run.position, axis=0) for run in held_out], axis=0) > MIN_MOTION_RAD
    return np.sqrt(np.mean((measured - predicted) ** 2, axis=0)), np.sqrt(np.mean(measured**2, axis=0)), moves


def main() -> None:
    """Print the results of each robot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    divisions = yaml.safe_load(DIVISIONS.read_text())
    parser.add_argument("--robot", choices=divisions, action="append")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(MISSING)
    means = {}
    for robot in options.robot or divisions:
        shares = []
        sums = []
        against = []
        seconds = 0.0
        for kind, division in divisions[robot].items():
            model = real_robot(robot)
            start = time.perf_counter()
            result = LinkIdentification(model).fit(*stretches(robot, division["fit"]))
            seconds += time.perf_counter() - start
            unseen = stretches(robot, division["unseen"])
            rms, torque, moves = unseen_errors(result, unseen)
            ordinary = LinkIdentification(
                model,
                friction=ORDINARY_FRICTION,
                estimator="ordinary",
                coupled=COUPLED.get(robot, ()),
                torque_filter=None,
            ).fit(*stretches(robot, division["fit"]))
            plain = unseen_errors(ordinary, unseen)[0]
            share = rms / torque
            shares.append(share[moves].mean())
            sums.append(rms[moves].sum())
            ratios = (
                shares[-1] / (plain / torque)[moves].mean(),
                np.linalg.norm(rms[moves]) / np.linalg.norm(plain[moves]),
            )
            against.append(ratios)
            cells = "".join(f"{r:8.3f} ({s:4.0%})" for r, s in zip(rms, share, strict=True))
            print(
                f"{robot}: {kind:<26} mean {shares[-1]:6.2%} sum {sums[-1]:7.3f} N m {cells}"
                f"  to ordinary: mean {ratios[0]:.2f}, pooled {ratios[1]:.2f}",
                flush=True,
            )
        means[robot] = np.mean(shares)
        mean, pooled = np.mean(against, axis=0)
        print(
            f"{robot}: mean of {len(shares)}: {means[robot]:.2%}, sum {np.mean(sums):.3f} N m; to ordinary: "
            f"mean {mean:.2f}, pooled {pooled:.2f}; fits {seconds:.1f} s"
        )
    print(f"mean of all robots: {np.mean(list(means.values())):.2%}")


if __name__ == "__main__":
    main()
