"""How often 95 % intervals of base parameters hold the truth, in simulations with all that models lack.

    python -m benchmarks.link_coverage [--repetitions 64] [--seed 0] [--friction auto]
    python -m benchmarks.link_coverage --stamps [--arms panda ur5] [--rates 250] [--seed 0]

Two arms, two colours of noise, two lengths; friction is fitted with Coulomb, viscous and offset terms, which it is more
than, and torque gains are wrong by 1 %. Then the same with white noise and friction as it is fitted. "naively" is with
the standard errors of white noise. "width" is half an interval, in parts of the true value, of parameters above 1 % of
the arm's largest; and in parts of the RMS error, where 1.96 is what one needs who knows it.

With `--stamps`, a logger stamps each sample late, by an exponential delay, and loses some, so that nothing but the
clock is wrong. "gravity" is by how much this changes the gravity that is found, in poses within the limits, of the
worst joint whose gravity is 5 % of its torque, in parts of the joint's largest; "inside" the share of base parameters
in their intervals; "beyond" the largest error in parts of half an interval, of those above 1 % of the arm's largest
parameter. A row ends with "!" where gravity changes by more than 1 %, where an error is more than three times half its
interval, or where a refusal does not name the clock.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification
from dynid_ros.recording import Recording

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from clean_recordings import ARMS
from coverage_experiments import Conditions, Experiment, draw

MISMATCHED = [
    Conditions(arm, duration, correlation, rotors=0.3 * (duration < 25))
    for arm in ("ur10", "panda")
    for duration in (20.0, 30.0)
    for correlation in (0.02, 0.1)
]
CLEAN = [Conditions(arm, 25.0, correlation=0.0, mismatch=0.0, gain_error=0.0) for arm in ("ur10", "panda")]


NAIVE = 4
"""Every so many experiments are solved again for their naive standard errors."""
SMALL = 0.01
"""Of an arm's largest parameter, in SI units; smaller ones are often zero: their relative width says nothing."""
STAMPED_ARMS = ("panda", "ur5", "kinova", "xarm7")
STAMP_RATES_HZ, JITTERS_S, LOSSES = (100.0, 250.0, 500.0, 1000.0), (2e-4, 1e-3, 3e-3), (0.0, 0.01, 0.03)
MIN_STEP_S = 1e-6
POSES = 200
MIN_GRAVITY_SHARE, MAX_GRAVITY_CHANGE, MAX_BEYOND = 0.05, 0.01, 3.0


@dataclass(frozen=True)
class Sample:
    """Of one experiment, (b,) each.

    Attributes:
        names: of base parameters.
        truth: true values.
        error: of the estimates.
        half: half intervals.
        naive: standard errors if residuals were white noise; NaN if they were not asked for.
    """

    names: np.ndarray
    truth: np.ndarray
    error: np.ndarray
    half: np.ndarray
    naive: np.ndarray


class Coverage:
    """Of samples, all parameters in one row (R b,).

    Attributes:
        count: number R of samples.
        names, truth, error, half, naive: as those of `Sample`.
        covered: bool.
        largest: absolute true value in its sample.
    """

    def __init__(self, samples: Sequence[Sample]):
        self.count = len(samples)
        self.names, self.truth, self.error, self.half, self.naive = (
            np.concatenate([getattr(one, field.name) for one in samples]) for field in fields(Sample)
        )
        self.largest = np.concatenate([np.full(len(one.truth), np.abs(one.truth).max()) for one in samples])
        self.covered = np.abs(self.error) <= self.half

    @property
    def naively(self) -> float:
        """Share covered with standard errors of white noise."""
        known = np.isfinite(self.naive)
        return float(np.mean(np.abs(self.error[known]) <= 1.96 * self.naive[known]))

    @property
    def by_name(self) -> dict[str, float]:
        """Share covered of each parameter."""
        return {name: float(self.covered[self.names == name].mean()) for name in dict.fromkeys(self.names)}

    @property
    def relative_width(self) -> float:
        """Median of half the width over the true value, of parameters that are not small."""
        known = np.abs(self.truth) > self.largest * SMALL
        return float(np.median(self.half[known] / np.abs(self.truth[known])))

    @property
    def useful_width(self) -> float:
        """Median over parameters of half the width over the RMS error."""
        each = [self.names == name for name in dict.fromkeys(self.names)]
        return float(np.median([np.median(self.half[one]) / np.sqrt(np.mean(self.error[one] ** 2)) for one in each]))


def sample(conditions: Conditions, rng: np.random.Generator, *, auto: bool = False, with_naive: bool = False) -> Sample:
    """Draw an experiment and identify from it."""
    experiment = draw(conditions, rng)
    identification = LinkIdentification(
        experiment.robot,
        friction="auto" if auto else conditions.friction,
        estimator="weighted",
        torque_gain_error=conditions.gain_error,
    )
    result = identification.fit(experiment.recording)
    estimate, truth = result.base_parameters, experiment.truth(result.base)
    low, high = estimate.confidence_intervals(0.95).T
    naive = np.full_like(truth, np.nan)
    if with_naive:
        white = replace(identification, errors="white", torque_gain_error=0.0)
        naive = white.fit(experiment.recording).base_parameters.standard_errors
    known = np.isfinite(truth)
    values = (np.array(estimate.names), truth, estimate.values - truth, (high - low) / 2, naive)
    return Sample(*(value[known] for value in values))


def run(conditions: Sequence[Conditions], repetitions: int, seed: int, auto: bool = False) -> Iterator[list[Sample]]:
    """Samples of each of the conditions."""
    with tqdm(total=len(conditions) * repetitions, disable=None) as progress:
        for number, one in enumerate(conditions):
            rng, samples = np.random.default_rng([seed, number]), []
            for repetition in range(repetitions):
                samples.append(sample(one, rng, auto=auto, with_naive=repetition % NAIVE == 0))
                progress.update()
            yield samples


def report(conditions: Sequence[Conditions], found: Iterable[list[Sample]]) -> None:
    """Print a row per condition, per arm, and for all together."""
    print(f"{'':<34}{'simulations':>12}{'covered':>9}{'naively':>9}{'width/value':>13}{'width/RMS error':>17}")
    of_arm: dict[str, list[Sample]] = {}
    for one, samples in zip(conditions, found, strict=True):
        rotors = ", rotors" if one.rotors else ""
        row(f"{one.arm}, {one.duration:g} s, {1000 * one.correlation:g} ms{rotors}", Coverage(samples))
        of_arm.setdefault(one.arm, []).extend(samples)
    for arm, samples in of_arm.items():
        row(arm, Coverage(samples))
    row("all", Coverage([one for samples in of_arm.values() for one in samples]))
    for arm, samples in of_arm.items():
        shares = Coverage(samples).by_name
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        print(f"{arm}: each of {len(shares)} parameters {shares[low]:.1%} ({low}) to {shares[high]:.1%} ({high})")


def row(name: str, coverage: Coverage) -> None:
    """Print one."""
    print(
        f"{name:<34}{coverage.count:>12}{coverage.covered.mean():>9.1%}{coverage.naively:>9.1%}"
        f"{coverage.relative_width:>13.1%}{coverage.useful_width:>17.2f}",
        flush=True,
    )


def stamped(recording: Recording, jitter: float, loss: float, rng: np.random.Generator) -> Recording:
    """Return the recording with samples lost and the others stamped late, in order of arrival."""
    kept = recording.slice(rng.random(recording.n_samples) >= loss)
    stamps = np.maximum.accumulate(kept.time + jitter * rng.exponential(size=kept.n_samples))
    stamps += MIN_STEP_S * np.arange(kept.n_samples)
    return replace(kept, time=stamps - stamps[0])


def gravity_change(experiment: Experiment, steady: np.ndarray, estimate: np.ndarray) -> float:
    """Return the largest change of gravity in poses, of the worst joint that gravity loads, in parts of its largest."""
    robot = experiment.robot
    lower, upper = np.maximum(robot.limits.lower, -np.pi), np.minimum(robot.limits.upper, np.pi)
    poses = np.random.default_rng(0).uniform(lower, upper, (POSES, robot.n_joints))
    change = np.abs(robot.gravity_torque(poses, estimate) - robot.gravity_torque(poses, steady)).max(axis=0)
    largest = np.abs(robot.gravity_torque(poses, experiment.links)).max(axis=0)
    loaded = largest > MIN_GRAVITY_SHARE * np.abs(experiment.torque).max(axis=0)
    return float(np.max(change[loaded] / largest[loaded]))


def stamp_rows(arm: str, rate: float, seed: int) -> list[bool]:
    """Print what jitter and losses make of one experiment at this rate, Hz; return which rows are right or refused."""
    conditions = Conditions(arm, 20.0, correlation=0.0, mismatch=0.0, gain_error=0.0, rate=rate)
    experiment = draw(conditions, np.random.default_rng([seed, int(rate)]))
    identification = LinkIdentification(experiment.robot, friction=conditions.friction)
    steady = identification.fit(experiment.recording).parameters
    right = []
    for number, (jitter, loss) in enumerate(product(JITTERS_S, LOSSES)):
        rng = np.random.default_rng([seed, int(rate), number])
        row = f"{arm:<8}{rate:>6g} Hz{1e3 * jitter:>5g} ms{loss:>5.0%}  "
        try:
            result = identification.fit(stamped(experiment.recording, jitter, loss, rng))
        except DynidError as refusal:
            right.append("clock" in str(refusal))
            row += f"refused: {str(refusal)[:90]}"
        else:
            truth, estimate = experiment.truth(result.base), result.base_parameters
            half = np.ptp(estimate.confidence_intervals(0.95), axis=1) / 2
            known = np.isfinite(truth) & np.isfinite(estimate.values)
            error = np.abs(estimate.values - truth)[known]
            beyond = error / half[known]
            worst = float(np.max(beyond, where=error > SMALL * np.nanmax(np.abs(truth)), initial=0.0))
            gravity = gravity_change(experiment, steady, result.parameters)
            right.append(gravity < MAX_GRAVITY_CHANGE and worst < MAX_BEYOND)
            row += f"gravity{gravity:>7.2%} inside{np.mean(beyond < 1):>7.1%} beyond{worst:>6.2f}"
        print(row + ("" if right[-1] else " !"), flush=True)
    return right


def main() -> None:
    """Print the coverage with everything, and without mismatch; or what noisy stamps do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--friction", choices=("simple", "auto"), default="simple")
    parser.add_argument("--stamps", action="store_true", help="jitter, loss and rate of the time stamps, in a table")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=STAMPED_ARMS, help="arms of that table")
    parser.add_argument("--rates", nargs="+", type=float, default=STAMP_RATES_HZ, help="of that table, Hz")
    options = parser.parse_args()
    if options.stamps:
        rows = [stamp_rows(arm, rate, options.seed) for arm in options.arms for rate in options.rates]
        print(f"{np.sum(rows)} of {np.size(rows)} right, or refused by the clock")
        return
    for title, conditions in (("Friction and noise as they are", MISMATCHED), ("White noise alone", CLEAN)):
        print(title)
        report(conditions, run(conditions, options.repetitions, options.seed, options.friction == "auto"))


if __name__ == "__main__":
    main()
