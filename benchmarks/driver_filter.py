"""Torque that its driver low-passed: is it found, and what is it worth to pass the model through the same.

python -m benchmarks.driver_filter [--simulations 20]

Simulated: arms, friction laws and motions of the held-out side of the sanity gate; each recording's torque passes a
Butterworth low-pass of the first, second or fourth order, on its way or without phase, that cuts into the motion (0.3
to 0.9 of its highest frequency). Each fit predicts torque that no filter touched: RMS error as a share of the torque's
RMS, mean over the joints, with no filter assumed, with the one that was found, with the true one, and fitted to
unfiltered torque.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # arms and recordings are shared with the tests

from gate_arms import SPLITS
from gate_recordings import sound_case

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.link_prediction import compare
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.driver_filter import AUTO, FILTER_KINDS, DriverFilter


def low_passed(recording: Recording, driver: DriverFilter) -> Recording:
    """The recording as that driver would have reported it, its samples taken as uniform."""
    rate = 1 / float(np.median(np.diff(recording.time)))
    return replace(recording, torque=driver.filter(np.nan_to_num(recording.torque), rate))


def errors(
    robot: RobotModel, fitted: Sequence[Recording], unseen: Sequence[Recording], truth: DriverFilter
) -> tuple[DriverFilter | None, list[float]]:
    """The filter that was found, and the errors: none, found, true, unfiltered."""
    filtered, found, shares = [low_passed(each, truth) for each in fitted], None, []
    for recordings, assumed in ((filtered, None), (filtered, AUTO), (filtered, truth), (fitted, None)):
        result = LinkIdentification(robot, torque_filter=assumed).fit(*recordings)
        signals = result.model.signals
        found = signals.driver if assumed == AUTO else found
        model = replace(result.model, signals=replace(signals, driver=None))
        parts = [compare(model, recording)[1:] for recording in unseen]
        measured, predicted = (np.concatenate(values) for values in zip(*parts, strict=True))
        moves = measured.std(axis=0) > 0
        share = np.sqrt(np.mean((measured - predicted) ** 2, axis=0)[moves] / np.mean(measured[:, moves] ** 2, axis=0))
        shares.append(float(share.mean()))
    return found, shares


def line(name: str, truth: DriverFilter, found: DriverFilter | None, shares: Sequence[float]) -> str:
    """One row of the table."""
    ratio = found.cutoff / truth.cutoff if found and found.cutoff and truth.cutoff else np.nan
    return f"{name:<24} {truth!s:<36} {found!s:<36} {ratio:6.2f}" + "".join(f"{share:9.2%}" for share in shares)


def main() -> None:
    """Print a table and its medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=20)
    options = parser.parse_args()
    print(f"{'':<24} {'true filter':<36} {'found':<36}  ratio     none    found     true  unfiltered")
    rows, ratios = [], []
    for seed in range(options.simulations):
        rng = np.random.default_rng(SPLITS["held out"].seed + seed)
        case = sound_case(rng, "held out", motion=str(rng.choice(("fourier", "fast"))))
        rate = 1 / float(np.median(np.diff(case.recording.time)))
        cutoff = min(rng.uniform(0.3, 0.9) * case.bandwidth, 0.3 * rate)
        truth = replace(FILTER_KINDS[rng.integers(len(FILTER_KINDS))], cutoff=float(f"{cutoff:.3g}"))
        try:
            found, shares = errors(case.robot, [case.recording], [case.recording], truth)
        except IdentificationError as error:
            print(f"{case.robot.name}: {error}")
            continue
        rows.append(shares)
        ratios.append(found.cutoff / cutoff if found and found.cutoff else np.nan)
        print(line(f"{seed} {case.robot.name}", truth, found, shares), flush=True)
    ends = np.nanquantile(ratios, (0.1, 0.9))
    print(f"found in {np.isfinite(ratios).sum()} of {len(rows)}; cut-off over the true one, 10 to 90 %: {ends}")
    print("medians: " + ", ".join(f"{share:.2%}" for share in np.median(rows, axis=0)))


if __name__ == "__main__":
    main()
