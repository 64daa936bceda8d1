"""Accuracy and coverage of the estimated direction of gravity.

    python -m benchmarks.gravity_direction [--gravity 200] [--links 40] [--chosen] [--first 0] [--processes 2]

Bases are level, tilted by up to 10 degrees, or mounted on a wall (90 degrees to any side, and up to 3 more); the
identification starts from a level base. Gravity: arms by Pinocchio whose joints stick (see
benchmarks/gravity_coverage.py), 30 poses, each from both sides. Links: MuJoCo's torques with friction outside the model
and coloured noise (see benchmarks/link_coverage.py). Torque gains err by 1 %. "held" is the coverage of both angles of
the direction; "moments" is the coverage of moments, or of base parameters, whose intervals include the uncertainty of
the direction. "bound" is the RMS Cramér-Rao bound of the angle for links: the uncertainty due to noise and gains alone,
with Coulomb and viscous friction and an offset.

Needs `pip install mujoco pin pytest example-robot-data`.
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
from dynid_ros.model.gravity import angle_between, turned
from dynid_ros.model.robot import STANDARD_GRAVITY

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from coverage_experiments import Conditions, Experiment, draw
from sticking_arms import StickingArm

from benchmarks.gravity_coverage import sticking_arm

MOUNTS = ("level", "tilted", "wall")
ARMS = {"gravity": ("humanoid", "human"), "links": ("ur10", "panda")}
GAIN_ERROR = 0.01
N_POSES = 30
DERIVATIVE_STEP_RAD = 1e-4
SMOOTHING_VELOCITY = 0.01
"""Velocity, rad/s, within which Coulomb friction changes its sign."""


@dataclass(frozen=True)
class Sample:
    """Outcome of one experiment.

    Attributes:
        miss: angle between estimated and true gravity, degrees.
        half: (2,) half widths of the angles' intervals, degrees.
        held: (2,) whether each interval contains the true angle.
        moments: (k,) whether each determined parameter's interval contains the true value.
        bound: Cramér-Rao bound of the angle, degrees; NaN where it is not computed.
    """

    miss: float
    half: np.ndarray
    held: np.ndarray
    moments: np.ndarray
    bound: float = np.nan


def mounted(mount: str, rng: np.random.Generator) -> np.ndarray:
    """Return gravity (3,) in the frame of a base with this mounting."""
    side = rng.uniform(0, 2 * np.pi)
    angle = {"level": 0.0, "tilted": rng.uniform(0, 10), "wall": 90 + rng.uniform(-3, 3)}[mount]
    return turned(STANDARD_GRAVITY, np.radians(angle) * np.array([np.cos(side), np.sin(side), 0.0]))


def gravity(arm: str, mount: str, seed: int) -> Sample:
    """Return the outcome of one gravity identification."""
    rng = np.random.default_rng([seed, MOUNTS.index(mount), ARMS["gravity"].index(arm)])
    robot = sticking_arm(arm).robot
    truth = mounted(mount, rng)
    true = StickingArm(robot.with_gravity(truth))
    samples = true.samples(true.both_sides(true.holds(N_POSES, rng)), true.friction(rng), rng)
    samples = replace(samples, torque=samples.torque * (1 + GAIN_ERROR * rng.standard_normal(robot.n_joints)))
    result = GravityIdentification(robot, torque_gain_error=GAIN_ERROR, gravity_direction=ESTIMATED).fit_samples(
        samples
    )
    low, high = result.confidence_intervals().T
    finite = np.isfinite(low + true.truth)
    return judged(result.direction, truth, ((low <= true.truth) & (true.truth <= high))[finite])


def links(arm: str, mount: str, seed: int, *, chosen: bool = False) -> Sample:
    """Return the outcome of one link identification; with `chosen`, friction is selected automatically."""
    rng = np.random.default_rng([seed, MOUNTS.index(mount), ARMS["links"].index(arm)])
    truth, conditions = mounted(mount, rng), Conditions(arm)
    experiment = draw(conditions, rng, truth)
    settings = {} if chosen else {"friction": conditions.friction, "estimator": "weighted"}
    result = LinkIdentification(
        experiment.robot, torque_gain_error=GAIN_ERROR, gravity_direction=ESTIMATED, **settings
    ).fit(experiment.recording)
    low, high = result.base_parameters.confidence_intervals(0.95).T
    values = experiment.truth(result.base)
    finite = np.isfinite(low + values)
    sample = judged(result.direction, truth, ((low <= values) & (values <= high))[finite])
    return replace(sample, bound=bound(experiment, conditions, truth))


def bound(experiment: Experiment, conditions: Conditions, truth: np.ndarray) -> float:
    """Return the Cramér-Rao bound of the angle between estimated and true gravity (3,), degrees.

    Noise is whitened by its own recursion. Links, gains (1 %), Coulomb and viscous friction, and offsets are nuisance
    parameters.
    """
    (q, qd, qdd), recording = experiment.motion, experiment.recording
    robot = experiment.robot.with_gravity(truth)
    keep = np.exp(-np.median(np.diff(recording.time)) / conditions.correlation)
    axes = np.linalg.svd(truth[None])[2][1:]
    down, up = (
        np.array([robot.with_gravity(turned(truth, turn * axis)).gravity_torque(q, experiment.links) for axis in axes])
        for turn in (-DERIVATIVE_STEP_RAD, DERIVATIVE_STEP_RAD)
    )
    regressor = robot.torque_regressor(q, qd, qdd)
    whitened = []
    for j, unit in enumerate(np.eye(robot.n_joints)):
        terms = [
            np.tanh(qd[:, j] / SMOOTHING_VELOCITY),
            qd[:, j],
            np.ones(len(q)),
            GAIN_ERROR * experiment.torque[:, j],
        ]
        tilt = (up - down)[:, :, j].T / (2 * DERIVATIVE_STEP_RAD)
        drive = np.einsum("kt,i->tik", np.stack(terms), unit).reshape(len(q), -1)
        columns = np.hstack([tilt, regressor[:, j], drive])
        whitened.append((columns[1:] - keep * columns[:-1]) / (experiment.noise[j] * np.sqrt(1 - keep**2)))
    gains = np.zeros((robot.n_joints, whitened[0].shape[1]))
    gains[:, -4 * robot.n_joints + 3 :: 4] = np.eye(robot.n_joints)
    rows = np.vstack([*whitened, gains])
    others = rows[:, 2:] / np.maximum(np.linalg.norm(rows[:, 2:], axis=0), 1e-9)
    basis, sizes, _ = np.linalg.svd(others, full_matrices=False)
    basis = basis[:, sizes > 1e-6 * sizes[0]]
    left = rows[:, :2] - basis @ (basis.T @ rows[:, :2])
    return float(np.degrees(np.sqrt(np.trace(np.linalg.inv(left.T @ left)))))


def judged(direction: GravityDirection | None, truth: np.ndarray, moments: np.ndarray) -> Sample:
    """Compare an estimated direction with the true gravity (3,)."""
    assert direction is not None
    turn = direction.axes @ np.cross(direction.gravity, truth) / (truth @ truth)
    miss = np.degrees(angle_between(direction.gravity, truth))
    half = direction.half_widths()
    return Sample(float(miss), np.degrees(half), np.abs(turn) <= half, moments)


def measure(kind: str, chosen: bool, arm: str, mount: str, seed: int) -> Sample | None:
    """Return the outcome of one experiment, or None if it was refused."""
    try:
        return gravity(arm, mount, seed) if kind == "gravity" else links(arm, mount, seed, chosen=chosen)
    except IdentificationError as error:
        print(f"{kind}, {arm}, {mount}, seed {seed}: {error}", file=sys.stderr)
        return None


def row(title: str, samples: list[Sample]) -> str:
    """Return a row of the table."""
    miss = np.array([sample.miss for sample in samples])
    held, moments = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("held", "moments"))
    return (
        f"{title:<30}{len(samples):>5}{np.median(miss):>9.3f}{np.quantile(miss, 0.95):>9.3f}{miss.max():>9.3f}"
        f"{rms(miss):>9.3f}{rms(np.array([sample.bound for sample in samples])):>9.3f}"
        f"{np.median([sample.half for sample in samples]):>9.3f}{held.mean():>9.1%}{moments.mean():>9.1%}"
    )


def rms(values: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def main() -> None:
    """Print a row for each kind, arm and mounting, and one for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gravity", type=int, default=200, help="gravity identifications per arm and mounting")
    parser.add_argument("--links", type=int, default=40, help="link identifications per arm and mounting")
    parser.add_argument(
        "--chosen", action="store_true", help="identify links with default settings (friction is selected)"
    )
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    titles = ("runs", "median", "95 %", "most", "RMS", "bound", "half", "held", "moments")
    print(f"{'degrees off':<30}{titles[0]:>5}" + "".join(f"{title:>9}" for title in titles[1:]), flush=True)
    with ProcessPoolExecutor(options.processes) as pool:
        for kind, count in (("gravity", options.gravity), ("links", options.links)):
            everything: list[Sample] = []
            for arm in ARMS[kind] if count else ():
                for mount in MOUNTS:
                    seeds = range(options.first, options.first + count)
                    outcomes = pool.map(partial(measure, kind, options.chosen, arm, mount), seeds)
                    samples = [outcome for outcome in outcomes if outcome is not None]
                    everything += samples
                    title = f"{kind}: {arm}, {mount}"
                    print(row(title, samples) if samples else f"{title}: none", flush=True)
            if everything:
                print(row(f"{kind}: all", everything), flush=True)


if __name__ == "__main__":
    main()
