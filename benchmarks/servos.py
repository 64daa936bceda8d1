"""Identification of servos without torque, in MuJoCo: errors of delay, inertia and friction, and coverage.

    python -m benchmarks.servos [--runs 100] [--seed 0] [--arm so101] [--mass 0.3] [--known-gains]

Each run has its own servos and links, up to 20 % and 30 % different from the documented values, which the model uses.
The recordings have 12 s of commands at 50 Hz, encoders of 12 bits at 100 Hz, and stamps with 1 ms of jitter. `--mass`
adds the same motion with a known mass on the tip, and states all values in N m. `--known-gains` uses the true stiffness
and damping, also in N m. g1 and kinova have drives in MIT mode: commands and states at 200 Hz, with velocities and
gravity feed-forward, and encoders of 16 bits; their gains are always known. Seeds start at 1000.

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
from mit_arms import alex, g1, kinova, record_drives, tiago
from servo_arms import ServoArm, compared_poses, motion, record, so101, truth, viper

MIT_ARMS = {"g1": g1, "kinova": kinova}
ARMS = {"so101": so101, "viper": viper, "tiago": tiago, "alex": alex, **MIT_ARMS}
FIRST_SEED = 1000
DURATION_S = 12.0
COMMAND_RATE_HZ = 50.0
MASS_CENTER_M = (0.0, 0.03, -0.05)
"""Position of the known mass in the frame of the tip."""
LABELS = ("delay", "gain", "inertia", "armature", "viscous", "coulomb", "offset")


def errors(arm: ServoArm, mass: float, *, mit: bool, known_gains: bool) -> dict[str, list[tuple[float, float, float]]]:
    """Return error, half width and true value of each joint by label; over the gain, or in N m with a mass or gains."""
    command = motion(arm, DURATION_S, COMMAND_RATE_HZ)
    plain = record_drives(arm, DURATION_S) if mit else record(arm, command)
    loaded = {}
    if known_gains:
        mass = 0.0
    if mass:
        loaded["with_mass"] = [record(arm, command, mass=mass, center=MASS_CENTER_M)]
    settings = {"reference_mass": mass, "reference_center": MASS_CENTER_M} if mass else {}
    if known_gains:
        settings = {name: arm.per_joint(name) for name in ("stiffness", "damping")}
    result = ServoIdentification(arm.robot, **settings).fit(plain, **loaded)
    true = truth(arm, compared_poses(result))
    rows: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    in_torque = bool(mass) or known_gains
    if known_gains:
        true["viscous"] = true["viscous"] - arm.per_joint("damping")
    for j, joint in enumerate(result.joints.values()):
        estimates = {**joint.over_gain, **joint.in_torque} if in_torque else joint.over_gain
        has_torque = in_torque and bool(joint.in_torque)
        for label in LABELS:
            if known_gains and label == "gain":
                continue
            if label not in estimates or not np.isfinite(estimates[label][1]):
                continue
            if has_torque or not in_torque or label == "delay":
                value, std = estimates[label]
                true_value = true[label][j] / (1.0 if in_torque or label == "delay" else true["gain"][j])
                rows[label].append((value - true_value, joint.half(std), true_value))
    return rows


def main() -> None:
    """Print a table for each arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs of each arm")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--arm", action="append", choices=ARMS, help="arm, may be repeated (default: all)")
    parser.add_argument(
        "--mass", type=float, default=0.0, help="known mass on the tip, kg (default: none, all values over the gain)"
    )
    parser.add_argument("--known-gains", action="store_true", help="use the true stiffness and damping")
    options = parser.parse_args()
    whole: list[bool] = []
    for name in options.arm or ARMS:
        rows_by_label = defaultdict(list)
        seeds = range(FIRST_SEED + options.seed, FIRST_SEED + options.seed + options.runs)
        for seed in tqdm(seeds, name, disable=None):
            mit = name in MIT_ARMS
            known_gains = mit or options.known_gains
            for label, rows in errors(ARMS[name](seed), options.mass, mit=mit, known_gains=known_gains).items():
                rows_by_label[label] += rows
        print(
            f"\n{name}, {options.runs} runs\n| | worst | RMS error | half interval, median | inside |",
            "|---|---|---|---|---|",
            sep="\n",
        )
        for label, rows in rows_by_label.items():
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
