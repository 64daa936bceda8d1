"""Accuracy and coverage of loads identified by a wrist force sensor.

    python -m benchmarks.wrench_load [--repetitions 100] [--seed 0]

Random loads on a UR10 and a Panda in random Fourier motion, wrenches from MuJoCo. Sensors have noise, quantization, a
bias, gain errors of 0.5 % per axis, a misalignment of 0.2° about each axis of the tip, and a clock that lags by 5 ms;
encoders have 2e-5 rad of noise. The identification only knows the size of the gain error.

The table has medians and 95 % quantiles of errors: mass in %, centre in mm, inertia about the centre of mass (largest
entry of the error over the largest moment) in %. "covered" is the share of 95 % intervals of all ten parameters that
contain the true value; the next columns are the shares for the mass and the centre.

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
"""Number of loads and motions of each condition; the repetitions are spread over them."""
NORMAL = 1.96
Form = Literal["filtered", "integral"]


def sample(
    carried: CarriedMotion, sensor: Sensor, rng: np.random.Generator, equations: Form
) -> tuple[np.ndarray, np.ndarray]:
    """Return errors of mass (%), centre (mm) and inertia (%), and coverage of ten parameters, mass, centre."""
    recording = carried.record(sensor, rng)
    problem = WrenchSource(equations=equations, gain_error=sensor.gain_error).moving(carried.robot, [recording])
    fit = fit_load(problem)
    values = fit.estimate.values[:10]
    low, high = fit.estimate.confidence_intervals()[:10].T
    body = LoadBody(values, fit.estimate.covariance[:10, :10])
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
    """Yield name, errors (R, 3) and coverage (R, 14) of each condition."""
    with tqdm(total=repetitions * len(CONDITIONS), disable=None) as progress:
        for number, (name, duration, kind) in enumerate(CONDITIONS):
            rng = np.random.default_rng([seed, number])
            outcomes = []
            for repetition in range(repetitions):
                carried = carried_motion(name, duration, repetition % MOTIONS)
                outcomes.append(sample(carried, SENSORS[kind], rng, equations))
                progress.update()
            errors, covered = (np.array(values) for values in zip(*outcomes, strict=True))
            yield f"{name}, {duration:g} s, {kind}", errors, covered


def main() -> None:
    """Print a row for each condition, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--equations", choices=("filtered", "integral"), default="filtered")
    options = parser.parse_args()
    print(f"{'':<26}{'mass':>14}{'centre':>14}{'inertia':>14}{'covered':>10}{'mass':>8}{'centre':>8}")
    print(f"{'':<26}{'% 50/95':>14}{'mm 50/95':>14}{'% 50/95':>14}")
    coverages = []
    for name, errors, covered in run(options.repetitions, options.seed, options.equations):
        coverages.append(covered)
        sizes = "".join(
            f"{median:>7.2f}/{high:<6.2f}"
            for median, high in zip(np.median(errors, axis=0), np.quantile(errors, 0.95, axis=0), strict=True)
        )
        shares = [covered[:, :10].mean(), covered[:, 10].mean(), covered[:, 11:].mean()]
        print(f"{name:<26}{sizes}{shares[0]:>10.1%}{shares[1]:>8.1%}{shares[2]:>8.1%}", flush=True)
    whole = np.concatenate(coverages)
    by_parameter = ", ".join(f"{share:.1%}" for share in whole[:, :10].mean(axis=0))
    print(f"all {len(whole)} runs: {whole[:, :10].mean():.1%} covered; by parameter {by_parameter}")


if __name__ == "__main__":
    main()
