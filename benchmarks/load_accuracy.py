"""Accuracy and coverage of loads identified from joint torques, in simulations.

    python -m benchmarks.load_accuracy [--repetitions 300] [--seed 0] [--processes 2]

MuJoCo computes the dynamics of two arms without a load (40 s) and with one of 1 to 3 kg. The arm is identified from the
first recording, the load from the second, of 5 and of 20 s, on motions designed for each. Torque sensors at the gear
output have white noise of 0.1 N m per sample at 250 Hz; in the second half, their gains err by 0.3 %, and friction is
2 % of the largest torque, partly outside the model of Coulomb, viscous and offset terms.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification, LoadIdentification
from dynid_ros.model.friction import JointFriction
from dynid_ros.model.inertia import LoadBody

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from load_experiments import LoadConditions, draw

SENSORS = [
    LoadConditions(arm, duration, friction=friction, gain_error=gain_error, designs=3)
    for friction, gain_error in ((0.0, 0.0), (0.02, 0.003))
    for arm in ("panda", "ur10")
    for duration in (5.0, 20.0)
]
FRICTION = JointFriction(offset=True, smoothing=0.02)


@dataclass(frozen=True)
class Sample:
    """Outcome of one experiment.

    Attributes:
        mass: relative error.
        center: distance from the true center of mass, m.
        inertia: relative error of the tensor about the center of mass, Frobenius norm.
        held: (13,) whether the intervals contain the ten true parameters, and the center of mass.
    """

    mass: float
    center: float
    inertia: float
    held: np.ndarray


def measure(conditions: LoadConditions, seed: int) -> Sample | None:
    """Return the outcome of one experiment, or None if the identification refused it."""
    experiment = draw(conditions, np.random.default_rng(seed))
    links = LinkIdentification(
        experiment.robot, friction=FRICTION, prior_weight=1.0, torque_gain_error=conditions.gain_error
    )
    try:
        arm = links.fit(experiment.unloaded)
        result = LoadIdentification(experiment.robot, arm, torque_gain_error=conditions.gain_error).fit(
            experiment.loaded
        )
    except IdentificationError as error:
        print(f"seed {seed}: {error}", file=sys.stderr)
        return None
    truth = LoadBody(experiment.load, np.zeros((10, 10)))
    low, high = result.confidence_intervals().T
    center_low, center_high = result.center_intervals().T
    return Sample(
        mass=abs(result.mass / truth.mass - 1),
        center=float(np.linalg.norm(result.center - truth.center)),
        inertia=float(np.linalg.norm(result.possible.inertia - truth.inertia) / np.linalg.norm(truth.inertia)),
        held=np.concatenate(
            [
                (low <= experiment.load) & (experiment.load <= high),
                (center_low <= truth.center) & (truth.center <= center_high),
            ]
        ),
    )


def table(samples: Iterable[Sample | None]) -> str:
    """Return a row of the table."""
    complete = [sample for sample in samples if sample is not None]
    mass, center, inertia = (
        np.array([getattr(sample, name) for sample in complete]) for name in ("mass", "center", "inertia")
    )
    held = np.mean([sample.held for sample in complete], axis=0)
    texts = [
        f"{scale * np.median(x):6.2f} ({scale * np.quantile(x, 0.95):5.2f})"
        for x, scale in ((mass, 100), (center, 1e3), (inertia, 100))
    ]
    return (
        f"{len(complete):4d}  {'  '.join(texts)}   mass {held[0]:.1%}, moments {held[1:4].mean():.1%}, inertia "
        f"{held[4:10].mean():.1%}, centre {held[10:].mean():.1%}, all {held.mean():.1%}"
    )


def main() -> None:
    """Print a row for each of the conditions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--arm", action="append", help="arm: panda or ur10, may be repeated (default: both)")
    options = parser.parse_args()
    seeds = [1000 * options.seed + i for i in range(options.repetitions)]
    print(
        "runs  mass [%]       centre [mm]     inertia [%]: median (95th percentile); share of 95 % intervals that hold"
    )
    with ProcessPoolExecutor(options.processes) as pool:
        for conditions in SENSORS:
            if options.arm and conditions.arm not in options.arm:
                continue
            print(
                f"{conditions.arm}, {conditions.duration:g} s with the load, gains off by {conditions.gain_error:.1%}, "
                f"friction of {conditions.friction:.0%}"
            )
            results = pool.map(partial(measure, conditions), seeds, chunksize=4)
            print(table(tqdm(results, total=len(seeds), disable=None)), flush=True)


if __name__ == "__main__":
    main()
