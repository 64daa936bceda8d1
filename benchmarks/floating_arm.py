"""What a simulated arm does that floats on gravity compensation: through faults, loads and wrong models, step by step.

    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --lockstep
    python -m benchmarks.floating_arm --arm xarm7 ur5 z1 --led 20

Sensors have the simulator's default errors, efforts an offset of 2 % of the range. The arms are public ones that
nothing was tuned on. A row is a situation: how far the farthest joint went, its speed, the largest step of a command as
a part of the joint's effort limit, and what the compensation says. Needs `pip install mujoco pytest
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
    """Print what an arm does in lockstep, with and without descent and watch."""
    stranger = STRANGERS[name]
    for new in (False, True):
        timing = Timing(ramp_time=RAMP_S, descent_time=2.0 if new else 0.0, watch_motion=new)

        def row(what: str, arm: FloatingArm, since: float, how: str = "now" if new else "before") -> None:
            numbers = f"{arm.motion(since):.2f} | {arm.speed(since):.2f} | {arm.step(since):.3f}"
            said = arm.compensator.fault_reason or arm.compensator.notice or arm.compensator.state.value
            print(f"| {what} | {how} | {numbers} | {said} |", flush=True)

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
        for what, load in (("model", False), ("load", True)):
            arm = FloatingArm(stranger, timing=timing).enable().let_go()
            since = arm.time
            arm.compensator.replace(arm.gravity(1.25), arm.settings(), load=load)
            row(f"{what} that adds a quarter of the weight: 4 s", arm.run(4.0), since)


def led(name: str, minutes: float) -> None:
    """Print what a hand feels that leads an arm, with and without the watch of the motion."""
    for watched in (True, False):
        guiding = lead(STRANGERS[name], minutes, watched=watched)
        root_mean_square = np.sqrt(np.mean(guiding.forces**2))
        forces = f"{root_mean_square:.1f} N RMS, {np.percentile(guiding.forces, 95.0):.1f} N (95 %)"
        print(f"{name}, {'' if watched else 'not '}watched: {forces}, {len(guiding.alarms)} alarms", flush=True)


def main() -> None:
    """Print the table of each arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arm", nargs="+", default=["xarm7", "ur5"], choices=STRANGERS, help="arms (default: two)")
    parser.add_argument("--led", type=float, default=0.0, help="minutes of simulated time by hand (default: 0)")
    parser.add_argument("--lockstep", action="store_true", help="play the faults")
    chosen = parser.parse_args()
    for arm in chosen.arm:
        if chosen.lockstep:
            print(f"\n{arm}\n\n| situation | | motion, rad | speed, rad/s | largest step | the compensation says |")
            print("|---|---|---|---|---|---|")
            lockstep(arm)
        if chosen.led:
            led(arm, chosen.led)


if __name__ == "__main__":
    main()
