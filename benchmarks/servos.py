"""Servos without torque in MuJoCo: how far off delay, inertia and friction are, and whether 95 % intervals hold.

    python -m benchmarks.servos [--runs 100] [--seed 0] [--arm so101] [--mass 0.3] [--known-gains]

Each run has servos and links of its own: up to 20 % and 30 % others than written, and than the model is told. 12 s of
commands at 50 Hz; encoders of 12 bits at 100 Hz; stamps uneven by 1 ms. With `--mass` the same motion again with a
known mass on the tip, and all of it in N m. With `--known-gains` stiffness and damping are given, and all is in N m
too. g1 and kinova have drives in MIT mode: commands and states at 200 Hz, with velocities and a part of gravity, and
encoders of 16 bits; their gains are always known. Seeds are those from 1000 on.

Needs `pip install mujoco pytest example-robot-data`.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from dynid_ros.identification import ServoIdentification

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from mit_arms import alex, g1, kinova, recorded, tiago
from servo_arms import ServoArm, compared_poses, motion, record, so101, truth, viper

MIT_ARMS = {"g1": g1, "kinova": kinova}
ARMS = {"so101": so101, "viper": viper, "tiago": tiago, "alex": alex, **MIT_ARMS}
FIRST = 1000
DURATION, COMMANDS = 12.0, 50.0
CENTER = (0.0, 0.03, -0.05)
"""m, of the mass in the tip's frame."""
LABELS = ("delay", "gain", "inertia", "armature", "viscous", "coulomb", "offset")


def errors(arm: ServoArm, mass: float, *, mit: bool, known_gains: bool) -> dict[str, list[tuple[float, float, float]]]:
    """Error, half interval and truth of each joint by label; over the gain, in N m with a mass or known gains."""
    command = motion(arm, DURATION, COMMANDS)
    plain = recorded(arm, DURATION) if mit else record(arm, command)
    more = {}
    if known_gains:
        mass = 0.0
    if mass:
        more["with_mass"] = [record(arm, command, mass=mass, center=CENTER)]
    settings = {"reference_mass": mass, "reference_center": CENTER} if mass else {}
    if known_gains:
        settings = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    result = ServoIdentification(arm.robot, **settings).fit(plain, **more)
    true = truth(arm, compared_poses(result))
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    in_torque = bool(mass) or known_gains
    if known_gains:
        true["viscous"] = true["viscous"] - arm.per_joint("damping")
    for j, joint in enumerate(result.joints.values()):
        own = {**joint.over_gain, **joint.in_torque} if in_torque else joint.over_gain
        known = in_torque and bool(joint.in_torque)
        for label in LABELS:
            if known_gains and label == "gain":
                continue
            if label in own and np.isfinite(own[label][1]) and (known or not in_torque or label == "delay"):
                right = true[label][j] / (1.0 if in_torque or label == "delay" else true["gain"][j])
                found[label].append((own[label][0] - right, joint.half(own[label][1]), right))
    return found


def main() -> None:
    """Print a table for each arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="of each arm")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--arm", action="append", choices=ARMS, help="several; default: all")
    parser.add_argument("--mass", type=float, default=0.0, help="kg; default: none, everything over the gain")
    parser.add_argument("--known-gains", action="store_true", help="stiffness and damping are given")
    options = parser.parse_args()
    whole: list[bool] = []
    for name in options.arm or ARMS:
        found = defaultdict(list)
        seeds = range(FIRST + options.seed, FIRST + options.seed + options.runs)
        for seed in tqdm(seeds, name, disable=None):
            mit = name in MIT_ARMS
            known_gains = mit or options.known_gains
            for label, rows in errors(ARMS[name](seed), options.mass, mit=mit, known_gains=known_gains).items():
                found[label] += rows
        print(
            f"\n{name}, {options.runs} runs\n| | worst | RMS error | half interval, median | inside |",
            "|---|---|---|---|---|",
            sep="\n",
        )
        for label, rows in found.items():
            error, half, right = np.array(rows).T
            inside = np.abs(error) <= half
            whole += inside.tolist()
            scale, unit = (1e3, "ms") if label == "delay" else (100 / np.abs(right + (right == 0)), "%")
            if label == "offset":
                scale, unit = (1e3, "N mm" if options.mass or known_gains else "mrad")
            size = np.abs(error * scale)
            print(
                f"| {label} | {size.max():.2g} {unit} | {np.sqrt(np.mean(size**2)):.2g} {unit} | "
                f"{np.median(half * scale):.2g} {unit} | {100 * inside.mean():.1f} % of {inside.size} |",
                flush=True,
            )
    print(f"\nall: {100 * np.mean(whole):.1f} % of {len(whole)} intervals hold")


if __name__ == "__main__":
    main()
