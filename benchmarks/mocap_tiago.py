"""Registration of markers on TIAGo's hand in 22 static poses: fit, leave-one-out and held-out residuals.

python -m benchmarks.mocap_tiago [CSV URDF] [--unseen OTHER_CSV] [--tip arm_7_link]

A table has a header, columns x1, y1, z1 … of the markers in m, and one column per joint in rad or m. Residuals are
distances between measured and predicted markers, RMS over poses and markers. The default files are in DYNID_DATA.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # known problems are shared with the tests

from hand_poses import TIAGO_CSV, TIAGO_URDF, distances, read_poses
from real_recordings import MISSING

from dynid_ros.mocap.marker_set import MarkerSet
from dynid_ros.mocap.registration import Registration, register
from dynid_ros.model import RobotModel


def main() -> None:
    """Print fit, leave-one-out and held-out residuals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path, nargs="?", default=TIAGO_CSV)
    parser.add_argument("urdf", type=Path, nargs="?", default=TIAGO_URDF)
    parser.add_argument("--unseen", type=Path, help="table of poses to predict with the fit to all poses of CSV")
    parser.add_argument("--tip", default="arm_7_link", help="link that carries the markers")
    options = parser.parse_args()
    if not options.csv.is_file():
        sys.exit(f"{options.csv}: no such file; {MISSING}")
    robot = RobotModel.from_urdf(options.urdf, tip=options.tip)
    motor, positions = read_poses(options.csv, robot)
    # The tracker keeps the distances of these markers exactly: it reports a fitted rigid body.
    markers = MarkerSet.on_links(robot, [options.tip] * positions.shape[1], dof=6 / positions.shape[1])
    fit = register(robot, markers, motor, positions)
    print(fit.summary())
    show("fitted", distances(robot, fit, motor, positions))
    show("each pose predicted by the fit of all others", left_out(robot, markers, motor, positions))
    if options.unseen:
        show(f"unseen, {options.unseen.name}", distances(robot, fit, *read_poses(options.unseen, robot)))


def left_out(robot: RobotModel, markers: MarkerSet, motor: NDArray, positions: NDArray) -> NDArray:
    """Return the distances (K, P), m, of each pose by a fit to the others."""
    rows = np.arange(len(motor))

    def without(row: int) -> Registration:
        return register(robot, markers, motor[rows != row], positions[rows != row])

    return np.concatenate([distances(robot, without(k), motor[[k]], positions[[k]]) for k in rows])


def show(label: str, distance: NDArray) -> None:
    """Print a row."""
    rms, median, largest = np.sqrt(np.mean(distance**2)), np.median(distance), distance.max()
    print(
        f"{label}, {len(distance)} poses: {1000 * rms:.2f} mm RMS, median {1000 * median:.2f}, largest "
        f"{1000 * largest:.1f}"
    )


if __name__ == "__main__":
    main()
