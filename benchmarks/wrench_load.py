"""How well a wrist force sensor tells a load, and how often 95 % intervals hold the truth.

    python -m benchmarks.wrench_load [--repetitions 100] [--seed 0]

Random loads on a UR10 and a Panda in random Fourier motion, wrenches from MuJoCo. Sensors have noise, steps, a bias,
axes whose gains err by 0.5 %, a turn of 0.2° about each axis against the tip, and a clock 5 ms late; encoders have 2e-5
rad of noise. Nothing of it is told to the identification, but the size of the gain error.

Medians and 95 % quantiles of errors: mass in %, centre in mm, inertia about the centre of mass (largest entry of the
error over the largest moment) in %. "covered" is the share of 95 % intervals of all ten parameters that hold the truth;
of mass, and of centre, next to it.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from dynid_ros.identification.load.load_fit import fit_load
from dynid_ros.identification.load.wrench_source import WrenchSource
from dynid_ros.model.inertia import LoadBody

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from wrench_experiments import BUILT_IN, FT_300, STRAIN_GAUGE, CarriedMotion, Sensor, carried_motion

SENSORS = {"FT 300": FT_300, "strain gauge": STRAIN_GAUGE, "built in": BUILT_IN}
CONDITIONS = [
    ("ur10", 5.0, "FT 300"),
    ("ur10", 20.0, "FT 300"),
    ("panda", 5.0, "FT 300"),
    ("panda", 20.0, "FT 300"),
    ("ur10", 5.0, "strain gauge"),
    ("ur10", 20.0, "built in"),
]
MOTIONS = 20
"""Loads and motions of each condition, over which the repetitions are spread."""
NORMAL = 1.96
Form = Literal["filtered", "integral"]


def sample(
    carried: CarriedMotion, sensor: Sensor, rng: np.random.Generator, equations: Form
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of mass (%), centre (mm) and inertia (%); whether intervals hold: ten parameters, mass, centre."""
    recording = carried.record(sensor, rng)
    problem = WrenchSource(equations=equations, gain_error=sensor.gain_error).moving(carried.robot, [recording])
    found = fit_load(problem)
    values, (low, high) = found.estimate.values[:10], found.estimate.confidence_intervals()[:10].T
    body = LoadBody(values, found.estimate.covariance[:10, :10])
    truth = LoadBody(carried.load, np.zeros((10, 10)))
    errors = (
        100 * abs(body.mass / truth.mass - 1),
        1000 * np.linalg.norm(body.center - truth.center),
        100 * np.abs(body.inertia - truth.inertia).max() / truth.moments[-1],
    )
    inside = (low <= carried.load) & (carried.load <= high)
    center = np.abs(body.center - truth.center) <= NORMAL * body.center_errors
    return np.array(errors), np.concatenate([inside, inside[:1], center])


def run(repetitions: int, seed: int, equations: Form) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, errors (R, 3) and coverage (R, 14) of each condition."""
    with tqdm(total=repetitions * len(CONDITIONS), disable=None) as progress:
        for number, (name, duration, kind) in enumerate(CONDITIONS):
            rng, found = np.random.default_rng([seed, number]), []
            for repetition in range(repetitions):
                carried = carried_motion(name, duration, repetition % MOTIONS)
                found.append(sample(carried, SENSORS[kind], rng, equations))
                progress.update()
            errors, covered = (np.array(values) for values in zip(*found, strict=True))
            yield f"{name}, {duration:g} s, {kind}", errors, covered


def main() -> None:
    """Print a row per condition, and of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--equations", choices=("filtered", "integral"), default="filtered")
    options = parser.parse_args()
    print(f"{'':<26}{'mass':>14}{'centre':>14}{'inertia':>14}{'covered':>10}{'mass':>8}{'centre':>8}")
    print(f"{'':<26}{'% 50/95':>14}{'mm 50/95':>14}{'% 50/95':>14}")
    every = []
    for name, errors, covered in run(options.repetitions, options.seed, options.equations):
        every.append(covered)
        sizes = "".join(
            f"{median:>7.2f}/{high:<6.2f}"
            for median, high in zip(np.median(errors, axis=0), np.quantile(errors, 0.95, axis=0), strict=True)
        )
        shares = [covered[:, :10].mean(), covered[:, 10].mean(), covered[:, 11:].mean()]
        print(f"{name:<26}{sizes}{shares[0]:>10.1%}{shares[1]:>8.1%}{shares[2]:>8.1%}", flush=True)
    whole = np.concatenate(every)
    by_parameter = ", ".join(f"{share:.1%}" for share in whole[:, :10].mean(axis=0))
    print(f"all {len(whole)} runs: {whole[:, :10].mean():.1%} covered; by parameter {by_parameter}")


if __name__ == "__main__":
    main()
