"""How often 95 % intervals of a load hold the truth, followed live and fitted to the same recording.

    python -m benchmarks.live_load_coverage [--arm tiago_pro --arm g1] [--repetitions 100] [--first 0]
        [--rate 100] [--loss 0] [--processes 2]

MuJoCo's dynamics of an arm alone (24 s, from which its links are identified, with a URDF that is off by 20 %) and with
a load of 15 to 45 % of its mass (24 s: half of the runs from pose to pose with dwells, half one motion again and
again). Friction remembers (Dahl's presliding), and has a Stribeck term, a ripple over the position, another size in
either direction, a part that grows with the torque, and thinning viscosity, none of which the model has. Gains are off
by 1 %. With `--loss 0.03` a part of 3 % of the samples is lost, one by one, in bursts and once for 0.3 s, and stamps
have jitter. Whoever changes the estimator looks at other arms (--arm ur5 --arm panda --arm demo), not at these two.

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
from live_load_experiments import GAIN_ERROR, JUDGED, RATE, draw_live, lossy

MOMENTS = (8.0, 24.0)
"""At which the load followed live is asked for, s."""
MAX_RATE = 250.0
"""Hz, as of the node."""
FRICTION = JointFriction(offset=True, smoothing=0.02)
GROUPS = {"all": slice(0, 10), "mass": slice(0, 1), "moments": slice(1, 4), "inertia": slice(4, 10)}
ROWS = (*(f"live, {moment:g} s" for moment in MOMENTS), "one fit")


def measure(name: str, rate: float, loss: float, seed: int) -> np.ndarray:
    """Errors over half widths (rows, 10), and half widths: (2, rows, 10); NaN where the data do not decide."""
    experiment = draw_live(name, MOMENTS[-1], seed, rate)
    robot, truth = experiment.robot, experiment.load
    found = np.full((2, len(ROWS), 10), np.nan)
    links = LinkIdentification(robot, friction=FRICTION, prior_weight=1.0, torque_gain_error=GAIN_ERROR)
    try:
        arm = links.fit(experiment.unloaded)
    except IdentificationError as error:
        print(f"{name}, seed {seed}: {error}", file=sys.stderr)
        return found
    online = OnlineIdentification(robot, arm=arm, max_rate=MAX_RATE, torque_gain_error=GAIN_ERROR)
    moments = list(MOMENTS)
    loaded = lossy(experiment.loaded, loss, seed)
    for time, q, torque in zip(loaded.time, loaded.position, loaded.torque, strict=True):
        online.sample(time, q, torque)
        if moments and time >= moments[0] - 1.5 / 100:
            moments.pop(0)
            _judge(found[:, -2 - len(moments)], online.estimate().load(), truth)
    _judge(found[:, -2], online.estimate().load(), truth)
    if online.changes:
        print(f"{name}, seed {seed}: changes {online.changes}", file=sys.stderr)
    try:
        fitted = LoadIdentification(robot, arm, torque_gain_error=GAIN_ERROR).fit(loaded)
        _judge(found[:, -1], fitted, truth)
    except IdentificationError as error:
        print(f"{name}, seed {seed}: {error}", file=sys.stderr)
    return found


def _judge(row: np.ndarray, result, truth: np.ndarray) -> None:
    low, high = result.confidence_intervals().T
    row[1] = (high - low) / 2
    row[0] = (truth - (low + high) / 2) / row[1]


def lines(found: np.ndarray) -> Sequence[str]:
    """For each row how many intervals there are, which share holds the truth, and how wide they are."""
    texts = []
    for k, row in enumerate(ROWS):
        error, half = found[:, 0, k], found[:, 1, k]
        known = np.isfinite(error)
        held = {name: np.abs(error[:, own])[known[:, own]] <= 1 for name, own in GROUPS.items()}
        shares = [f"{name} {np.mean(own):6.1%}" for name, own in held.items() if own.size]
        width = np.nanmedian(half[:, 0]) if known[:, 0].any() else np.nan
        texts.append(f"  {row:12} {known.sum():5d} intervals: {', '.join(shares)}; mass ± {width:.3f} kg (median)")
    return texts


def main() -> None:
    """Print a table for each arm and for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", action="append", help=f"default: {', '.join(JUDGED)}")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--rate", type=float, default=RATE, help="Hz")
    parser.add_argument("--loss", type=float, default=0.0, help="part of the samples that is lost")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.repetitions)
    everything = []
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.arm or JUDGED:
            found = np.array(list(pool.map(partial(measure, name, options.rate, options.loss), seeds)))
            everything.append(found)
            print(f"{name}, {len(found)} experiments", *lines(found), sep="\n", flush=True)
    print("all", *lines(np.concatenate(everything)), sep="\n")


if __name__ == "__main__":
    main()
