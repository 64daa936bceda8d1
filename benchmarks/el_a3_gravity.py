"""Gravity identification of a real arm with MIT-mode drives: torques at rest in unseen poses, against least squares.

    git clone https://github.com/wing-kit/EDULITE_A3; git -C EDULITE_A3 checkout bbdf664
    python -m benchmarks.el_a3_gravity EDULITE_A3

The recording (MIT licence) shows a RobStride EL-A3 with six joints: 67 static poses, with commanded and measured
positions and the torques that the drives report. It contains no motion. Every second pose is fitted and the others are
predicted, then vice versa; the last row fits two thirds. Least squares uses the gravity regressor and an offset per
joint. The mean is taken over the joints that the fit can predict.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid_ros.identification import GravityIdentification
from dynid_ros.identification.static_samples import SampleRules, Samples
from dynid_ros.model import RobotModel

URDF = "el_a3_ros/el_a3_description/urdf/el_a3.urdf"
POSES = "el_a3_ros/scripts/calibration_results/calibration_data.jsonl"
TIP_LINK = "l5_l6_urdf_asm"
HOME = "home"


def read(path: Path) -> Samples:
    """Return the static poses of a file; friction opposes the last move of each joint."""
    header, *rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    position = np.array([row["position"] for row in rows])
    torque = np.array([row["effort"] for row in rows])
    moves = np.diff(np.vstack([header[HOME], position]), axis=0)
    direction = np.where(np.abs(moves) > SampleRules.minimum_approach, np.sign(moves), 0.0)
    for k in range(1, len(direction)):
        direction[k] = np.where(direction[k] == 0.0, direction[k - 1], direction[k])
    count = len(rows)
    return Samples(
        position,
        np.zeros_like(position),
        torque,
        direction,
        np.ones(count, dtype=bool),
        np.arange(count, dtype=float),
        np.zeros(count, dtype=int),
    )


def least_squares_errors(robot: RobotModel, fitted: Samples, held_out: Samples) -> NDArray:
    """Return the torque errors (M, n), N m, of unweighted least squares without friction."""

    def matrix(samples: Samples) -> NDArray:
        regressor = robot.gravity_regressor(samples.position)
        offsets = np.broadcast_to(np.eye(robot.n_joints), (len(samples), robot.n_joints, robot.n_joints))
        return np.concatenate([regressor, offsets], axis=2).reshape(-1, regressor.shape[2] + robot.n_joints)

    solution = np.linalg.lstsq(matrix(fitted), fitted.torque.ravel(), rcond=1e-9)[0]
    return (matrix(held_out) @ solution).reshape(held_out.torque.shape) - held_out.torque


def main() -> None:
    """Print a row for each division of the poses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="folder of the repository")
    clone = parser.parse_args().clone
    robot = RobotModel.from_urdf(clone / URDF, tip=TIP_LINK)
    samples = read(clone / POSES)
    index = np.arange(len(samples))
    print("| fitted, unseen poses | joints | torque, N m RMS | URDF | least squares | identified |")
    print("|---|---|---|---|---|---|")
    for is_fitted in (index % 2 == 0, index % 2 == 1, index % 3 > 0):
        fitted = samples.take(np.flatnonzero(is_fitted))
        held_out = samples.take(np.flatnonzero(~is_fitted))
        rms = GravityIdentification(robot).fit_samples(fitted).validate_samples(held_out, "held-out poses").rms
        predictable = np.isfinite(rms)
        errors = (
            held_out.torque,
            robot.gravity_torque(held_out.position) - held_out.torque,
            least_squares_errors(robot, fitted, held_out),
        )
        cells = [np.sqrt(np.mean(error[:, predictable] ** 2)) for error in errors]
        cells.append(np.sqrt(np.mean(rms[predictable] ** 2)))
        numbers = " | ".join(f"{cell:.3f}" for cell in cells)
        print(f"| {len(fitted)}, {len(held_out)} | {predictable.sum()} | {numbers} |")


if __name__ == "__main__":
    main()
