"""Designed motions: how well they condition the base parameters, and whether they keep to all limits.

    python -m benchmarks.excitation [--seconds 60] [--seeds 5] [--peer FOLDER | --python /other/venv/bin/python]

UR10 and Panda of package example-robot-data; 5 harmonics of 0.1 Hz, 10 s, two processes, limits of position, velocity,
acceleration, torque, and no link within 5 mm of another. Condition numbers are of the base regressor of the links
without friction, its columns as they are or brought to unit norm; the columns are pinned (`benchmarks.base_columns`).
Positions and velocities are held to the parts of their limits that the peer uses (82 %), torques to 90 %. The peer
knows no limits of acceleration; ours are the Panda's published ones and 10 rad/s² for the UR10 (`--acceleration` for
others), of which 80 % are used.

All motions are then looked at more than ten times as densely as in the search, every 5 ms, by Pinocchio:
torques by its own dynamics, distances of the meshes themselves by Coal, for all pairs of links that are no neighbours.

The peer is FIGAROH 1.0.2, which gets four times the time (`benchmarks/excitation_peer.py`). `--python` names a Python
that has it, and takes 40 minutes for 10 seeds; `--peer` a folder that holds what it wrote before.
"""

import argparse
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from benchmarks.base_columns import Condition, pinned, read_motion, robot_of, score
from benchmarks.mesh_distances import MeshDistances
from dynid_ros.collision import Bodies
from dynid_ros.excitation import FourierExcitation
from dynid_ros.model import RobotModel
from dynid_ros.model.friction import JointFriction
from dynid_ros.trajectories import MotionLimits, Workspace

PEER = Path(__file__).with_name("excitation_peer.py")
ACCELERATION = {"ur10": 10.0, "panda": [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]}
USED = 0.82
TORQUE = 0.9
STEP = 0.005
TOUCHING = 1e-6  # Coal calls the distance of some meshes zero where they overlap


@dataclass(frozen=True)
class Task:
    """A robot, what is made small, what is asked, and which of the two condition numbers that is."""

    robot: str
    criterion: str
    asked: float | None
    measure: str


TASKS = (
    Task("ur10", "condition_unscaled", 15.0, "unscaled"),
    Task("panda", "condition", 8.0, "scaled"),
    Task("panda", "condition_unscaled", None, "unscaled"),
)
RATIO = 0.75


class Designer:
    """Designs motions of one robot, and checks them with other means."""

    def __init__(self, name: str, acceleration: float | None) -> None:
        self.name, self.robot = name, robot_of(name)
        self.columns = pinned(self.robot, name)
        self.meshes = MeshDistances(name)
        self.limits = MotionLimits.of(self.robot, acceleration or ACCELERATION[name])
        bodies = Bodies.of(self.robot, [self.meshes.share])
        self.workspace = Workspace(self.robot, clearance=0.005, bodies=bodies)

    def design(self, criterion: str, seed: int, seconds: float) -> "Found":
        """One motion."""
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
            position_margin=(1 - USED) / 2 * (limits.upper - limits.lower),
            speed_fraction=USED,
            torque_fraction=TORQUE,
        ).plan()
        motion = plan.trajectory.at(np.arange(0.0, plan.duration, STEP))
        return Found(score(self.robot, self.name, motion), self.violations(*motion), plan.starts)

    def violations(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> list[str]:
        """What a motion (N, n) each exceeds, by Pinocchio and Coal."""
        limits = self.limits
        torque = self.meshes.torques(q, qd, qdd)
        largest = {
            "position": np.max(np.maximum(q - limits.upper, limits.lower - q)),
            "velocity": np.max(np.abs(qd) - limits.velocity),
            "torque": np.max(np.abs(torque) - limits.torque),
            "distance": TOUCHING - np.min(self.meshes.distances(q)),
        }
        return [f"{what} by {excess:.3g}" for what, excess in largest.items() if excess > 0]


@dataclass(frozen=True)
class Found:
    """A motion's condition numbers, what it exceeds, and how many starts it took."""

    condition: Condition
    violations: list[str]
    starts: int


def peer_motions(name: str, seeds: int, folder: Path, python: Path | None, seconds: float) -> list[tuple[Path, dict]]:
    """Files of FIGAROH's motions, and what it says of them; made first if there is a Python to do so."""
    found = []
    for seed in range(seeds):
        path = folder / f"{name}_{seed}.csv"
        if python is not None and not path.exists():
            options = ["--robot", name, "--seed", str(seed), "--seconds", str(seconds), "--output", str(path)]
            answer = subprocess.run([str(python), str(PEER), *options], check=True, capture_output=True, text=True)
            path.with_suffix(".json").write_text(answer.stdout)
        if path.exists():
            found.append((path, json.loads(path.with_suffix(".json").read_text())))
    return found


def peer_conditions(robot: RobotModel, name: str, motions: list[tuple[Path, dict]]) -> list[Condition]:
    """Condition numbers of FIGAROH's motions, printed with what they exceed."""
    conditions = []
    for path, told in motions:
        conditions.append(score(robot, name, read_motion(path, robot.n_joints)))
        exceeded = [what for what in ("position", "velocity", "effort") if told["limits"][what] > 1.0]
        print(
            f"  FIGAROH seed {told['seed']}: unscaled {conditions[-1].unscaled:.2f}, "
            f"scaled {conditions[-1].scaled:.2f}, "
            f"{told['processor_seconds']:.0f} s, exceeds {', '.join(exceeded) or 'nothing'}, links "
            f"{1000 * told['limits']['distance']:.0f} mm apart"
        )
    return conditions


def main() -> None:
    """Print one table for each task, and what is short of what was asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each design")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer", type=Path, default=Path("peer_motions"), help="folder of FIGAROH's motions")
    parser.add_argument("--python", type=Path, help="a Python that has FIGAROH")
    parser.add_argument("--robots", nargs="+", choices=ACCELERATION, default=list(ACCELERATION))
    parser.add_argument("--acceleration", type=float, help="of all joints, rad/s^2")
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
        reached = []
        for seed in range(options.seeds):
            found = designers[task.robot].design(task.criterion, seed, options.seconds)
            reached.append(getattr(found.condition, task.measure))
            print(
                f"  seed {seed}: unscaled {found.condition.unscaled:.2f}, scaled {found.condition.scaled:.2f}, "
                f"{found.starts} starts, exceeds {', '.join(found.violations) or 'nothing'}",
                flush=True,
            )
        asked = "" if task.asked is None else f", asked {task.asked:g} at most"
        print(f"  worst {max(reached):.2f}{asked}")
        if peers[task.robot]:
            best = min(getattr(condition, task.measure) for condition in peers[task.robot])
            print(
                f"  worst over FIGAROH's best of {len(peers[task.robot])}: {max(reached) / best:.2f}, asked {RATIO:g}"
            )


if __name__ == "__main__":
    main()
