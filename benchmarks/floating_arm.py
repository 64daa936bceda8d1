"""Simulated arms on gravity compensation, step by step: faults, loads, wrong models, and guiding by hand.

    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --lockstep
    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --led 20

Sensors have the simulator's default errors, and efforts an offset of 2 % of the range. The arms are public ones that
were not used in development. A row is a situation: motion of the joint that moved farthest, its speed, the largest step
of a command relative to the joint's effort limit, and the state of the compensation. Needs `pip install mujoco pytest
example-robot-data`.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from dynid_ros.control import State, Timing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from helpers.floating_arm import RAMP_S, STRANGERS, FloatingArm, lead


def lockstep(name: str) -> None:
    """Print the reactions of an arm in lockstep, with and without descent and motion watch."""
    stranger = STRANGERS[name]
    for new in (False, True):
        timing = Timing(ramp_time=RAMP_S, descent_time=2.0 if new else 0.0, watch_motion=new)

        def row(situation: str, arm: FloatingArm, since: float, how: str = "now" if new else "before") -> None:
            numbers = f"{arm.motion(since):.2f} | {arm.speed(since):.2f} | {arm.step(since):.3f}"
            state = arm.compensator.fault_reason or arm.compensator.notice or arm.compensator.state.value
            print(f"| {situation} | {how} | {numbers} | {state} |", flush=True)

        arm = FloatingArm(stranger, timing=timing).enable().let_go()
        since = arm.time
        arm.compensator.interrupt(arm.time, "a fault in which the pose is known")
        row("fault: the 2 s after it", arm.run(2.0), since)
        since = arm.time
        row("… and the 20 s after that", arm.run(20.0), since)
        for factor in (1.5, 0.5):
            arm = FloatingArm(stranger, factor=factor, timing=timing).enable()
            since = arm.time
            arm.let_go()
            arm.compensator.released()
            while arm.time < since + 8.0 and arm.compensator.state is State.ACTIVE:
                arm.run(0.1)
            row(f"moments times {factor:g}, let go: until it is noticed, or 8 s", arm, since)
        for change, load in (("model", False), ("load", True)):
            arm = FloatingArm(stranger, timing=timing).enable().let_go()
            since = arm.time
            arm.compensator.replace(arm.gravity(1.25), arm.settings(), load=load)
            row(f"{change} that adds a quarter of the weight: 4 s", arm.run(4.0), since)


def guide_by_hand(name: str, minutes: float) -> None:
    """Print the force on a hand that guides an arm, with and without the motion watch."""
    for watched in (True, False):
        guiding = lead(STRANGERS[name], minutes, watched=watched)
        root_mean_square = np.sqrt(np.mean(guiding.forces**2))
        forces = f"{root_mean_square:.1f} N RMS, {np.percentile(guiding.forces, 95.0):.1f} N (95 %)"
        print(f"{name}, {'' if watched else 'not '}watched: {forces}, {len(guiding.alarms)} alarms", flush=True)


def main() -> None:
    """Print the tables of each arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", nargs="+", default=["xarm7", "ur5"], choices=STRANGERS, help="arms (default: two)")
    parser.add_argument("--led", type=float, default=0.0, help="simulated minutes of guiding by hand (default: 0)")
    parser.add_argument("--lockstep", action="store_true", help="simulate the faults")
    chosen = parser.parse_args()
    for arm in chosen.arm:
        if chosen.lockstep:
            print(f"\n{arm}\n\n| situation | | motion, rad | speed, rad/s | largest step | state of the compensation |")
            print("|---|---|---|---|---|---|")
            lockstep(arm)
        if chosen.led:
            guide_by_hand(arm, chosen.led)


if __name__ == "__main__":
    main()
