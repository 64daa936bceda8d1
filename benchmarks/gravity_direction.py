"""How far off the direction of gravity is that was found along with parameters, and whether its interval holds.

    python -m benchmarks.gravity_direction [--gravity 200] [--links 40] [--first 0] [--processes 2]

Level bases, bases tilted by up to 10 degrees, and walls (90 degrees, to any side, and up to 3 more); a level base is
configured. Gravity: arms by Pinocchio whose joints stick (see benchmarks/gravity_coverage.py), 30 poses, each from both
sides. Links: MuJoCo's torques with friction that the model lacks and coloured noise (see benchmarks/link_coverage.py).
Torque gains are off by 1 %. "held" counts both angles of each direction; "moments" the intervals of moments, or of base
parameters, that count the direction as unknown. Needs `pip install mujoco pin pytest example-robot-data`.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.errors import IdentificationError
from dynid_ros.identification import GravityIdentification, LinkIdentification
from dynid_ros.identified.gravity_direction import ESTIMATED, GravityDirection
from dynid_ros.model.gravity_direction import angle_between, turned
from dynid_ros.model.robot import STANDARD_GRAVITY

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from coverage_experiments import Conditions, draw
from sticking_arms import StickingArm

from benchmarks.gravity_coverage import sticking_arm

MOUNTS = ("level", "tilted", "wall")
ARMS = {"gravity": ("humanoid", "human"), "links": ("ur10", "panda")}
GAIN_ERROR = 0.01
POSES = 30


@dataclass(frozen=True)
class Sample:
    """Of one experiment.

    Attributes:
        miss: angle between found and true gravity, degrees.
        held: (2,) whether each interval of an angle holds.
        half: (2,) half intervals, degrees.
        moments: (k,) whether each interval of a parameter holds, those that are known.
    """

    miss: float
    half: np.ndarray
    held: np.ndarray
    moments: np.ndarray


def mounted(mount: str, rng: np.random.Generator) -> np.ndarray:
    """Gravity (3,) in the frame of a base that is mounted so."""
    side = rng.uniform(0, 2 * np.pi)
    angle = {"level": 0.0, "tilted": rng.uniform(0, 10), "wall": 90 + rng.uniform(-3, 3)}[mount]
    return turned(STANDARD_GRAVITY, np.radians(angle) * np.array([np.cos(side), np.sin(side), 0.0]))


def gravity(arm: str, mount: str, seed: int) -> Sample:
    """One identification of gravity."""
    rng = np.random.default_rng([seed, MOUNTS.index(mount), ARMS["gravity"].index(arm)])
    robot, truth = sticking_arm(arm).robot, mounted(mount, rng)
    true = StickingArm(robot.with_gravity(truth))
    samples = true.samples(true.both_sides(true.holds(POSES, rng)), true.friction(rng), rng)
    samples = replace(samples, torque=samples.torque * (1 + GAIN_ERROR * rng.standard_normal(robot.n_joints)))
    found = GravityIdentification(robot, torque_gain_error=GAIN_ERROR, gravity_direction=ESTIMATED).fit_samples(samples)
    low, high = found.confidence_intervals().T
    known = np.isfinite(low + true.truth)
    return judged(found.direction, truth, ((low <= true.truth) & (true.truth <= high))[known])


def links(arm: str, mount: str, seed: int) -> Sample:
    """One identification of links."""
    rng = np.random.default_rng([seed, MOUNTS.index(mount), ARMS["links"].index(arm)])
    truth, conditions = mounted(mount, rng), Conditions(arm)
    experiment = draw(conditions, rng, truth)
    found = LinkIdentification(
        experiment.robot,
        friction=conditions.friction,
        estimator="weighted",
        torque_gain_error=GAIN_ERROR,
        gravity_direction=ESTIMATED,
    ).fit(experiment.recording)
    low, high = found.base_parameters.confidence_intervals(0.95).T
    values = experiment.truth(found.base)
    known = np.isfinite(low + values)
    return judged(found.direction, truth, ((low <= values) & (values <= high))[known])


def judged(direction: GravityDirection | None, truth: np.ndarray, moments: np.ndarray) -> Sample:
    """Compare a direction with the true gravity (3,)."""
    assert direction is not None
    turn = direction.axes @ np.cross(direction.gravity, truth) / (truth @ truth)
    miss = np.degrees(angle_between(direction.gravity, truth))
    half = direction.half_widths()
    return Sample(float(miss), np.degrees(half), np.abs(turn) <= half, moments)


def one(kind: str, arm: str, mount: str, seed: int) -> Sample | None:
    """One experiment; None if it was refused."""
    try:
        return {"gravity": gravity, "links": links}[kind](arm, mount, seed)
    except IdentificationError as error:
        print(f"{kind}, {arm}, {mount}, seed {seed}: {error}", file=sys.stderr)
        return None


def row(title: str, samples: list[Sample]) -> str:
    """One line of the table."""
    miss = np.array([sample.miss for sample in samples])
    held, moments = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("held", "moments"))
    return (
        f"{title:<30}{len(samples):>5}{np.median(miss):>9.3f}{np.quantile(miss, 0.95):>9.3f}{miss.max():>9.3f}"
        f"{np.median([sample.half for sample in samples]):>9.3f}{held.mean():>8.1%}{moments.mean():>9.1%}"
    )


def main() -> None:
    """Print a line for each kind, arm and mount, and for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gravity", type=int, default=200, help="runs of each arm and mount")
    parser.add_argument("--links", type=int, default=40, help="likewise")
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print(
        f"{'degrees off':<30}{'runs':>5}{'median':>9}{'95 %':>9}{'most':>9}{'half':>9}{'held':>8}{'moments':>9}",
        flush=True,
    )
    with ProcessPoolExecutor(options.processes) as pool:
        for kind, count in (("gravity", options.gravity), ("links", options.links)):
            everything: list[Sample] = []
            for arm in ARMS[kind] if count else ():
                for mount in MOUNTS:
                    seeds = range(options.first, options.first + count)
                    found = [s for s in pool.map(partial(one, kind, arm, mount), seeds) if s is not None]
                    everything += found
                    print(
                        row(f"{kind}: {arm}, {mount}", found) if found else f"{kind}: {arm}, {mount}: none", flush=True
                    )
            if everything:
                print(row(f"{kind}: all", everything), flush=True)


if __name__ == "__main__":
    main()
