"""Links of public robots whose recordings are on GitHub, against ordinary least squares on motion that was not fitted.

git clone https://github.com/liuyurong129/figaroh_kinova
git clone https://github.com/FrankJIE09/Dynamics_identification_Frank
git clone https://github.com/thanhndv212/figaroh-examples
git clone https://github.com/unisa-acg/inverse-dynamics-solver
python -m benchmarks.public_links FOLDER [--robot ar5] [--torque-filter cutoff=1.8,order=4,zero_phase]

FOLDER holds the clones. Each recording is divided by its time alone, once for all robots: the last 40 % are predicted
from the first 60 %, and the first 40 % from the last 60 %. AIRBOT's two motions also predict each other.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # robots are shared with the tests

from pinocchio_arm import example_urdf

from benchmarks.real_links import ORDINARY_FRICTION, unseen_errors
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.driver_filter import driver_filter

FITTED_FRACTION = 0.6
TIAGO_GAINS = np.array([1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6])
"""Torque per current, N m/A: gear ratios times torque constants of the authors' identification.py."""


def recording_of(robot: RobotModel, time: np.ndarray, position: np.ndarray, torque: np.ndarray) -> Recording:
    """Make a recording of the robot's joints without velocities; of repeated stamps (N,) the first sample is kept."""
    time, samples = np.unique(time, return_index=True)
    return Recording(robot.joint_names, time, position[samples], np.full_like(torque[samples], np.nan), torque[samples])


def load_airbot(folder: Path) -> tuple[RobotModel, dict[str, Recording], dict]:
    """Return the arm, its chirp and its trapezoidal motion, at 100 Hz by its configuration."""
    data = folder / "figaroh_kinova" / "examples" / "airbot_play" / "data"
    robot = RobotModel.from_urdf(data / "urdf" / "airbot_play_v3_0_gripper.urdf", base="base_link", tip="link6")
    runs = {}
    for motion in ("chirp", "trapezoidal"):
        files = data / "identification" / f"{motion}_motion"
        position, torque = (
            np.loadtxt(files / f"identification_{kind}_real.csv", delimiter=",", skiprows=1) for kind in ("q", "tau")
        )
        runs[motion] = recording_of(robot, np.arange(len(position)) * 0.01, position, torque)
    return robot, runs, {}


def load_ar5(folder: Path) -> tuple[RobotModel, dict[str, Recording], dict]:
    """Return the arm, whose base is mounted on its side, which the URDF does not say."""
    data = folder / "Dynamics_identification_Frank"
    robot = RobotModel.from_urdf(data / "urdf" / "AR5-5_07R-W4C4A2.urdf")
    rows = np.loadtxt(data / "src" / "config" / "dynamics_identification_data_real.csv", delimiter=",", skiprows=1)
    run = recording_of(robot, rows[:, 0], rows[:, 1:8], rows[:, 22:29])
    return robot, {"motion": run}, {"gravity_direction": "estimated"}


def load_tiago(folder: Path) -> tuple[RobotModel, dict[str, Recording], dict]:
    """Return torso and arm; currents times the authors' gains are torques."""
    example = folder / "figaroh-examples" / "examples" / "tiago"
    robot = RobotModel.from_urdf(example / "urdf" / "tiago.urdf", base="torso_fixed_link", tip="arm_7_link")
    position, current = (
        np.loadtxt(example / "data" / "identification" / "dynamic" / f"tiago_{kind}.csv", delimiter=",", skiprows=1)
        for kind in ("position", "effort")
    )
    return robot, {"motion": recording_of(robot, position[:, 0], position[:, 1:], current[:, 1:] * TIAGO_GAINS)}, {}


def load_ur10(folder: Path) -> tuple[RobotModel, dict[str, Recording], dict]:
    """Return the arm, whose torques the authors low-passed."""
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="tool0")
    bag = (
        folder
        / "inverse-dynamics-solver"
        / "ur10_inverse_dynamics_solver"
        / "bagfiles"
        / "ur10_exciting_trajectory.db3"
    )
    return robot, {"motion": Recording.read(bag, robot.joint_names)}, {}


LOADERS: dict[str, Callable[[Path], tuple[RobotModel, dict[str, Recording], dict]]] = {
    "airbot": load_airbot,
    "ar5": load_ar5,
    "tiago": load_tiago,
    "ur10": load_ur10,
}


def divisions(runs: dict[str, Recording]) -> dict[str, tuple[Recording, Recording]]:
    """Return pairs of fitted and unseen motion by name."""
    pairs = {}
    for name, run in runs.items():
        fraction = (run.time - run.time[0]) / run.duration
        is_end, is_beginning = fraction >= FITTED_FRACTION, fraction < 1 - FITTED_FRACTION
        pairs[f"{name}, end from beginning"] = run.slice(~is_end), run.slice(is_end)
        pairs[f"{name}, beginning from end"] = run.slice(~is_beginning), run.slice(is_beginning)
    names = list(runs)
    for fitted, unseen in zip(names, names[1:] + names[:1], strict=True):
        if fitted != unseen:
            pairs[f"{unseen} from {fitted}"] = runs[fitted], runs[unseen]
    return pairs


def main() -> None:
    """Print errors of unseen motion, and their ratios to those of ordinary least squares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--robot", choices=LOADERS, action="append")
    parser.add_argument("--torque-filter", default="auto", help="as of dynid identify links")
    options = parser.parse_args()
    torque_filter = driver_filter(options.torque_filter)
    for name in options.robot or LOADERS:
        robot, runs, settings = LOADERS[name](options.folder)
        for division, (fitted, unseen) in divisions(runs).items():
            result = LinkIdentification(robot, torque_filter=torque_filter, **settings).fit(fitted)
            ordinary = LinkIdentification(
                robot, friction=ORDINARY_FRICTION, estimator="ordinary", torque_filter=None, **settings
            ).fit(fitted)
            rms, torque, moves = unseen_errors(result, [unseen])
            plain = unseen_errors(ordinary, [unseen])[0]
            share, plain_share = (rms / torque)[moves].mean(), (plain / torque)[moves].mean()
            pooled, plain_pooled = np.linalg.norm(rms[moves]), np.linalg.norm(plain[moves])
            ratios = share / plain_share, pooled / plain_pooled
            print(
                f"{name}: {division:<32} mean {share:6.1%}, ordinary {plain_share:6.1%}, ratio {ratios[0]:.2f}; "
                f"pooled {pooled:6.3f} N m, ordinary {plain_pooled:6.3f} N m, ratio {ratios[1]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
