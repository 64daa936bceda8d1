"""Links of public robots with recordings on GitHub, compared with ordinary least squares on held-out motion.

python -m benchmarks.public_links FOLDER [--robot ar5] [--torque-filter cutoff=1.8,order=4,zero_phase]

FOLDER holds clones of liuyurong129/figaroh_kinova, FrankJIE09/Dynamics_identification_Frank,
unisa-acg/inverse-dynamics-solver, thanhndv212/figaroh-examples and
YanjunLIU-ac/Dynamic_Parameter_Identification_for_Rokae_xMate, with torques as recorded and, in xmate_filtered, behind
the zero-phase low-pass of its script. Each recording is divided by time: its
last 40 % are predicted from the first 60 %, and its first 40 % from the last 60 %. AIRBOT's motions predict each other.
"""

import argparse
import sys
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))  # robots are shared with the tests

from pinocchio_arm import example_urdf
from scipy.signal import butter, filtfilt

from benchmarks.real_links import ORDINARY_FRICTION, unseen_errors
from dynid_ros.identification import LinkIdentification
from dynid_ros.model import RobotModel
from dynid_ros.recording import Recording
from dynid_ros.signals.driver_filter import driver_filter

Loaded = tuple[RobotModel, dict[str, Recording], dict]
"""Arm, recordings by motion, and settings of the identification."""
FITTED_FRACTION = 0.6
XMATE_MASSES = (6.0, 5.0, 4.0, 4.0, 3.0, 2.0, 1.0)
"""Guesses, kg."""
XMATE_LENGTHS = (0.3415, 0.0, 0.394, 0.0, 0.366, 0.0, 0.2503)
"""Offsets along the axes in the authors' modified Denavit-Hartenberg table, m."""
XMATE_CUTOFF_HZ = 3.0
"""Cutoff frequency of each pass of the filter of order 5 in the authors' trq_filter.m."""
INERTIA_NAMES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
TIAGO_GAINS = np.array([1, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6])
"""Torque per current, N m/A: gear ratios times torque constants of the authors' identification.py."""


def recording_of(robot: RobotModel, time: np.ndarray, position: np.ndarray, torque: np.ndarray) -> Recording:
    """Return a recording of the robot's joints without velocities; of equal stamps (N,), the first sample is kept."""
    time, samples = np.unique(time, return_index=True)
    return Recording(robot.joint_names, time, position[samples], np.full_like(torque[samples], np.nan), torque[samples])


def load_airbot(folder: Path) -> Loaded:
    """Return the arm with its chirp and its trapezoidal motion, at 100 Hz according to its configuration."""
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


def load_ar5(folder: Path) -> Loaded:
    """Return the arm; its base is mounted on its side, which the URDF does not describe."""
    data = folder / "Dynamics_identification_Frank"
    robot = RobotModel.from_urdf(data / "urdf" / "AR5-5_07R-W4C4A2.urdf")
    rows = np.loadtxt(data / "src" / "config" / "dynamics_identification_data_real.csv", delimiter=",", skiprows=1)
    run = recording_of(robot, rows[:, 0], rows[:, 1:8], rows[:, 22:29])
    return robot, {"motion": run}, {"gravity_direction": "estimated"}


def load_tiago(folder: Path) -> Loaded:
    """Return torso and arm; torques are currents times the authors' gains."""
    example = folder / "figaroh-examples" / "examples" / "tiago"
    robot = RobotModel.from_urdf(example / "urdf" / "tiago.urdf", base="torso_fixed_link", tip="arm_7_link")
    position, current = (
        np.loadtxt(example / "data" / "identification" / "dynamic" / f"tiago_{kind}.csv", delimiter=",", skiprows=1)
        for kind in ("position", "effort")
    )
    return robot, {"motion": recording_of(robot, position[:, 0], position[:, 1:], current[:, 1:] * TIAGO_GAINS)}, {}


def load_ur10(folder: Path) -> Loaded:
    """Return the arm; its torques are low-pass filtered by the authors."""
    robot = RobotModel.from_urdf(example_urdf("ur_description/urdf/ur10_robot.urdf"), tip="tool0")
    bag = (
        folder
        / "inverse-dynamics-solver"
        / "ur10_inverse_dynamics_solver"
        / "bagfiles"
        / "ur10_exciting_trajectory.db3"
    )
    return robot, {"motion": Recording.read(bag, robot.joint_names)}, {}


def load_xmate(folder: Path, *, is_filtered: bool = False) -> Loaded:
    """Return a Rokae xMate of its authors' kinematics, with guessed masses; torques are recorded at 1 kHz."""
    parts = ['<robot name="xmate"><link name="link_0"/>']
    for i, (mass, length) in enumerate(zip(XMATE_MASSES, XMATE_LENGTHS, strict=True), 1):
        angle = 0.0 if i == 1 else np.pi / 2 * (-1) ** (i - 1)
        origin = f'xyz="0 {-np.sin(angle) * length} {np.cos(angle) * length}" rpy="{angle} 0 0"'
        inertia = " ".join(f'{name}="{0.03 * (name[1] == name[2])}"' for name in INERTIA_NAMES)
        parts.append(
            f'<joint name="joint_{i}" type="continuous"><parent link="link_{i - 1}"/><child link="link_{i}"/>'
            f'<origin {origin}/><axis xyz="0 0 1"/></joint><link name="link_{i}"><inertial><mass value="{mass}"/>'
            f"<inertia {inertia}/></inertial></link>"
        )
    robot = RobotModel.from_urdf("".join((*parts, "</robot>")))
    data = folder / "Dynamic_Parameter_Identification_for_Rokae_xMate" / "filtering" / "data" / "excit"
    position, torque = (np.loadtxt(data / f"excit_{kind}_record.txt") for kind in ("ang", "torque"))
    if is_filtered:
        torque = filtfilt(*butter(5, XMATE_CUTOFF_HZ, fs=1000.0), torque, axis=0)
    return robot, {"motion": recording_of(robot, np.arange(len(position)) / 1000.0, position, torque)}, {}


LOADERS = {
    "airbot": load_airbot,
    "ar5": load_ar5,
    "tiago": load_tiago,
    "ur10": load_ur10,
    "xmate": load_xmate,
    "xmate_filtered": partial(load_xmate, is_filtered=True),
}


def divisions(runs: dict[str, Recording]) -> dict[str, tuple[Recording, Recording]]:
    """Return pairs of fitted and held-out motion by name."""
    pairs = {}
    for name, run in runs.items():
        fraction = (run.time - run.time[0]) / run.duration
        is_end = fraction >= FITTED_FRACTION
        is_beginning = fraction < 1 - FITTED_FRACTION
        pairs[f"{name}, end from beginning"] = run.slice(~is_end), run.slice(is_end)
        pairs[f"{name}, beginning from end"] = run.slice(~is_beginning), run.slice(is_beginning)
    for fitted, held_out in permutations(runs, 2):
        pairs[f"{held_out} from {fitted}"] = runs[fitted], runs[held_out]
    return pairs


def main() -> None:
    """Print errors on held-out motion, and their ratios to those of ordinary least squares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--robot", choices=LOADERS, action="append")
    parser.add_argument("--torque-filter", type=driver_filter, default="auto", help="as in dynid identify links")
    options = parser.parse_args()
    for name in options.robot or LOADERS:
        robot, runs, settings = LOADERS[name](options.folder)
        plain_settings = {"friction": ORDINARY_FRICTION, "estimator": "ordinary", "torque_filter": None, **settings}
        for division, (fitted, held_out) in divisions(runs).items():
            rows = []
            for chosen in ({"torque_filter": options.torque_filter, **settings}, plain_settings):
                rms, torque, moves = unseen_errors(LinkIdentification(robot, **chosen).fit(fitted), [held_out])
                rows.append([(rms / torque)[moves].mean(), np.linalg.norm(rms[moves])])
            (share, pooled), (plain_share, plain_pooled) = rows
            print(
                f"{name}: {division:<32} mean {share:6.1%} and {plain_share:6.1%}, ratio {share / plain_share:.2f}; "
                f"pooled {pooled:.3f} and {plain_pooled:.3f} N m, ratio {pooled / plain_pooled:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
