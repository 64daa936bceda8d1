"""Excitation design: conditioning of the base parameters, and compliance with all limits.

    python -m benchmarks.excitation [--seconds 60] [--seeds 5] [--peer FOLDER | --python /other/venv/bin/python]

UR10 and Panda of package example-robot-data; 5 harmonics of 0.1 Hz, 10 s, two processes, limits of position, velocity,
acceleration and torque, and a clearance of 5 mm between links. Condition numbers are those of the base regressor of the
links without friction, with unscaled columns or columns of unit norm; the columns are pinned
(`benchmarks.base_columns`). Positions and velocities use the same share of their limits as the peer (82 %), torques
90 %. The peer has no acceleration limits; ours are the Panda's published ones and 10 rad/s² for the UR10
(`--acceleration` for others), of which 80 % are used.

All motions are verified by other means every 5 ms, more than ten times as densely as in the search: torques by
Pinocchio, distances of the original meshes by Coal, for all pairs of links that are not neighbours.

The peer is FIGAROH 1.0.2, which gets four times the time (`benchmarks/excitation_peer.py`). `--python` names a Python
interpreter with FIGAROH, and takes 40 minutes for 10 seeds; `--peer` names a folder with its results of an earlier run.
"""

import argparse
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from benchmarks.base_columns import Condition, load_robot, pinned, read_motion, score
from benchmarks.mesh_distances import MeshDistances
from dynid_ros.collision import Bodies
from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.trajectories import MotionLimits, Workspace

PEER = Path(__file__).with_name("excitation_peer.py")
MAX_ACCELERATION = {"ur10": 10.0, "panda": [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]}
"""Acceleration limits, rad/s²."""
LIMIT_FRACTION = 0.82
TORQUE_FRACTION = 0.9
CHECK_STEP_S = 0.005
CONTACT_DISTANCE_M = 1e-6  # Coal reports zero for the distance of some overlapping meshes


@dataclass(frozen=True)
class Task:
    """A robot, the criterion to minimize, and the goal for one of the two condition numbers.

    Attributes:
        robot: name of the robot.
        criterion: criterion of the design.
        goal: largest acceptable condition number.
        measure: condition number to compare: "unscaled" or "scaled".
    """

    robot: str
    criterion: str
    goal: float | None
    measure: str


TASKS = (
    Task("ur10", "condition_unscaled", 15.0, "unscaled"),
    Task("panda", "condition", 8.0, "scaled"),
    Task("panda", "condition_unscaled", None, "unscaled"),
)
MAX_PEER_RATIO = 0.75


class Designer:
    """Designs motions of one robot and verifies them independently."""

    def __init__(self, name: str, acceleration: float | None) -> None:
        self.name, self.robot = name, load_robot(name)
        self.columns = pinned(self.robot, name)
        self.meshes = MeshDistances(name)
        self.limits = MotionLimits.of(self.robot, acceleration or MAX_ACCELERATION[name])
        bodies = Bodies.of(self.robot, [self.meshes.share])
        self.workspace = Workspace(self.robot, clearance=0.005, bodies=bodies)

    def design(self, criterion: str, seed: int, seconds: float) -> "DesignOutcome":
        """Return a designed motion's condition numbers, violated limits and number of starts."""
        limits = self.limits
        plan = FourierExcitation(
            self.robot,
            limits,
            self.workspace,
            base_frequency=0.1,
            harmonics=5,
            drive=JointFriction.none(),
            criterion=criterion,
            columns=self.columns,
            noise=1.0,
            design_time=seconds,
            workers=2,
            seed=seed,
            position_margin=(1 - LIMIT_FRACTION) / 2 * (limits.upper - limits.lower),
            speed_fraction=LIMIT_FRACTION,
            torque_fraction=TORQUE_FRACTION,
        ).plan()
        motion = plan.trajectory.at(np.arange(0.0, plan.duration, CHECK_STEP_S))
        return DesignOutcome(score(self.robot, self.name, motion), self.violations(*motion), plan.starts)

    def violations(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> list[str]:
        """Return the limits that a motion, (N, n) each, violates according to Pinocchio and Coal."""
        limits = self.limits
        torque = self.meshes.torques(q, qd, qdd)
        excess_by_limit = {
            "position": np.max(np.maximum(q - limits.upper, limits.lower - q)),
            "velocity": np.max(np.abs(qd) - limits.velocity),
            "torque": np.max(np.abs(torque) - limits.torque),
            "distance": CONTACT_DISTANCE_M - np.min(self.meshes.distances(q)),
        }
        return [f"{limit} by {excess:.3g}" for limit, excess in excess_by_limit.items() if excess > 0]


@dataclass(frozen=True)
class DesignOutcome:
    """Condition numbers of a motion, the limits it violates, and the number of starts of its search."""

    condition: Condition
    violations: list[str]
    starts: int


def peer_motions(name: str, seeds: int, folder: Path, python: Path | None, seconds: float) -> list[tuple[Path, dict]]:
    """Return the files of FIGAROH's motions with its statements; missing ones are computed if a Python is given."""
    motions = []
    for seed in range(seeds):
        path = folder / f"{name}_{seed}.csv"
        if python is not None and not path.exists():
            options = ["--robot", name, "--seed", str(seed), "--seconds", str(seconds), "--output", str(path)]
            answer = subprocess.run([str(python), str(PEER), *options], check=True, capture_output=True, text=True)
            path.with_suffix(".json").write_text(answer.stdout)
        if path.exists():
            motions.append((path, json.loads(path.with_suffix(".json").read_text())))
    return motions


def peer_conditions(robot: RobotModel, name: str, motions: list[tuple[Path, dict]]) -> list[Condition]:
    """Return the condition numbers of FIGAROH's motions, and print them with the limits that it violates."""
    conditions = []
    for path, statements in motions:
        conditions.append(score(robot, name, read_motion(path, robot.n_joints)))
        exceeded = [limit for limit in ("position", "velocity", "effort") if statements["limits"][limit] > 1.0]
        print(
            f"  FIGAROH seed {statements['seed']}: unscaled {conditions[-1].unscaled:.2f}, "
            f"scaled {conditions[-1].scaled:.2f}, "
            f"{statements['processor_seconds']:.0f} s, exceeds {', '.join(exceeded) or 'nothing'}, links "
            f"{1000 * statements['limits']['distance']:.0f} mm apart"
        )
    return conditions


def main() -> None:
    """Print one table for each task, and how the results compare with the goals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each design")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer", type=Path, default=Path("peer_motions"), help="folder for FIGAROH's motions")
    parser.add_argument("--python", type=Path, help="Python interpreter with FIGAROH")
    parser.add_argument("--robots", nargs="+", choices=MAX_ACCELERATION, default=list(MAX_ACCELERATION))
    parser.add_argument("--acceleration", type=float, help="acceleration limit of all joints, rad/s^2")
    options = parser.parse_args()
    options.peer.mkdir(exist_ok=True)
    designers = {name: Designer(name, options.acceleration) for name in options.robots}
    peers = {}
    for name, designer in designers.items():
        print(f"{name}:")
        motions = peer_motions(name, options.seeds, options.peer, options.python, 4 * options.seconds)
        peers[name] = peer_conditions(designer.robot, name, motions)
    for task in (task for task in TASKS if task.robot in options.robots):
        print(f"{task.robot}, {task.criterion}:", flush=True)
        conditions = []
        for seed in range(options.seeds):
            outcome = designers[task.robot].design(task.criterion, seed, options.seconds)
            conditions.append(getattr(outcome.condition, task.measure))
            print(
                f"  seed {seed}: unscaled {outcome.condition.unscaled:.2f}, scaled {outcome.condition.scaled:.2f}, "
                f"{outcome.starts} starts, exceeds {', '.join(outcome.violations) or 'nothing'}",
                flush=True,
            )
        goal = "" if task.goal is None else f", goal: at most {task.goal:g}"
        print(f"  worst {max(conditions):.2f}{goal}")
        if peers[task.robot]:
            best = min(getattr(condition, task.measure) for condition in peers[task.robot])
            count = len(peers[task.robot])
            print(f"  worst over FIGAROH's best of {count}: {max(conditions) / best:.2f}, goal: {MAX_PEER_RATIO:g}")


if __name__ == "__main__":
    main()
