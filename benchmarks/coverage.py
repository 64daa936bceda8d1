"""Coverage of the 95 % intervals of links, springs, loads and flexible joints under many kinds of friction.

    python -m benchmarks.coverage [--repetitions 24] [--first 0] [--processes 2] [--arm talos --arm centauro]
        [--sensing jitter --sensing filtered] [--flexible 24] [--flexible-first 100] [--cameras]

MuJoCo computes the torques of two arms of package example-robot-data that were not used in development: unloaded (24 s
of motion of all joints and 24 s from pose to pose) and loaded (24 s from pose to pose). Half of the joints have a
spring, as a counterbalance. "Model friction" consists of the candidate terms (memory, Stribeck, load, saturation) with
random coefficients, and with shapes between the values of the search grid. "Other friction" contains effects outside
the model: memory with a position-dependent ripple, direction-dependent size, load-dependent growth, shear-thinning
viscosity. Torque gains err by 1 %, noise is correlated over up to 50 ms, the URDF errs by 20 %. Identification uses
default settings, so friction terms and springs are selected automatically.

Flexible joints are single joints as in table I of Lightcap and Banks (2007), each value up to 49 % off, moved by 6 to 9
random harmonics for 10 s. An encoder, or a camera with 5 ms delay, measures the link (`test/flexible_draws.py`).
Friction is the model's (sign function), MuJoCo's default, or MuJoCo's at its hardest setting. Seeds 0 to 29 were used
in development. The table has the coverage and the relative RMS error of k, J, b, v, c and I. With `--cameras`, friction
is the model's and each row is one link sensor: an encoder, or a camera with noise of 0.02°, 0.07° or 0.14°. Runs whose
remarks state that the intervals may not hold are listed, and do not count as covered.

The row "gravity" judges the gravity moments of `identified.yaml`, which gravity compensation uses.

"width" is the half width of an interval over the RMS error; the ideal value is 1.96. Springs count where one was
selected; "missed" counts true springs that were not selected. Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.estimation.estimate import interval
from dynid_ros.identification import FlexibleJointIdentification, LinkIdentification, LoadIdentification
from dynid_ros.identification.flexible.flexible_result import LOCAL_MINIMUM_TEXT
from dynid_ros.identified.gravity import IdentifiedGravity

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from flexible_draws import CAMERA_NOISES_DEG, FRICTIONS, draw as draw_flexible
from whole_experiments import ARMS, GAIN_ERROR, SENSING, draw

KINDS = ("links", "springs", "loads", "gravity")
FLEXIBLE_PARAMETERS = ("stiffness", "motor_inertia", "motor_viscous", "viscous", "coulomb", "Iyy1")
COVERAGE_GOAL = (0.93, 0.97)


@dataclass
class ExperimentResult:
    """Errors and interval half widths (k,) of one experiment, by kind of parameter.

    Attributes:
        ratio: errors over half widths.
        half: half widths of the intervals.
        names: names of base parameters, springs, or components of a load's ten parameters.
        missed: number of true springs that were not selected.
        refused: message of the error if the identification was refused, with the experiment.
        terms: terms of a flexible joint's motor.
    """

    ratio: dict[str, np.ndarray] = field(default_factory=dict)
    half: dict[str, np.ndarray] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    missed: int = 0
    refused: str = ""
    terms: tuple[str, ...] = ()

    def add(self, kind: str, names: list[str], interval: np.ndarray, truth: np.ndarray) -> None:
        """Add intervals (k, 2) and true values (k,); non-finite entries are left out."""
        low, high = interval.T
        finite = np.isfinite(low + high + truth)
        self.half[kind] = ((high - low) / 2)[finite]
        self.ratio[kind] = ((low + high) / 2 - truth)[finite] / self.half[kind]
        self.names[kind] = [name for name, is_finite in zip(names, finite, strict=True) if is_finite]


def measure(arm: str, known: bool, sensing: str, seed: int) -> ExperimentResult:
    """Return the result of one experiment with a rigid arm; `known` friction is that of the model."""
    experiment = draw(arm, seed, known=known, sensing=sensing)
    outcome = ExperimentResult()
    try:
        links = LinkIdentification(experiment.robot, torque_gain_error=GAIN_ERROR).fit(*experiment.unloaded)
        estimate = links.base_parameters
        truth = experiment.truth(links.base)
        intervals = estimate.confidence_intervals(0.95)
        is_spring = np.array([name.startswith("spring ") for name in estimate.names])
        for kind, mask in (("links", ~is_spring), ("springs", is_spring)):
            names = [name for name, selected in zip(estimate.names, mask, strict=True) if selected]
            outcome.add(kind, names, intervals[mask], truth[mask])
        gravity = IdentifiedGravity(experiment.robot, links.document())
        moments = interval(gravity.moments, gravity.std, gravity.dof)
        outcome.add("gravity", gravity.gravity.names, moments, gravity.gravity.project(experiment.links))
        true_springs = {name for name, value in experiment.drives.items() if value and name.startswith("spring ")}
        outcome.missed = len(true_springs - set(estimate.names))
        load = LoadIdentification(experiment.robot, links, torque_gain_error=GAIN_ERROR).fit(experiment.loaded)
        outcome.add("loads", [f"load {i}" for i in range(10)], load.confidence_intervals(), experiment.load)
    except IdentificationError as error:
        outcome.refused = f"{arm}, {'known' if known else 'unknown'} friction, {sensing}, seed {seed}: {error}"
    return outcome


def measure_flexible_joint(conditions: dict, seed: int) -> ExperimentResult:
    """Return the result of one flexible joint, relative to the true values; its kinds are `FLEXIBLE_PARAMETERS`."""
    experiment = draw_flexible(seed, **conditions)
    outcome = ExperimentResult()
    try:
        result = FlexibleJointIdentification(experiment.robot).fit(experiment.recording, links=experiment.links)
        intervals = result.confidence_intervals(0.95)
        if any(LOCAL_MINIMUM_TEXT in remark for remark in result.remarks):
            raise IdentificationError(next(remark for remark in result.remarks if LOCAL_MINIMUM_TEXT in remark))
        for name, truth in experiment.truth.items():
            kind = name.split()[0]
            if kind in FLEXIBLE_PARAMETERS:
                index = result.names.index(name)
                outcome.add(kind, [name], intervals[[index]] / truth, np.ones(1))
        outcome.terms = tuple(result.layout.motor_terms)
    except IdentificationError as error:
        outcome.refused = f"seed {seed}: {error}"
    return outcome


def flexible_row(title: str, outcomes: list[ExperimentResult]) -> str:
    """Return a row for flexible joints: coverage and relative RMS error by parameter, then the coverage of all."""
    cells = []
    for kind in FLEXIBLE_PARAMETERS:
        ratio = np.concatenate([outcome.ratio.get(kind, []) for outcome in outcomes])
        half = np.concatenate([outcome.half.get(kind, []) for outcome in outcomes])
        cells.append(f"{np.mean(np.abs(ratio) <= 1):7.0%} {np.sqrt(np.mean((ratio * half) ** 2)):6.2%}")
    ratio = np.concatenate([outcome.ratio[kind] for outcome in outcomes for kind in outcome.ratio])
    return f"{title:<28}{len(outcomes):5d}  {' '.join(cells)} {len(ratio):6d} {np.mean(np.abs(ratio) <= 1):6.1%}"


def flexible_conditions(options: argparse.Namespace) -> dict[str, dict]:
    """Return the arguments of `draw_flexible` by the title of their row."""
    if not options.cameras:
        return {friction: {"friction": friction} for friction in FRICTIONS}
    common = {"friction": "coulomb"}
    rows = {
        f"camera, {noise:g} deg": {"camera": True, "link_noise": np.deg2rad(noise), **common}
        for noise in CAMERA_NOISES_DEG
    }
    return {"encoders": {"camera": False, **common}, **rows}


def measure_flexible(pool: ProcessPoolExecutor, seeds: range, conditions: dict[str, dict]) -> None:
    """Print a row for each of the conditions, and one for all."""
    print(
        f"\n{'flexible joints':<28}{'runs':>5}  "
        + " ".join(f"{kind[:7]:>7} {'error':>6}" for kind in FLEXIBLE_PARAMETERS)
        + "    all"
    )
    everything: list[ExperimentResult] = []
    for title, arguments in conditions.items():
        outcomes = list(pool.map(partial(measure_flexible_joint, arguments), seeds))
        everything += outcomes
        print(flexible_row(title, outcomes), flush=True)
        print(f"  motor_coulomb chosen in {sum('motor_coulomb' in outcome.terms for outcome in outcomes)}")
        for seed, outcome in zip(seeds, outcomes, strict=True):
            if outcome.refused:
                print(f"  refused or named: {outcome.refused}")
            missed = {kind: round(float(r[0]), 1) for kind, r in outcome.ratio.items() if np.abs(r[0]) > 1}
            if missed:
                print(f"  seed {seed}, error in half intervals: {missed}")
    print(flexible_row("all", everything))


def summarize(outcomes: Iterable[ExperimentResult], kind: str) -> tuple[int, float, float]:
    """Return the number of intervals, their coverage, and the median ratio of half width to RMS error."""
    outcomes = list(outcomes)
    ratio = np.concatenate([outcome.ratio.get(kind, []) for outcome in outcomes])
    half = np.concatenate([outcome.half.get(kind, []) for outcome in outcomes])
    names = np.concatenate([np.asarray(outcome.names.get(kind, [])) for outcome in outcomes])
    if not len(ratio):
        return 0, np.nan, np.nan
    error = ratio * half
    widths = [np.median(half[names == n]) / np.sqrt(np.mean(error[names == n] ** 2)) for n in dict.fromkeys(names)]
    return len(ratio), float(np.mean(np.abs(ratio) <= 1.0)), float(np.median(widths))


def row(title: str, outcomes: list[ExperimentResult]) -> str:
    """Return a row of the table for rigid arms."""
    cells = []
    for kind in KINDS:
        count, covered, width = summarize(outcomes, kind)
        cells.append(f"{count:7d} {covered:6.1%} {width:6.2f}")
    missed = sum(outcome.missed for outcome in outcomes)
    return f"{title:<28}{len(outcomes):5d}  {'  '.join(cells)} {missed:7d}"


def main() -> None:
    """Print a row for each arm and kind of friction, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=24)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--arm", action="append", choices=ARMS)
    parser.add_argument("--sensing", action="append", choices=SENSING, help="sensing conditions (default: all)")
    parser.add_argument("--flexible", type=int, default=24, help="flexible-joint experiments per kind of friction")
    parser.add_argument("--flexible-first", type=int, default=100, help="first seed of the flexible-joint experiments")
    parser.add_argument("--cameras", action="store_true", help="compare link sensors instead of kinds of friction")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.repetitions)
    print(f"{'':<28}{'runs':>5}  " + "  ".join(f"{kind:>7} {'held':>6} {'width':>6}" for kind in KINDS) + "  missed")
    everything: dict[str, list[ExperimentResult]] = {}
    with ProcessPoolExecutor(options.processes) as pool:
        for arm in (options.arm or ARMS) if seeds else ():
            for known, sensing in product((True, False), options.sensing or SENSING):
                title = f"{'model' if known else 'other'} friction, {sensing}"
                outcomes = list(pool.map(partial(measure, arm, known, sensing), seeds))
                print(row(f"{arm}, {title}", outcomes), flush=True)
                everything.setdefault(title, []).extend(outcomes)
                for outcome in outcomes:
                    if outcome.refused:
                        print(f"  refused: {outcome.refused}")
        if options.flexible:
            flexible_seeds = range(options.flexible_first, options.flexible_first + options.flexible)
            measure_flexible(pool, flexible_seeds, flexible_conditions(options))
    for title, outcomes in everything.items():
        print(row(title, outcomes))
    if everything:
        print(row("all", [outcome for outcomes in everything.values() for outcome in outcomes]))
    print(f"goal: held {COVERAGE_GOAL[0]:.0%} to {COVERAGE_GOAL[1]:.0%}")


if __name__ == "__main__":
    main()
