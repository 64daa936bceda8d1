"""Accuracy of the axis, the centre and the angle of one joint from markers.

    python -m benchmarks.mocap_tables [--repetitions 200] [--seed 0]

Three markers 0.15 m off the axis, within 16° about it, 0.3 mm of noise in each coordinate, 2500 frames, four periods of
a sine; then three at 0.15 m and four at 0.25 m for the angle. The tables have root mean squares over the repetitions:
the angle between true and estimated axis, and the distance of the estimated centre from the true axis.

"axis" is the direction in which markers vary least (Gamage and Lasenby 2002). "biased" is the centre by least squares
of squared distances, "centre" its bias-compensated version (Halvorsen 2003). "goal" is the accuracy of a correct
implementation; "stated" are the reported standard errors.

Needs `pip install pytest`.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))
from hinge_bench import REQUIRED_ERRORS, Errors, rms_errors
from hinge_markers import AXIS, place_markers, record_rotation, swing_angle

from dynid_ros.mocap import SingleJoint


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'':>6}{'axis (°)':>25}{'centre (mm)':>49}{'angle (°)':>16}")
    heads = ("axis", "goal", "stated", "biased", "goal", "centre", "goal", "stated", "angle", "stated")
    print(f"{'range':>6}" + "".join(f"{head:>9}" for head in heads))
    for range_deg in tqdm(REQUIRED_ERRORS, disable=None):
        row = rms_errors(range_deg, options.repetitions, options.seed)
        print(
            f"{range_deg:>5.0f}°" + "".join(f"{value:>9.3g}" for value in columns(row, REQUIRED_ERRORS[range_deg])),
            flush=True,
        )
    print("\nlink angle by `SingleJoint`, RMS")
    for name, radius, angles in (
        ("3 markers at 0.15 m", 0.15, (-8, 0, 8)),
        ("4 markers at 0.25 m", 0.25, (0, 80, 190, 280)),
    ):
        error, reported = link_angle(radius, angles, max(1, options.repetitions // 10), options.seed)
        print(f"{name}: {error:.4f}°, reported standard error {reported:.4f}°")


def columns(row: Errors, goal: tuple[float, float, float]) -> tuple[float, ...]:
    """Return the errors with their goals."""
    axis, biased, compensated = goal
    return (
        *(row.direction, axis, row.direction_reported),
        *(row.biased, biased, row.compensated, compensated, row.compensated_reported),
        *(row.angle, row.angle_reported),
    )


def link_angle(radius: float, angles: tuple[float, ...], repetitions: int, seed: int) -> tuple[float, float]:
    """Return the RMS error of the angle over 60°, and the reported standard error, degrees."""
    rng = np.random.default_rng(seed)
    squares = []
    for _ in range(repetitions):
        record = record_rotation(swing_angle(60.0), place_markers(radius, angles), rng)
        result = SingleJoint(towards=AXIS).fit(record.time, record.markers)
        squares.append((np.var(result.angle - record.angle), np.mean(result.standard_errors**2)))
    error, reported = np.rad2deg(np.sqrt(np.mean(squares, axis=0)))
    return float(error), float(reported)


if __name__ == "__main__":
    main()
