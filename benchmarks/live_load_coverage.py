"""Coverage of the 95 % intervals of a load, followed live and fitted to the same recording.

    python -m benchmarks.live_load_coverage [--arm tiago_pro --arm g1] [--repetitions 100] [--first 0]
        [--rate 100] [--loss 0] [--processes 2]

MuJoCo computes the dynamics of an arm without load (24 s, for the identification of its links with a URDF that errs by
20 %) and with a load of 15 to 45 % of its mass (24 s: half of the runs from pose to pose with dwells, half with one
repeated motion). Friction contains effects outside the model: memory (Dahl's presliding), a Stribeck term, a
position-dependent ripple, direction-dependent size, a part that grows with the torque, and shear-thinning viscosity.
Gains err by 1 %. `--loss 0.03` removes 3 % of the samples, one by one, in bursts and once for 0.3 s, and adds jitter to
the stamps. Use other arms (--arm ur5 --arm panda --arm demo) for development; the two default arms are held out.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import LinkIdentification, LoadIdentification, OnlineIdentification
from dynid_ros.model.friction import JointFriction

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from live_load_experiments import GAIN_ERROR, JUDGED, RATE, draw_live, lose_samples

ESTIMATE_TIMES_S = (8.0, 24.0)
"""Times at which the load followed live is evaluated."""
MAX_RATE_HZ = 250.0
"""Maximum rate of the node."""
FRICTION = JointFriction(offset=True, smoothing=0.02)
GROUPS = {"all": slice(0, 10), "mass": slice(0, 1), "moments": slice(1, 4), "inertia": slice(4, 10)}
ROWS = (*(f"live, {time:g} s" for time in ESTIMATE_TIMES_S), "one fit")


def measure(name: str, rate: float, loss: float, seed: int) -> np.ndarray:
    """Return errors over half widths, and half widths: (2, rows, 10); NaN where the data do not determine them."""
    experiment = draw_live(name, ESTIMATE_TIMES_S[-1], seed, rate)
    robot, truth = experiment.robot, experiment.load
    judged = np.full((2, len(ROWS), 10), np.nan)
    links = LinkIdentification(robot, friction=FRICTION, prior_weight=1.0, torque_gain_error=GAIN_ERROR)
    try:
        arm = links.fit(experiment.unloaded)
    except IdentificationError as error:
        print(f"{name}, seed {seed}: {error}", file=sys.stderr)
        return judged
    online = OnlineIdentification(robot, arm=arm, max_rate=MAX_RATE_HZ, torque_gain_error=GAIN_ERROR)
    remaining_times = list(ESTIMATE_TIMES_S)
    loaded = lose_samples(experiment.loaded, loss, seed)
    for time, q, torque in zip(loaded.time, loaded.position, loaded.torque, strict=True):
        online.sample(time, q, torque)
        if remaining_times and time >= remaining_times[0] - 1.5 / 100:
            remaining_times.pop(0)
            _judge(judged[:, -2 - len(remaining_times)], online.estimate().load(), truth)
    _judge(judged[:, -2], online.estimate().load(), truth)
    if online.changes:
        print(f"{name}, seed {seed}: changes {online.changes}", file=sys.stderr)
    try:
        fitted = LoadIdentification(robot, arm, torque_gain_error=GAIN_ERROR).fit(loaded)
        _judge(judged[:, -1], fitted, truth)
    except IdentificationError as error:
        print(f"{name}, seed {seed}: {error}", file=sys.stderr)
    return judged


def _judge(row: np.ndarray, result, truth: np.ndarray) -> None:
    low, high = result.confidence_intervals().T
    row[1] = (high - low) / 2
    row[0] = (truth - (low + high) / 2) / row[1]


def lines(judged: np.ndarray) -> Sequence[str]:
    """Return a text for each row: number of intervals, coverage by kind of parameter, and width."""
    texts = []
    for k, row in enumerate(ROWS):
        error, half = judged[:, 0, k], judged[:, 1, k]
        finite = np.isfinite(error)
        held = {name: np.abs(error[:, part])[finite[:, part]] <= 1 for name, part in GROUPS.items()}
        shares = [f"{name} {np.mean(inside):6.1%}" for name, inside in held.items() if inside.size]
        width = np.nanmedian(half[:, 0]) if finite[:, 0].any() else np.nan
        texts.append(f"  {row:12} {finite.sum():5d} intervals: {', '.join(shares)}; mass ± {width:.3f} kg (median)")
    return texts


def main() -> None:
    """Print a table for each arm, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", action="append", help=f"default: {', '.join(JUDGED)}")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--rate", type=float, default=RATE, help="sample rate, Hz")
    parser.add_argument("--loss", type=float, default=0.0, help="fraction of lost samples")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.repetitions)
    everything = []
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.arm or JUDGED:
            judged = np.array(list(pool.map(partial(measure, name, options.rate, options.loss), seeds)))
            everything.append(judged)
            print(f"{name}, {len(judged)} experiments", *lines(judged), sep="\n", flush=True)
    print("all", *lines(np.concatenate(everything)), sep="\n")


if __name__ == "__main__":
    main()
