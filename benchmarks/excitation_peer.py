"""FIGAROH's design of exciting trajectories, in its own process and, if necessary, its own Python environment.

    python benchmarks/excitation_peer.py --robot ur10|panda --seed 0 --seconds 240 --output motion.csv

It needs only figaroh 1.0.2, cyipopt (`pip install cyipopt-wheels`) and example-robot-data. FIGAROH minimizes the
unscaled condition number of the base regressor over the waypoints of rest-to-rest splines, by IPOPT, under limits of
position, velocity and torque, with a clearance of 1 cm between all bodies that are not neighbours. Settings are those
of its UR10 example (soft limits of 10 %, waypoints 2 s apart, regressor at 20 Hz, 100 iterations, no friction), with
these exceptions:

- One motion of 10 s with six waypoints; the example stacks two motions with seven, 24 s.
- Starts are repeated until the processor time is used up, and every iterate counts that passes FIGAROH's own checks;
  by default FIGAROH stops after one start and keeps the last iterate or nothing.
- The base columns are determined once, on FIGAROH's random motion of seed 0, since they change from seed to seed.
- Distances beyond 2 cm are not computed (FIGAROH's faster option `collision_screen`).
- Panda, for which FIGAROH has no example: fingers locked, pairs of bodies that never touch from its SRDF, the same soft
  limits.

Prints a line of JSON: the condition number as FIGAROH computes it (null and no file if no motion passed), statistics of
the search, and the motion's shares of the limits on a grid of 1 ms, distances on a grid of 10 ms. The file has t, q, qd
and qdd every 10 ms.
"""

import argparse
import json
import logging
import os
import site
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported
FOLDER = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != FOLDER]  # this folder has another figaroh.py

import numpy as np  # noqa: E402
import pinocchio  # noqa: E402
import yaml  # noqa: E402
from figaroh.optimal.base_optimal_trajectory import (  # noqa: E402
    BaseOptimalTrajectory,
    BaseTrajectoryIPOPTProblem,
)
from figaroh.tools.robot import Robot  # noqa: E402

logging.disable(logging.CRITICAL)

EXAMPLES = "cmeel.prefix/share"
ROBOTS = {
    "ur10": ("ur_description/urdf/ur10_robot.urdf", None, ()),
    "panda": (
        "panda_description/urdf/panda.urdf",
        "panda_description/srdf/panda.srdf",
        ("panda_finger_joint1", "panda_finger_joint2"),
    ),
}
BASE_SEED = 0  # seed of the motion that determines the base columns
CHECK_RATE_HZ = 1000.0
OUTPUT_RATE_HZ = 100.0


def load(name: str) -> tuple[Robot, str | None]:
    """Return the robot with its geometry, and the path of its SRDF."""
    urdf, srdf, locked = ROBOTS[name]
    share = next(path for folder in site.getsitepackages() if (path := Path(folder) / EXAMPLES).exists())
    robots = share / "example-robot-data/robots"
    robot = Robot(str(robots / urdf), package_dirs=str(share))
    if locked:
        robot = robot.buildReducedRobot(list(locked), reference_configuration=pinocchio.neutral(robot.model))
        robot.geom_model = robot.collision_model
    return robot, str(robots / srdf) if srdf else None


def configuration(arguments: argparse.Namespace, joints: list[str], srdf: str | None) -> dict:
    """Return FIGAROH's configuration, following its UR10 example."""
    components = dict.fromkeys(("friction", "joint_offset", "actuator_inertia"), False)
    problem = {
        "soft_lim": arguments.soft_limit,
        "max_attempts": 500,
        "max_iterations": arguments.iterations,
        "collision_screen": arguments.screen or None,
        "collision_checks_per_interval": arguments.checks,
        "srdf": srdf,
    }
    return {
        "robot": {"name": arguments.robot, "properties": {"joints": {"active_joints": joints}}},
        "tasks": {
            "identification": {
                "problem": {
                    "include_external_forces": False,
                    "use_joint_torques": True,
                    "model_components": {**components, "static_regressor": True, "inertia_regressor": True},
                },
                "signal_processing": {"sampling_frequency": 500.0, "cutoff_frequency": 50.0},
            },
            "optimal_trajectory": {
                "problem": problem,
                "trajectory": {
                    "waypoints": arguments.waypoints,
                    "frequency": arguments.frequency,
                    "segment_duration": arguments.interval,
                },
            },
        },
    }


class Problem(BaseTrajectoryIPOPTProblem):
    """FIGAROH's problem; it records its iterates and stops when the time is used up."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.iterates: list[tuple[float, np.ndarray]] = []

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """Return the gradient, and record the iterate: IPOPT calls this function once per iterate."""
        self.iterates.append((self.objective(X), np.array(X)))
        return super().gradient(X)

    def intermediate(self, *state) -> bool:
        """Return whether to continue."""
        return super().intermediate(*state) and self.opt_traj.time_left() > 0.0

    def solve_with_waypoints(self, wps):
        """Return FIGAROH's solution, and keep the best iterate that passes FIGAROH's own checks."""
        outcome = super().solve_with_waypoints(wps)
        self.opt_traj.starts += 1
        self.opt_traj.iterations += len(self.iterates)
        for value, X in sorted(self.iterates, key=lambda iterate: iterate[0]):
            if value >= self.opt_traj.best_value:
                break
            if self._is_feasible(X) and self._is_collision_free(X):
                self.opt_traj.best_value = value
                self.opt_traj.best = (self, X)
                break
        return outcome


class Design(BaseOptimalTrajectory):
    """FIGAROH's design, repeated until the time is used up."""

    def __init__(self, robot: Robot, joints: list[str], config_file: str, seconds: float):
        super().__init__(robot, joints, config_file)
        indices = list(range(robot.model.nv))
        self.identif_config.update(active_joints=joints, act_idxq=indices, act_idxv=indices)
        self.seconds, self.begun = seconds, 0.0
        self.best: tuple[Problem, np.ndarray] | None = None
        self.best_value = np.inf
        self.starts = self.iterations = 0

    def time_left(self) -> float:
        """Return the remaining processor time, s."""
        return self.seconds - (time.process_time() - self.begun)

    def create_ipopt_problem(self, *arguments) -> Problem:  # noqa: D102
        return Problem(self, *arguments)

    def run(self) -> None:
        """Search from random waypoints until the time is used up."""
        self.begun = time.process_time()
        while self.time_left() > 0.0:
            self.solve(stack_reps=1)

    def sampled(self, frequency: float) -> tuple[np.ndarray, ...]:
        """Return times, positions, velocities and accelerations of the best motion."""
        problem, X = self.best
        waypoints = np.vstack((problem.wp_init, X.reshape(problem.n_wps - 1, problem.n_joints))).T
        arrays = self.CB.get_full_config(frequency, problem.tps, waypoints, problem.vel_wps, problem.acc_wps)
        return np.asarray(arrays[0]).ravel(), *(np.asarray(array) for array in arrays[1:])

    def base_columns(self) -> list[int]:
        """Return the base columns of the regressor, in Pinocchio's order of parameters."""
        kept = np.delete(np.arange(10 * self.model.nv), self.idx_e)
        return kept[self.idx_b].tolist()


def within_limits(design: Design) -> dict[str, object]:
    """Return the motion's shares of the full limits (above 1: violated) and the smallest distance of bodies, m."""
    _, q, qd, qdd = design.sampled(CHECK_RATE_HZ)
    model, data, geometry = design.model, design.model.createData(), design.robot.geom_model
    lower, upper = model.lowerPositionLimit, model.upperPositionLimit
    torques = np.array([pinocchio.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    geometry_data = geometry.createData()
    distances = []
    for position in q[::10]:
        pinocchio.computeDistances(model, data, geometry, geometry_data, position)
        distances.append(min(result.min_distance for result in geometry_data.distanceResults))
    return {
        "position": float(np.max(np.abs(2.0 * q - upper - lower) / (upper - lower))),
        "velocity": float(np.max(np.abs(qd) / model.velocityLimit)),
        "effort": float(np.max(np.abs(torques) / model.effortLimit)),
        "acceleration": float(np.max(np.abs(qdd))),
        "distance": float(min(distances)),
        "pairs": len(geometry.collisionPairs),
    }


def main() -> None:
    """Design a motion, write it and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=ROBOTS, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=240.0, help="processor time after the choice of base columns, s"
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--waypoints", type=int, default=6)
    parser.add_argument("--interval", type=float, default=2.0, help="time between waypoints, s")
    parser.add_argument("--frequency", type=int, default=20, help="sample rate of the optimized regressor, Hz")
    parser.add_argument("--soft-limit", type=float, default=0.1)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--screen", type=float, default=0.02, help="largest distance to compute, m (0: all)")
    parser.add_argument("--checks", type=int, default=1, help="distance checks between two waypoints")
    arguments = parser.parse_args()
    robot, srdf = load(arguments.robot)
    joints = list(robot.model.names)[1:]
    json_output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # IPOPT prints to the standard output
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(configuration(arguments, joints, srdf), file)
        file.flush()
        design = Design(robot, joints, file.name, arguments.seconds)
    np.random.seed(BASE_SEED)  # noqa: NPY002
    design.initialize()
    np.random.seed(arguments.seed)  # noqa: NPY002
    wall = time.monotonic()
    design.run()
    report = {
        "robot": arguments.robot,
        "seed": arguments.seed,
        "joints": joints,
        "condition": None if design.best is None else float(design.best_value),
        "starts": design.starts,
        "iterations": design.iterations,
        "processor_seconds": time.process_time() - design.begun,
        "wall_seconds": time.monotonic() - wall,
        "base_columns": design.base_columns(),
    }
    if design.best is not None:
        report["limits"] = within_limits(design)
        names = ["t", *(f"{kind}_{joint}" for kind in ("q", "qd", "qdd") for joint in joints)]
        t, *motion = design.sampled(OUTPUT_RATE_HZ)
        np.savetxt(arguments.output, np.column_stack([t, *motion]), delimiter=",", header=",".join(names), comments="")
    print(json.dumps(report), file=json_output, flush=True)


if __name__ == "__main__":
    main()
