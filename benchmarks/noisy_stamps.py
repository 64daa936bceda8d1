"""Gravity from noisy time stamps and lost samples: accurate within 1 %, or refused with a message about the clock.

    python -m benchmarks.noisy_stamps [--arms panda ur5 kinova xarm7] [--rates 100 250 500 1000]
        [--seed 0] [--all] [--processes 2] [--file cells.txt]

MuJoCo computes the torques of random motion for 20 s, with friction of the model, noise of 0.1 to 0.2 % of the largest
torque and encoders of 19 bits; the URDF errs by 20 %. Motions are drawn until exact stamps determine gravity within
0.3 %, so that only the clock causes errors. `coverage_experiments.stamped` adds jitter (0.2, 1, 3 ms) and losses (0, 1,
3 %). "gravity" is the largest error in 200 poses within the limits, of the worst joint, relative to the joint's largest
gravity. Joints count whose gravity exceeds 5 % of the measured torque, with a standard error below 0.5 % for exact
stamps. "inside" is the share of base parameters in their 95 % intervals, "beyond" the largest error over the half width
among parameters above 1 % of the arm's largest. A cell is wrong, "!", where gravity errs by more than 1 %, where an
error exceeds three half widths, or where a refusal does not name the clock.

A file keeps the finished cells by arm and rate, so that a stopped run can continue.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count, product
from pathlib import Path

import numpy as np

from dynid_ros.errors import DynidError
from dynid_ros.identification import LinkIdentification
from dynid_ros.identification.links.link_result import LinkResult
from dynid_ros.model import RobotModel
from dynid_ros.simulation.descriptions import misjudged_urdf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from clean_recordings import ARMS
from coverage_experiments import Conditions, Experiment, add_stamp_noise, draw, gravity_estimate

KINDS = ("delay", "normal", "bursts")
JITTERS_S = (2e-4, 1e-3, 3e-3)
LOSSES = (0.0, 0.01, 0.03)
NOISE_OF_TORQUE = 0.1
POSES = 200
SMALL_PARAMETER = 0.01
MIN_GRAVITY_SHARE = 0.05
MAX_EXACT_ERROR = 0.003
MIN_JUDGED = 2
MISJUDGED = 0.2
MAX_GRAVITY_ERROR = 0.01
MAX_BEYOND = 3.0
WRONG = " !"


class GravityTruth:
    """True gravity in poses within the limits of an experiment's arm.

    Attributes:
        poses: (M, n) joint positions.
        torque: (M, n) gravity torques of the true links.
        largest: (n,) largest gravity torque of each joint.
        judged: (n,) mask of the joints that gravity loads and whose gravity exact stamps determine.
    """

    def __init__(self, experiment: Experiment, exact: LinkResult):
        self._robot = experiment.robot
        lower = np.maximum(self._robot.limits.lower, -np.pi)
        upper = np.minimum(self._robot.limits.upper, np.pi)
        self.poses = np.random.default_rng(0).uniform(lower, upper, (POSES, self._robot.n_joints))
        self.torque = self._robot.gravity_torque(self.poses, experiment.links)
        self.largest = np.abs(self.torque).max(axis=0)
        loaded = self.largest > MIN_GRAVITY_SHARE * np.abs(experiment.recording.torque).max(axis=0)
        standard_error = gravity_estimate(exact, self.poses)[1].max(axis=0)
        self.judged = loaded & (2 * standard_error < MAX_GRAVITY_ERROR * self.largest)

    def error(self, parameters: np.ndarray) -> float:
        """Return the largest error of the worst judged joint in the poses, relative to its largest gravity."""
        error = np.abs(self._robot.gravity_torque(self.poses, parameters) - self.torque).max(axis=0)
        return float(np.max(error[self.judged] / self.largest[self.judged], initial=0.0))


def beyond(experiment: Experiment, result: LinkResult) -> tuple[float, float]:
    """Return the share of base parameters in their intervals, and the largest error over the half width."""
    truth = experiment.truth(result.base)
    estimate = result.base_parameters
    half = np.ptp(estimate.confidence_intervals(0.95), axis=1) / 2
    finite = np.isfinite(truth) & np.isfinite(estimate.values)
    error = np.abs(estimate.values - truth)[finite]
    ratio = error / half[finite]
    large = error > SMALL_PARAMETER * np.nanmax(np.abs(truth))
    return float(np.mean(ratio < 1.0)), float(np.max(ratio, where=large, initial=0.0))


def determined_experiment(arm: str, rate: float, seed: int) -> tuple[Experiment, LinkIdentification, GravityTruth]:
    """Return the first experiment in which exact stamps determine the gravity of at least `MIN_JUDGED` joints."""
    conditions = Conditions(arm, 20.0, correlation=0.0, mismatch=0.0, gain_error=0.0, rate=rate, noise=NOISE_OF_TORQUE)
    for number in count():
        rng = np.random.default_rng([seed, int(rate), number])
        experiment = draw(conditions, rng)
        believed = RobotModel.from_urdf(misjudged_urdf(experiment.robot, MISJUDGED, rng), tip=experiment.robot.tip)
        identification = LinkIdentification(believed, friction=conditions.friction, torque_gain_error=0.0)
        exact = identification.fit(experiment.recording)
        truth = GravityTruth(experiment, exact)
        if truth.judged.sum() >= MIN_JUDGED and truth.error(exact.parameters) < MAX_EXACT_ERROR:
            return experiment, identification, truth
    raise AssertionError


def judge_cells(seed: int, case: tuple[str, float]) -> list[str]:
    """Return a text for each cell of one arm and rate, Hz; those of wrong cells end with `WRONG`."""
    arm, rate = case
    experiment, identification, truth = determined_experiment(arm, rate, seed)
    lines = []
    for number, (kind, jitter, loss) in enumerate(product(KINDS, JITTERS_S, LOSSES)):
        rng = np.random.default_rng([seed, int(rate), number])
        try:
            result = identification.fit(add_stamp_noise(experiment.recording, kind, jitter, loss, rng))
        except DynidError as refusal:
            right = "clock" in str(refusal)
            text = f"refused: {str(refusal)[:90]}"
        else:
            gravity = truth.error(result.parameters)
            inside, worst = beyond(experiment, result)
            right = gravity < MAX_GRAVITY_ERROR and worst < MAX_BEYOND
            text = f"gravity{gravity:>7.2%} inside{inside:>7.1%} beyond{worst:>6.2f}"
        mark = "" if right else WRONG
        lines.append(f"{arm} {rate:g} Hz  {kind:<7}{1e3 * jitter:>5g} ms{loss:>5.0%}  {text}{mark}")
    return lines


def main() -> None:
    """Print the effect of noisy stamps on the gravity of each arm, at each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=("panda", "ur5", "kinova", "xarm7"))
    parser.add_argument("--rates", nargs="+", type=float, default=(100.0, 250.0, 500.0, 1000.0), help="Hz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="print right cells as well")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--file", type=Path, help="text file of finished cells, which are not judged again")
    options = parser.parse_args()
    file = options.file
    finished = file.read_text().splitlines() if file and file.exists() else []
    finished_by_case = {
        case: [line for line in finished if line.startswith(f"{case[0]} {case[1]:g} Hz")]
        for case in product(options.arms, options.rates)
    }
    missing = [case for case, lines in finished_by_case.items() if not lines]
    cells: list[str] = []
    with ProcessPoolExecutor(options.processes) as pool:
        judged = pool.map(partial(judge_cells, options.seed), missing)
        for case, finished_lines in finished_by_case.items():
            lines = finished_lines or next(judged)
            if file and not finished_lines:
                with file.open("a") as end:
                    print(*lines, sep="\n", file=end)
            cells += lines
            printed = [line for line in lines if options.all or line.endswith(WRONG)]
            print(*printed, f"{case[0]} {case[1]:g} Hz is done", sep="\n", flush=True)
    right = sum(not line.endswith(WRONG) for line in cells)
    print(f"{right} of {len(cells)} within {MAX_GRAVITY_ERROR:.0%}, or refused by the clock")


if __name__ == "__main__":
    main()
