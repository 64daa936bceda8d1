"""Designed motions in random workspaces: whether one is found wherever there is room, and whether it touches anything.

    python -m benchmarks.excitation_workspaces [--count 50] [--seconds 10] [--workers 2] [--seed 0]

UR10 and Panda of package example-robot-data in turn, among tables, walls, ceilings, boxes, with narrow limits, weak
motors or something in the hand (`test/random_workspaces.py`). Each design starts cold with the same settings: 5
harmonics of 0.1 Hz, 10 s, all else is as it is unless given otherwise.

Whether a workspace leaves any room is decided without the designer: of 4096 random poses within the position limits,
less their margin, at least one must need no more torque at rest than is allowed, by Pinocchio, and keep the clearance,
by Coal with the meshes themselves. Workspaces are drawn until so many with room are found. Of the others it is asked
that they are refused, and that the refusal names something that forbids poses by Pinocchio and Coal.

Motions are looked at every 4 ms, twenty times as densely as in the search, by Pinocchio and Coal: torques; distances of
meshes from each other and from what is around.
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

from benchmarks.base_columns import PINNED, robot_of
from dynid_ros.collision import Bodies
from dynid_ros.errors import DynidError
from dynid_ros.excitation import FourierExcitation
from dynid_ros.excitation.fourier_excitation import MAX_CONDITION_NUMBER
from dynid_ros.trajectories import Trajectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from helpers.coal_room import CoalRoom
from helpers.random_workspaces import KINDS, RandomWorkspace, draw

SHARE, CLEAN = 0.95, 1.0
POSES, CHUNK, ENOUGH = 4096, 64, 8
MARGIN, TORQUE, SPEED = 0.05, 0.8, 0.5
"""Kept from position limits (rad), and parts of torque and velocity limits."""
STEP = 0.004
ROUNDING = 1e-6


@dataclass(frozen=True)
class Answer:
    """What came of a workspace.

    Attributes:
        name: robot, kind and number.
        room: share of poses that are allowed by Pinocchio and Coal.
        condition: of the motion; infinite if there is none.
        violations: of the motion.
        refusal: what was said instead.
        rightly: whether the refusal names something that forbids poses.
        seconds: for everything before the check.
    """

    name: str
    room: float
    condition: float = np.inf
    violations: tuple[str, ...] = ()
    refusal: str = ""
    rightly: bool = False
    seconds: float = 0.0


class Judge:
    """Pinocchio and Coal on a workspace."""

    def __init__(self, case: RandomWorkspace, prefix: Path) -> None:
        self.case, self._room = case, CoalRoom(case, [prefix])
        limits = case.limits
        rng = np.random.default_rng(0)
        self._poses = rng.uniform(limits.lower + MARGIN, limits.upper - MARGIN, (POSES, len(limits.lower)))

    def room(self) -> float:
        """Share of poses that are allowed, out of so many that a few are."""
        heavy = np.any(self._lack_of_torque(self._poses) > 0, axis=1)
        allowed = 0
        for start in range(0, POSES, CHUNK):
            chunk = np.arange(start, start + CHUNK)
            light = chunk[~heavy[chunk]]
            if len(light):
                allowed += int(np.sum(np.max(list(self._room.too_near(self._poses[light]).values()), axis=0) <= 0))
            if allowed >= ENOUGH:
                break
        return allowed / (start + CHUNK)

    def forbids(self, told: str) -> bool:
        """Whether something that a refusal names forbids any of the poses."""
        poses = self._poses[: 4 * CHUNK]
        lack = self._lack_of_torque(poses)
        joints = self.case.limits.joint_names
        found = {f"torque of joint '{name}'": lack[:, k] for k, name in enumerate(joints)} | self._room.too_near(poses)
        named = {thing for thing in found if thing in told} or {"links"}
        return any(np.any(found[thing] > 0) for thing in named if thing in found)

    def violations(self, motion: Trajectory) -> tuple[str, ...]:
        """What a motion exceeds, and by how much of the limit or how far, m."""
        limits = self.case.limits
        q, qd, qdd = motion.at(np.arange(0.0, motion.duration, STEP))
        largest = {
            "position": np.max(np.maximum(q - limits.upper, limits.lower - q)),
            "velocity": np.max(np.abs(qd) / (SPEED * limits.velocity)) - 1,
            "acceleration": np.max(np.abs(qdd) / limits.acceleration) - 1,
            "torque": np.max(np.abs(self._room.torques(q, qd, qdd)) / (TORQUE * limits.torque)) - 1,
        }
        largest |= {thing: float(lack.max()) for thing, lack in self._room.too_near(q).items()}
        return tuple(f"{what} by {excess:.2g}" for what, excess in largest.items() if excess > ROUNDING)

    def _lack_of_torque(self, poses: np.ndarray) -> np.ndarray:
        still = np.zeros_like(poses)
        return np.abs(self._room.torques(poses, still, still)) - TORQUE * self.case.limits.torque


def cases(seed: int) -> Iterator[tuple[str, RandomWorkspace]]:
    """Workspaces without end, and their names."""
    robots = {name: robot_of(name) for name in ("ur10", "panda")}
    number = 0
    while True:
        for kind in KINDS:
            for name, robot in robots.items():
                yield f"{number} {name}, {kind}", draw(robot, kind, np.random.default_rng([seed, number]))
                number += 1


def answer(name: str, case: RandomWorkspace, judge: Judge, room: float, options: argparse.Namespace) -> Answer:
    """Design a motion, and have it judged."""
    begun = time.monotonic()
    try:
        workspace = case.workspace(Bodies.of(case.robot, [options.prefix / "example-robot-data"]))
        plan = FourierExcitation(
            case.robot,
            case.limits,
            workspace,
            base_frequency=0.1,
            harmonics=5,
            position_margin=MARGIN,
            speed_fraction=SPEED,
            torque_fraction=TORQUE,
            design_time=options.seconds,
            workers=options.workers,
        ).plan()
    except DynidError as error:
        told = str(error)
        return Answer(name, room, refusal=told, rightly=judge.forbids(told), seconds=time.monotonic() - begun)
    seconds = time.monotonic() - begun
    return Answer(name, room, plan.condition_number, judge.violations(plan.trajectory), seconds=seconds)


def tell(found: Answer) -> None:
    """Print one row."""
    if found.refusal:
        said = f"refused{'' if found.rightly else ', wrongly named'}: {found.refusal}"
    else:
        said = f"condition {found.condition:.1f}, exceeds {', '.join(found.violations) or 'nothing'}"
    print(f"{found.name:<28} room {found.room:7.2%} {found.seconds:5.0f} s  {said}", flush=True)


def report(possible: list[Answer], impossible: list[Answer]) -> None:
    """Print what was reached of what was asked."""
    motions = [found for found in possible if not found.refusal]
    found_at_all = [found for found in [*possible, *impossible] if not found.refusal]
    touching = [found.name for found in found_at_all if found.violations]
    print(f"motion found in {len(motions)} of {len(possible)} workspaces with room, asked {SHARE:.0%}")
    print(
        f"without any violation {len(found_at_all) - len(touching)} of {len(found_at_all)}, asked {CLEAN:.0%}"
        f"{': ' * bool(touching)}{', '.join(touching)}"
    )
    for robot in PINNED:
        numbers = [found.condition for found in motions if f" {robot}," in found.name]
        if numbers:
            quartiles = ", ".join(f"{value:.1f}" for value in np.percentile(numbers, (0, 25, 50, 75, 100)))
            print(
                f"condition number, {robot}: least, quartiles, most of {len(numbers)}: {quartiles}; "
                f"{sum(number <= MAX_CONDITION_NUMBER for number in numbers)} up to {MAX_CONDITION_NUMBER:g}"
            )
    refused = [found for found in impossible if found.refusal]
    named = sum(found.rightly for found in refused)
    print(f"without room: {len(impossible)}; refused {len(refused)}, the refusal names what forbids poses in {named}")


def main() -> None:
    """Draw workspaces until there are so many with room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50, help="workspaces with room")
    parser.add_argument("--seconds", type=float, default=10.0, help="time for each design")
    parser.add_argument("--workers", type=int, default=2, help="processes that search")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folders = (Path(folder) / "cmeel.prefix/share" for folder in site.getsitepackages())
    options.prefix = next(folder for folder in folders if folder.exists())
    possible: list[Answer] = []
    impossible: list[Answer] = []
    for name, case in cases(options.seed):
        if len(possible) == options.count:
            break
        judge = Judge(case, options.prefix)
        room = judge.room()
        found = answer(name, case, judge, room, options)
        (possible if room else impossible).append(found)
        tell(found)
    report(possible, impossible)


if __name__ == "__main__":
    main()
