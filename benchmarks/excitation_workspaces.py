"""Excitation design in random workspaces: share of feasible workspaces with a motion, and its collisions.

    python -m benchmarks.excitation_workspaces [--count 50] [--seconds 10] [--workers 2] [--seed 0]

UR10 and Panda of package example-robot-data alternate, among tables, walls, ceilings and boxes, with narrow limits,
weak motors or a held object (`test/helpers/random_workspaces.py`). Each design starts without prior knowledge and with
the same settings: 5 harmonics of 0.1 Hz, 10 s, defaults otherwise.

Feasibility is decided independently of the designer: of 4096 random poses within the position limits minus their
margin, at least one must need no more torque at rest than allowed (Pinocchio) and respect the clearance (Coal, with the
original meshes). Workspaces are drawn until the given number is feasible. An infeasible workspace must be refused, and
the refusal must name a limit or an obstacle that forbids poses according to Pinocchio and Coal.

Motions are verified every 4 ms, twenty times as densely as in the search, by Pinocchio and Coal: torques, and distances
of the meshes from each other and from obstacles.
"""

import argparse
import os
import site
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from benchmarks.base_columns import PINNED, load_robot
from dynid_ros.collision import Bodies
from dynid_ros.errors import DynidError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.fourier_excitation import MAX_CONDITION_NUMBER
from dynid_ros.trajectories import Trajectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from helpers.coal_room import CoalRoom
from helpers.random_workspaces import KINDS, RandomWorkspace, draw

MIN_SUCCESS_RATE = 0.95
MIN_CLEAN_RATE = 1.0
POSES = 4096
CHUNK_POSES = 64
MIN_FEASIBLE_POSES = 8
POSITION_MARGIN_RAD = 0.05
TORQUE_FRACTION = 0.8
SPEED_FRACTION = 0.5
CHECK_STEP_S = 0.004
MIN_EXCESS = 1e-6


@dataclass(frozen=True)
class DesignOutcome:
    """Outcome of the design in one workspace.

    Attributes:
        name: number, robot and kind of workspace.
        room: share of poses that are allowed by Pinocchio and Coal.
        condition: condition number of the motion; infinite without a motion.
        violations: limits that the motion violates.
        refusal: message of the refusal.
        rightly: whether the refusal names a limit or an obstacle that forbids poses.
        seconds: time for the design, s.
    """

    name: str
    room: float
    condition: float = np.inf
    violations: tuple[str, ...] = ()
    refusal: str = ""
    rightly: bool = False
    seconds: float = 0.0


class Judge:
    """Pinocchio and Coal, applied to one workspace."""

    def __init__(self, case: RandomWorkspace, prefix: Path) -> None:
        self.case, self._room = case, CoalRoom(case, [prefix])
        limits = case.limits
        rng = np.random.default_rng(0)
        self._poses = rng.uniform(
            limits.lower + POSITION_MARGIN_RAD, limits.upper - POSITION_MARGIN_RAD, (POSES, len(limits.lower))
        )

    def room(self) -> float:
        """Return the share of allowed poses; stop counting as soon as it is certain."""
        heavy = np.any(self._lack_of_torque(self._poses) > 0, axis=1)
        allowed = 0
        for start in range(0, POSES, CHUNK_POSES):
            chunk = np.arange(start, start + CHUNK_POSES)
            light = chunk[~heavy[chunk]]
            if len(light):
                allowed += int(np.sum(np.max(list(self._room.too_near(self._poses[light]).values()), axis=0) <= 0))
            if allowed >= MIN_FEASIBLE_POSES:
                break
        return allowed / (start + CHUNK_POSES)

    def forbids(self, refusal: str) -> bool:
        """Return whether a limit or an obstacle that a refusal names forbids any of the poses."""
        poses = self._poses[: 4 * CHUNK_POSES]
        lack = self._lack_of_torque(poses)
        excess = self._room.too_near(poses)
        for k, name in enumerate(self.case.limits.joint_names):
            excess[f"torque of joint '{name}'"] = lack[:, k]
        named = {thing for thing in excess if thing in refusal} or {"links"}
        return any(np.any(excess[thing] > 0) for thing in named if thing in excess)

    def violations(self, motion: Trajectory) -> tuple[str, ...]:
        """Return the limits that a motion violates, with the excess relative to the limit or the overlap, m."""
        limits = self.case.limits
        q, qd, qdd = motion.at(np.arange(0.0, motion.duration, CHECK_STEP_S))
        excess_by_limit = {
            "position": np.max(np.maximum(q - limits.upper, limits.lower - q)),
            "velocity": np.max(np.abs(qd) / (SPEED_FRACTION * limits.velocity)) - 1,
            "acceleration": np.max(np.abs(qdd) / limits.acceleration) - 1,
            "torque": np.max(np.abs(self._room.torques(q, qd, qdd)) / (TORQUE_FRACTION * limits.torque)) - 1,
        }
        excess_by_limit |= {thing: float(lack.max()) for thing, lack in self._room.too_near(q).items()}
        return tuple(f"{limit} by {excess:.2g}" for limit, excess in excess_by_limit.items() if excess > MIN_EXCESS)

    def _lack_of_torque(self, poses: np.ndarray) -> np.ndarray:
        still = np.zeros_like(poses)
        return np.abs(self._room.torques(poses, still, still)) - TORQUE_FRACTION * self.case.limits.torque


def cases(seed: int) -> Iterator[tuple[str, RandomWorkspace]]:
    """Yield named workspaces without end."""
    robots = {name: load_robot(name) for name in ("ur10", "panda")}
    number = 0
    while True:
        for kind in KINDS:
            for name, robot in robots.items():
                yield f"{number} {name}, {kind}", draw(robot, kind, np.random.default_rng([seed, number]))
                number += 1


def design_and_judge(
    name: str, case: RandomWorkspace, judge: Judge, room: float, options: argparse.Namespace
) -> DesignOutcome:
    """Design a motion and return its judged outcome."""
    begin = time.monotonic()
    try:
        workspace = case.workspace(Bodies.of(case.robot, [options.prefix / "example-robot-data"]))
        plan = FourierExcitation(
            case.robot,
            case.limits,
            workspace,
            base_frequency=0.1,
            harmonics=5,
            position_margin=POSITION_MARGIN_RAD,
            speed_fraction=SPEED_FRACTION,
            torque_fraction=TORQUE_FRACTION,
            design_time=options.seconds,
            workers=options.workers,
        ).plan()
    except DynidError as error:
        refusal = str(error)
        seconds = time.monotonic() - begin
        return DesignOutcome(name, room, refusal=refusal, rightly=judge.forbids(refusal), seconds=seconds)
    seconds = time.monotonic() - begin
    return DesignOutcome(name, room, plan.condition_number, judge.violations(plan.trajectory), seconds=seconds)


def print_row(outcome: DesignOutcome) -> None:
    """Print one row."""
    if outcome.refusal:
        verdict = f"refused{'' if outcome.rightly else ', wrongly named'}: {outcome.refusal}"
    else:
        verdict = f"condition {outcome.condition:.1f}, exceeds {', '.join(outcome.violations) or 'nothing'}"
    print(f"{outcome.name:<28} room {outcome.room:7.2%} {outcome.seconds:5.0f} s  {verdict}", flush=True)


def report(possible: list[DesignOutcome], impossible: list[DesignOutcome]) -> None:
    """Print the results next to the goals."""
    with_motion = [outcome for outcome in possible if not outcome.refusal]
    all_motions = [outcome for outcome in [*possible, *impossible] if not outcome.refusal]
    touching = [outcome.name for outcome in all_motions if outcome.violations]
    print(f"motion found in {len(with_motion)} of {len(possible)} feasible workspaces, goal {MIN_SUCCESS_RATE:.0%}")
    clean = len(all_motions) - len(touching)
    print(f"without any violation {clean} of {len(all_motions)}, goal {MIN_CLEAN_RATE:.0%}", *touching)
    for robot in PINNED:
        numbers = [outcome.condition for outcome in with_motion if f" {robot}," in outcome.name]
        if numbers:
            quartiles = ", ".join(f"{value:.1f}" for value in np.percentile(numbers, (0, 25, 50, 75, 100)))
            print(
                f"condition number, {robot}: minimum, quartiles, maximum of {len(numbers)}: {quartiles}; "
                f"{sum(number <= MAX_CONDITION_NUMBER for number in numbers)} up to {MAX_CONDITION_NUMBER:g}"
            )
    refused = [outcome for outcome in impossible if outcome.refusal]
    named = sum(outcome.rightly for outcome in refused)
    print(f"infeasible: {len(impossible)}; refused {len(refused)}, the refusal names what forbids poses in {named}")


def main() -> None:
    """Draw workspaces until the given number is feasible."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="feasible workspaces")
    parser.add_argument("--seconds", type=float, default=10.0, help="time per design, s")
    parser.add_argument("--workers", type=int, default=2, help="processes of the search")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folders = (Path(folder) / "cmeel.prefix/share" for folder in site.getsitepackages())
    options.prefix = next(folder for folder in folders if folder.exists())
    possible: list[DesignOutcome] = []
    impossible: list[DesignOutcome] = []
    for name, case in cases(options.seed):
        if len(possible) == options.count:
            break
        judge = Judge(case, options.prefix)
        room = judge.room()
        outcome = design_and_judge(name, case, judge, room, options)
        (possible if room else impossible).append(outcome)
        print_row(outcome)
    report(possible, impossible)


if __name__ == "__main__":
    main()
