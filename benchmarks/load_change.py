"""Detection of pick-ups and drops: delay, and rate of false alarms.

    python -m benchmarks.load_change [--robot demo|panda|ur10] [--rate 125] [--changes 24] [--quiet 600]

Blocks of 1 to 2 kg are picked up and dropped at random times during motion and rest. MuJoCo computes the torques; each
sample has noise of 0.5 % of the effort limits, encoder noise of 2e-5 rad, and errors of Coulomb and viscous friction of
up to 15 %. The first change comes after a minute. A second run has no change.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")  # before numpy is imported

import numpy as np

from dynid_ros.identification import OnlineIdentification
from dynid_ros.identification.online.load_change import LoadChange
from dynid_ros.model import RobotModel
from dynid_ros.simulation.descriptions import demo_arm_urdf

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))
from online_experiment import block, identified_model, measure, moves, mujoco_torque  # noqa: E402
from pinocchio_arm import example_urdf  # noqa: E402

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_link8"),
    "ur10": ("ur_description/urdf/ur10_robot.urdf", "tool0"),
}
FIRST_CHANGE_S = 60.0
CHANGE_PERIOD_S = 10.0
MAX_DELAY_S = 5.0
GOAL_S = 0.5


def run(robot: RobotModel, duration: float, rate: float, times: np.ndarray, seed: int) -> list[LoadChange]:
    """Return the changes that are detected in a run in which a load comes and goes at `times`."""
    rng = np.random.default_rng(seed)
    motion = moves(robot, duration, rate, rng)
    loads = [(time, None if k % 2 else block(rng.uniform(1, 2))) for k, time in enumerate(times)]
    q, torque = measure(robot, motion, mujoco_torque(robot, motion, loads), rng)
    online = OnlineIdentification(robot, arm=identified_model(robot), forgetting=10.0)
    for k, time in enumerate(motion.time):
        online.sample(time, q[k], torque[k])
    return online.changes


def main() -> None:
    """Print the delays and the number of false alarms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=("demo", *ROBOTS), default="demo")
    parser.add_argument("--rate", type=float, default=125.0)
    parser.add_argument("--changes", type=int, default=24)
    parser.add_argument("--quiet", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.robot == "demo":
        robot = RobotModel.from_urdf(demo_arm_urdf())
    else:
        path, tip = ROBOTS[arguments.robot]
        robot = RobotModel.from_urdf(example_urdf(path), tip=tip)
    rng = np.random.default_rng(arguments.seed)
    times = FIRST_CHANGE_S + np.cumsum(CHANGE_PERIOD_S * rng.uniform(0.8, 1.2, arguments.changes))
    noticed = run(robot, times[-1] + CHANGE_PERIOD_S, arguments.rate, times, arguments.seed)
    delays = []
    errors = []
    for time in times:
        detections = [change for change in noticed if time < change.noticed < time + MAX_DELAY_S]
        delays.append(detections[0].noticed - time if detections else np.inf)
        errors.append(detections[0].time - time if detections else np.nan)
        noticed = [change for change in noticed if change not in detections[:1]]
    delay = np.array(delays)
    print(
        f"{robot.name}: {len(delay)} changes, {np.sum(np.isinf(delay))} missed, {np.sum(delay <= GOAL_S)} within "
        f"{GOAL_S} s; delay median {np.median(delay):.2f} s, largest {delay.max():.2f} s; error of the time, median "
        f"{np.nanmedian(np.abs(errors)):.2f} s; {len(noticed)} false alarms"
    )
    if arguments.quiet:
        false = run(robot, arguments.quiet, arguments.rate, np.zeros(0), arguments.seed + 1)
        print(f"{arguments.quiet:g} s without a change: {len(false)} false alarms")
        for change in false:
            print(f"  at {change.noticed:.2f} s, {change.mass:.2f} kg")


if __name__ == "__main__":
    main()
