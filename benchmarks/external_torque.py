"""False contact alarms at the rate that was asked for, and how soon a push of 5 N m is found, in MuJoCo.

    python -m benchmarks.external_torque [--split judge] [--seeds 2] [--learn 1200] [--work 900] [--processes 2]

Arms are identified by default settings from 48 s of motion, under friction that the model lacks, with torque gains off
by 1 % (`test/contact_experiments.py`). Then they work: from one random pose to the next, with rests, every second one
with a load. A recording without contact (`--learn` s) calibrates the thresholds; false alarms are counted on another
one of the same kind (`--work` s), and with the thresholds of the model alone; "own" are those if the fit's residuals
counted as the observer has them on the recordings that were fitted, not as the fit has. "needed": the level at which
each joint of the untouched work would be at its share of 120 alarms an hour, over the one that the model alone has.
Pushes are moments of 5 N m about one
joint after the other, in a simulation of their own, in which the arm yields: "found" is the share that is contact
within 50 ms, of all and of those at joints whose threshold, in the median, is below 3 N m (a push comes through a
low-pass of 25 rad/s to 71 % in 50 ms). The arms of split "develop" are those that all this was developed on.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.control.contact import ALARM_HOLD_S, ContactMonitor, normal_level, tail_level, tail_levels
from dynid_ros.control.external_torque import MomentumObserver, TorqueUncertainty
from dynid_ros.identification import LinkIdentification
from dynid_ros.recording import Recording

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from contact_experiments import SPLITS, ContactExperiment, Push

RATES = (120.0, 60.0, 12.0)
"""False alarms asked for, an hour."""
BANDWIDTH, GAIN_ERROR = 25.0, 0.01
PUSH, PERIOD, SOON = 5.0, 1.5, 0.05
SMALL = 3.0
"""Threshold, N m, below which a push of 5 N m is found within 50 ms."""


@dataclass
class Found:
    """Of one arm at work: by rate, false alarms that were asked for, those by calibration and by the model alone.

    Attributes:
        arm: name and seed.
        asked, calibrated, alone, own: by rate.
        threshold: by rate, (n,) medians, N m.
        delays: by rate, (pushes, 2): s until contact, infinite if there is none; threshold of the joint.
        needed: (2, n) levels over those of the model alone, and over those of "own".
    """

    arm: str
    asked: dict[float, float]
    calibrated: dict[float, int]
    alone: dict[float, int]
    own: dict[float, int]
    threshold: dict[float, np.ndarray]
    delays: dict[float, np.ndarray]
    needed: np.ndarray


def alarms(time: np.ndarray, ratios: np.ndarray, levels: np.ndarray | float) -> int:
    """How often contact begins."""
    above = time[(ratios > levels).any(axis=1)]
    return 0 if not len(above) else 1 + int(np.sum(np.diff(above) > ALARM_HOLD_S))


def measure(arm: str, seed: int, learn: float, work: float, pushed: float) -> Found:
    """Identify, learn, work and be pushed."""
    experiment = ContactExperiment(arm, seed, loaded=bool(seed % 2))
    fitted = experiment.recordings()
    result = LinkIdentification(experiment.robot, torque_gain_error=GAIN_ERROR).fit(*fitted)
    known = result.known_arm
    observer = MomentumObserver(known.model, BANDWIDTH)
    left = [left_of(observer, each) for each in fitted]
    observer.carry(experiment.load)
    monitor = ContactMonitor(observer, TorqueUncertainty(known, result.residual_rms, GAIN_ERROR))
    n = experiment.robot.n_joints
    pushes = [Push(k % n, PUSH * (-1) ** k, PERIOD * (k + 1)) for k in range(int(pushed / PERIOD) - 1)]
    learned, judged = experiment.work(learn), experiment.work(work)
    touched = experiment.pushed(pushed, pushes)
    residuals = [monitor.residuals(*each) for each in (learned, judged, touched)]
    ratios = [np.abs(residual) / std for residual, std in residuals]
    residual, std = residuals[1]
    own = np.abs(residual) / np.sqrt(std**2 - result.residual_rms**2 + np.mean(np.square(np.concatenate(left)), axis=0))
    share = RATES[0] / 3600.0 / n
    needed = np.array([[tail_level(judged[0], each, share) for each in ratio.T] for ratio in (ratios[1], own)])
    needed /= normal_level(share, BANDWIDTH)
    found = Found(f"{arm} {seed}{', loaded' * (seed % 2)}", {}, {}, {}, {}, {}, {}, needed)
    for rate in RATES:
        levels = tail_levels(learned[0], ratios[0], rate / 3600.0)
        found.asked[rate] = rate / 3600.0 * (judged[0][-1] - judged[0][0])
        found.calibrated[rate] = alarms(judged[0], ratios[1], levels)
        found.alone[rate] = alarms(judged[0], ratios[1], normal_level(rate / 3600.0 / n, BANDWIDTH))
        found.own[rate] = alarms(judged[0], own, normal_level(rate / 3600.0 / n, BANDWIDTH))
        found.threshold[rate] = levels * np.median(residuals[1][1], axis=0)
        found.delays[rate] = np.array(
            [(delay(touched[0], ratios[2] / levels, push), found.threshold[rate][push.joint]) for push in pushes]
        )
    return found


def left_of(observer: MomentumObserver, recording: Recording) -> np.ndarray:
    """(N, n) residual of the arm alone, N m, once the observer has settled."""
    observer.restart()
    own, found = recording.select(observer.robot.joint_names), []
    for now, *sample in zip(own.time, own.position, own.velocity, own.torque, strict=True):
        residual = observer.update(now, *(part.tolist() for part in sample))
        if observer.settled:
            found.append(residual)
    return np.array(found)


def delay(time: np.ndarray, ratios: np.ndarray, push: Push) -> float:
    """Time until contact, s; NaN if there is some already, infinite if there is none while it lasts."""
    above = time[(ratios > 1.0).any(axis=1)]
    if np.any((above > push.start - ALARM_HOLD_S) & (above <= push.start)):
        return np.nan
    after = above[(above > push.start) & (above <= push.start + push.duration)]
    return float(after[0] - push.start) if len(after) else np.inf


def row(title: str, asked: float, counts: Sequence[int], delays: np.ndarray) -> str:
    """One line of the table."""
    known = delays[np.isfinite(delays[:, 0]) | np.isinf(delays[:, 0])]
    small = known[known[:, 1] < SMALL]
    shares = [np.mean(each[:, 0] <= SOON) if len(each) else np.nan for each in (known, small)]
    median = np.median(small[:, 0]) if len(small) else np.nan
    return (
        f"{title:<28}{asked:>8.1f}{counts[0]:>12}{counts[0] / asked:>8.2f}{counts[1]:>8}{counts[2]:>8}"
        f"{len(known):>8}{shares[0]:>8.0%}{len(small):>8}{shares[1]:>8.0%}{1000 * median:>8.0f}"
    )


def main() -> None:
    """Print a row for each arm and rate, and for all arms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default="judge")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--learn", type=float, default=1200.0)
    parser.add_argument("--work", type=float, default=900.0)
    parser.add_argument("--pushed", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    cases = [
        (arm, seed, options.learn, options.work, options.pushed)
        for seed in range(options.first, options.first + options.seeds)
        for arm in SPLITS[options.split]
    ]
    print(
        f"{'':<28}{'asked':>8}{'calibrated':>12}{'ratio':>8}{'model':>8}{'own':>8}{'pushes':>8}{'found':>8}{'small':>8}{'found':>8}"
        f"{'ms':>8}"
    )
    everything = []
    with ProcessPoolExecutor(options.processes) as pool:
        for found in pool.map(measure, *zip(*cases, strict=True)):
            everything.append(found)
            for rate in RATES:
                counts = found.calibrated[rate], found.alone[rate], found.own[rate]
                print(row(f"{found.arm}, {rate:g}/h", found.asked[rate], counts, found.delays[rate]))
            thresholds = np.round(found.threshold[RATES[-1]], 2).tolist()
            print(f"  thresholds at {RATES[-1]:g}/h, N m: {thresholds}")
            print(
                f"  needed: {np.round(found.needed[0], 2).tolist()}; own: {np.round(found.needed[1], 2).tolist()}",
                flush=True,
            )
    for rate in RATES:
        counts = [sum(getattr(each, name)[rate] for each in everything) for name in ("calibrated", "alone", "own")]
        delays = np.concatenate([each.delays[rate] for each in everything])
        print(row(f"all, {rate:g}/h", sum(each.asked[rate] for each in everything), counts, delays))
    scatter = np.std(np.log(np.hstack([each.needed for each in everything])), axis=1)
    print(
        f"needed levels scatter, joint by joint, by a factor of {np.exp(scatter[0]):.2f}; own: {np.exp(scatter[1]):.2f}"
    )


if __name__ == "__main__":
    main()
