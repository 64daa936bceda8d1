"""Contact detection in MuJoCo: rate of false alarms against the set rate, and delay until a push of 5 N m is detected.

    python -m benchmarks.external_torque [--split judge] [--seeds 2] [--learn 1200] [--work 900] [--processes 2]

Arms are identified with default settings from 48 s of motion, under friction outside the model and torque gains that
err by 1 % (`test/contact_experiments.py`). They then work: from one random pose to the next, with rests, every second
one with a load. A contact-free recording (`--learn` s) calibrates the thresholds. False alarms are counted on another
recording of the same kind (`--work` s), with the calibrated thresholds, with the thresholds of the model alone, and
("own") with the observer's residuals on the fitted recordings instead of the residuals of the fit. "needed" is, for
each joint, the level at which contact-free work would cause its share of 120 alarms an hour, over the level of the
model alone.
Pushes are moments of 5 N m about one joint after the other, in a separate simulation where the arm yields.
"found" is the share of pushes that are detected within 50 ms, of all pushes and of those at joints whose median
threshold is below 3 N m (a low-pass of 25 rad/s passes 71 % of a push in 50 ms). The arms of split "develop" were used
in development.

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

ALARM_RATES_PER_HOUR = (120.0, 60.0, 12.0)
"""Nominal rates of false alarms."""
OBSERVER_BANDWIDTH = 25.0
"""Bandwidth of the momentum observer, rad/s."""
TORQUE_GAIN_ERROR = 0.01
PUSH_TORQUE_NM = 5.0
PUSH_PERIOD_S = 1.5
PROMPT_DELAY_S = 0.05
PROMPT_THRESHOLD_NM = 3.0
"""Threshold below which a push of 5 N m is detected within 50 ms."""


@dataclass
class ContactOutcome:
    """Outcome of one arm at work, by nominal rate of false alarms.

    Attributes:
        arm: name and seed.
        asked: expected number of false alarms.
        calibrated, alone, own: numbers of false alarms with each kind of threshold.
        threshold: medians (n,) of the thresholds, N m.
        delays: (pushes, 2) time until detection in s (infinite: not detected), and threshold of the joint.
        needed: (2, n) needed levels over those of the model alone, and over those of "own".
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
    """Return the number of separate contacts."""
    above = time[(ratios > levels).any(axis=1)]
    return 0 if not len(above) else 1 + int(np.sum(np.diff(above) > ALARM_HOLD_S))


def measure(arm: str, seed: int, learn: float, work: float, pushed: float) -> ContactOutcome:
    """Identify an arm, calibrate its thresholds, let it work and push it."""
    experiment = ContactExperiment(arm, seed, loaded=bool(seed % 2))
    fitted = experiment.recordings()
    result = LinkIdentification(experiment.robot, torque_gain_error=TORQUE_GAIN_ERROR).fit(*fitted)
    known_arm = result.known_arm
    observer = MomentumObserver(known_arm.model, OBSERVER_BANDWIDTH)
    fit_residuals = np.concatenate([observer_residuals(observer, recording) for recording in fitted])
    observer.carry(experiment.load)
    monitor = ContactMonitor(observer, TorqueUncertainty(known_arm, result.residual_rms, TORQUE_GAIN_ERROR))
    n = experiment.robot.n_joints
    pushes = [
        Push(k % n, PUSH_TORQUE_NM * (-1) ** k, PUSH_PERIOD_S * (k + 1)) for k in range(int(pushed / PUSH_PERIOD_S) - 1)
    ]
    learned = experiment.work(learn)
    judged = experiment.work(work)
    touched = experiment.pushed(pushed, pushes)
    residuals = [monitor.residuals(*run) for run in (learned, judged, touched)]
    ratios = [np.abs(residual) / std for residual, std in residuals]
    residual, std = residuals[1]
    standardized = np.abs(residual) / np.sqrt(
        std**2 - result.residual_rms**2 + np.mean(np.square(fit_residuals), axis=0)
    )
    share = ALARM_RATES_PER_HOUR[0] / 3600.0 / n
    needed = np.array(
        [[tail_level(judged[0], column, share) for column in ratio.T] for ratio in (ratios[1], standardized)]
    )
    needed /= normal_level(share, OBSERVER_BANDWIDTH)
    outcome = ContactOutcome(f"{arm} {seed}{', loaded' * (seed % 2)}", {}, {}, {}, {}, {}, {}, needed)
    for rate in ALARM_RATES_PER_HOUR:
        levels = tail_levels(learned[0], ratios[0], rate / 3600.0)
        outcome.asked[rate] = rate / 3600.0 * (judged[0][-1] - judged[0][0])
        outcome.calibrated[rate] = alarms(judged[0], ratios[1], levels)
        outcome.alone[rate] = alarms(judged[0], ratios[1], normal_level(rate / 3600.0 / n, OBSERVER_BANDWIDTH))
        outcome.own[rate] = alarms(judged[0], standardized, normal_level(rate / 3600.0 / n, OBSERVER_BANDWIDTH))
        outcome.threshold[rate] = levels * np.median(residuals[1][1], axis=0)
        outcome.delays[rate] = np.array(
            [(delay(touched[0], ratios[2] / levels, push), outcome.threshold[rate][push.joint]) for push in pushes]
        )
    return outcome


def observer_residuals(observer: MomentumObserver, recording: Recording) -> np.ndarray:
    """Return the residuals (N, n) of the unloaded arm, N m, once the observer has settled."""
    observer.restart()
    selected = recording.select(observer.robot.joint_names)
    residuals = []
    for time, *sample in zip(selected.time, selected.position, selected.velocity, selected.torque, strict=True):
        residual = observer.update(time, *(part.tolist() for part in sample))
        if observer.settled:
            residuals.append(residual)
    return np.array(residuals)


def delay(time: np.ndarray, ratios: np.ndarray, push: Push) -> float:
    """Return the time until detection, s; NaN if there was a contact before, infinite if the push is not detected."""
    above = time[(ratios > 1.0).any(axis=1)]
    if np.any((above > push.start - ALARM_HOLD_S) & (above <= push.start)):
        return np.nan
    after = above[(above > push.start) & (above <= push.start + push.duration)]
    return float(after[0] - push.start) if len(after) else np.inf


def row(title: str, asked: float, counts: Sequence[int], delays: np.ndarray) -> str:
    """Return a row of the table."""
    valid = delays[~np.isnan(delays[:, 0])]
    small = valid[valid[:, 1] < PROMPT_THRESHOLD_NM]
    shares = [np.mean(group[:, 0] <= PROMPT_DELAY_S) if len(group) else np.nan for group in (valid, small)]
    median = np.median(small[:, 0]) if len(small) else np.nan
    return (
        f"{title:<28}{asked:>8.1f}{counts[0]:>12}{counts[0] / asked:>8.2f}{counts[1]:>8}{counts[2]:>8}"
        f"{len(valid):>8}{shares[0]:>8.0%}{len(small):>8}{shares[1]:>8.0%}{1000 * median:>8.0f}"
    )


def main() -> None:
    """Print a row for each arm and rate, and one for all arms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default="judge")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="first seed")
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
    outcomes = []
    with ProcessPoolExecutor(options.processes) as pool:
        for outcome in pool.map(measure, *zip(*cases, strict=True)):
            outcomes.append(outcome)
            for rate in ALARM_RATES_PER_HOUR:
                counts = (outcome.calibrated[rate], outcome.alone[rate], outcome.own[rate])
                print(row(f"{outcome.arm}, {rate:g}/h", outcome.asked[rate], counts, outcome.delays[rate]))
            thresholds = np.round(outcome.threshold[ALARM_RATES_PER_HOUR[-1]], 2).tolist()
            print(f"  thresholds at {ALARM_RATES_PER_HOUR[-1]:g}/h, N m: {thresholds}")
            needed, needed_own = np.round(outcome.needed, 2).tolist()
            print(f"  needed: {needed}; own: {needed_own}", flush=True)
    for rate in ALARM_RATES_PER_HOUR:
        counts = [sum(getattr(outcome, name)[rate] for outcome in outcomes) for name in ("calibrated", "alone", "own")]
        delays = np.concatenate([outcome.delays[rate] for outcome in outcomes])
        print(row(f"all, {rate:g}/h", sum(outcome.asked[rate] for outcome in outcomes), counts, delays))
    scatter = np.std(np.log(np.hstack([outcome.needed for outcome in outcomes])), axis=1)
    print(
        f"needed levels scatter, joint by joint, by a factor of {np.exp(scatter[0]):.2f}; own: {np.exp(scatter[1]):.2f}"
    )


if __name__ == "__main__":
    main()
