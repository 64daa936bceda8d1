"""Flexible joints from noisy motors, torques and cameras, against the Cramér-Rao bound and the published method.

    python -m benchmarks.flexible_joints [--joints 1,2,3,4,5,6] [--six] [--repeats 10] [--base-frequency 1.0]

Table I of Lightcap and Banks (2007) with a motor unlike its link (J = 0.35 I, b = 0.3 v), 20 s at 250 Hz, noise of
0.011° (motors), 0.05° (links) and 0.5 % of the RMS torque. The link motion is integrated independently
(`test/flexible_experiments.py`). The camera clock lags by 5 ms, which the identification does not know. `--six` moves
all joints of an arm like the PA10 at once, with Pinocchio's dynamics.

error: mean over the repeats, % of the true value; RMS error: of single repeats; CV: their scatter, % of their mean
bound: smallest scatter of an unbiased estimate (`test/cramer_rao.py`), zero of link angles and clock unknown
RMS/bound: the best possible value is 1; smaller values occur by chance only
covered: share of the repeats whose 95 % interval contains the true value
printed: RMS error of the published method (least squares on eq. 6, stiffness from eq. 7) with the clock known
times: RMS error of the published method over ours

Needs `pip install pin pytest`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
import pa10
from cramer_rao import TERMS, Bound, single_joint_bound, six_joint_bound
from flexible_experiments import Experiment, single_joint, six_joints
from printed_method import printed_method

from dynid_ros.identification import FlexibleJointIdentification
from dynid_ros.model import RobotModel

CUTOFF_HZ = {1.0: 20.0, 0.2: 8.0}
"""Cutoff frequency of the published method's low-pass, by base frequency in Hz."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """Estimate of one experiment: base parameters of the links, then `TERMS` of all joints.

    Attributes:
        values: (p,) estimates.
        low, high: (p,) limits of the confidence intervals.
        clock: error of the clock offset, s.
        seconds: duration of the identification, s.
    """

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    clock: float
    seconds: float


def parameter_names(robot: RobotModel) -> list[str]:
    """Return the parameter names of a result, in the order of `Bound.names`."""
    base = robot.base_parameters()
    links = [base.names[column] for column in base.columns]
    return [*links, *(f"{term} {joint}" for term in TERMS for joint in robot.joint_names)]


def identify(experiment: Experiment) -> Estimate:
    """Return the package's estimate from motors, torques and camera."""
    began = time.perf_counter()
    result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording, links=experiment.links)
    seconds = time.perf_counter() - began
    places = [result.names.index(name) for name in parameter_names(experiment.robot)]
    low, high = result.confidence_intervals(CONFIDENCE)[places].T
    clock = result.runs[0].clock_offset - experiment.clock_offset
    return Estimate(result.parameters[places], low, high, clock, seconds)


def published_estimate(experiment: Experiment, cutoff: float) -> np.ndarray:
    """Return the parameters (p,) of the published method."""
    estimate = printed_method(experiment, cutoff)
    return np.concatenate([estimate.links, *(getattr(estimate, term) for term in TERMS)])


def resonance(robot: RobotModel, values: np.ndarray) -> float:
    """Return the resonance frequency of one link on its spring, Hz; the last link parameter is its inertia."""
    links = robot.base_parameters().rank
    return float(np.sqrt(values[links + 2] / values[links - 1]) / (2 * np.pi))


@dataclass(frozen=True)
class Case:
    """A kind of experiment, repeated.

    Attributes:
        name: title of the table.
        draw: function that returns the experiment of a repeat.
        truth: (p,) true values.
        bound: Cramér-Rao bound.
        cutoff: cutoff frequency of the published method's low-pass, Hz.
    """

    name: str
    draw: Callable[[int], Experiment]
    truth: np.ndarray
    bound: Bound
    cutoff: float


def single_case(joint: int, base_frequency: float) -> Case:
    """Return the case of one joint of table I."""
    bound = single_joint_bound(joint, base_frequency=base_frequency)
    return Case(
        f"joint {joint}",
        lambda repeat: single_joint(joint, repeat, base_frequency=base_frequency),
        bound.truth,
        bound,
        CUTOFF_HZ[base_frequency],
    )


def six_case() -> Case:
    """Return the case of all joints at once."""
    robot = pa10.arm_robot()
    base = robot.base_parameters()
    bound = six_joint_bound(tuple(base.columns))
    heavier = base.project(robot.parameters) / pa10.LIGHTER  # the model of the identification is too light
    truth = np.concatenate([heavier, bound.truth[base.rank :]])
    return Case("six joints", six_joints, truth, bound, CUTOFF_HZ[1.0])


def run(case: Case, repeats: int) -> None:
    """Identify all repeats of a case and print the table."""
    experiments = [case.draw(repeat) for repeat in range(repeats)]
    estimates = [identify(experiment) for experiment in experiments]
    published = np.array([published_estimate(experiment, case.cutoff) for experiment in experiments])
    robot = experiments[0].robot
    values = np.array([estimate.values for estimate in estimates])
    low = np.array([estimate.low for estimate in estimates])
    high = np.array([estimate.high for estimate in estimates])
    error = values - case.truth
    rms = np.sqrt(np.mean(error**2, axis=0))
    published_rms = np.sqrt(np.mean((published - case.truth) ** 2, axis=0))
    covered = ((low <= case.truth) & (case.truth <= high)).mean(axis=0)
    size = np.where(case.truth == 0, np.nan, np.abs(case.truth))
    print(f"\n{case.name}, {repeats} repeats, {np.mean([estimate.seconds for estimate in estimates]):.1f} s each")
    heads = ("truth", "error %", "RMS %", "CV %", "bound %", "RMS/bound", "covered", "printed %", "times")
    print(f"{'':<26}" + "".join(f"{head:>11}" for head in heads))
    cv = values.std(axis=0, ddof=1) / np.abs(values.mean(axis=0)) if repeats > 1 else np.full_like(size, np.nan)
    bound = case.bound.deviations
    table = (error.mean(axis=0) / size, rms / size, cv, bound / size, rms / bound, covered, published_rms / size)
    formats = (".2f", ".2f", ".2f", ".2f", ".2f", ".0%", ".1f")
    percent = (100, 100, 100, 100, 1, 1, 100)
    for i, name in enumerate(parameter_names(robot)):
        cells = [f"{n * row[i]:{form}}" for n, row, form in zip(percent, table, formats, strict=True)]
        cells = [f"{case.truth[i]:.4g}", *cells, f"{published_rms[i] / rms[i]:.1f}"]
        print(f"{name:<26}" + "".join(f"{cell:>11}" for cell in cells))
    clock = np.array([estimate.clock for estimate in estimates])
    print(
        f"clock {1e3 * clock.mean():+.3f} ms, RMS {1e3 * np.sqrt(np.mean(clock**2)):.3f} ms "
        f"(bound {1e3 * case.bound.clock:.3f}); intervals hold {covered.mean():.1%} of all"
    )
    if robot.n_joints == 1:
        true = resonance(robot, case.truth)
        errors = [abs(resonance(robot, value) / true - 1) for value in values]
        print(f"resonance {true:.2f} Hz, off by at most {100 * max(errors):.3f} %")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joints", default="1,2,3,4,5,6", help="numbers of joints, separated by commas; may be empty")
    parser.add_argument("--six", action="store_true")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--base-frequency", type=float, default=1.0, choices=sorted(CUTOFF_HZ))
    options = parser.parse_args(arguments)
    for joint in filter(None, options.joints.split(",")):
        run(single_case(int(joint), options.base_frequency), options.repeats)
    if options.six:
        run(six_case(), options.repeats)


if __name__ == "__main__":
    main()
