"""Static calibration of a wrist force sensor: accuracy and coverage, and the result of a real sensor with a tool.

    python -m benchmarks.force_sensor [--repetitions 200] [--seed 0]

Simulated: a tool of 1.3 kg in random orientations, with MuJoCo's wrenches; noise of 0.05 N and 2 mN m, gain errors of
0.5 %, misalignment of 0.1° about each axis of the tip, and a warming sensor: a random walk of the bias whose standard
deviation from first to last pose is the column "drift". The table has medians of the errors, and the share of 95 %
intervals of mass, mass moments and bias that contain the true value.

Real: the folder ft_static of DYNID_DATA.

Needs `pip install mujoco pytest`.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from dynid_ros.identification.load_result import sensor_biases

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from static_wrenches import BIAS, CENTER, MASS, WRIST, calibrate, readings

MISALIGNMENT_RAD = np.radians(0.1)
GAIN_ERROR = 0.005
CONDITIONS = [(poses, drift) for poses in (8, 20, 50) for drift in (0.0, 0.3)]
"""Number of poses, and drift of the force bias in N; the drift of the torque bias is a hundredth, in N m."""


def simulated(repetitions: int, seed: int) -> None:
    """Print a row for each number of poses and drift."""
    print(f"{'poses':>5}{'drift N':>9}{'mass g':>9}{'centre mm':>11}{'bias N':>9}{'covered':>9}")
    for poses, drift in CONDITIONS:
        rng = np.random.default_rng([seed, poses])
        errors = []
        covered = []
        for _ in range(repetitions):
            true = readings(poses, int(rng.integers(2**31)))
            walk = np.cumsum(rng.standard_normal((poses, 6)), axis=0) / np.sqrt(poses)
            wrench = true.read(rng) + GAIN_ERROR * rng.standard_normal(6) * true.load
            wrench += drift * np.repeat([1.0, 0.01], 3) * (walk - walk.mean(axis=0))
            turn = Rotation.from_rotvec(MISALIGNMENT_RAD * rng.standard_normal(3))
            truth = np.concatenate([[MASS], MASS * turn.inv().apply(CENTER), BIAS])
            result = calibrate(true.rotations @ turn.as_matrix(), wrench)
            (bias,) = sensor_biases(result)
            values = np.array([*result.body.parameters[:4], *(value for value, _, _ in bias.values())])
            low, high = result.confidence_intervals()[:4].T
            half = np.array([*(high - low) / 2, *(half for _, _, half in bias.values())])
            center = np.linalg.norm(result.body.center - truth[1:4] / MASS)
            errors.append([1e3 * abs(values[0] - MASS), 1e3 * center, np.linalg.norm(values[4:7] - BIAS[:3])])
            covered.append(np.abs(values - truth) <= half)
        mass, middle, bias = np.nanmedian(errors, axis=0)
        print(f"{poses:>5}{drift:>9.1f}{mass:>9.1f}{middle:>11.2f}{bias:>9.3f}{np.mean(covered):>9.1%}", flush=True)


def real(folder: Path) -> None:
    """Print the result of the recorded poses."""
    with np.load(folder / "poses_even.npz") as archive:
        rotations = Rotation.from_quat(archive["pose_xyz_quat_xyzw"][:, 3:]).as_matrix()
        result = calibrate(rotations, archive["wrench_base"], WRIST.base)
    print("", result.summary(), *result.faults, sep="\n")


def main() -> None:
    """Print both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    simulated(options.repetitions, options.seed)
    if "DYNID_DATA" in os.environ:
        real(Path(os.environ["DYNID_DATA"]) / "ft_static" / "develop")
    else:
        print("DYNID_DATA is not set: set it to the folder with the real recordings")


if __name__ == "__main__":
    main()
