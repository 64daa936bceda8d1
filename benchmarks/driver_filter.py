"""Low-pass filters of torque drivers: detection of the filter, and the benefit of filtering the model in the same way.

    python -m benchmarks.driver_filter [--simulations 20]

Arms, friction laws and motions belong to the held-out side of the sanity gate. The torque of each simulated recording
passes a Butterworth low-pass of first, second or fourth order, causal or zero-phase, whose cutoff frequency lies within
the motion's band (0.3 to 0.9 of its highest frequency). Each fit predicts unfiltered torque. The table has the RMS
error over the RMS torque, averaged over the joints, with no assumed filter, with the detected one, with the true one,
and with a fit to unfiltered torque.
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
    """Return the recording as this driver would report it; sampling is assumed to be uniform."""
    rate = 1 / float(np.median(np.diff(recording.time)))
    return replace(recording, torque=driver.filter(np.nan_to_num(recording.torque), rate))


def errors(
    robot: RobotModel, fitted: Sequence[Recording], held_out: Sequence[Recording], truth: DriverFilter
) -> tuple[DriverFilter | None, list[float]]:
    """Return the detected filter, and the relative errors with no, the detected and the true filter, and unfiltered."""
    filtered = [low_passed(recording, truth) for recording in fitted]
    detected = None
    shares = []
    for recordings, assumed in ((filtered, None), (filtered, AUTO), (filtered, truth), (fitted, None)):
        result = LinkIdentification(robot, torque_filter=assumed).fit(*recordings)
        signals = result.model.signals
        detected = signals.driver if assumed == AUTO else detected
        model = replace(result.model, signals=replace(signals, driver=None))
        comparisons = [compare(model, recording)[1:] for recording in held_out]
        measured, predicted = (np.concatenate(values) for values in zip(*comparisons, strict=True))
        moves = measured.std(axis=0) > 0
        share = np.sqrt(np.mean((measured - predicted) ** 2, axis=0)[moves] / np.mean(measured[:, moves] ** 2, axis=0))
        shares.append(float(share.mean()))
    return detected, shares


def line(name: str, truth: DriverFilter, detected: DriverFilter | None, shares: Sequence[float]) -> str:
    """Return a row of the table."""
    ratio = detected.cutoff / truth.cutoff if detected and detected.cutoff and truth.cutoff else np.nan
    return f"{name:<24} {truth!s:<36} {detected!s:<36} {ratio:6.2f}" + "".join(f"{share:9.2%}" for share in shares)


def main() -> None:
    """Print the table and its medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=20)
    options = parser.parse_args()
    print(f"{'':<24} {'true filter':<36} {'detected':<36}  ratio     none    found     true  unfiltered")
    rows, ratios = [], []
    for seed in range(options.simulations):
        rng = np.random.default_rng(SPLITS["held out"].seed + seed)
        case = sound_case(rng, "held out", motion=str(rng.choice(("fourier", "fast"))))
        rate = 1 / float(np.median(np.diff(case.recording.time)))
        cutoff = min(rng.uniform(0.3, 0.9) * case.bandwidth, 0.3 * rate)
        truth = replace(FILTER_KINDS[rng.integers(len(FILTER_KINDS))], cutoff=float(f"{cutoff:.3g}"))
        try:
            detected, shares = errors(case.robot, [case.recording], [case.recording], truth)
        except IdentificationError as error:
            print(f"{case.robot.name}: {error}")
            continue
        rows.append(shares)
        ratios.append(detected.cutoff / cutoff if detected and detected.cutoff else np.nan)
        print(line(f"{seed} {case.robot.name}", truth, detected, shares), flush=True)
    ends = np.nanquantile(ratios, (0.1, 0.9))
    print(f"found in {np.isfinite(ratios).sum()} of {len(rows)}; cut-off over the true one, 10 to 90 %: {ends}")
    print("medians: " + ", ".join(f"{share:.2%}" for share in np.median(rows, axis=0)))


if __name__ == "__main__":
    main()
