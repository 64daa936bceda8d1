"""Coverage of the 95 % intervals of base parameters, in simulations with effects outside the model.

    python -m benchmarks.link_coverage [--repetitions 64] [--seed 0] [--friction auto]

Two arms, two noise correlations, two durations. Friction is fitted with Coulomb, viscous and offset terms but contains
more, and torque gains err by 1 %. A second table has white noise and friction of the fitted model. "naively" is the
coverage with the standard errors of white noise. "width" is the half width of an interval, relative to the true value
of parameters above 1 % of the arm's largest, and relative to the RMS error, where the ideal value is 1.96.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.identification import LinkIdentification

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from coverage_experiments import Conditions, draw

MISMATCHED = [
    Conditions(arm, duration, correlation, rotors=0.3 * (duration < 25))
    for arm in ("ur10", "panda")
    for duration in (20.0, 30.0)
    for correlation in (0.02, 0.1)
]
CLEAN = [Conditions(arm, 25.0, correlation=0.0, mismatch=0.0, gain_error=0.0) for arm in ("ur10", "panda")]


NAIVE_INTERVAL = 4
"""Number of experiments of which one is solved again with the standard errors of white noise."""
SMALL_PARAMETER = 0.01
"""Fraction of an arm's largest parameter, in SI units; smaller ones are often zero, without a useful relative width."""


@dataclass(frozen=True)
class Sample:
    """Estimates of one experiment, (b,) each.

    Attributes:
        names: base parameters.
        truth: true values.
        error: errors of the estimates.
        half: half widths of the intervals.
        naive: standard errors under white noise; NaN if they were not computed.
    """

    names: np.ndarray
    truth: np.ndarray
    error: np.ndarray
    half: np.ndarray
    naive: np.ndarray


class Coverage:
    """Coverage of samples, with the parameters of all samples in one row (R b,).

    Attributes:
        count: number R of samples.
        names, truth, error, half, naive: the attributes of `Sample`.
        covered: whether each interval contains the true value.
        largest: largest absolute true value of the sample.
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
        """Coverage with the standard errors of white noise."""
        finite = np.isfinite(self.naive)
        return float(np.mean(np.abs(self.error[finite]) <= 1.96 * self.naive[finite]))

    @property
    def by_name(self) -> dict[str, float]:
        """Coverage by parameter."""
        return {name: float(self.covered[self.names == name].mean()) for name in dict.fromkeys(self.names)}

    @property
    def relative_width(self) -> float:
        """Median ratio of half width to true value, over parameters that are not small."""
        is_large = np.abs(self.truth) > self.largest * SMALL_PARAMETER
        return float(np.median(self.half[is_large] / np.abs(self.truth[is_large])))

    @property
    def useful_width(self) -> float:
        """Median over the parameters of the ratio of half width to RMS error."""
        masks = [self.names == name for name in dict.fromkeys(self.names)]
        ratios = [np.median(self.half[mask]) / np.sqrt(np.mean(self.error[mask] ** 2)) for mask in masks]
        return float(np.median(ratios))


def sample(conditions: Conditions, rng: np.random.Generator, *, auto: bool = False, with_naive: bool = False) -> Sample:
    """Draw an experiment and return the estimates."""
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
    finite = np.isfinite(truth)
    values = (np.array(estimate.names), truth, estimate.values - truth, (high - low) / 2, naive)
    return Sample(*(value[finite] for value in values))


def run(conditions: Sequence[Conditions], repetitions: int, seed: int, auto: bool = False) -> Iterator[list[Sample]]:
    """Yield the samples of each of the conditions."""
    with tqdm(total=len(conditions) * repetitions, disable=None) as progress:
        for number, one in enumerate(conditions):
            rng, samples = np.random.default_rng([seed, number]), []
            for repetition in range(repetitions):
                samples.append(sample(one, rng, auto=auto, with_naive=repetition % NAIVE_INTERVAL == 0))
                progress.update()
            yield samples


def report(conditions: Sequence[Conditions], samples_by_condition: Iterable[list[Sample]]) -> None:
    """Print a row for each of the conditions, each arm, and all."""
    print(f"{'':<34}{'simulations':>12}{'covered':>9}{'naively':>9}{'width/value':>13}{'width/RMS error':>17}")
    samples_by_arm: dict[str, list[Sample]] = {}
    for one, samples in zip(conditions, samples_by_condition, strict=True):
        rotors = ", rotors" if one.rotors else ""
        row(f"{one.arm}, {one.duration:g} s, {1000 * one.correlation:g} ms{rotors}", Coverage(samples))
        samples_by_arm.setdefault(one.arm, []).extend(samples)
    for arm, samples in samples_by_arm.items():
        row(arm, Coverage(samples))
    row("all", Coverage([one for samples in samples_by_arm.values() for one in samples]))
    for arm, samples in samples_by_arm.items():
        shares = Coverage(samples).by_name
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        print(f"{arm}: each of {len(shares)} parameters {shares[low]:.1%} ({low}) to {shares[high]:.1%} ({high})")


def row(name: str, coverage: Coverage) -> None:
    """Print a row."""
    print(
        f"{name:<34}{coverage.count:>12}{coverage.covered.mean():>9.1%}{coverage.naively:>9.1%}"
        f"{coverage.relative_width:>13.1%}{coverage.useful_width:>17.2f}",
        flush=True,
    )


def main() -> None:
    """Print the coverage with all disturbances, and without model errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--friction", choices=("simple", "auto"), default="simple")
    options = parser.parse_args()
    for title, conditions in (
        ("Friction outside the model and coloured noise", MISMATCHED),
        ("White noise alone", CLEAN),
    ):
        print(title)
        report(conditions, run(conditions, options.repetitions, options.seed, options.friction == "auto"))


if __name__ == "__main__":
    main()
